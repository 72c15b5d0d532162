"""What a circuit under test accepts and rejects is decided on its constraints, and the guard is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from mastermind.errors import InvalidInputError, InvalidSignalsError, WitnessError
from mastermind.zk.testing.circuits import Circuits, CircuitUnderTest
from mastermind.zk.testing.mutants import surviving_mutants
from mastermind.zk.testing.witness import Values, Witness

FOLDER = Path(__file__).parent / "circuits"
BYTE = """pragma circom 2.2.0;

include "circomlib/circuits/bitify.circom";

template Byte() {
    signal input value;
    signal output square <== value * value;
    _ <== Num2Bits(8)(value);
}

component main = Byte();
"""


@pytest.fixture(scope="module")
def division(circuits: Circuits) -> CircuitUnderTest:
    return circuits.load(FOLDER / "sound" / "division.circom")


@pytest.fixture(scope="module")
def broken(circuits: Circuits) -> CircuitUnderTest:
    return circuits.load(FOLDER / "broken" / "division.circom")


def test_a_true_case_is_accepted_with_its_outputs(division: CircuitUnderTest) -> None:
    division.accepts({"value": 72})
    witness = division.accepts({"value": 72}, {"quotient": 7, "remainder": 2})
    assert (witness["main.quotient"], witness["main.remainder"]) == (7, 2)
    with pytest.raises(AssertionError, match="quotient"):
        division.accepts({"value": 72}, {"quotient": 8})
    with pytest.raises(InvalidSignalsError):
        division.accepts({"value": 72}, {"value": 72})
    with pytest.raises(AssertionError):
        division.accepts({"value": 160})


def test_every_signal_has_a_value_by_its_name(circuits: Circuits) -> None:
    witness = circuits.load(FOLDER / "sound" / "bits.circom").witness({"value": 0b1011})
    assert witness["main.bits[3]"] == 1
    assert witness.array("main.bits") == [1, 1, 0, 1, 0, 0, 0, 0]
    with pytest.raises(InvalidSignalsError):
        witness["main.bits"]
    with pytest.raises(InvalidSignalsError):
        witness.array("main.value")


def test_false_inputs_are_rejected_by_the_constraint_that_is_named(division: CircuitUnderTest) -> None:
    with pytest.raises(WitnessError):
        division.witness({"value": 165})
    refused = division.rejects({"value": 165}, by="Below")
    assert {guard.template for guard in refused.guards} == {"Below"}
    (guard,) = refused.guards
    division.rejects({"value": 165}, by=guard.component)
    with pytest.raises(AssertionError, match="something else"):
        division.rejects({"value": 165}, by="Division")
    with pytest.raises(AssertionError, match="does not reject"):
        division.rejects({"value": 165}, by=["Below", "main.quotient"])
    with pytest.raises(InvalidInputError):
        division.rejects({"value": 165}, by="Belov")
    with pytest.raises(AssertionError, match="accept"):
        division.rejects({"value": 159})


def test_what_refuses_is_named_with_its_file(circuits: Circuits, tmp_path: Path) -> None:
    path = tmp_path / "byte.circom"
    path.write_text(BYTE, "utf-8")
    byte = circuits.load(path)
    (guard,) = byte.rejects({"value": 256}, by="Num2Bits").guards
    assert guard.file == "circomlib/circuits/bitify.circom"
    with pytest.raises(AssertionError, match=r"Num2Bits .*bitify\.circom"):
        byte.rejects({"value": 256}, by="Byte")
    with pytest.raises(AssertionError, match=r"Num2Bits in circomlib/circuits/bitify\.circom, line \d+"):
        byte.accepts({"value": 256})


def test_a_claimed_output_is_rejected(division: CircuitUnderTest) -> None:
    division.rejects({"value": 72}, outputs={"quotient": 6, "remainder": 12}, by="Below")
    division.rejects({"value": 72}, outputs={"quotient": 6}, by="Below")
    with pytest.raises(AssertionError, match="accept"):
        division.rejects({"value": 72}, outputs={"quotient": 7, "remainder": 2})


def test_an_assert_rejects_nothing(broken: CircuitUnderTest) -> None:
    broken.accepts({"value": 72}, {"quotient": 7, "remainder": 2})
    with pytest.raises(AssertionError, match="accept"):
        broken.rejects({"value": 72}, outputs={"quotient": 6, "remainder": 12})


def test_what_depends_on_a_forged_signal_is_adapted(division: CircuitUnderTest, broken: CircuitUnderTest) -> None:
    forged = broken.forge(broken.witness({"value": 72}), {"main.quotient": 6})
    assert forged["main.remainder"] == 12
    assert forged.accepted
    refused = division.forge(division.witness({"value": 72}), {"main.quotient": 6})
    assert refused["main.remainder"] == 12
    assert not refused.accepted
    division.rejects(refused, by="Below")
    with pytest.raises(AssertionError, match="accept"):
        broken.rejects(forged)


def test_constraints_are_counted_as_they_ship(division: CircuitUnderTest) -> None:
    # Two chains of products, and the equation of the public signals.
    assert division.constraint_count == 15 + 9 + 1
    assert division.constraint_count < len(division.open.r1cs.constraints)


def test_a_mutant_that_no_case_notices_survives(circuits: Circuits) -> None:
    circuit = circuits.load(FOLDER / "sound" / "division.circom")
    false: list[Values | Witness] = [
        circuit.forge(circuit.witness({"value": 72}), {"main.quotient": 6}),
        {"value": 165},
    ]
    assert surviving_mutants(circuit, [{"value": 72}, {"value": 5}], false, values=[10, 16]) == []
    with pytest.raises(InvalidInputError):
        surviving_mutants(circuit, [{"value": 72}], [{"value": 73}])


def test_a_constraint_that_is_there_twice_is_not_needed(circuits: Circuits, tmp_path: Path) -> None:
    source = tmp_path / "twice.circom"
    text = (FOLDER / "sound" / "cube.circom").read_text("utf-8")
    line = "    cube <== square * value;\n"
    assert text.count(line) == 1
    source.write_text(text.replace(line, line + "    cube === square * value;\n"), "utf-8")
    survivors = surviving_mutants(circuits.load(source), [{"value": 3}])
    assert [sorted(guard.signals) for guard in survivors] == [["main.cube", "main.square", "main.value"]] * 2


def test_what_follows_from_a_forged_signal_is_computed_again(circuits: Circuits, tmp_path: Path) -> None:
    text = "pragma circom 2.2.0; template Fourth() { signal input x; signal y <== x * x; signal output z <== y * y; }"
    (tmp_path / "fourth.circom").write_text(f"{text} component main {{ public [x] }} = Fourth();", "utf-8")
    circuit = circuits.load(tmp_path / "fourth.circom")
    forged = circuit.forge(circuit.witness({"x": 3}), {"main.y": 7})
    assert (forged["main.x"], forged["main.y"], forged["main.z"]) == (3, 7, 49)
    (guard,) = forged.guards
    assert guard.signals == {"main.x", "main.y"}


def test_a_misspelt_input_is_named(circuits: Circuits, tmp_path: Path) -> None:
    text = "pragma circom 2.2.0; template Square() { signal input x; signal output y <== x * x; }"
    (tmp_path / "square.circom").write_text(f"{text} component main {{ public [x] }} = Square();", "utf-8")
    with pytest.raises(InvalidSignalsError, match="square has no input z"):
        circuits.load(tmp_path / "square.circom").rejects({"z": 3})
