"""What a snarkjs `.zkey` says about itself: its verifying key's points and who contributed to phase 2.

Reads the header (section 2) and the contributions (section 10) only; the proving points are the provers' business.
Coordinates are stored in Montgomery form, little-endian. Format: snarkjs 0.7.6, `zkey_utils.js`.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from pathlib import Path

from mastermind.errors import InsecureKeyError, InvalidArtifactError
from mastermind.field import COORDINATE_MODULUS as Q
from mastermind.field import MODULUS
from mastermind.zk.binfile import SectionedFile
from mastermind.zk.curve import G1Point, G2Point, on_curve, on_twist
from mastermind.zk.evidence import VerifyingKey, require_contribution

_GROTH16 = 1
_PERSON, _BEACON = 0, 1
_CONTRIBUTION_BYTES = 64 * 3 + 128 + 64
_MAX_CONTRIBUTIONS = 10_000
#: Where beta_1 and delta_1 are in the header.
_BETA_1, _DELTA_1 = 84 + 64, 84 + 384
_INVERSE_R = pow(1 << 256, -1, Q)


@dataclass(frozen=True)
class Contribution:
    """One contribution to phase 2.

    Attributes:
        name: what the contributor called it.
        digest: BLAKE2b-512 of its public key, the "contribution hash" snarkjs shows, in hex.
        beacon: the public random value of a beacon, in hex; None for a person's contribution.
        beacon_iterations_power: the beacon was hashed 2^this times.
        on_curves: whether the points of its public key are on their curves; else it shows nothing.
    """

    name: str
    digest: str
    beacon: str | None = None
    beacon_iterations_power: int | None = None
    on_curves: bool = True


@dataclass(frozen=True)
class ZkeyHeader:
    """The header of a Groth16 `.zkey` that has at least one contribution."""

    public_count: int
    domain_size: int
    alpha: G1Point
    beta: G2Point
    gamma: G2Point
    delta: G2Point
    ic: tuple[G1Point, ...]
    contributions: tuple[Contribution, ...]

    @classmethod
    def read(cls, path: Path) -> ZkeyHeader:
        """Read and check the header.

        Raises:
            InvalidArtifactError: not a Groth16 zkey over BN254, or damaged, or one whose proofs would hide nothing.
            InsecureKeyError: phase 2 has no contribution but beacons, or left delta where it was.
        """
        file = SectionedFile.open(path, b"zkey")
        if file.read(1, limit_bytes=64) != struct.pack("<I", _GROTH16):
            raise InvalidArtifactError(f"{path.name} is not a Groth16 key", path=path)
        data = file.read(2, limit_bytes=4096)
        if len(data) != 36 + 36 + 12 + 3 * 64 + 3 * 128:
            raise InvalidArtifactError(f"{path.name} has a header of {len(data)} bytes", path=path)
        if data[:72] != struct.pack("<I", 32) + Q.to_bytes(32, "little") + struct.pack("<I", 32) + MODULUS.to_bytes(
            32, "little"
        ):
            raise InvalidArtifactError(f"{path.name} is not over BN254", path=path)
        _, public_count, domain_size = struct.unpack_from("<III", data, 72)
        header = cls(
            public_count=public_count,
            domain_size=domain_size,
            alpha=_g1(data, 84),
            beta=_g2(data, 84 + 128),
            gamma=_g2(data, 84 + 256),
            delta=_g2(data, 84 + 448),
            ic=_points(file, public_count + 1),
            contributions=_contributions(file),
        )
        require_contribution(header.gamma, header.delta)
        # A proof is blinded by r delta_1, and hides nothing when that is the point at infinity (stored as zeros).
        if not all(on_curve(_g1(data, at)) for at in (_BETA_1, _DELTA_1)):
            raise InvalidArtifactError(f"{path.name} has no point for beta or delta in G1", path=path)
        if not all(contribution.on_curves for contribution in header.contributions):
            raise InvalidArtifactError(f"{path.name} has a contribution with a point off its curve", path=path)
        if not header.contributions:
            raise InsecureKeyError(f"{path.name} has 0 contributions to phase 2", field="contributions")
        if all(contribution.beacon is not None for contribution in header.contributions):
            raise InsecureKeyError(
                f"{path.name} has no contribution to phase 2 but beacons, which everybody knows", field="contributions"
            )
        return header

    def matches(self, key: VerifyingKey) -> bool:
        """Whether `key` is the verifying key of this proving key."""
        return (self.alpha, self.beta, self.gamma, self.delta, self.ic) == (
            key.alpha,
            key.beta,
            key.gamma,
            key.delta,
            key.ic,
        )


def read_contributions(path: Path) -> tuple[Contribution, ...]:
    """Read who has contributed to a key; nobody to an initial one, which `ZkeyHeader.read` refuses.

    Raises:
        InvalidArtifactError: not a zkey, or the list is damaged.
    """
    return _contributions(SectionedFile.open(path, b"zkey"))


def _points(file: SectionedFile, count: int) -> tuple[G1Point, ...]:
    """The points of the public signals."""
    data = file.read(3, limit_bytes=64 * count)
    if len(data) != 64 * count:
        raise InvalidArtifactError(f"{file.path.name} does not have {count} points of public signals", path=file.path)
    return tuple(_g1(data, at) for at in range(0, len(data), 64))


def _contributions(file: SectionedFile) -> tuple[Contribution, ...]:
    data = file.read(10, limit_bytes=1 << 24)
    damaged = InvalidArtifactError(f"{file.path.name} has a damaged list of contributions", path=file.path)
    try:
        (count,) = struct.unpack_from("<I", data, 64)
        if count > _MAX_CONTRIBUTIONS:
            raise damaged
        position = 68
        found: list[Contribution] = []
        for _ in range(count):
            body = data[position : position + _CONTRIBUTION_BYTES]
            position += _CONTRIBUTION_BYTES
            kind, parameter_bytes = struct.unpack_from("<II", data, position)
            position += 8
            parameters = data[position : position + parameter_bytes]
            if len(parameters) != parameter_bytes:
                raise damaged
            position += parameter_bytes
            contribution = _contribution(body, parameters)
            # snarkjs computes a beacon again only for the kind that is one: parameters alone are somebody's word.
            given = {contribution.beacon is not None, contribution.beacon_iterations_power is not None}
            if kind not in (_PERSON, _BEACON) or given != {kind == _BEACON}:
                raise damaged
            found.append(contribution)
    except (struct.error, IndexError) as error:
        raise damaged from error
    if position != len(data):
        raise damaged
    return tuple(found)


def _contribution(body: bytes, parameters: bytes) -> Contribution:
    digest = hashlib.blake2b()
    for at in (0, 64, 128):
        point = _g1(body, at)
        digest.update(point.x.to_bytes(32, "big") + point.y.to_bytes(32, "big"))
    spx = _g2(body, 192)
    for x0, x1 in (spx.x, spx.y):
        digest.update(x1.to_bytes(32, "big") + x0.to_bytes(32, "big"))
    digest.update(body[320:])
    name, beacon, iterations = "", None, None
    at = 0
    while at < len(parameters):
        kind, value = parameters[at], parameters[at + 1]
        if kind == 2:
            iterations = value
            at += 2
        else:
            text = parameters[at + 2 : at + 2 + value]
            if kind == 1:
                name = text.decode("utf-8", "replace")
            elif kind == 3:
                beacon = text.hex()
            at += 2 + value
    return Contribution(name, digest.hexdigest(), beacon, iterations, _on_curves(body))


def _on_curves(body: bytes) -> bool:
    return all(on_curve(_g1(body, at)) for at in (0, 64, 128)) and on_twist(_g2(body, 192))


def _coordinate(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 32], "little") * _INVERSE_R % Q


def _g1(data: bytes, at: int) -> G1Point:
    return G1Point(_coordinate(data, at), _coordinate(data, at + 32))


def _g2(data: bytes, at: int) -> G2Point:
    return G2Point(
        (_coordinate(data, at), _coordinate(data, at + 32)),
        (_coordinate(data, at + 64), _coordinate(data, at + 96)),
    )
