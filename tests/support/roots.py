"""Polynomials that split over the field: false codes that agree with a legal one in all but one coefficient."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache

from mastermind.field import MODULUS
from mastermind.rules import Code

#: Low coefficient first.
Polynomial = tuple[int, ...]


@cache
def near_code(code: Code, change: Polynomial) -> tuple[int, ...]:
    """The roots of a multiple of `change` added to the product of (X - peg), for the smallest multiple that splits.

    These pegs are no colours, but the coefficients of their polynomial are those of the code where `change` is zero.
    """
    product: Polynomial = (1,)
    for peg in code:
        product = _multiplied(product, (-peg % MODULUS, 1))
    for factor in itertools.count(1):
        added = itertools.zip_longest(product, change, fillvalue=0)
        roots = _roots(tuple((x + factor * y) % MODULUS for x, y in added))
        if len(roots) == len(code):
            return roots
    raise AssertionError("unreachable")


def _roots(monic: Polynomial) -> tuple[int, ...]:
    """The different roots of a monic polynomial in the field (Cantor and Zassenhaus, with fixed shifts)."""
    if len(monic) == 2:
        return (-monic[0] % MODULUS,)
    shift = 0
    if _power((0, 1), MODULUS, monic) != (0, 1):
        return ()
    while True:
        shift += 1
        half = _power((shift, 1), (MODULUS - 1) // 2, monic)
        part = _common((half[0] - 1, *half[1:]) if half else (MODULUS - 1,), monic)
        if 1 < len(part) < len(monic):
            return (*_roots(part), *_roots(_divided(monic, part)[0]))


def _trimmed(values: Sequence[int]) -> Polynomial:
    kept = [value % MODULUS for value in values]
    while kept and not kept[-1]:
        kept.pop()
    return tuple(kept)


def _multiplied(left: Polynomial, right: Polynomial) -> Polynomial:
    total = [0] * max(len(left) + len(right) - 1, 0)
    for (i, x), (j, y) in itertools.product(enumerate(left), enumerate(right)):
        total[i + j] += x * y
    return _trimmed(total)


def _divided(left: Polynomial, right: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Quotient and remainder."""
    rest, quotient, inverse = list(left), [0] * max(len(left) - len(right) + 1, 0), pow(right[-1], -1, MODULUS)
    for place in range(len(left) - len(right), -1, -1):
        quotient[place] = rest[place + len(right) - 1] * inverse % MODULUS
        for i, x in enumerate(right):
            rest[place + i] = (rest[place + i] - quotient[place] * x) % MODULUS
    return _trimmed(quotient), _trimmed(rest)


def _power(base: Polynomial, exponent: int, modulus: Polynomial) -> Polynomial:
    result: Polynomial = (1,)
    for bit in bin(exponent)[2:]:
        result = _divided(_multiplied(result, result), modulus)[1]
        if bit == "1":
            result = _divided(_multiplied(result, base), modulus)[1]
    return result


def _common(left: Polynomial, right: Polynomial) -> Polynomial:
    """The monic greatest common divisor."""
    left = _trimmed(left)
    while left:
        left, right = _divided(right, left)[1], left
    inverse = pow(right[-1], -1, MODULUS)
    return _trimmed([value * inverse for value in right])
