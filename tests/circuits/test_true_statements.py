"""Statements that are true, by the rules and by Poseidon, are accepted; and at a small size, nothing else is."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest

from mastermind.errors import WitnessError
from mastermind.field import MODULUS
from mastermind.game.circuits import specs
from mastermind.poseidon import poseidon
from mastermind.rules import Code, Rules
from mastermind.zk.testing.circuits import Circuits, CircuitUnderTest
from tests.support.statements import (
    BOUND,
    KEY,
    SALT,
    RawValues,
    authorise_values,
    certify_game_values,
    give_clue_values,
    make_guess_values,
    open_game_values,
    packed,
    packed_clue,
    score,
)
from tests.test_rules import HAND_CHECKED

RULES = ["hit-and-blow", "classic", pytest.param("deluxe", marks=pytest.mark.thorough)]


def circuit_of(circuits: Circuits, rules: Rules, name: str) -> CircuitUnderTest:
    return circuits.load(next(spec for spec in specs(rules) if spec.name == name))


def draw(rules: Rules, generator: random.Random) -> Code:
    if rules.repeats:
        return tuple(generator.randrange(rules.colours) for _ in range(rules.pegs))
    return tuple(generator.sample(range(rules.colours), rules.pegs))


def accepts(circuit: CircuitUnderTest, values: RawValues) -> bool:
    """By the circuit as it ships; that the open build agrees is shown once for each circuit."""
    witness = circuit.shipping.calculate(values)
    assert witness.public == tuple(values[label] for label in circuit.spec.public_labels)
    return witness.accepted


def test_authorise(circuits: Circuits) -> None:
    circuit = circuit_of(circuits, Rules.parse("classic"), "authorise")
    for message in (0, 1, (1 << 248) - 1):
        assert accepts(circuit, authorise_values(message))


def test_com_6_the_published_hash_comes_out_of_the_circuit(circuits: Circuits) -> None:
    """Poseidon(pack(secret), salt, key) in the circuit is the one in Python, which the published vectors pin."""
    rules = Rules.parse("hit-and-blow")
    values = open_game_values(rules, (7, 4, 6, 0))
    assert values["solution_hash"] == poseidon(423, SALT, KEY)  # 423: tests/vectors/mina_packing.json
    assert accepts(circuit_of(circuits, rules, "open_game"), values)


@pytest.mark.parametrize("name", RULES)
def test_open_game_and_make_guess_on_a_sample(circuits: Circuits, name: str) -> None:
    rules, generator = Rules.parse(name), random.Random(3)
    opened, guessed = circuit_of(circuits, rules, "open_game"), circuit_of(circuits, rules, "make_guess")
    for _ in range(40):
        assert accepts(opened, open_game_values(rules, draw(rules, generator)))
        assert accepts(guessed, make_guess_values(rules, draw(rules, generator)))


@pytest.mark.parametrize("name", RULES)
def test_give_clue_on_a_sample(circuits: Circuits, name: str) -> None:
    rules, generator = Rules.parse(name), random.Random(5)
    circuit = circuit_of(circuits, rules, "give_clue")
    for index in range(120):
        secret, guess = draw(rules, generator), draw(rules, generator)
        if index % 3 == 0:  # near misses have the interesting clues
            guess = tuple(generator.sample(secret, rules.pegs))
        assert accepts(circuit, give_clue_values(rules, secret, guess))


@pytest.mark.parametrize(("secret", "guess", "hits", "blows"), HAND_CHECKED)
def test_clu_1_and_clu_2_hand_checked_repeats(
    circuits: Circuits, secret: Code, guess: Code, hits: int, blows: int
) -> None:
    circuit = circuit_of(circuits, Rules.parse("classic"), "give_clue")
    values = give_clue_values(Rules.parse("classic"), secret, guess, packed_clue(hits, blows))
    assert accepts(circuit, values)


@pytest.mark.parametrize("name", RULES)
def test_certify_game_for_games_of_every_length(circuits: Circuits, name: str) -> None:
    rules, generator = Rules.parse(name), random.Random(7)
    circuit = circuit_of(circuits, rules, "certify_game")
    for turns, solved in itertools.product(range(1, rules.attempts + 1), (False, True)):
        secret = draw(rules, generator)
        guesses: list[Code] = []
        while len(guesses) < turns:
            guess = draw(rules, generator)
            if guess != secret:
                guesses.append(guess)
        if solved:
            guesses[-1] = secret
        assert accepts(circuit, certify_game_values(rules, secret, guesses))


def small_codes(rules: Rules) -> list[Code]:
    if rules.repeats:
        return list(itertools.product(range(rules.colours), repeat=rules.pegs))
    return list(itertools.permutations(range(rules.colours), rules.pegs))


def small_clues() -> list[int]:
    """All pairs of counts up to two pegs."""
    return [packed_clue(hits, blows) for hits, blows in itertools.product(range(3), repeat=2) if hits + blows <= 2]


def free_inputs(circuit: CircuitUnderTest) -> list[str]:
    """The inputs that a statement does not determine: all else is recomputed when something is forged."""
    bound = {f"main.{name}" for name in BOUND[circuit.spec.name]}
    return [name for name in circuit.open.inputs if name not in bound]


@pytest.mark.parametrize(("spelling", "triples"), [("2x3r2", 486), ("2x3u2", 216)])
def test_every_secret_guess_and_clue_at_a_small_size(circuits: Circuits, spelling: str, triples: int) -> None:
    """Accepted if and only if the score agrees: by the witness program, and by the constraints alone."""
    rules = Rules.parse(spelling)
    circuit = circuit_of(circuits, rules, "give_clue")
    seen = 0
    for secret, guess in itertools.product(small_codes(rules), repeat=2):
        honest = circuit.shipping.calculate(give_clue_values(rules, secret, guess))
        assert honest.accepted
        for clue in small_clues():
            seen += 1
            if clue == score(rules, secret, guess):
                assert honest.public[-1] == clue
                continue
            with pytest.raises(WitnessError):
                circuit.shipping.calculate(give_clue_values(rules, secret, guess, clue))
            assert not honest.forged({"main.clue": clue}).accepted
    assert seen == triples


@pytest.mark.parametrize("name", ["open_game", "make_guess", "give_clue"])
@pytest.mark.parametrize("spelling", ["2x3r2", "2x3u2"])
def test_every_code_and_no_other_is_legal_at_a_small_size(circuits: Circuits, spelling: str, name: str) -> None:
    """The program refuses illegal codes, and so do the constraints for a prover who adapts all that depends on them."""
    rules = Rules.parse(spelling)
    circuit = circuit_of(circuits, rules, name)
    legal = set(small_codes(rules))

    def values(code: Code) -> RawValues:
        if name == "give_clue":
            return give_clue_values(rules, code, (0, 2))
        return open_game_values(rules, code) if name == "open_game" else make_guess_values(rules, code)

    honest = circuit.witness(values((0, 1)))
    pegs = (
        ["main.unpack.pegs[0]", "main.unpack.pegs[1]"] if name == "make_guess" else ["main.secret[0]", "main.secret[1]"]
    )
    keep = [signal for signal in free_inputs(circuit) if signal not in pegs]
    for code in itertools.product([0, 1, 2, 3, 7, MODULUS - 1], repeat=2):
        if code in legal:
            circuit.accepts(values(code))
        else:
            assert not honest.forged(dict(zip(pegs, code, strict=True)), keep=keep).accepted, code


@pytest.mark.parametrize("spelling", ["2x3r2", "2x3u2"])
def test_every_claim_about_a_small_game(circuits: Circuits, spelling: str) -> None:
    """All pairs of guesses, all claimed clues and outcomes, for one secret of each shape."""
    rules = Rules.parse(spelling)
    circuit = circuit_of(circuits, rules, "certify_game")
    secrets: Sequence[Code] = [(0, 1), (2, 2)] if rules.repeats else [(0, 1)]
    for secret in secrets:
        for turns in (1, 2):
            for guesses in itertools.product(small_codes(rules), repeat=turns):
                if secret in guesses[:-1]:
                    with pytest.raises(WitnessError):
                        circuit.shipping.calculate(certify_game_values(rules, secret, guesses))
                    continue
                true = [score(rules, secret, guess) for guess in guesses]
                honest = circuit.shipping.calculate(certify_game_values(rules, secret, guesses))
                assert honest.accepted
                claims = [true, *([clue, *true[1:]] for clue in small_clues() if clue != true[0])]
                for clues, solved in itertools.product(claims, (0, 1)):
                    if clues == true and solved == int(secret == guesses[-1]):
                        continue
                    history = sum(clue << 6 * turn for turn, clue in enumerate(clues))
                    forged = honest.forged({"main.clue_history": history, "main.is_solved": solved})
                    assert not forged.accepted, (secret, guesses, clues, solved)


def test_packing_is_the_one_of_the_rules() -> None:
    assert packed(Rules.parse("hit-and-blow"), (7, 4, 6, 0)) == 423
