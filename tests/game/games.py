"""Games with real proofs for the tests, and a second key set for the same rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mastermind.game.circuits import specs
from mastermind.game.play import Table
from mastermind.game.secret_files import GameSecret, PlayerKey
from mastermind.game.transcript import Transcript
from mastermind.rules import Rules
from mastermind.zk.artifacts import ArtifactStore, KeySet
from mastermind.zk.prove import self_test


@dataclass(frozen=True)
class Played:
    """A game so far, with everything that its two players keep.

    Attributes:
        opened: the master's record before any clue.
        kept: the master's record after the last one.
    """

    table: Table
    master: PlayerKey
    breaker: PlayerKey
    opened: GameSecret
    kept: GameSecret
    transcript: Transcript

    def cut(self, steps: int) -> Transcript:
        """The transcript as it was after so many steps."""
        return replace(self.transcript, steps=self.transcript.steps[:steps])

    def again(self, guesses: Sequence[Sequence[int]]) -> Played:
        """Another game of the same players on the same opening: only the breaker's nonce is new."""
        transcript = self.table.join_game(self.cut(1), self.breaker)
        return _turns(replace(self, kept=self.opened, transcript=transcript), guesses)


def play(
    table: Table,
    secret: Sequence[int],
    guesses: Sequence[Sequence[int]],
    *,
    master: PlayerKey | None = None,
    breaker: PlayerKey | None = None,
) -> Played:
    """Open a game, join it and play these guesses, each answered."""
    master, breaker = master or PlayerKey.new(), breaker or PlayerKey.new()
    transcript, opened = table.open_game(master, secret)
    joined = Played(table, master, breaker, opened, opened, table.join_game(transcript, breaker))
    return _turns(joined, guesses)


def _turns(game: Played, guesses: Sequence[Sequence[int]]) -> Played:
    records = [game.kept]
    transcript = game.transcript
    for guess in guesses:
        transcript = game.table.make_guess(transcript, game.breaker, guess)
        transcript = game.table.give_clue(transcript, game.master, records[-1], records.append)
    return replace(game, kept=records[-1], transcript=transcript)


def build_other_key_set(shared: ArtifactStore, rules: Rules) -> tuple[ArtifactStore, KeySet]:
    """A second key set for some rules, in a home of its own: another machine's. Built once, as all keys are."""
    home = shared.home / "test_other_keys"
    home.mkdir(parents=True, exist_ok=True)
    for name in ("node", "phase1"):
        (shared.home / name).mkdir(exist_ok=True)
        try:
            (home / name).symlink_to(shared.home / name)
        except FileExistsError:
            pass  # Made before, or by a test run beside this one.
    store = ArtifactStore(home)
    return store, store.build_key_set(rules.spelling, specs(rules), self_test)
