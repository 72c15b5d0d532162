"""Proofs, public signals and verifying keys in snarkjs's JSON, read strictly.

One value has one spelling: canonical decimal coordinates below q, affine points on their curves (so never the
point at infinity), signals below r, the exact fields that snarkjs writes. Everything else is refused with the
name of the bad part, before any pairing. Membership of the G2 points in the subgroup is left to the verifiers,
whose libraries check it.

Source of the format: snarkjs 0.7.6, `groth16_prove.js` and `zkey_export_verificationkey.js`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from mastermind.errors import InsecureKeyError, MalformedKeyError, MalformedProofError, NotInFieldError, counted
from mastermind.field import COORDINATE_MODULUS, parse_field_element, require_field_element
from mastermind.zk.curve import G2_GENERATOR, G1Point, G2Point, on_curve, on_twist
from mastermind.zk.nesting import shallow_text

PROTOCOL = "groth16"
CURVE = "bn128"
#: Larger than any proof, key or list of signals in use; checked before parsing.
MAX_BYTES = 1 << 20
MAX_PUBLIC_SIGNALS = 1 << 12

_PROOF_FIELDS = {"pi_a", "pi_b", "pi_c", "protocol", "curve"}
_KEY_FIELDS = {"protocol", "curve", "nPublic", "vk_alpha_1", "vk_beta_2", "vk_gamma_2", "vk_delta_2", "IC"}
# The pairing of alpha and beta, stored for speed by snarkjs; ignored here and by every verifier.
_KEY_OPTIONAL_FIELDS = {"vk_alphabeta_12"}


@dataclass(frozen=True)
class Proof:
    """A Groth16 proof: three points on their curves."""

    a: G1Point
    b: G2Point
    c: G1Point

    @classmethod
    def parse(cls, data: object) -> Proof:
        """Read the object that snarkjs writes to `proof.json`.

        Raises:
            MalformedProofError: anything in it is not as snarkjs writes it, or a point is not on its curve.
        """
        reader = EvidenceReader(MalformedProofError)
        fields = reader.fields(data, "proof", _PROOF_FIELDS)
        reader.labels(fields, PROTOCOL)
        return cls(
            a=reader.g1(fields["pi_a"], "pi_a"),
            b=reader.g2(fields["pi_b"], "pi_b"),
            c=reader.g1(fields["pi_c"], "pi_c"),
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Proof:
        """Read the 256 bytes of a contract call: A, B, C, each coordinate 32 bytes big-endian, B's i-part first.

        Raises:
            MalformedProofError: another length, or a point not on its curve.
        """
        if len(data) != 256:
            raise MalformedProofError("a proof has 256 bytes", field="proof")
        w = [str(int.from_bytes(data[at : at + 32], "big")) for at in range(0, 256, 32)]
        reader = EvidenceReader(MalformedProofError)
        return cls(
            a=reader.g1([w[0], w[1], "1"], "pi_a"),
            b=reader.g2([[w[3], w[2]], [w[5], w[4]], ["1", "0"]], "pi_b"),
            c=reader.g1([w[6], w[7], "1"], "pi_c"),
        )

    def to_bytes(self) -> bytes:
        """The inverse of `from_bytes`."""
        (bx, by) = self.b
        words = (self.a.x, self.a.y, bx[1], bx[0], by[1], by[0], self.c.x, self.c.y)
        return b"".join(word.to_bytes(32, "big") for word in words)

    def to_json(self) -> dict[str, Any]:
        """The object that snarkjs writes; `parse` reads it back."""
        return {
            "pi_a": g1_json(self.a),
            "pi_b": g2_json(self.b),
            "pi_c": g1_json(self.c),
            "protocol": PROTOCOL,
            "curve": CURVE,
        }


@dataclass(frozen=True)
class VerifyingKey:
    """A Groth16 verifying key whose phase 2 was done.

    Attributes:
        ic: one point more than there are public signals.
    """

    alpha: G1Point
    beta: G2Point
    gamma: G2Point
    delta: G2Point
    ic: tuple[G1Point, ...]
    #: Where the key was found, for messages.
    origin: str = field(default="", compare=False)

    @classmethod
    def parse(cls, data: object, origin: str = "") -> VerifyingKey:
        """Read the object that snarkjs writes to `verification_key.json`.

        Raises:
            MalformedKeyError: anything in it is not as snarkjs writes it, or a point is not on its curve.
            InsecureKeyError: its phase 2 was skipped, so that every false statement verifies under it.
        """
        reader = EvidenceReader(MalformedKeyError)
        fields = reader.fields(data, "verifying key", _KEY_FIELDS, _KEY_OPTIONAL_FIELDS)
        reader.labels(fields, PROTOCOL)
        public_count = fields["nPublic"]
        if isinstance(public_count, bool) or not isinstance(public_count, int):
            raise MalformedKeyError("nPublic is not an integer", field="nPublic")
        points = fields["IC"]
        if not 1 <= public_count <= MAX_PUBLIC_SIGNALS:
            raise MalformedKeyError(f"nPublic is {public_count}", field="nPublic")
        if not isinstance(points, list) or len(points) != public_count + 1:
            raise MalformedKeyError(f"IC does not have nPublic + 1 = {counted(public_count + 1, 'point')}", field="IC")
        key = cls(
            alpha=reader.g1(fields["vk_alpha_1"], "vk_alpha_1"),
            beta=reader.g2(fields["vk_beta_2"], "vk_beta_2"),
            gamma=reader.g2(fields["vk_gamma_2"], "vk_gamma_2"),
            delta=reader.g2(fields["vk_delta_2"], "vk_delta_2"),
            ic=tuple(reader.g1(point, f"IC[{index}]") for index, point in enumerate(points)),
            origin=origin,
        )
        require_contribution(key.gamma, key.delta)
        return key

    @classmethod
    def read(cls, path: Path) -> VerifyingKey:
        """Read a `verification_key.json`. Raises as `parse`, and MalformedKeyError when it is not JSON."""
        try:
            return cls.parse(parse_json(path.read_bytes()), str(path))
        except (ValueError, OSError) as error:
            if isinstance(error, MalformedKeyError):
                raise
            raise MalformedKeyError(f"{path} is not a readable verifying key", field="verifying key") from error

    @property
    def public_count(self) -> int:
        """How many public signals a statement has."""
        return len(self.ic) - 1

    def to_json(self) -> dict[str, Any]:
        """The object for snarkjs, without the stored pairing; `parse` reads it back."""
        return {
            "protocol": PROTOCOL,
            "curve": CURVE,
            "nPublic": self.public_count,
            "vk_alpha_1": g1_json(self.alpha),
            "vk_beta_2": g2_json(self.beta),
            "vk_gamma_2": g2_json(self.gamma),
            "vk_delta_2": g2_json(self.delta),
            "IC": [g1_json(point) for point in self.ic],
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, in hex: the same for the same key, whoever wrote its file."""
        return hashlib.sha256(canonical_json(self.to_json())).hexdigest()


