"""PLONK and FFLONK: proofs under a universal setup, through snarkjs.

Phase 1 is the whole setup: there is no phase 2 for each circuit, so keys under a public ceremony need nobody's trust
besides. In exchange proofs are larger, and slower to make and to check, and the phase-1 file has to be larger. Owns
the keys and proofs of both protocols, read as strictly as those of Groth16 (`mastermind.zk.evidence`), the power that
a circuit needs, and the setup.

Source of the formats and rules: snarkjs 0.7.6, `plonk_setup.js`, `fflonk_setup.js`, `zkey_export_verificationkey.js`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mastermind.errors import InsecureKeyError, MalformedKeyError, MalformedProofError, SetupError
from mastermind.field import MODULUS
from mastermind.zk.circuit import ProofSystem
from mastermind.zk.compile import CompiledCircuit
from mastermind.zk.curve import G2_GENERATOR, G1Point, G2Point
from mastermind.zk.evidence import (
    CURVE,
    MAX_PUBLIC_SIGNALS,
    EvidenceReader,
    canonical_json,
    g1_json,
    g2_json,
    parse_json,
)
from mastermind.zk.phase1 import MAX_POWER, Phase1
from mastermind.zk.progress import Progress, silent
from mastermind.zk.r1cs import Linear, R1cs, R1csHeader
from mastermind.zk.tools import Toolchain, run

TIMEOUT_S = 3600.0
#: The smallest evaluation domain that snarkjs makes is 2^3.
MINIMUM_POWER = 3

#: Proofs: commitments (points of G1) and evaluations (field elements).
_COMMITMENTS: Mapping[str, tuple[str, ...]] = {
    "plonk": ("A", "B", "C", "Z", "T1", "T2", "T3", "Wxi", "Wxiw"),
    "fflonk": ("C1", "C2", "W1", "W2"),
}
_EVALUATIONS: Mapping[str, tuple[str, ...]] = {
    "plonk": ("eval_a", "eval_b", "eval_c", "eval_s1", "eval_s2", "eval_zw"),
    "fflonk": ("ql", "qr", "qm", "qo", "qc", "s1", "s2", "s3", "a", "b", "c", "z", "zw", "t1w", "t2w", "inv"),
}
#: Keys: commitments to the circuit's polynomials, one of which may be zero, and roots of unity.
_KEY_POINTS: Mapping[str, tuple[str, ...]] = {
    "plonk": ("Qm", "Ql", "Qr", "Qo", "Qc", "S1", "S2", "S3"),
    "fflonk": ("C0",),
}
_KEY_ELEMENTS: Mapping[str, tuple[str, ...]] = {
    "plonk": ("k1", "k2", "w"),
    "fflonk": ("k1", "k2", "w", "w3", "w4", "w8", "wr"),
}


@dataclass(frozen=True)
class UniversalProof:
    """A PLONK or FFLONK proof: commitments on the curve, evaluations in the field."""

    protocol: ProofSystem
    commitments: tuple[G1Point, ...]
    evaluations: tuple[int, ...]

    @classmethod
    def parse(cls, data: object, protocol: ProofSystem) -> UniversalProof:
        """Read the object that snarkjs writes to `proof.json`.

        Raises:
            MalformedProofError: anything in it is not as snarkjs writes it for this protocol.
        """
        reader = EvidenceReader(MalformedProofError)
        commitments, evaluations = _COMMITMENTS[protocol], _EVALUATIONS[protocol]
        labels = {"protocol", "curve"}
        if protocol == "plonk":
            fields = reader.fields(data, "proof", {*commitments, *evaluations, *labels})
            points, elements = fields, fields
        else:
            fields = reader.fields(data, "proof", {"polynomials", "evaluations", *labels})
            points = reader.fields(fields["polynomials"], "polynomials", set(commitments))
            elements = reader.fields(fields["evaluations"], "evaluations", set(evaluations))
        reader.labels(fields, protocol)
        return cls(
            protocol,
            tuple(reader.g1(points[name], name) for name in commitments),
            tuple(reader.element(elements[name], name) for name in evaluations),
        )

    def to_json(self) -> dict[str, Any]:
        """The object that snarkjs writes; `parse` reads it back."""
        points = {
            name: g1_json(point) for name, point in zip(_COMMITMENTS[self.protocol], self.commitments, strict=True)
        }
        elements = {name: str(value) for name, value in zip(_EVALUATIONS[self.protocol], self.evaluations, strict=True)}
        labels = {"protocol": self.protocol, "curve": CURVE}
        if self.protocol == "plonk":
            return {**points, **elements, **labels}
        return {"polynomials": points, "evaluations": elements, **labels}


@dataclass(frozen=True)
class UniversalKey:
    """A verifying key of PLONK or FFLONK.

    Attributes:
        public_count: how many public signals a statement has.
        power: the evaluation domain has 2^power elements.
        elements: cosets and roots of unity, checked to be such.
        commitments: to the circuit's polynomials; None for one that is zero.
        x_2: tau in G2, from phase 1.
    """

    protocol: ProofSystem
    public_count: int
    power: int
    elements: tuple[int, ...]
    commitments: tuple[G1Point | None, ...]
    x_2: G2Point

    @classmethod
    def parse(cls, data: object, protocol: ProofSystem) -> UniversalKey:
        """Read the object that snarkjs writes to `verification_key.json`.

        Raises:
            MalformedKeyError: anything in it is not as snarkjs writes it for this protocol, a point is not on its
                curve or in its group, or a root of unity is none.
            InsecureKeyError: its tau is 1, so that every false statement verifies under it.
        """
        reader = EvidenceReader(MalformedKeyError)
        names = _KEY_ELEMENTS[protocol]
        expected = {"protocol", "curve", "nPublic", "power", "X_2", *names, *_KEY_POINTS[protocol]}
        fields = reader.fields(data, "verifying key", expected)
        reader.labels(fields, protocol)
        power = _integer(fields, "power", MINIMUM_POWER, MAX_POWER)
        public_count = _integer(fields, "nPublic", 1, min(MAX_PUBLIC_SIGNALS, (1 << power) - 1))
        elements = {name: reader.element(fields[name], name) for name in names}
        _require_roots(elements, power)
        x_2 = reader.g2(fields["X_2"], "X_2")
        from mastermind.zk.pairing import in_subgroup

        if not in_subgroup(x_2):
            raise MalformedKeyError("X_2 is not in the subgroup of G2", field="X_2")
        if x_2 == G2_GENERATOR:
            raise InsecureKeyError("the tau of this key is 1: anyone can prove anything under it", field="X_2")
        return cls(
            protocol=protocol,
            public_count=public_count,
            power=power,
            elements=tuple(elements.values()),
            commitments=tuple(reader.g1_or_zero(fields[name], name) for name in _KEY_POINTS[protocol]),
            x_2=x_2,
        )

    @classmethod
    def read(cls, path: Path, protocol: ProofSystem) -> UniversalKey:
        """Read a `verification_key.json`. Raises as `parse`, and MalformedKeyError when it is not JSON."""
        try:
            return cls.parse(parse_json(path.read_bytes()), protocol)
        except (ValueError, OSError) as error:
            if isinstance(error, MalformedKeyError):
                raise
            raise MalformedKeyError(f"{path} is not a readable verifying key", field="verifying key") from error

    def to_json(self) -> dict[str, Any]:
        """The object that snarkjs writes; `parse` reads it back."""
        return {
            "protocol": self.protocol,
            "curve": CURVE,
            "nPublic": self.public_count,
            "power": self.power,
            **{name: str(value) for name, value in zip(_KEY_ELEMENTS[self.protocol], self.elements, strict=True)},
            **{
                name: ["0", "1", "0"] if point is None else g1_json(point)
                for name, point in zip(_KEY_POINTS[self.protocol], self.commitments, strict=True)
            },
            "X_2": g2_json(self.x_2),
        }

    @property
    def root(self) -> int:
        """The root of unity of order 2^power that generates the evaluation domain."""
        return self.elements[_KEY_ELEMENTS[self.protocol].index("w")]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, in hex: the same for the same key, whoever wrote its file."""
        return hashlib.sha256(canonical_json(self.to_json())).hexdigest()


