"""The search finds the fault of each broken circuit, by its signal, and nothing in the sound twin of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mastermind.errors import InvalidInputError
from mastermind.zk.testing.circuits import Circuits, CircuitUnderTest
from mastermind.zk.testing.undetermined import Verdict
from mastermind.zk.testing.witness import Values

FOLDER = Path(__file__).parent / "circuits"

#: circuit, inputs, signals that the broken one leaves a choice
FAULTS: list[tuple[str, dict[str, int], set[str]]] = [
    ("bits", {"value": 0b1011}, {"main.bits[2]"}),
    ("cube", {"value": 3}, {"main.cube"}),
    ("division", {"value": 72}, {"main.remainder", "main.quotient"}),
    ("pack", {"low": 3, "high": 5}, {"main.low", "main.high"}),
]


def load(circuits: Circuits, kind: str, name: str) -> CircuitUnderTest:
    return circuits.load(FOLDER / kind / f"{name}.circom")


@pytest.mark.parametrize(("name", "inputs", "signals"), FAULTS)
def test_the_fault_of_a_broken_circuit_is_found(
    circuits: Circuits, name: str, inputs: Values, signals: set[str]
) -> None:
    circuit = load(circuits, "broken", name)
    found = circuit.undetermined([inputs])
    assert signals <= found.counterexamples.keys()
    for signal, counterexample in found.counterexamples.items():
        one, other = counterexample.witness, counterexample.other
        assert one[signal] != other[signal]
        for witness in (one, other):
            assert circuit.open.r1cs.unsatisfied(witness.values) is None
            assert circuit.shipping.r1cs.unsatisfied(circuit.shipped(witness).values) is None
        assert signal in str(counterexample)


@pytest.mark.parametrize(("name", "inputs", "signals"), FAULTS)
def test_everything_is_proved_of_its_sound_twin(
    circuits: Circuits, name: str, inputs: Values, signals: set[str]
) -> None:
    found = load(circuits, "sound", name).undetermined([inputs])
    assert set(found.having(Verdict.UNIQUE)) == found.verdicts.keys() > signals


def test_what_is_given_stays_in_a_counterexample(circuits: Circuits) -> None:
    """The inputs, for what is computed; the public signals, for private inputs."""
    computed = load(circuits, "broken", "cube").undetermined([{"value": 3}]).counterexamples["main.cube"]
    assert computed.witness.inputs == computed.other.inputs
    private = load(circuits, "broken", "pack").undetermined([{"low": 3, "high": 5}]).counterexamples["main.low"]
    assert private.witness.public == private.other.public
    assert private.witness.inputs != private.other.inputs


def test_a_choice_with_a_reason_is_no_finding(circuits: Circuits) -> None:
    circuit = load(circuits, "broken", "pack")
    reason = {"low": "any low digit will do", "high": "and so will any high one"}
    found = circuit.undetermined([{"low": 3, "high": 5}], free=reason)
    assert not found.counterexamples
    assert found.having(Verdict.FREE) == ["main.low", "main.high"]
    with pytest.raises(InvalidInputError):
        circuit.undetermined([{"low": 3, "high": 5}], free={"middle": "there is none"})