def key_set_id(keys: Mapping[str, VerifyingKey]) -> str:
    """SHA-256 over verifying keys by circuit name, in hex: equal exactly when names and keys are."""
    return hashlib.sha256(canonical_json({name: key.digest for name, key in keys.items()})).hexdigest()


def require_contribution(gamma: G2Point, delta: G2Point) -> None:
    """Refuse a key whose phase 2 has no contribution.

    `groth16 setup` leaves delta = gamma (both the generator); then A = alpha, B = beta,
    C = -(IC_0 + sum of x_i IC_i) verifies for any x (Groth, eprint 2016/260, verification equation).

    Raises:
        InsecureKeyError: delta is gamma or the generator.
    """
    if delta in (gamma, G2_GENERATOR):
        raise InsecureKeyError(
            "this key has 0 contributions to phase 2: anyone can prove anything under it", field="vk_delta_2"
        )


def parse_public_signals(data: object) -> tuple[int, ...]:
    """Read the list that snarkjs writes to `public.json`.

    Raises:
        MalformedProofError: not a list of canonical decimal strings below r.
    """
    if not isinstance(data, list) or len(data) > MAX_PUBLIC_SIGNALS:
        raise MalformedProofError("the public signals are not a list", field="public_signals")
    try:
        return tuple(parse_field_element(item, f"public signal {index}") for index, item in enumerate(data))
    except NotInFieldError as error:
        raise MalformedProofError(str(error), field="public_signals") from error


class StatementSize(Protocol):
    """A verifying key of any protocol."""

    @property
    def public_count(self) -> int:
        """How many public signals a statement has."""
        ...


