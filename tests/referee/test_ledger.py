"""Double entry: what leaves one account arrives in another, and no account goes below zero."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mastermind.errors import InsufficientCreditError
from mastermind.referee.ledger import HOUSE, Transfer, post

ACCOUNTS = [HOUSE, "player:1", "player:2", "pot:3"]


@given(st.lists(st.tuples(st.permutations(ACCOUNTS), st.integers(1, 60))))
def test_credits_are_conserved_and_never_negative(movements: list[tuple[list[str], int]]) -> None:
    balances = {HOUSE: 100}
    for (source, target, *_), amount in movements:
        transfer = Transfer(source, target, amount)
        if balances.get(source, 0) < amount:
            with pytest.raises(InsufficientCreditError):
                post(balances, transfer)
        else:
            balances |= post(balances, transfer)
        assert sum(balances.values()) == 100
        assert min(balances.values()) >= 0


def test_the_two_entries_of_a_transfer_add_up_to_zero() -> None:
    assert Transfer("a", "b", 7).entries == (("a", -7), ("b", 7))


@pytest.mark.parametrize(("target", "amount"), [("b", 0), ("b", -1), ("b", 1 << 63), ("a", 1)])
def test_transfers_that_are_none(target: str, amount: int) -> None:
    with pytest.raises(ValueError, match="a transfer moves"):
        Transfer("a", target, amount)


def test_the_whole_balance_can_be_paid_and_not_one_more() -> None:
    assert post({"a": 5}, Transfer("a", "b", 5)) == {"a": 0, "b": 5}
    with pytest.raises(InsufficientCreditError):
        post({"a": 5}, Transfer("a", "b", 6))
