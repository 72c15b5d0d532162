"""PLONK and FFLONK: the power that a circuit needs, real proofs, and everything that must be refused."""

from __future__ import annotations

import copy
import json
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from mastermind.errors import (
    InsecureKeyError,
    InvalidArtifactError,
    InvalidInputError,
    InvalidSignalsError,
    MalformedKeyError,
    MalformedProofError,
    Phase1TooSmallError,
    WrongProtocolError,
)
from mastermind.field import COORDINATE_MODULUS, MODULUS
from mastermind.zk import binfile
from mastermind.zk.artifacts import ArtifactStore, BuiltCircuit, KeySet
from mastermind.zk.circuit import CircuitSpec, ProofSystem
from mastermind.zk.curve import G2_GENERATOR
from mastermind.zk.discover import circuit_at, discover
from mastermind.zk.evidence import g2_json, public_json
from mastermind.zk.phase1 import Phase1, open_phase1, read_power
from mastermind.zk.prove import NativeProver, UniversalProver, UniversalStatement, universal_self_test
from mastermind.zk.r1cs import Constraint, R1cs
from mastermind.zk.snarkjs import SnarkjsCli
from mastermind.zk.solidity import universal_verifier
from mastermind.zk.tools import Toolchain, run
from mastermind.zk.universal import UniversalKey, UniversalProof, domain_power, gate_count, phase1_power
from mastermind.zk.verify import UniversalVerifier
from tests.zk.test_solidity import arguments, call
from tests.zk.test_verifiers import outside
from tests.zk.tiny import fresh_store

UNIVERSAL: tuple[ProofSystem, ...] = ("plonk", "fflonk")

#: An output, a public and a private input, and no constant: one commitment of PLONK's key is zero.
SQUARE = """pragma circom 2.2.0;

template Square() {
    signal input k;
    signal input x;
    signal output y <== x * x + k;
}

component main { public [k] } = Square();
"""
INPUTS: Mapping[str, object] = {"k": 2, "x": 3}


def square(folder: Path, home: Path, protocol: ProofSystem, sample: Mapping[str, object] = INPUTS) -> CircuitSpec:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "square.circom").write_text(SQUARE, "utf-8")
    source = folder / "square.circom"
    return discover(circuit_at(source, root=folder, sample=lambda: sample, protocol=protocol), home)


@dataclass(frozen=True)
class Proved:
    """A circuit and a proof of y = 11, k = 2."""

    store: ArtifactStore
    circuit: BuiltCircuit
    statement: UniversalStatement

    @property
    def protocol(self) -> ProofSystem:
        return self.circuit.spec.protocol

    @property
    def evidence(self) -> tuple[list[str], dict[str, Any]]:
        return public_json(self.statement.public_signals), self.statement.proof.to_json()


@pytest.fixture(scope="module", params=UNIVERSAL)
def proved(
    request: pytest.FixtureRequest,
    store: ArtifactStore,
    phase1: Phase1,
    snarkjs_cli: SnarkjsCli,
    tmp_path_factory: pytest.TempPathFactory,
) -> Proved:
    folder = tmp_path_factory.mktemp(request.param)
    home = fresh_store(folder / "home", store.home)
    spec = square(folder / "src", home.home, request.param)
    circuit = home.build_circuit(spec, lambda _: None)
    return Proved(home, circuit, UniversalProver(snarkjs_cli).prove(circuit, INPUTS))


class Untouched:
    """A snarkjs that must not be asked."""

    def verify_by(self, *_: object) -> NoReturn:
        raise AssertionError("malformed evidence has reached snarkjs")


def unasked() -> UniversalVerifier:
    return UniversalVerifier(Untouched())  # type: ignore[arg-type]


# Power.


def write_r1cs(path: Path, wires: int, constraints: Sequence[Constraint]) -> R1cs:
    """Write a constraint system with one public output, as circom would."""
    header = struct.pack("<I", 32) + MODULUS.to_bytes(32, "little")
    header += struct.pack("<IIIIQI", wires, 1, 0, 1, wires, len(constraints))
    body = b""
    for part in (part for constraint in constraints for part in constraint):
        body += struct.pack("<I", len(part))
        body += b"".join(struct.pack("<I", wire) + value.to_bytes(32, "little") for wire, value in part.items())
    labels = b"".join(struct.pack("<Q", wire) for wire in range(wires))
    path.write_bytes(binfile.build(b"r1cs", 1, [(1, header), (2, body), (3, labels)]))
    return R1cs.read(path)