def require_statement(key: StatementSize, public_signals: Sequence[int]) -> None:
    """Check that the public signals are a statement for this key: their number and each one's range.

    Raises:
        MalformedProofError: they are not.
    """
    if len(public_signals) != key.public_count:
        raise MalformedProofError(
            f"{counted(len(public_signals), 'public signal')} where the key has {key.public_count}",
            field="public_signals",
        )
    try:
        for index, signal in enumerate(public_signals):
            require_field_element(signal, f"public signal {index}")
    except NotInFieldError as error:
        raise MalformedProofError(str(error), field="public_signals") from error


def public_json(public_signals: Sequence[int]) -> list[str]:
    """The list for `public.json`; `parse_public_signals` reads it back."""
    return [str(signal) for signal in public_signals]


def parse_json(data: bytes, *, max_bytes: int = MAX_BYTES) -> Any:
    """Parse JSON from outside: bounded, no name twice, no fractions and no huge integers.

    Raises:
        ValueError: it is not such JSON.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) != len(pairs):
            raise ValueError("a name occurs twice in one object")
        return values

    def refuse(_: str) -> Any:
        raise ValueError("a number is not an integer")

    def integer(digits: str) -> int:
        if len(digits) > 20:
            raise ValueError("an integer has more than 20 digits")
        return int(digits)

    if len(data) > max_bytes:
        raise ValueError(f"more than {max_bytes} bytes")
    text = shallow_text(data)
    return json.loads(text, object_pairs_hook=unique, parse_float=refuse, parse_constant=refuse, parse_int=integer)


def canonical_json(value: Any) -> bytes:
    """The one encoding that digests are taken of: sorted names, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


class EvidenceReader:
    """Reads points, elements and fields, raising the given class with the name of the bad field."""

    def __init__(self, error: type[MalformedProofError] | type[MalformedKeyError]) -> None:
        self._error = error

    def fields(self, data: object, what: str, required: Set[str], optional: Set[str] = frozenset()) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise self._error(f"the {what} is not a JSON object", field=what)
        for name in sorted(required - data.keys()):
            raise self._error(f"the {what} has no {name}", field=name)
        for name in data.keys() - required - optional:
            raise self._error(f"the {what} has an unknown field {str(name)[:40]!r}", field=str(name)[:40])
        return data

    def labels(self, fields: dict[str, Any], protocol: str) -> None:
        for name, expected in (("protocol", protocol), ("curve", CURVE)):
            if fields[name] != expected:
                raise self._error(f"{name} is not {expected}", field=name)

    def g1(self, data: object, name: str) -> G1Point:
        if not isinstance(data, list) or len(data) != 3 or data[2] != "1":
            raise self._error(f"{name} is not an affine point [x, y, 1]", field=name)
        point = G1Point(self._coordinate(data[0], name), self._coordinate(data[1], name))
        if not on_curve(point):
            raise self._error(f"{name} is not on the curve", field=name)
        return point

    def g1_or_zero(self, data: object, name: str) -> G1Point | None:
        """A point that may be the neutral element, which snarkjs writes as [0, 1, 0]."""
        return None if data == ["0", "1", "0"] else self.g1(data, name)

    def g2(self, data: object, name: str) -> G2Point:
        if (
            not isinstance(data, list)
            or len(data) != 3
            or data[2] != ["1", "0"]
            or not all(isinstance(pair, list) and len(pair) == 2 for pair in data)
        ):
            raise self._error(f"{name} is not an affine point [[x0, x1], [y0, y1], [1, 0]]", field=name)
        (x0, x1), (y0, y1) = ([self._coordinate(part, name) for part in pair] for pair in data[:2])
        point = G2Point((x0, x1), (y0, y1))
        if not on_twist(point):
            raise self._error(f"{name} is not on the curve", field=name)
        return point

    def element(self, text: object, name: str) -> int:
        try:
            return parse_field_element(text, name)
        except NotInFieldError as error:
            raise self._error(str(error), field=name) from error

    def _coordinate(self, text: object, name: str) -> int:
        try:
            return parse_field_element(text, f"a coordinate of {name}", COORDINATE_MODULUS)
        except NotInFieldError as error:
            raise self._error(str(error), field=name) from error


def g1_json(point: G1Point) -> list[str]:
    """A point as snarkjs writes it."""
    return [str(point.x), str(point.y), "1"]


def g2_json(point: G2Point) -> list[list[str]]:
    """A point as snarkjs writes it."""
    return [[str(part) for part in point.x], [str(part) for part in point.y], ["1", "0"]]
