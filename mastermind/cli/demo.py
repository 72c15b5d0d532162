"""`mastermind demo`: a whole game before one's eyes, every step proved and verified, down to the certificate."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable
from typing import Any

import click

from mastermind.cli.board import show_clue, show_code, show_rules, show_status
from mastermind.cli.options import make_prover, make_verifiers, prover_option, rules_option, verifier_option
from mastermind.cli.output import (
    ACCEPTED,
    EXIT_CODES,
    ProgressLine,
    command_errors,
    json_option,
    print_json,
    store_option,
)
from mastermind.errors import counted
from mastermind.game.circuits import specs
from mastermind.game.play import Table
from mastermind.game.secret_files import GameSecret, PlayerKey
from mastermind.game.steps import GameState
from mastermind.game.transcript import Transcript
from mastermind.rules import Code, Rules
from mastermind.zk.artifacts import ArtifactStore
from mastermind.zk.prove import self_test
from mastermind.zk.verify import Verifier


@click.command(epilog=EXIT_CODES)
@rules_option
@click.option("--seed", type=int, help="Play the same secret and guesses again; keys and salts stay random.")
@prover_option
@verifier_option
@json_option
@store_option
@command_errors
def demo(
    rules: Rules, seed: int | None, prover_name: str, verifier_name: str, as_json: bool, store: ArtifactStore
) -> None:
    """Play a whole game with a real proof for every step, and verify each one.

    \b
    Examples:
      mastermind demo
      mastermind demo --rules classic --seed 7 --verifier all
    """
    key_set = store.build_key_set(rules.spelling, specs(rules), self_test, progress=ProgressLine(quiet=as_json))
    table = Table(rules, key_set, make_prover(prover_name, store))
    show = _Demonstration(table, make_verifiers(verifier_name, store), quiet=as_json)
    master, breaker = PlayerKey.new(), PlayerKey.new()
    # The board may repeat; what hides the secret never does.
    choice = random.Random(seed) if seed is not None else random.SystemRandom()  # noqa: S311
    codes = _all_codes(rules)
    secret = choice.choice(codes)

    show.say(
        f"\n{rules.name}: {show_rules(rules)}, "
        f"{counted(rules.attempts, 'attempt')}, {rules.code_count:,} codes. {key_set.status.capitalize()} keys.\n"
    )
    kept: list[GameSecret] = []

    def open_game() -> Transcript:
        transcript, opened = table.open_game(master, secret)
        kept.append(opened)
        return transcript

    transcript = show.move(open_game, lambda _: "the master commits")
    transcript = show.move(lambda: table.join_game(transcript, breaker), lambda _: "the breaker joins")
    while not (state := transcript.state()).over:
        guess = choice.choice(codes)
        guessed = show.move(
            lambda: table.make_guess(transcript, breaker, guess),  # noqa: B023 (called at once)
            lambda state: f"guess {len(state.guesses):>2}  {show_code(state.guesses[-1])}",
        )
        transcript = show.move(
            lambda: table.give_clue(guessed, master, kept[-1], kept.append),  # noqa: B023 (called at once)
            lambda state: f"          {show_clue(rules, state.clues[-1])}",
        )
        # The breaker goes by the clue that is proved, and by nothing else.
        clue = transcript.state().clues[-1]
        codes = [code for code in codes if code != guess and rules.score(code, guess) == clue]

    show.say(f"\n{show_status(state)} The secret was {show_code(secret)}.")
    show.say(show.summary())
    start = time.perf_counter()
    certificate = table.certify(transcript, master, kept[-1])
    made = time.perf_counter()
    for verifier in show.verifiers:
        certificate.verify(table.keys, verifier)
    verified = time.perf_counter()
    show.say(
        f"Certificate of the whole game: made in {(made - start) * 1000:.0f} ms, "
        f"verified in {(verified - made) * 1000:.1f} ms: accepted"
    )
    if as_json:
        print_json(
            {
                "accepted": True,
                "rules": rules.spelling,
                "keys": key_set.status,
                "prover": table.prover.name,
                "verifiers": [verifier.name for verifier in show.verifiers],
                "secret": list(secret),
                "guesses": [list(guess) for guess in state.guesses],
                "clues": [{"hits": clue.hits, "blows": clue.blows} for clue in state.clues],
                "winner": state.winner,
                "steps": show.steps,
                "certificate": {"made_s": round(made - start, 4), "verified_s": round(verified - made, 4)},
            }
        )
    raise SystemExit(ACCEPTED)


class _Demonstration:
    """Makes moves, verifies their proofs and prints a row for each. A proof that fails ends the demonstration."""

    def __init__(self, table: Table, verifiers: list[Verifier], *, quiet: bool) -> None:
        self._table = table
        self._quiet = quiet
        self.verifiers = verifiers
        self.steps: list[dict[str, Any]] = []

    def say(self, line: str) -> None:
        """Print a line for people."""
        if not self._quiet:
            click.echo(line)

    def move(self, make: Callable[[], Transcript], what: Callable[[GameState], str]) -> Transcript:
        """Make a move and verify its proof. Raises RejectedEvidenceError."""
        start = time.perf_counter()
        transcript = make()
        made = time.perf_counter()
        for verifier in self.verifiers:
            state = transcript.verify(self._table.keys, verifier, since=len(transcript.steps) - 1)
        verified = time.perf_counter()
        kind = transcript.steps[-1].step.kind
        self.steps.append({"step": kind, "made_s": round(made - start, 4), "verified_s": round(verified - made, 4)})
        text = what(state)
        padding = " " * (22 - len(click.unstyle(text)))
        self.say(
            f"{text}{padding} made in {(made - start) * 1000:6.0f} ms, "
            f"verified in {(verified - made) * 1000:6.1f} ms: accepted"
        )
        return transcript

    def summary(self) -> str:
        """One line about all moves."""
        names = ", ".join(verifier.name for verifier in self.verifiers)
        made_s, verified_s = (sum(step[name] for step in self.steps) for name in ("made_s", "verified_s"))
        return (
            f"{len(self.steps)} proved steps in {made_s:.2f} s (each checks all before it), "
            f"verified by {names} in {verified_s:.2f} s."
        )


def _all_codes(rules: Rules) -> list[Code]:
    if rules.repeats:
        return list(itertools.product(range(rules.colours), repeat=rules.pegs))
    return list(itertools.permutations(range(rules.colours), rules.pegs))