ONE = {0: 1}
X, Y = {2: 1}, {1: 1}
#: Constraints of every shape, also those that circom does not write.
ODD_CONSTRAINTS: tuple[Constraint, ...] = (
    (X, X, Y),
    ({0: 5, 2: 1, 3: 1, 4: 1}, {2: 1, 3: 2}, {1: 1, 2: 3, 3: 4, 4: 5}),
    ({}, {}, {0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1}),
    ({0: 2}, {1: 3, 2: 1, 3: 1, 4: 1}, {1: 6, 2: 1, 3: 1, 5: 1}),
    ({1: 1, 2: 1}, {0: 3}, {5: 3}),
    (ONE, {0: 7}, {1: 1, 2: 1, 3: 1, 4: 1}),
    (X, Y, {}),
)


@pytest.mark.parametrize("protocol", UNIVERSAL)
def test_sil_1_gates_are_counted_as_snarkjs_does(
    toolchain: Toolchain, phase1: Phase1, tmp_path: Path, protocol: ProofSystem
) -> None:
    path = tmp_path / "odd.r1cs"
    r1cs = write_r1cs(path, 6, ODD_CONSTRAINTS)
    said = run([*toolchain.snarkjs, protocol, "setup", path, phase1.path, tmp_path / "odd.zkey"], timeout_s=60).stdout
    match = re.search(r"(?:Plonk c| C)onstraints: +(\d+)", said)
    assert match is not None, said
    assert gate_count(r1cs, protocol) == int(match[1])


def test_sil_1_gates_of_a_real_circuit_are_counted_as_snarkjs_does(
    toolchain: Toolchain, phase1: Phase1, hit_and_blow: KeySet, tmp_path: Path
) -> None:
    path = hit_and_blow["give_clue"].r1cs
    argv: list[str | Path] = [*toolchain.snarkjs, "plonk", "setup", path, phase1.path, tmp_path / "it.zkey"]
    said = run(argv, timeout_s=60, accept=range(256)).stdout  # It does not fit, which snarkjs says after the number.
    match = re.search(r"Plonk constraints: (\d+)", said)
    assert match is not None, said
    assert gate_count(R1cs.read(path), "plonk") == int(match[1])


@pytest.mark.parametrize(("gates", "plonk", "fflonk"), [(2, 3, 3), (6, 3, 3), (7, 3, 4), (8, 3, 4), (9, 4, 4)])
def test_sil_1_the_power_at_the_edges(tmp_path: Path, gates: int, plonk: int, fflonk: int) -> None:
    r1cs = write_r1cs(tmp_path / "it.r1cs", 6, ((X, X, Y),) * (gates - 1))
    assert gate_count(r1cs, "plonk") == gates
    assert (domain_power(r1cs, "plonk"), domain_power(r1cs, "fflonk")) == (plonk, fflonk)
    for domain in range(3, 20):
        # What fflonk_setup.js asks of the phase-1 file; the power below would not do.
        needed = phase1_power(domain, "fflonk")
        assert 2 * 2**needed - 1 >= 9 * 2**domain + 18 > 2 * 2 ** (needed - 1) - 1


@pytest.mark.thorough
def test_sil_1_a_phase_1_that_is_too_small_is_refused_with_the_number(
    proved: Proved, phase1: Phase1, tmp_path: Path
) -> None:
    spec = square(tmp_path / "src", proved.store.home, proved.protocol)
    needed = phase1_power(3, proved.protocol)
    small = replace(phase1, power=needed - 1)
    with pytest.raises(Phase1TooSmallError) as refusal:
        proved.store.build_circuit(spec, lambda _: None, phase1=small, force=True)
    assert f"power {needed}" in str(refusal.value)
    assert list((proved.store.home / "tmp").iterdir()) == []


