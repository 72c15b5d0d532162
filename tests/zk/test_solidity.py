"""Contracts and their arguments: compiled by solc and run in an Ethereum virtual machine."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from py_ecc import optimized_bn128 as bn128

from mastermind.errors import InvalidInputError, WrongProtocolError
from mastermind.field import COORDINATE_MODULUS, MODULUS
from mastermind.zk.artifacts import ArtifactStore, BuiltCircuit, KeySet
from mastermind.zk.curve import G1_GENERATOR, G2_GENERATOR, G1Point, G2Point
from mastermind.zk.evidence import Proof, VerifyingKey, public_json
from mastermind.zk.prove import NativeProver, ProvedStatement
from mastermind.zk.solidity import calldata, groth16_verifier, universal_verifier
from mastermind.zk.tools import Toolchain, run
from mastermind.zk.universal import UniversalProof
from tests.zk.tiny import product_inputs

EVM = Path(__file__).resolve().parents[1] / "support" / "evm"


@pytest.fixture(scope="module")
def circuit(products: tuple[ArtifactStore, KeySet]) -> BuiltCircuit:
    return products[1]["product"]


@pytest.fixture(scope="module")
def proved(circuit: BuiltCircuit) -> ProvedStatement:
    return NativeProver().prove(circuit, product_inputs(3))


def words(argument: Any) -> list[str]:
    """The words of a call, in order: all arguments have fixed sizes."""
    return [argument] if isinstance(argument, str) else [word for part in argument for word in words(part)]


def arguments(public_signals: Sequence[int], proof: Proof | UniversalProof) -> list[str]:
    return words(json.loads(f"[{calldata(public_signals, proof)}]"))


def call(
    evm: Path, source: str, contract: str, calls: Sequence[Sequence[str]], *, accepted: str = ""
) -> list[bool | None]:
    """The answers of a contract, which has to compile without a warning but those that hold the text `accepted`."""
    done = subprocess.run(
        ["node", str(EVM / "evm.mjs"), str(evm)],  # noqa: S607
        input=json.dumps({"source": source, "contract": contract, "calls": calls}),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    result = json.loads(done.stdout)
    assert [text for text in result["errors"] if not accepted or accepted not in text] == []
    answers: list[bool | None] = result["answers"]
    return answers


def test_the_contract_accepts_a_proof_and_refuses_every_change(
    evm: Path, circuit: BuiltCircuit, proved: ProvedStatement
) -> None:
    source = groth16_verifier(circuit.verifying_key, "Verifier", circuit.spec.public_labels)
    good = arguments(proved.public_signals, proved.proof)

    def with_word(index: int, value: int) -> list[str]:
        changed = list(good)
        changed[index] = f"0x{value:064x}"
        return changed

    value = [int(word, 16) for word in good]
    q, r = COORDINATE_MODULUS, MODULUS
    bad = {
        "another statement": with_word(8, value[8] + 1),
        "VIN-1: signal + r": with_word(8, value[8] + r),
        "-a": with_word(1, q - value[1]),
        "a.x + q": with_word(0, value[0] + q),
        "a.y + q": with_word(1, value[1] + q),
        "b.x + q": with_word(2, value[2] + q),
        "c.y + q": with_word(7, value[7] + q),
        "VIN-10: b not swapped": [*good[:2], good[3], good[2], good[5], good[4], *good[6:]],
        "c off the curve": with_word(7, value[7] - 1),
        "a at infinity": with_word(0, 0)[:1] + with_word(1, 0)[1:],
        "all zero": [f"0x{0:064x}"] * len(good),
    }
    answers = call(evm, source, "Verifier", [good, *bad.values()])
    assert dict(zip(["good", *bad], answers, strict=True)) == {"good": True, **dict.fromkeys(bad, False)}


def test_a_proof_with_a_point_at_infinity_is_refused(evm: Path) -> None:
    """As all verifiers here do, also when the equation holds: e(2 G, H) = e(G, H) e(G, H) e(0, H)."""
    twice = bn128.normalize(bn128.double(bn128.G1))
    key = VerifyingKey(
        alpha=G1_GENERATOR, beta=G2_GENERATOR, gamma=G2_GENERATOR, delta=G2_GENERATOR, ic=(G1_GENERATOR, G1_GENERATOR)
    )
    at_infinity = Proof(G1Point(int(twice[0]), int(twice[1])), G2_GENERATOR, G1Point(0, 0))
    # With one more of G in the statement, C = -G is a point like others, and the same equation holds.
    affine = Proof(at_infinity.a, G2_GENERATOR, G1Point(1, COORDINATE_MODULUS - 2))
    calls = [arguments((0,), at_infinity), arguments((1,), affine)]
    assert call(evm, groth16_verifier(key, "Verifier", ["x"]), "Verifier", calls) == [False, True]


def test_vin_9_every_signal_is_checked_against_r_and_nothing_else(hit_and_blow: KeySet) -> None:
    key, labels = hit_and_blow["give_clue"].verifying_key, hit_and_blow["give_clue"].spec.public_labels
    assert len(labels) == 5
    source = groth16_verifier(key, "Verifier", labels)
    assert re.findall(r"signals\[(\d+)\] >= R", source) == ["0", "1", "2", "3", "4"]
    assert f"R = {MODULUS};" in source
    assert f"Q = {COORDINATE_MODULUS};" in source
    assert re.findall(r"uint256\[(\d*)\] calldata signals", source) == ["5"]
    for index, label in enumerate(labels):
        assert re.search(rf"/// +{index} +{label}$", source, re.MULTILINE)


def test_vin_10_the_halves_of_b_change_places_once(
    toolchain: Toolchain, proved: ProvedStatement, tmp_path: Path
) -> None:
    # Not on the curve, which nobody asks for here: each number shows where it goes.
    proof = Proof(a=G1Point(1, 2), b=G2Point((3, 4), (5, 6)), c=G1Point(7, 8))
    expected = [f"0x{number:064x}" for number in (1, 2, 4, 3, 6, 5, 7, 8, 9, 10)]
    assert arguments((9, 10), proof) == expected
    assert arguments((9, 10), proof) == expected
    # A real one, by snarkjs's exporter.
    (tmp_path / "proof.json").write_text(json.dumps(proved.proof.to_json()), "utf-8")
    (tmp_path / "public.json").write_text(json.dumps(public_json(proved.public_signals)), "utf-8")
    argv = [*toolchain.snarkjs, "zkey", "export", "soliditycalldata", "public.json", "proof.json"]
    theirs = run(argv, timeout_s=60, cwd=tmp_path).stdout
    assert words(json.loads(f"[{theirs}]")) == arguments(proved.public_signals, proved.proof)


def test_universal_arguments_are_points_then_evaluations() -> None:
    plonk = UniversalProof("plonk", (G1Point(1, 2),) * 9, tuple(range(6)))
    assert [int(word, 16) for word in arguments((7,), plonk)] == [1, 2] * 9 + [0, 1, 2, 3, 4, 5, 7]
    fflonk = UniversalProof("fflonk", (G1Point(1, 2),) * 4, tuple(range(16)))
    assert [int(word, 16) for word in arguments((7,), fflonk)] == [1, 2] * 4 + [*range(16), 7]


@pytest.mark.parametrize("name", ["", "1st", "a b", "Verifier{}", "Vérifier"])
def test_a_name_that_is_none_for_a_contract_is_refused(circuit: BuiltCircuit, name: str) -> None:
    assert groth16_verifier(circuit.verifying_key, "Verifier", ["y"])
    with pytest.raises(InvalidInputError):
        groth16_verifier(circuit.verifying_key, name, ["y"])


def test_the_contract_says_which_key_it_is_for(circuit: BuiltCircuit, toolchain: Toolchain) -> None:
    key = circuit.verifying_key
    assert key.digest in groth16_verifier(key, "Verifier", ["y"])
    other = replace(key, alpha=G1Point(1, 2))
    assert groth16_verifier(other, "Verifier", ["y"]) != groth16_verifier(key, "Verifier", ["y"])
    with pytest.raises(WrongProtocolError):
        universal_verifier(circuit, "Verifier", toolchain)
