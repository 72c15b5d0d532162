"""Provers: two independent implementations behind one interface, from the same artefacts.

`native` (witness by wasmtime, proof by arkworks through groth16py, all in process) and `snarkjs`. Either way the
inputs are checked first, the public inputs are compared with what was asked, and the finished proof is verified
before it is returned: a prover that fails says so instead of handing out a bad proof.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import groth16py

from mastermind.errors import InvalidArtifactError, MalformedProofError, MissingSampleError, ProofSelfCheckError
from mastermind.zk import binfile
from mastermind.zk.artifacts import BuiltCircuit, SelfTest
from mastermind.zk.compile import SOURCE
from mastermind.zk.evidence import Proof, VerifyingKey
from mastermind.zk.r1cs import encode_witness
from mastermind.zk.snarkjs import Snarkjs, SnarkjsCli
from mastermind.zk.universal import UniversalProof
from mastermind.zk.verify import NativeVerifier, UniversalVerifier

if TYPE_CHECKING:  # wasmtime is loaded when something is proved
    from mastermind.zk.witness import WitnessCalculator

PROVER_NAMES = ("native", "snarkjs")

_VERIFIER = NativeVerifier()


@dataclass(frozen=True)
class ProvedStatement:
    """A proof and the public signals that it is about, in the circuit's order."""

    public_signals: tuple[int, ...]
    proof: Proof


class Prover(Protocol):
    """Makes proofs."""

    @property
    def name(self) -> str:
        """One of PROVER_NAMES."""
        ...

    def prove(self, circuit: BuiltCircuit, inputs: Mapping[str, object]) -> ProvedStatement:
        """Prove the statement of `circuit` for these inputs (by name, public and private).

        Raises:
            InvalidSignalsError: the inputs do not fit the circuit; no tool has seen them.
            WrongProtocolError: the circuit was not set up for Groth16.
            WitnessError: the statement is false for these inputs.
            ProofSelfCheckError: the prover made a proof that does not verify.
            ToolchainError: a tool failed.
        """
        ...


class NativeProver:
    """In process, without Node. Safe to use from several threads at once."""

    name = "native"

    def prove(self, circuit: BuiltCircuit, inputs: Mapping[str, object]) -> ProvedStatement:
        verifying_key = circuit.verifying_key
        values = circuit.spec.check_inputs(inputs)
        key, calculator = _loaded(circuit)
        witness = calculator.calculate(values, circuit.folder / SOURCE)
        with _private_file(encode_witness(witness)) as path:
            data = _groth16(circuit, key, path)
        signals = tuple(binfile.split_elements(witness[32 : 32 * (1 + verifying_key.public_count)]))
        return _checked(circuit, verifying_key, values, signals, Proof.from_bytes(data))


class SnarkjsProver:
    """snarkjs, by either transport."""

    name = "snarkjs"

    def __init__(self, snarkjs: Snarkjs) -> None:
        self._snarkjs = snarkjs

    def prove(self, circuit: BuiltCircuit, inputs: Mapping[str, object]) -> ProvedStatement:
        verifying_key = circuit.verifying_key
        values = circuit.spec.check_inputs(inputs)
        proof, public_signals = self._snarkjs.prove(values, circuit.wasm, circuit.zkey)
        return _checked(circuit, verifying_key, values, public_signals, proof)


@dataclass(frozen=True)
class UniversalStatement:
    """A PLONK or FFLONK proof and the public signals that it is about, in the circuit's order."""

    public_signals: tuple[int, ...]
    proof: UniversalProof