def test_a_setup_reads_the_constraints_once(proved: Proved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = square(tmp_path / "src", proved.store.home, proved.protocol)
    reads: list[Path] = []
    read = R1cs.read

    def counted(path: Path) -> R1cs:
        reads.append(path)
        return read(path)

    monkeypatch.setattr(R1cs, "read", counted)
    built = proved.store.build_circuit(spec, lambda _: None, force=True)
    assert len(reads) == 1
    assert built.manifest["domain_power"] == built.universal_key.power


# Setup, proving, verifying.


def test_a_proof_says_what_was_asked_and_what_came_out(proved: Proved, snarkjs_cli: SnarkjsCli) -> None:
    assert proved.statement.public_signals == (11, 2)
    assert proved.circuit.manifest["protocol"] == proved.protocol
    assert proved.circuit.status == "development"
    verifier = UniversalVerifier(snarkjs_cli)
    assert verifier.judge(proved.circuit.universal_key, *proved.evidence)
    assert not verifier.verify(proved.circuit.universal_key, (12, 2), proved.statement.proof)


@pytest.mark.parametrize("index", [0, -1], ids=["first", "last"])
@pytest.mark.parametrize("part", ["commitments", "evaluations"])
def test_a_changed_proof_is_rejected(proved: Proved, snarkjs_cli: SnarkjsCli, part: str, index: int) -> None:
    """The last evaluation of FFLONK is `inv`, which snarkjs's verifier ignores and the contract needs."""
    proof = proved.statement.proof
    if part == "commitments":
        points = list(proof.commitments)
        points[index] = points[index]._replace(y=COORDINATE_MODULUS - points[index].y)
        changed = replace(proof, commitments=tuple(points))
    else:
        values = list(proof.evaluations)
        values[index] = (values[index] + 1) % MODULUS
        changed = replace(proof, evaluations=tuple(values))
    verdict = UniversalVerifier(snarkjs_cli).judge(
        proved.circuit.universal_key, public_json(proved.statement.public_signals), changed.to_json()
    )
    assert verdict.reason == "the proof does not show this statement"


def test_a_bad_sample_fails_the_setup(proved: Proved, snarkjs_cli: SnarkjsCli, tmp_path: Path) -> None:
    spec = replace(proved.circuit.spec, sample=lambda: {"k": 2, "x": 3, "y": 12})
    with pytest.raises(InvalidSignalsError) as refusal:
        proved.store.build_circuit(spec, universal_self_test(snarkjs_cli), force=True)
    assert refusal.value.signal == "y"
    assert proved.store.load_circuit(spec) == proved.circuit


def test_the_protocols_are_kept_apart(proved: Proved, snarkjs_cli: SnarkjsCli, hit_and_blow: KeySet) -> None:
    with pytest.raises(WrongProtocolError):
        NativeProver().prove(proved.circuit, INPUTS)
    with pytest.raises(WrongProtocolError):
        UniversalProver(snarkjs_cli).prove(hit_and_blow["authorise"], INPUTS)
    other: ProofSystem = "fflonk" if proved.protocol == "plonk" else "plonk"
    with pytest.raises(InvalidArtifactError):
        BuiltCircuit.load(proved.circuit.folder, replace(proved.circuit.spec, protocol=other))
    with pytest.raises(InvalidArtifactError):
        BuiltCircuit.load(proved.circuit.folder, replace(proved.circuit.spec, protocol="groth16"))
    with pytest.raises(MalformedProofError) as refusal:
        unasked().verify(proved.circuit.universal_key, (11, 2), replace(proved.statement.proof, protocol=other))
    assert refusal.value.field == "protocol"


def forged(proved: Proved, toolchain: Toolchain, folder: Path) -> UniversalProof:
    """A proof by a snarkjs that takes k + r for k = 2 wherever its transcript has it, as a cheating prover would."""
    package = toolchain.modules / "snarkjs"
    (folder / "build").mkdir(parents=True)
    (folder / "node_modules").symlink_to(toolchain.modules)
    (folder / "package.json").write_bytes((package / "package.json").read_bytes())
    honest = "this.Fr.toRprBE(buffer, offset, this.data[i].data);"
    source = (package / "build" / "cli.cjs").read_text("utf-8")
    assert source.count(honest) == 1
    beyond = (2 + MODULUS).to_bytes(32, "big").hex()
    cheat = (
        "if (BigInt('0x' + Buffer.from(buffer.slice(offset, offset + 32)).toString('hex')) === 2n)"
        f" buffer.set(Buffer.from('{beyond}', 'hex'), offset);"
    )
    (folder / "build" / "cli.cjs").write_text(source.replace(honest, f"{honest} {cheat}"), "utf-8")
    files = [folder / "inputs.json", proved.circuit.wasm, proved.circuit.zkey, folder / "proof.json", folder / "public"]
    files[0].write_text(json.dumps(INPUTS), "utf-8")
    run([toolchain.node, folder / "build" / "cli.cjs", proved.protocol, "fullprove", *files], timeout_s=60)
    return UniversalProof.parse(json.loads(files[3].read_bytes()), proved.protocol)


@pytest.mark.thorough
def test_vin_9_the_contract_takes_one_statement_in_one_spelling(
    proved: Proved, toolchain: Toolchain, evm: Path, tmp_path: Path
) -> None:
    def answers(source: str, *calls: list[str]) -> list[bool | None]:
        (contract,) = re.findall(r"^contract (\w+)", source, re.MULTILINE)
        return call(evm, source, contract, calls, accepted="Unused function parameter")

    proof = proved.statement.proof
    good, other = arguments((11, 2), proof), arguments((11, 3), proof)
    changed = [*good[:-3], f"0x{int(good[-3], 16) ^ 1:064x}", *good[-2:]]
    beyond = arguments((11, 2 + MODULUS), forged(proved, toolchain, tmp_path / "forger"))
    with pytest.raises(InvalidInputError):
        universal_verifier(proved.circuit, "A B", toolchain)
    source = universal_verifier(proved.circuit, "SquareVerifier", toolchain)
    assert re.findall(r"^contract (\w+)", source, re.MULTILINE) == ["SquareVerifier"]
    assert answers(source, good, other, changed, beyond) == [True, False, False, False]
    # It is the added checks that refuse the forged proof: snarkjs's own contract accepts it.
    without, count = re.subn(rf" if \(_?pubSignals\[\d\] >= {MODULUS}\) return false;", "", source)
    assert count == 2
    assert answers(without, good, beyond) == [True, True]


def test_keys_under_the_hermez_ceremony_say_so(proved: Proved, shared_ptau: Path) -> None:
    power = phase1_power(3, proved.protocol)
    files = {read_power(path): path for path in sorted(shared_ptau.glob("*.ptau"))}
    phase1 = open_phase1(next(path for size, path in sorted(files.items()) if size >= power))
    spec = proved.circuit.spec
    built = proved.store.build_circuit(spec, lambda _: None, phase1=phase1)
    assert proved.store.load_circuit(spec) == built
    assert built.status == "ceremony"
    assert built.manifest["setup"]["contributions"] == []
    assert built.key != proved.circuit.key


def test_a_circuit_is_found_again_and_removed(proved: Proved, tmp_path: Path) -> None:
    spec = square(tmp_path / "src", proved.store.home, proved.protocol)
    found = proved.store.load_circuit(spec)
    assert proved.store.circuit_status(spec) == found.status
    # Somebody else's folder with the same sources: theirs stay.
    assert not any(path.parent.name == "artifacts" for path in proved.store.remove_circuit(spec))
    assert found.folder.is_dir()


# Proofs from outside.

Change = Callable[[Any], object]


def points(proof: dict[str, Any]) -> dict[str, Any]:
    return proof if proof["protocol"] == "plonk" else proof["polynomials"]


def elements(proof: dict[str, Any]) -> dict[str, Any]:
    return proof if proof["protocol"] == "plonk" else proof["evaluations"]


def first_point(proof: dict[str, Any]) -> str:
    return "A" if proof["protocol"] == "plonk" else "C1"


def last_element(proof: dict[str, Any]) -> str:
    return "eval_zw" if proof["protocol"] == "plonk" else "inv"


def set_point(value: Change) -> Change:
    def change(proof: dict[str, Any]) -> str:
        name = first_point(proof)
        points(proof)[name] = value(points(proof)[name])
        return name

    return change


def set_element(value: Change) -> Change:
    def change(proof: dict[str, Any]) -> str:
        name = last_element(proof)
        elements(proof)[name] = value(elements(proof)[name])
        return name

    return change


def drop_point(proof: dict[str, Any]) -> str:
    name = first_point(proof)
    del points(proof)[name]
    return name


def drop_element(proof: dict[str, Any]) -> str:
    name = last_element(proof)
    del elements(proof)[name]
    return name


def add_field(proof: dict[str, Any]) -> str:
    proof["more"] = "1"
    return "more"


def add_element(proof: dict[str, Any]) -> str:
    elements(proof)["more"] = "1"
    return "more"


def relabel(name: str, value: str) -> Change:
    def change(proof: dict[str, Any]) -> str:
        proof[name] = value
        return name

    return change


BAD_PROOFS: dict[str, Change] = {
    "no point": drop_point,
    "no element": drop_element,
    "a field more": add_field,
    "an element more": add_element,
    "another protocol": relabel("protocol", "groth16"),
    "another curve": relabel("curve", "bls12381"),
    "at infinity": set_point(lambda _: ["0", "1", "0"]),
    "scaled": set_point(lambda p: [p[0], p[1], "2"]),
    "two coordinates": set_point(lambda p: p[:2]),
    "off the curve": set_point(lambda p: [p[0], p[0], "1"]),
    "coordinate + q": set_point(lambda p: [str(int(p[0]) + COORDINATE_MODULUS), p[1], "1"]),
    "a number": set_point(lambda p: [int(p[0]), p[1], "1"]),
    "element + r": set_element(lambda e: str(int(e) + MODULUS)),
    "leading zero": set_element(lambda e: "0" + e),
    "hexadecimal": set_element(lambda e: hex(int(e))),
    "null": set_element(lambda _: None),
}


@pytest.mark.parametrize("change", BAD_PROOFS.values(), ids=BAD_PROOFS)
def test_a_malformed_proof_is_refused_by_name(proved: Proved, change: Change) -> None:
    proof = proved.statement.proof.to_json()
    assert UniversalProof.parse(copy.deepcopy(proof), proved.protocol) == proved.statement.proof
    field = change(proof)
    with pytest.raises(MalformedProofError) as refusal:
        UniversalProof.parse(proof, proved.protocol)
    assert refusal.value.field == field
    assert not unasked().judge(proved.circuit.universal_key, ["11", "2"], proof)


@pytest.mark.parametrize("proof", [None, [], {}, "proof", 5], ids=str)
def test_what_is_no_proof_is_rejected(proved: Proved, proof: object) -> None:
    assert not unasked().judge(proved.circuit.universal_key, ["11", "2"], proof)


@pytest.mark.parametrize(
    "signals",
    [["11"], ["11", "2", "0"], [], None, ["11", 2], ["11", str(2 + MODULUS)], ["11", "02"], ["11", None]],
    ids=str,
)
def test_public_signals_that_are_no_statement_are_rejected(proved: Proved, signals: object) -> None:
    verdict = unasked().judge(proved.circuit.universal_key, signals, proved.statement.proof.to_json())
    assert not verdict
    assert "public signal" in verdict.reason


# Keys from outside.


def set_key(name: str, value: Change) -> Change:
    def change(key: dict[str, Any]) -> str:
        key[name] = value(key[name])
        return name

    return change


BAD_KEYS: dict[str, Change] = {
    "another protocol": set_key("protocol", lambda _: "groth16"),
    "another curve": set_key("curve", lambda _: "bls12381"),
    "no signals": set_key("nPublic", lambda _: 0),
    "signals as text": set_key("nPublic", str),
    "signals as bool": set_key("nPublic", lambda _: True),
    "too many signals": set_key("nPublic", lambda _: 8),
    "small domain": set_key("power", lambda _: 2),
    "huge domain": set_key("power", lambda _: 29),
    "w is 1": set_key("w", lambda _: "1"),
    "w squared": set_key("w", lambda w: str(int(w) ** 2 % MODULUS)),
    "w + r": set_key("w", lambda w: str(int(w) + MODULUS)),
    "k1 is 0": set_key("k1", lambda _: "0"),
    "k1 in the domain": set_key("k1", lambda _: "1"),
    "k2 in the domain": set_key("k2", lambda _: str(MODULUS - 1)),
    "k2 is k1": set_key("k2", lambda _: "2"),
    "tau off the twist": set_key("X_2", lambda x: [x[0], x[0], ["1", "0"]]),
    "tau outside the subgroup": set_key("X_2", lambda _: g2_json(outside(G2_GENERATOR))),
    "tau is 1": set_key("X_2", lambda _: g2_json(G2_GENERATOR)),
    "a field more": lambda key: key.update(more="1") or "more",
}
BAD_FFLONK_KEYS: dict[str, Change] = {
    name: set_key(name, lambda value: str(int(value) + 1)) for name in ("w3", "w4", "w8", "wr")
}


@pytest.mark.parametrize("change", BAD_KEYS.values(), ids=BAD_KEYS)
def test_a_malformed_key_is_refused_by_name(proved: Proved, change: Change) -> None:
    key = proved.circuit.universal_key
    data = key.to_json()
    assert UniversalKey.parse(copy.deepcopy(data), proved.protocol) == key
    field = change(data)
    with pytest.raises(MalformedKeyError) as refusal:
        UniversalKey.parse(data, proved.protocol)
    assert refusal.value.field == field
    assert isinstance(refusal.value, InsecureKeyError) == (data["X_2"] == g2_json(G2_GENERATOR))


@pytest.mark.parametrize("name", BAD_FFLONK_KEYS)
def test_a_wrong_root_of_an_fflonk_key_is_refused(proved: Proved, name: str) -> None:
    if proved.protocol == "fflonk":
        data = proved.circuit.universal_key.to_json()
        assert BAD_FFLONK_KEYS[name](data) == name
        with pytest.raises(MalformedKeyError) as refusal:
            UniversalKey.parse(data, "fflonk")
        assert refusal.value.field == name


def test_the_key_is_the_one_that_snarkjs_wrote(proved: Proved) -> None:
    written = json.loads((proved.circuit.folder / "verification_key.json").read_bytes())
    assert proved.circuit.universal_key.to_json() == written
    zero = [name for name, point in written.items() if point == ["0", "1", "0"]]
    assert zero == (["Qc"] if proved.protocol == "plonk" else [])
