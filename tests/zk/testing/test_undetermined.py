"""The search finds the fault of each broken circuit, by its signal, and nothing in the sound twin of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mastermind.errors import InvalidInputError
from mastermind.zk.testing.circuits import Circuits, CircuitUnderTest
from mastermind.zk.testing.undetermined import SHOWN, Verdict
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


QUOTIENT = """pragma circom 2.2.0;
template Divide() {
    signal input a;
    signal input b;
    signal output q;
    q <-- b == 0 ? 0 : a / b;
    q * b === a;
}
component main { public [a, b] } = Divide();
"""


def test_an_output_that_is_in_no_constraint_is_a_choice(circuits: Circuits, tmp_path: Path) -> None:
    (tmp_path / "divide.circom").write_text(QUOTIENT, "utf-8")
    circuit = circuits.load(tmp_path / "divide.circom")
    assert circuit.undetermined([{"a": 6, "b": 3}]).verdicts["main.q"] is Verdict.UNKNOWN
    assert "main.q" in circuit.undetermined([{"a": 6, "b": 3}, {"a": 0, "b": 0}]).counterexamples


RANGE = """pragma circom 2.2.0;
include "circomlib/bitify.circom";
template InRange() {
    signal input most;
    signal input value;
    _ <== Num2Bits(4)(value);
    _ <== Num2Bits(4)(most - value);
}
component main { public [most] } = InRange();
"""


@pytest.fixture
def in_range(circuits: Circuits, tmp_path: Path) -> CircuitUnderTest:
    (tmp_path / "range.circom").write_text(RANGE, "utf-8")
    return circuits.load(tmp_path / "range.circom")


def test_another_honest_value_of_a_private_input_is_a_counterexample(in_range: CircuitUnderTest) -> None:
    found = in_range.undetermined([{"most": 9, "value": 3}])
    assert found.verdicts["main.value"] is Verdict.COUNTEREXAMPLE
    assert found.counterexamples["main.value"].other["main.value"] != 3


@pytest.mark.parametrize("name", ["value", "InRange.value"])
def test_an_input_is_free_by_either_name(in_range: CircuitUnderTest, name: str) -> None:
    found = in_range.undetermined([{"most": 9, "value": 3}], free={name: "any value in the range will do"})
    assert found.having(Verdict.FREE) == ["main.value"]
    assert not found.counterexamples


def test_few_counterexamples_are_printed(circuits: Circuits, tmp_path: Path) -> None:
    lines = "".join(f"signal s{i} <-- x + {i}; signal t{i} <== s{i} * x;\n" for i in range(SHOWN + 5))
    text = f"pragma circom 2.2.0; template Many() {{ signal input x; {lines} signal output y <== x * x; }}"
    (tmp_path / "many.circom").write_text(f"{text} component main {{ public [x] }} = Many();", "utf-8")
    circuit = circuits.load(tmp_path / "many.circom")
    found = circuit.undetermined([{"x": 3}])
    assert len(found.counterexamples) > SHOWN
    assert len(str(found).splitlines()) == SHOWN + 2
