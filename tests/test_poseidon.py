"""Poseidon against published values; the circuits are compared with it in tests/circuits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mastermind.errors import NotInFieldError
from mastermind.field import MODULUS
from mastermind.poseidon import FULL_ROUNDS, _parameters, poseidon


def test_com_6_the_published_value() -> None:
    # PROTOCOL's fault list (COM-6); also printed by circomlibjs.
    assert poseidon(4, 9) == 3726866466909573295204180778017195060429212542252399592723041604622325297091


def test_values_printed_by_circomlibjs() -> None:
    # circomlibjs 0.1.7, test/poseidon.js: poseidon([1, 2]).
    assert poseidon(1, 2) == 7853200120776062878684798364095072458815029376092732009249414926327459813530


@pytest.mark.parametrize("inputs", [(MODULUS,), (-1, 2), (1, 2, True), (1.0,)])
def test_values_outside_the_field_are_refused(inputs: tuple[int, ...]) -> None:
    with pytest.raises(NotInFieldError):
        poseidon(*inputs)


def test_a_zero_more_is_another_hash() -> None:
    assert len({poseidon(1), poseidon(1, 0), poseidon(1, 0, 0)}) == 3


@given(st.lists(st.integers(0, MODULUS - 1) | st.sampled_from([0, 1, MODULUS - 1]), min_size=1, max_size=3))
def test_the_rearranged_rounds_are_those_of_the_definition(inputs: list[int]) -> None:
    """Add constants, take fifth powers (of the first element alone in a partial round), mix; as the paper says it."""
    rounds, matrix = _parameters(len(inputs))
    state = [0, *inputs]
    for index, constants in enumerate(rounds):
        state = [(value + constant) % MODULUS for value, constant in zip(state, constants, strict=True)]
        full = index < FULL_ROUNDS // 2 or index >= len(rounds) - FULL_ROUNDS // 2
        state = [pow(value, 5, MODULUS) if full or place == 0 else value for place, value in enumerate(state)]
        state = [sum(a * b for a, b in zip(row, state, strict=True)) % MODULUS for row in matrix]
    assert poseidon(*inputs) == state[0]