class UniversalProver:
    """snarkjs's PLONK and FFLONK provers, by its command line."""

    name = "snarkjs"

    def __init__(self, snarkjs: SnarkjsCli) -> None:
        self._snarkjs = snarkjs
        self._verifier = UniversalVerifier(snarkjs)

    def prove(self, circuit: BuiltCircuit, inputs: Mapping[str, object]) -> UniversalStatement:
        """Prove the statement of `circuit` for these inputs, and verify the proof. Raises as `Prover.prove`, and
        WrongProtocolError for a Groth16 circuit."""
        key = circuit.universal_key
        values = circuit.spec.check_inputs(inputs)
        data, public_signals = self._snarkjs.prove_by(key.protocol, values, circuit.wasm, circuit.zkey)
        _require_asked(circuit, values, public_signals)
        try:
            proof = UniversalProof.parse(data, key.protocol)
        except MalformedProofError as error:
            raise ProofSelfCheckError(f"snarkjs made a proof of {circuit.spec.name} that is not right") from error
        if not self._verifier.verify(key, public_signals, proof):
            raise ProofSelfCheckError(f"the new proof of {circuit.spec.name} does not verify")
        return UniversalStatement(public_signals, proof)


def self_test(circuit: BuiltCircuit) -> None:
    """Prove a sample statement of a new Groth16 circuit and verify the proof. Raises as `Prover.prove`.

    A circuit without sample inputs is not tried: nobody has said which statement of it is true.
    """
    _try(NativeProver(), circuit)


def universal_self_test(snarkjs: SnarkjsCli) -> SelfTest:
    """The same for PLONK and FFLONK circuits."""
    return lambda circuit: _try(UniversalProver(snarkjs), circuit)


def _try(prover: Prover | UniversalProver, circuit: BuiltCircuit) -> None:
    try:
        inputs = circuit.spec.sample()
    except MissingSampleError:
        return
    prover.prove(circuit, inputs)


def _checked(
    circuit: BuiltCircuit,
    key: VerifyingKey,
    values: dict[str, list[int]],
    public_signals: tuple[int, ...],
    proof: Proof,
) -> ProvedStatement:
    _require_asked(circuit, values, public_signals)
    if not _VERIFIER.verify(key, public_signals, proof):
        raise ProofSelfCheckError(
            f"the new proof of {circuit.spec.name} does not verify: its files do not fit together"
        )
    return ProvedStatement(public_signals, proof)


def _require_asked(circuit: BuiltCircuit, values: dict[str, list[int]], public_signals: tuple[int, ...]) -> None:
    """Check that the public signals after the outputs, which nobody can know before, are the inputs asked for."""
    outputs = len(circuit.spec.output_labels)
    if public_signals[outputs:] != circuit.spec.public_inputs(values):
        raise ProofSelfCheckError(f"the proof of {circuit.spec.name} is about other public inputs than asked")


def _groth16(circuit: BuiltCircuit, key: Any, witness: str) -> bytes:
    """Prove with arkworks, which panics when the witness is not one of the key's circuit."""
    try:
        return bytes(groth16py.prove_wtns(key, witness))
    except BaseException as error:
        # A panic of Rust is no Exception, and its class can be had by name only.
        if isinstance(error, Exception) or type(error).__module__ == "pyo3_runtime":
            raise ProofSelfCheckError(f"{circuit.spec.name} cannot be proved: its files do not fit together") from error
        raise


@lru_cache(maxsize=64)
def _loaded(circuit: BuiltCircuit) -> tuple[Any, WitnessCalculator]:
    from mastermind.zk.witness import WitnessCalculator

    try:
        key, _ = groth16py.import_zkey(str(circuit.zkey))
    except Exception as error:  # groth16py reports a damaged zkey by several classes
        raise InvalidArtifactError(f"{circuit.zkey} cannot be loaded: {error}", path=circuit.zkey) from error
    return key, WitnessCalculator(circuit.wasm.read_bytes(), circuit.spec.name)


@contextmanager
def _private_file(content: bytes) -> Iterator[str]:
    """A path that holds `content` for a library that takes only paths; gone afterwards.

    A witness holds secrets. On Linux the file is memory that has no name; elsewhere it is one that only the owner
    can read, removed as soon as it has been used.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("witness", os.MFD_CLOEXEC)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{descriptor}"
    else:
        with tempfile.TemporaryDirectory() as folder:  # mode 0700
            path = Path(folder, "witness.wtns")
            path.touch(mode=0o600)
            path.write_bytes(content)
            yield str(path)
