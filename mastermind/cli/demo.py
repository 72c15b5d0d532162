"""`mastermind demo`: a whole game before one's eyes, every answer proved and verified."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Mapping, Sequence

import click

from mastermind.cli.board import show_clue, show_code
from mastermind.cli.options import make_prover, make_verifiers, prover_option, rules_option, verifier_option
from mastermind.cli.output import ACCEPTED, EXIT_CODES, REJECTED, ProgressLine, command_errors, store_option
from mastermind.field import random_field_element
from mastermind.game.circuits import give_clue_inputs, open_game_inputs, random_salt, specs
from mastermind.packing import unpack_clue
from mastermind.rules import Code, Rules
from mastermind.zk.artifacts import ArtifactStore, BuiltCircuit
from mastermind.zk.prove import Prover, self_test
from mastermind.zk.verify import Verifier

#: Shows what the public signals of a step say.
ShowResult = Callable[[tuple[int, ...]], str]


@click.command(epilog=EXIT_CODES)
@rules_option
@click.option("--seed", type=int, help="Play the same secret and guesses again; keys and salts stay random.")
@prover_option
@verifier_option
@store_option
@command_errors
def demo(rules: Rules, seed: int | None, prover_name: str, verifier_name: str, store: ArtifactStore) -> None:
    """Play a game with a real proof for every answer, and verify each one.

    \b
    Examples:
      mastermind demo
      mastermind demo --rules classic --seed 7 --verifier all
    """
    specifications = specs(rules)
    key_set = store.build_key_set(rules.spelling, specifications, self_test, progress=ProgressLine())
    prover = make_prover(prover_name, store)
    verifiers = make_verifiers(verifier_name, store)
    table = _Table(prover, verifiers)

    # The board may repeat; what hides the secret never does.
    choice = random.Random(seed) if seed is not None else random.SystemRandom()  # noqa: S311
    codes = _all_codes(rules)
    secret = choice.choice(codes)
    salt, key, game_id = random_salt(), random_field_element(), random_field_element()

    click.echo(
        f"\n{rules.name}: {rules.pegs} pegs, {rules.colours} colours, {'' if rules.repeats else 'no '}repeats, "
        f"{rules.attempts} attempts, {rules.code_count:,} codes. {key_set.status.capitalize()} keys.\n"
    )
    width = 2 * rules.pegs - 1
    table.step(
        f"secret    {'? ' * rules.pegs:<{width}}",
        key_set["open_game"],
        open_game_inputs(rules, secret, salt, key),
        lambda _: " " * rules.pegs,
    )
    solved = False
    for turn in range(rules.attempts):
        guess = choice.choice(codes)
        public_signals = table.step(
            f"guess {turn + 1:>2}  {show_code(guess)} ",
            key_set["give_clue"],
            give_clue_inputs(
                rules, game_id=game_id, turn_count=2 * turn + 2, guess=guess, secret=secret, salt=salt, key=key
            ),
            lambda signals: show_clue(rules, unpack_clue(rules, signals[-1])),
        )
        # The breaker goes by the public signals of the proof, and by nothing else.
        clue = unpack_clue(rules, public_signals[-1])
        solved = clue.hits == rules.pegs
        if solved:
            break
        codes = [code for code in codes if code != guess and rules.score(code, guess) == clue]
    click.echo(f"\n{'The breaker' if solved else 'The master'} wins. The secret was {show_code(secret)}.")
    click.echo(table.summary())
    raise SystemExit(ACCEPTED if table.accepted else REJECTED)


class _Table:
    """Proves, verifies and prints one row per step."""

    def __init__(self, prover: Prover, verifiers: Sequence[Verifier]) -> None:
        self._prover = prover
        self._verifiers = verifiers
        self._prove_s: list[float] = []
        self._verify_s: list[float] = []
        self.accepted = True

    def step(
        self, what: str, circuit: BuiltCircuit, inputs: Mapping[str, object], result: ShowResult
    ) -> tuple[int, ...]:
        """Prove and verify one statement, print its row, and return its public signals."""
        start = time.perf_counter()
        proved = self._prover.prove(circuit, inputs)
        self._prove_s.append(time.perf_counter() - start)
        start = time.perf_counter()
        verdicts = [v.verify(circuit.verifying_key, proved.public_signals, proved.proof) for v in self._verifiers]
        self._verify_s.append(time.perf_counter() - start)
        self.accepted = self.accepted and all(verdicts)
        click.echo(
            f"{what}  {result(proved.public_signals)}  proved {self._prove_s[-1] * 1000:6.1f} ms, "
            f"verified {self._verify_s[-1] * 1000:6.1f} ms: {'accepted' if all(verdicts) else 'REJECTED'}"
        )
        return proved.public_signals

    def summary(self) -> str:
        """One line about all steps."""
        names = ", ".join(verifier.name for verifier in self._verifiers)
        return (
            f"{len(self._prove_s)} proofs by {self._prover.name} in {sum(self._prove_s):.2f} s, "
            f"verified by {names} in {sum(self._verify_s):.2f} s."
        )


def _all_codes(rules: Rules) -> list[Code]:
    if rules.repeats:
        return list(itertools.product(range(rules.colours), repeat=rules.pegs))
    return list(itertools.permutations(range(rules.colours), rules.pegs))