def gate_count(r1cs: R1cs, protocol: ProofSystem) -> int:
    """How many gates snarkjs makes of a circuit: one for each public signal, and one or more for each constraint.

    A gate has three wires, so that sums of more terms take gates of their own.
    """
    return r1cs.public_count + sum(_gates(*constraint, protocol) for constraint in r1cs.constraints)


def domain_power(r1cs: R1cs, protocol: ProofSystem) -> int:
    """The power of two of snarkjs's evaluation domain for a circuit. FFLONK keeps two rows for blinding."""
    rows = gate_count(r1cs, protocol) + (2 if protocol == "fflonk" else 0)
    return max(MINIMUM_POWER, (rows - 1).bit_length())


def phase1_power(domain: int, protocol: ProofSystem) -> int:
    """The power of the phase-1 file that a domain of 2^domain needs: FFLONK commits to polynomials nine times as long.

    snarkjs wants 9 * 2^domain + 18 of the 2 * 2^power - 1 points, which 2^(domain + 3) is the first power to have.
    """
    return domain + 3 if protocol == "fflonk" else domain


def required_power(r1cs: Path, protocol: ProofSystem) -> tuple[int, int]:
    """The power of a circuit's evaluation domain, and that of the phase-1 file which its setup needs.

    Raises:
        InvalidArtifactError: `r1cs` is not a constraint system.
    """
    if protocol == "groth16":
        power = R1csHeader.read(r1cs).domain_power
        return power, power
    domain = domain_power(R1cs.read(r1cs), protocol)
    return domain, phase1_power(domain, protocol)


