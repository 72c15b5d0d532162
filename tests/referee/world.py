"""Real games of hit-and-blow as the requests of both players, proved beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mastermind.game.certificate import Certificate
from mastermind.game.play import Table
from mastermind.game.secret_files import GameSecret, PlayerKey
from mastermind.game.transcript import Transcript, VerifyingKeys
from mastermind.referee.client import make_consent
from mastermind.referee.contract import Role
from mastermind.referee.referee import Clock, Referee, Terms
from mastermind.referee.requests import (
    AcceptGame,
    ClaimReward,
    Consent,
    ForfeitWin,
    GiveClue,
    InitGame,
    MakeGuess,
    Request,
    Settle,
)
from mastermind.referee.storage import RefereeRecord, Storage
from mastermind.rules import Code, Rules
from mastermind.zk.artifacts import KeySet
from mastermind.zk.evidence import canonical_json
from mastermind.zk.prove import NativeProver
from mastermind.zk.verify import NativeVerifier, Verifier

RULES = Rules.parse("hit-and-blow")
REWARD, WELCOME, SUPPLY = 10, 100, 10_000
SECRET: Code = (7, 4, 6, 0)
WRONG: Code = (0, 4, 5, 7)


class FakeClock:
    """Slots that a test sets."""

    def __init__(self, slot: int = 1_000) -> None:
        self.slot = slot

    def __call__(self) -> int:
        return self.slot


@dataclass
class PlayedGame:
    """One game: the request of each event, in order, and what else was made on the way."""

    world: World
    game: int
    master: PlayerKey
    breaker: PlayerKey
    kept: GameSecret
    transcript: Transcript
    requests: list[Request] = field(default_factory=list)

    def consent(self, key: PlayerKey, action: str, amount: int, game: int | None = None) -> Consent:
        world = self.world
        return make_consent(
            world.table.key_set,
            world.table.prover,
            key,
            action,
            referee_id=world.referee_key.id,
            game=self.game if game is None else game,
            amount=amount,
        )

    def claim(self, key: PlayerKey, amount: int = 2 * REWARD) -> ClaimReward:
        return ClaimReward(key.id, amount, self.consent(key, "claim_reward", amount))

    def forfeit(self, winner: Role, key: PlayerKey | None = None, amount: int = 2 * REWARD) -> ForfeitWin:
        key = key or self.world.referee_key
        return ForfeitWin(key.id, winner, amount, self.consent(key, ForfeitWin.action(winner), amount))

    def settle(self, key: PlayerKey) -> Settle:
        return Settle(key.id, self.consent(key, "settle", 0))

    def certificate(self, steps: int | None = None) -> Certificate:
        """Of the first `steps` steps, or all."""
        cut = Transcript(
            self.transcript.rules,
            self.transcript.key_set_id,
            self.transcript.steps[: steps or len(self.transcript.steps)],
        )
        return self.world.table.certify(cut, self.master, self.kept)


class World:
    """The keys of a referee and its players, and the table to make proofs at."""

    def __init__(self, key_set: KeySet) -> None:
        self.table = Table(RULES, key_set, NativeProver())
        self.referee_key = PlayerKey.new()
        self.keys = VerifyingKeys.of(key_set, RULES)
        self._storages: list[Storage] = []

    def play(
        self,
        guesses: Sequence[Code],
        *,
        secret: Code = SECRET,
        master: PlayerKey | None = None,
        breaker: PlayerKey | None = None,
        reward: int = REWARD,
        clues: int | None = None,
    ) -> PlayedGame:
        """A game of these guesses; `clues` are given, by default to all of them."""
        master, breaker = master or PlayerKey.new(), breaker or PlayerKey.new()
        transcript, kept = self.table.open_game(master, secret)
        opening = transcript.steps[0]
        played = PlayedGame(self, opening.step.public_signals[0], master, breaker, kept, transcript)
        played.requests.append(
            InitGame(RULES, transcript.key_set_id, reward, opening, played.consent(master, "init_game", reward))
        )
        transcript = self.table.join_game(transcript, breaker)
        consent = played.consent(breaker, "accept_game", reward)
        played.requests.append(AcceptGame(reward, transcript.steps[-1], consent))
        records: list[GameSecret] = [kept]
        for turn, guess in enumerate(guesses):
            transcript = self.table.make_guess(transcript, breaker, guess)
            played.requests.append(MakeGuess(transcript.steps[-1]))
            if clues is None or turn < clues:
                transcript = self.table.give_clue(transcript, master, records[-1], records.append)
                played.requests.append(GiveClue(transcript.steps[-1]))
        played.transcript, played.kept = transcript, records[-1]
        return played

    def referee(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        terms: Terms | None = None,
        verifier: Verifier | None = None,
        create: bool = True,
        supply: int = SUPPLY,
    ) -> Referee:
        """A referee over new books (or old ones, with `create=False`)."""
        storage = self.storage(url)
        if create:
            storage.create(RefereeRecord(self.referee_key.id, 180, supply))
        terms = terms or Terms(welcome=WELCOME, allow_development_keys=True)
        return Referee(storage, {self.keys.id: self.keys}, verifier or NativeVerifier(), terms, clock)

    def storage(self, url: str) -> Storage:
        """A storage that `close` closes."""
        self._storages.append(Storage(url))
        return self._storages[-1]

    def close(self) -> None:
        """Close all storages."""
        while self._storages:
            self._storages.pop().close()


def body(request: Request) -> bytes:
    """A request as it is sent."""
    return canonical_json(request.to_json())


def send(referee: Referee, played: PlayedGame, *requests: Request) -> list[str]:
    """Send requests about a game and return the answers."""
    return [
        referee.act(request.method, None if isinstance(request, InitGame) else played.game, body(request))
        for request in requests
    ]
