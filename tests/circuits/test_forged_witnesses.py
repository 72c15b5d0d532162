"""Soundness: forged outputs, hints and wires, with all that depends on them adapted, are refused by the constraints."""

from __future__ import annotations

import re

import pytest

from mastermind.field import MODULUS
from mastermind.rules import Rules
from mastermind.zk.testing.circuits import Circuits, CircuitUnderTest
from mastermind.zk.testing.witness import Witness
from tests.circuits.test_false_statements import TRUE
from tests.circuits.test_true_statements import circuit_of
from tests.support.statements import RawValues, certify_game_values, give_clue_values

#: A slot of each kind is enough of a game: one that is played, the last one, and one that is not played.
THREE = Rules.parse("4x8u3")
TWINS: dict[str, tuple[str, Rules, RawValues]] = {
    **TRUE,
    "game": ("certify_game", THREE, certify_game_values(THREE, (7, 4, 6, 0), [(0, 4, 5, 7), (1, 2, 3, 5)])),
    "solved": ("certify_game", THREE, certify_game_values(THREE, (7, 4, 6, 0), [(0, 4, 5, 7), (7, 4, 6, 0)])),
}

#: Hints that are free where they mean nothing, each with the reason.
FREE = {
    "inverse": "IsZero: when the value is zero any inverse satisfies both rows, and `zero` does not depend on it; "
    "certify_game: no turn follows, and the number of misses is zero",
    "passed": "Score: any order in which a largest matching is aligned will do; hits and blows do not depend on it",
    "guess": "certify_game: an unplayed slot holds any legal code, and contributes nothing",
}


def is_free(circuit: CircuitUnderTest, signal: str, honest: Witness, forged: Witness) -> bool:
    """Whether an accepted forgery is of a hint that the table lists, and changes nothing that is stated."""
    if forged.public != honest.public or forged.inputs != honest.inputs:
        return False
    if circuit.spec.name == "certify_game":
        # All that differs may be in slots that are not played: another legal code, and what is counted about it.
        played = (honest["main.turn_count"] - 1) // 2
        slots = [re.match(r"main\.\w+\[(\d+)\]", other) for other in honest.changed(forged)]
        if all(slot is not None and int(slot[1]) >= played - 1 for slot in slots):
            return all(int(slot[1]) >= played or "inverse" in slot.string for slot in slots if slot is not None)
    return signal.rpartition(".")[2].partition("[")[0] in FREE


@pytest.mark.parametrize("twin", TWINS)
def test_every_hint_is_forged(circuits: Circuits, twin: str) -> None:
    name, rules, values = TWINS[twin]
    circuit = circuit_of(circuits, rules, name)
    honest = circuit.witness(values)
    assert circuit.open.hints or name == "authorise" or name == "open_game"
    for signal in circuit.open.hints:
        for value in {0, 1, 2, (honest[signal] + 1) % MODULUS, MODULUS - 1} - {honest[signal]}:
            forged = honest.forged({signal: value})
            assert not forged.accepted or is_free(circuit, signal, honest, forged), (signal, value)


@pytest.mark.parametrize("twin", TWINS)
def test_every_output_of_a_component_is_forged(circuits: Circuits, twin: str) -> None:
    """An output with another value than the one that its component computes."""
    name, rules, values = TWINS[twin]
    circuit = circuit_of(circuits, rules, name)
    honest = circuit.witness(values)
    outputs = [
        signal for signal in circuit.open.wires if circuit.open.source.is_output(signal) and "oseidon" not in signal
    ]
    for signal in outputs:
        forged = honest.forged({signal: (honest[signal] + 1) % MODULUS})
        assert not forged.accepted or is_free(circuit, signal, honest, forged), signal


@pytest.mark.parametrize("twin", TWINS)
def test_cir_9_no_wire_of_the_shipping_circuit_can_be_another(circuits: Circuits, twin: str) -> None:
    """Each wire plus one, nothing adapted: refused, but for the hints that are free."""
    name, rules, values = TWINS[twin]
    circuit = circuit_of(circuits, rules, name)
    honest = circuit.shipping.calculate(values)
    context = {f"main.{label}" for label in ("context", "gameContext", "historyContext")}
    for signal in circuit.shipping.names.values():
        forged = honest.patched({signal: (honest[signal] + 1) % MODULUS})
        if forged.accepted:
            assert signal not in context
            assert is_free(circuit, signal, honest, forged), signal


#: Codes whose clues exercise each way of counting: nothing in common, all, repeats on either side.
PAIRS = [
    ((1, 2, 3, 4), (5, 5, 0, 0)),
    ((1, 1, 2, 2), (2, 2, 1, 1)),
    ((1, 1, 1, 2), (3, 1, 1, 1)),
    ((5, 0, 5, 0), (5, 5, 5, 5)),
    ((0, 1, 2, 3), (0, 1, 2, 3)),
]


@pytest.mark.parametrize(("secret", "guess"), PAIRS)
def test_no_other_order_of_the_guess_gives_another_clue(
    circuits: Circuits, secret: tuple[int, ...], guess: tuple[int, ...]
) -> None:
    """A prover may route the guess through the switches as they like: what is accepted has the true clue."""
    rules = Rules.parse("classic")
    circuit = circuit_of(circuits, rules, "give_clue")
    values: RawValues = give_clue_values(rules, secret, guess)
    honest = circuit.witness(values)
    switches = [signal for signal in circuit.open.hints if ".passed[" in signal]
    assert len(switches) == 6
    keep = [signal for signal in circuit.open.inputs if signal != "main.clue"]
    for signal in switches:
        for value in set(guess) - {honest[signal]}:
            forged = honest.forged({signal: value}, keep=keep)
            if forged.accepted:
                assert forged["main.clue"] == honest["main.clue"]
