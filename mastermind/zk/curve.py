"""Points of BN254 as they come from outside: coordinates and the curve equations.

G1 is y^2 = x^3 + 3 over F_q and has prime order. G2 is the subgroup of order r of the twist
y^2 = x^3 + 3 / (9 + i) over F_q[i] / (i^2 + 1); a point of the twist need not be in it (`mastermind.zk.pairing` tells).
An element a + b i of F_q[i] is the pair (a, b).
"""

from __future__ import annotations

from typing import NamedTuple

from mastermind.field import COORDINATE_MODULUS as Q

Fq2 = tuple[int, int]


class G1Point(NamedTuple):
    """An affine point of G1."""

    x: int
    y: int


class G2Point(NamedTuple):
    """An affine point of the twist that G2 is a subgroup of."""

    x: Fq2
    y: Fq2


G1_GENERATOR = G1Point(1, 2)
G2_GENERATOR = G2Point(
    (
        10857046999023057135944570762232829481370756359578518086990519993285655852781,
        11559732032986387107991004021392285783925812861821192530917403151452391805634,
    ),
    (
        8495653923123431417604973247489272438418190587263600148770280649306958101930,
        4082367875863433681332203403145435568316851327593401208105741076214120093531,
    ),
)

# 3 / (9 + i) = 3 (9 - i) / 82
_TWIST_B: Fq2 = (27 * pow(82, -1, Q) % Q, -3 * pow(82, -1, Q) % Q)


def on_curve(point: G1Point) -> bool:
    """Whether the coordinates satisfy the equation of G1."""
    return (point.y * point.y - point.x * point.x * point.x - 3) % Q == 0


def on_twist(point: G2Point) -> bool:
    """Whether the coordinates satisfy the equation of the twist."""
    y_squared = _multiply(point.y, point.y)
    x_cubed = _multiply(_multiply(point.x, point.x), point.x)
    return all((y_squared[k] - x_cubed[k] - _TWIST_B[k]) % Q == 0 for k in (0, 1))


def _multiply(left: Fq2, right: Fq2) -> Fq2:
    return (left[0] * right[0] - left[1] * right[1]) % Q, (left[0] * right[1] + left[1] * right[0]) % Q
