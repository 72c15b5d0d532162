"""Verifiers: three independent implementations behind one interface.

`native` (arkworks, through groth16py), `reference` (py-ecc, pure Python) and `snarkjs`. They take evidence that has
been read strictly (`mastermind.zk.evidence`) and answer with a bool; what is not well formed raises. A statement of
the wrong length or range, or a point outside its subgroup, is never passed to a pairing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Protocol

import groth16py

from mastermind.errors import InvalidInputError, MalformedKeyError, MalformedProofError
from mastermind.zk.evidence import Proof, VerifyingKey, parse_public_signals, require_statement
from mastermind.zk.fflonk import inverse_is_right
from mastermind.zk.snarkjs import Snarkjs, SnarkjsCli
from mastermind.zk.universal import UniversalKey, UniversalProof

VERIFIER_NAMES = ("native", "reference", "snarkjs")


class Verifier(Protocol):
    """Decides whether a proof shows a statement under a key."""

    @property
    def name(self) -> str:
        """One of VERIFIER_NAMES."""
        ...

    def verify(self, key: VerifyingKey, public_signals: Sequence[int], proof: Proof) -> bool:
        """Return whether the proof is valid for exactly these public signals.

        Raises:
            MalformedProofError: wrong number of signals, one out of range, a point outside its subgroup.
            MalformedKeyError: a point of the key outside its subgroup.
        """
        ...


@dataclass(frozen=True)
class Verdict:
    """The answer about evidence from outside, whatever it looked like.

    Attributes:
        accepted: whether the statement is proved.
        reason: why not; empty when accepted.
    """

    accepted: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.accepted


def judge(verifier: Verifier, key: VerifyingKey, public_signals: object, proof: object) -> Verdict:
    """Read and verify evidence from outside (parsed JSON); malformed evidence is rejected with a reason."""
    try:
        accepted = verifier.verify(key, parse_public_signals(public_signals), Proof.parse(proof))
    except InvalidInputError as error:
        return Verdict(False, str(error))
    return Verdict(accepted, "" if accepted else "the proof does not show this statement")


class UniversalVerifier:
    """snarkjs's PLONK and FFLONK verifiers, by its command line. All that can be checked before is."""

    name = "snarkjs"

    def __init__(self, snarkjs: SnarkjsCli) -> None:
        self._snarkjs = snarkjs

    def verify(self, key: UniversalKey, public_signals: Sequence[int], proof: UniversalProof) -> bool:
        """Return whether the proof is valid for exactly these public signals.

        Raises:
            MalformedProofError: of another protocol, wrong number of signals, or one out of range.
        """
        if proof.protocol != key.protocol:
            raise MalformedProofError(f"a {proof.protocol} proof under a {key.protocol} key", field="protocol")
        require_statement(key, public_signals)
        if key.protocol == "fflonk" and not inverse_is_right(key, public_signals, proof):
            return False
        return self._snarkjs.verify_by(key.protocol, key.to_json(), public_signals, proof.to_json())

    def judge(self, key: UniversalKey, public_signals: object, proof: object) -> Verdict:
        """Read and verify evidence from outside (parsed JSON); malformed evidence is rejected with a reason."""
        try:
            accepted = self.verify(key, parse_public_signals(public_signals), UniversalProof.parse(proof, key.protocol))
        except InvalidInputError as error:
            return Verdict(False, str(error))
        return Verdict(accepted, "" if accepted else "the proof does not show this statement")


#: A key, public signals and a proof.
Statement = tuple[VerifyingKey, Sequence[int], Proof]


def verify_all(verifier: Verifier, statements: Sequence[Statement]) -> Iterator[bool]:
    """Verify several proofs, side by side on the cores there are, and yield the answers in order.

    Raises:
        MalformedProofError, MalformedKeyError: when the turn of the malformed statement comes.
    """
    if len(statements) < 2:
        return (verifier.verify(*statement) for statement in statements)
    return _pool().map(lambda statement: verifier.verify(*statement), statements)


@cache
def _pool() -> ThreadPoolExecutor:
    # The pairing releases Python's lock. Started once: threads cost as much as half a verification.
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="verify")


class NativeVerifier:
    """arkworks through groth16py: one to three milliseconds a proof, in process."""

    name = "native"

    def verify(self, key: VerifyingKey, public_signals: Sequence[int], proof: Proof) -> bool:
        require_statement(key, public_signals)
        verifier = _prepared(key)
        try:
            return bool(verifier.verify(proof.to_bytes(), list(public_signals)))
        except groth16py.EncodingError as error:
            # Range and curve have been checked: what is left is the subgroup of B.
            raise MalformedProofError("pi_b is not in the subgroup of G2", field="pi_b") from error


@lru_cache(maxsize=256)
def _prepared(key: VerifyingKey) -> Any:
    try:
        return groth16py.Verifier(groth16py.VerifyingKey.from_snarkjs(json.dumps(key.to_json())))
    except groth16py.EncodingError as error:
        raise MalformedKeyError("a point of the key is not in the subgroup of G2", field="verifying key") from error


class ReferenceVerifier:
    """py-ecc: slow, readable, and sharing no code with the provers."""

    name = "reference"

    def verify(self, key: VerifyingKey, public_signals: Sequence[int], proof: Proof) -> bool:
        from mastermind.zk.pairing import holds

        require_statement(key, public_signals)
        _require_subgroups(key, proof)
        return holds(key, public_signals, proof)


class SnarkjsVerifier:
    """snarkjs, by either transport. It checks less than it should, so all is checked before."""

    name = "snarkjs"

    def __init__(self, snarkjs: Snarkjs) -> None:
        self._snarkjs = snarkjs

    def verify(self, key: VerifyingKey, public_signals: Sequence[int], proof: Proof) -> bool:
        require_statement(key, public_signals)
        _require_subgroups(key, proof)
        return self._snarkjs.verify(key, public_signals, proof)


def _require_subgroups(key: VerifyingKey, proof: Proof) -> None:
    from mastermind.zk.pairing import in_subgroup

    _require_key_subgroups(key)
    if not in_subgroup(proof.b):
        raise MalformedProofError("pi_b is not in the subgroup of G2", field="pi_b")


@lru_cache(maxsize=256)
def _require_key_subgroups(key: VerifyingKey) -> None:
    from mastermind.zk.pairing import in_subgroup

    for name in ("beta", "gamma", "delta"):
        if not in_subgroup(getattr(key, name)):
            raise MalformedKeyError(f"vk_{name}_2 is not in the subgroup of G2", field=f"vk_{name}_2")
