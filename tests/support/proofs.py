"""Points and proofs made from others, as anybody can who has seen them."""

from __future__ import annotations

from dataclasses import replace

from py_ecc import optimized_bn128 as bn128

from mastermind.field import MODULUS
from mastermind.zk.curve import Fq2, G1Point, G2Point
from mastermind.zk.evidence import Proof
from mastermind.zk.pairing import to_py_ecc_g1, to_py_ecc_g2


def made_over(proof: Proof, factor: int = 7) -> Proof:
    """(t A, B / t, C): another valid proof of the same statement, made without any secret."""
    a = bn128.normalize(bn128.multiply(to_py_ecc_g1(proof.a), factor))
    b = bn128.normalize(bn128.multiply(to_py_ecc_g2(proof.b), pow(factor, -1, MODULUS)))
    return replace(proof, a=G1Point(*map(int, a)), b=from_py_ecc_g2(b))


def from_py_ecc_g2(affine: tuple[bn128.FQ2, bn128.FQ2]) -> G2Point:
    """The point of py_ecc's affine coordinates."""

    def pair(value: bn128.FQ2) -> Fq2:
        first, second = map(int, value.coeffs)
        return first, second

    return G2Point(pair(affine[0]), pair(affine[1]))
