"""All 36 rules of the protocol, with real keys: colours {6, 8}, pegs {3, 4, 5}, attempts {8, 10, 12}, repeats or not.

`open_game` and `give_clue` do not depend on the number of attempts, so 12 pairs of keys serve all of them.
"""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path

import pytest

from mastermind.errors import WitnessError
from mastermind.field import MODULUS, random_field_element
from mastermind.game.circuits import give_clue, give_clue_inputs, open_game, open_game_inputs, random_salt
from mastermind.packing import pack_clue
from mastermind.rules import Clue, Code, Rules
from mastermind.zk.artifacts import ArtifactStore
from mastermind.zk.circuit import CircuitSpec
from mastermind.zk.prove import NativeProver, self_test
from mastermind.zk.tools import Toolchain
from mastermind.zk.verify import NativeVerifier

MATRIX = [
    Rules(pegs=pegs, colours=colours, repeats=repeats, attempts=attempts)
    for colours, pegs, repeats, attempts in itertools.product((6, 8), (3, 4, 5), (False, True), (8, 10, 12))
]


def test_the_matrix_is_that_of_the_protocol() -> None:
    assert len(MATRIX) == len(set(MATRIX)) == 36


def shape(rules: Rules) -> str:
    """The rules without their attempts."""
    return f"{rules.pegs}x{rules.colours}{'r' if rules.repeats else 'u'}"


def specs(rules: Rules) -> list[CircuitSpec]:
    return [open_game(rules), give_clue(rules)]


@pytest.fixture(scope="module")
def matrix(store: ArtifactStore, toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> ArtifactStore:
    """The shared store, but with key sets of its own: these are not complete."""
    home = tmp_path_factory.mktemp("matrix")
    for name in ("node", "phase1", "artifacts", "recipes", "locks", "tmp"):
        (store.home / name).mkdir(exist_ok=True)
        (home / name).symlink_to(store.home / name)
    return ArtifactStore(home)


@cache
def build(home: Path, name: str) -> None:
    """Build the circuits of one shape, unless they are there."""
    rules = next(rules for rules in MATRIX if shape(rules) == name)
    ArtifactStore(home).build_key_set(name, specs(rules), self_test)


def codes(rules: Rules) -> list[Code]:
    """Codes from one end of the rules to the other, repeated colours where there may be any."""
    top = rules.colours - 1
    if rules.repeats:
        return [(0,) * rules.pegs, (top,) * rules.pegs, (0, *(top,) * (rules.pegs - 1)), rules.random_code()]
    return [tuple(range(rules.pegs)), tuple(range(top, top - rules.pegs, -1)), rules.random_code()]


#: The smallest and the largest; the other shapes are for `make thorough`.
FEW = {"3x6u", "5x8r"}


@pytest.mark.parametrize(
    "rules",
    [pytest.param(rules, marks=[] if shape(rules) in FEW else [pytest.mark.thorough]) for rules in MATRIX],
    ids=[rules.spelling for rules in MATRIX],
)
def test_a_game_of_every_rules_opens_and_answers(
    matrix: ArtifactStore, rules: Rules, native_prover: NativeProver
) -> None:
    build(matrix.home, shape(rules))
    circuits = matrix.load_key_set(shape(rules), specs(rules))
    verifier = NativeVerifier()
    salt, key = random_salt(), random_field_element()

    opening = circuits["open_game"]
    for secret in codes(rules):
        proved = native_prover.prove(opening, open_game_inputs(rules, secret, salt, key))
        assert verifier.verify(opening.verifying_key, proved.public_signals, proved.proof)

    answer = circuits["give_clue"]
    for secret, guess in itertools.islice(itertools.product(codes(rules), repeat=2), 2, 6):
        inputs = give_clue_inputs(
            rules,
            game_id=random_field_element(),
            turn_count=2 * rules.attempts,
            guess=guess,
            secret=secret,
            salt=salt,
            key=key,
        )
        proved = native_prover.prove(answer, inputs)
        assert proved.public_signals[-1] == pack_clue(rules, rules.score(secret, guess))
        assert verifier.verify(answer.verifying_key, proved.public_signals, proved.proof)
        changed = [*proved.public_signals[:-1], (proved.public_signals[-1] + 1) % MODULUS]
        assert not verifier.verify(answer.verifying_key, changed, proved.proof)
        with pytest.raises(WitnessError):
            native_prover.prove(answer, {**inputs, "clue": changed[-1]})


def test_the_last_place_wins(matrix: ArtifactStore, native_prover: NativeProver) -> None:
    """A solution is all hits, with the most pegs and colours."""
    rules = Rules(pegs=5, colours=8, repeats=True, attempts=12)
    build(matrix.home, shape(rules))
    circuit = matrix.load_key_set(shape(rules), specs(rules))["give_clue"]
    secret = rules.random_code()
    inputs = give_clue_inputs(
        rules,
        game_id=random_field_element(),
        turn_count=24,
        guess=secret,
        secret=secret,
        salt=random_salt(),
        key=random_field_element(),
    )
    assert native_prover.prove(circuit, inputs).public_signals[-1] == pack_clue(rules, Clue(5, 0))
