"""Arithmetic on the points of BN254 by py_ecc: the subgroup of G2, and the equation of Groth16.

Loaded when it is needed first: py_ecc takes as long to import as many a command takes in all.
"""

from __future__ import annotations

from collections.abc import Sequence

from py_ecc import optimized_bn128 as bn128

from mastermind.zk.curve import G1Point, G2Point
from mastermind.zk.evidence import Proof, VerifyingKey


def in_subgroup(point: G2Point) -> bool:
    """Whether a point of the twist has order r (some tens of milliseconds)."""
    return bool(bn128.is_inf(bn128.multiply(to_py_ecc_g2(point), bn128.curve_order)))


def holds(key: VerifyingKey, public_signals: Sequence[int], proof: Proof) -> bool:
    """Whether e(A, B) = e(alpha, beta) e(IC_0 + sum of x_i IC_i, gamma) e(C, delta) (Groth, eprint 2016/260).

    All points of G2 are in the subgroup, and there is one point of IC more than public signals.
    """
    statement = to_py_ecc_g1(key.ic[0])
    for point, signal in zip(key.ic[1:], public_signals, strict=True):
        statement = bn128.add(statement, bn128.multiply(to_py_ecc_g1(point), signal))
    # All on one side.
    product = bn128.FQ12.one()
    for g1, g2 in (
        (bn128.neg(to_py_ecc_g1(proof.a)), to_py_ecc_g2(proof.b)),
        (to_py_ecc_g1(key.alpha), to_py_ecc_g2(key.beta)),
        (statement, to_py_ecc_g2(key.gamma)),
        (to_py_ecc_g1(proof.c), to_py_ecc_g2(key.delta)),
    ):
        product *= bn128.pairing(g2, g1, final_exponentiate=False)
    return bool(bn128.final_exponentiate(product) == bn128.FQ12.one())


def to_py_ecc_g1(point: G1Point) -> tuple[bn128.FQ, bn128.FQ, bn128.FQ]:
    """The point in py_ecc's projective form."""
    return bn128.FQ(point.x), bn128.FQ(point.y), bn128.FQ.one()


def to_py_ecc_g2(point: G2Point) -> tuple[bn128.FQ2, bn128.FQ2, bn128.FQ2]:
    """The point in py_ecc's projective form."""
    return bn128.FQ2(point.x), bn128.FQ2(point.y), bn128.FQ2.one()