def make_universal_keys(
    compiled: CompiledCircuit,
    protocol: ProofSystem,
    domain: int,
    phase1: Phase1,
    toolchain: Toolchain,
    out: Path,
    progress: Progress = silent,
) -> UniversalKey:
    """Make `<name>.zkey` and `verification_key.json` in the folder `out`.

    Raises:
        Phase1TooSmallError: known before any tool runs.
        SetupError: the finished key is not right.
        ToolchainError: snarkjs failed.
    """
    phase1.require(phase1_power(domain, protocol), f"{compiled.name} by {protocol}")
    zkey, verifying_key = out / f"{compiled.name}.zkey", out / "verification_key.json"
    progress(f"{compiled.name}: {protocol} setup")
    run([*toolchain.snarkjs, protocol, "setup", compiled.r1cs, phase1.path, zkey], timeout_s=TIMEOUT_S)
    # snarkjs reports some failures in words only, and leaves an empty key.
    if not zkey.is_file() or not zkey.stat().st_size:
        raise SetupError(f"snarkjs made no {protocol} key of {compiled.name}")
    run([*toolchain.snarkjs, "zkey", "export", "verificationkey", zkey, verifying_key], timeout_s=TIMEOUT_S)
    try:
        key = UniversalKey.read(verifying_key, protocol)
    except MalformedKeyError as error:
        raise SetupError(f"snarkjs made a {protocol} key of {compiled.name} that is not right: {error}") from error
    if key.power != domain:
        raise SetupError(f"the {protocol} key of {compiled.name} is for 2^{key.power} gates, not 2^{domain}")
    return key


def _gates(a: Linear, b: Linear, c: Linear, protocol: ProofSystem) -> int:
    """How many gates snarkjs makes of a constraint a * b = c."""
    terms_a, terms_b, terms_c = (sum(1 for wire, value in part.items() if wire and value) for part in (a, b, c))
    if terms_a and terms_b:
        return max(terms_a, 1) + max(terms_b, 1) + max(terms_c, 1) - 2
    # One factor is a constant: a sum, with up to three terms in its last gate.
    constant, other = (a, b) if not terms_a else (b, a)
    factor = constant.get(0, 0)
    if not factor or not any(other.values()):
        summed = terms_c
    else:
        summed = sum(
            1
            for wire in {*other, *c} - {0}
            # PLONK's setup keeps terms that cancel.
            if protocol == "plonk" or (factor * other.get(wire, 0) - c.get(wire, 0)) % MODULUS
        )
    return max(summed - 3, 0) + 1


def _integer(fields: Mapping[str, Any], name: str, least: int, most: int) -> int:
    value = fields[name]
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise MalformedKeyError(f"{name} is not an integer of {least} .. {most}", field=name)
    return value


def _require_roots(elements: Mapping[str, int], power: int) -> None:
    """Check that w generates the domain, that k1 and k2 give other cosets of it, and FFLONK's further roots."""

    def require(holds: bool, name: str, what: str) -> None:
        if not holds:
            raise MalformedKeyError(f"{name} is not {what}", field=name)

    size = 1 << power
    w, k1, k2 = elements["w"], elements["k1"], elements["k2"]
    require(pow(w, size // 2, MODULUS) == MODULUS - 1, "w", f"a root of unity of order 2^{power}")
    require(pow(k1, size, MODULUS) not in (0, 1), "k1", "outside the domain")
    require(pow(k2, size, MODULUS) not in (0, 1), "k2", "outside the domain")
    require(pow(k1, size, MODULUS) != pow(k2, size, MODULUS), "k2", "in another coset than k1")
    if "wr" in elements:
        w3, w4, w8, wr = (elements[name] for name in ("w3", "w4", "w8", "wr"))
        require(w3 != 1 and pow(w3, 3, MODULUS) == 1, "w3", "a root of unity of order 3")
        require(pow(w4, 2, MODULUS) == MODULUS - 1, "w4", "a root of unity of order 4")
        require(pow(w8, 4, MODULUS) == MODULUS - 1, "w8", "a root of unity of order 8")
        require(pow(wr, 3, MODULUS) == w, "wr", "a cube root of w")
