"""Each rule proves what holds, and no more: a system that it decides, and one that differs in one number."""

from __future__ import annotations

import pytest

from mastermind.field import MODULUS
from mastermind.zk.r1cs import Constraint, Linear, R1cs
from mastermind.zk.testing.propagation import Propagation
from mastermind.zk.testing.solver import Solver

ONE, X, Y, Z, U, V = range(6)
NOTHING: Linear = {}


def equal(linear: Linear) -> Constraint:
    """A linear equation."""
    return {ONE: 1}, linear, NOTHING


def one_of(wire: int, first: int, second: int) -> Constraint:
    return {wire: 1, ONE: -first % MODULUS}, {wire: 1, ONE: -second % MODULUS}, NOTHING


def proved(rows: list[Constraint]) -> set[int]:
    """What is unique with X given, but X and the constant."""
    return Propagation(Solver(R1cs(6, 0, tuple(rows))), [X], {}).unique - {ONE, X}


MINUS = MODULUS - 1
ZERO_TEST: list[Constraint] = [({X: 1}, {Z: 1}, {ONE: 1, Y: MINUS}), ({X: 1}, {Y: 1}, NOTHING)]

CASES: dict[str, tuple[list[Constraint], set[int]]] = {
    "linear": ([equal({X: 1, Y: 1, Z: 1}), equal({X: 2, Y: 1, Z: MINUS})], {Y, Z}),
    "linear, dependent": ([equal({X: 1, Y: 1, Z: 1}), equal({X: 2, Y: 2, Z: 2})], set()),
    "product": ([({X: 1}, {X: 1, ONE: 3}, {Y: 5})], {Y}),
    "quotient by what may be zero": ([({X: 1}, {Y: 1}, {X: 2})], set()),
    "non-zero": ([({X: 1}, {Y: 1}, {ONE: 1})], {Y}),
    "square root": ([({Y: 1}, {Y: 1}, {X: 1})], set()),
    "zero test": (ZERO_TEST, {Y}),
    "half a zero test": (ZERO_TEST[:1], set()),
    "digits": ([one_of(Y, 0, 1), one_of(Z, 0, 1), equal({Y: 1, Z: 2, X: MINUS})], {Y, Z}),
    "digits that overlap": ([one_of(Y, 0, 2), one_of(Z, 0, 1), equal({Y: 1, Z: 2, X: MINUS})], set()),
    "digits, one unchecked": ([one_of(Y, 0, 1), equal({Y: 1, Z: 2, X: MINUS})], set()),
    "digits, some negative": ([one_of(Y, 0, 1), one_of(Z, 0, MINUS), equal({Y: 1, Z: 2, X: 1})], {Y, Z}),
    "cases": ([one_of(Y, 0, 1), ({Z: 1}, {Y: 1, Z: MINUS}, NOTHING), equal({Y: 1, Z: 1, X: 1})], {Y, Z}),
    "cases, unordered": ([one_of(Y, 0, 1), one_of(Z, 0, 1), equal({Y: 1, Z: 1, X: 1})], set()),
    # (X - i) (Y + Z i) = 0 at three points: X has one value, so two of them leave no choice.
    "roots": ([({X: 1, ONE: -i % MODULUS}, {Y: 1, Z: i}, NOTHING) for i in range(3)], {Y, Z}),
    "roots, a point less": ([({X: 1, ONE: -i % MODULUS}, {Y: 1, Z: i}, NOTHING) for i in range(2)], set()),
}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_proves_what_holds(name: str) -> None:
    rows, expected = CASES[name]
    assert proved(rows) == expected


def test_what_matters_nowhere_is_idle() -> None:
    def idle(rows: list[Constraint]) -> set[int]:
        return Propagation(Solver(R1cs(6, 0, tuple(rows))), [X], {}).idle

    assert idle(ZERO_TEST) == {Z}
    # The same inverse in another constraint is not idle: there its value matters.
    assert idle([*ZERO_TEST, equal({Z: 1, U: 1})]) == set()
    # Nor is a wire that no constraint has.
    assert idle([*ZERO_TEST, equal({U: 1, V: 1})]) == {Z}


def test_the_roots_of_a_polynomial_are_a_domain() -> None:
    # Y (Y - 1) = Z, Z (Y - 5) = 0
    rows: list[Constraint] = [({Y: 1}, {Y: 1, ONE: MINUS}, {Z: 1}), ({Z: 1}, {Y: 1, ONE: -5 % MODULUS}, NOTHING)]
    assert Propagation(Solver(R1cs(6, 0, tuple(rows))), [X], {}).domains[Y] == {0, 1, 5}
