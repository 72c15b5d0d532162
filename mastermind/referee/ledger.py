"""Credits in double entry: pure bookkeeping, without a place to keep the books.

Credits are integers. Every movement is a transfer between two accounts, written as two entries that add up to zero:
the sum over all accounts never changes, and no balance is ever negative. All credits there are come from the
house, which starts with the whole supply.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mastermind.errors import InsufficientCreditError, counted

HOUSE = "house"
#: All credits of a referee together; balances fit a signed 64-bit integer of a database.
MAX_SUPPLY = (1 << 63) - 1


def player_account(player_id: int) -> str:
    """The account of a player."""
    return f"player:{player_id}"


def pot_account(solution_hash: int) -> str:
    """The account that holds the stakes of one game."""
    return f"pot:{solution_hash}"


@dataclass(frozen=True)
class Transfer:
    """A movement of credits.

    Attributes:
        amount: credits, 1 .. MAX_SUPPLY.
    """

    source: str
    target: str
    amount: int

    def __post_init__(self) -> None:
        if not 1 <= self.amount <= MAX_SUPPLY or self.source == self.target:
            raise ValueError("a transfer moves a positive number of credits between two accounts")

    @property
    def entries(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """Account and signed amount, twice; they add up to zero."""
        return (self.source, -self.amount), (self.target, self.amount)


def post(balances: Mapping[str, int], transfer: Transfer) -> dict[str, int]:
    """Return the new balances of the two accounts of a transfer; an account that is not in `balances` is empty.

    Raises:
        InsufficientCreditError: the source holds less than the amount.
    """
    held = balances.get(transfer.source, 0)
    if held < transfer.amount:
        raise InsufficientCreditError(
            f"{counted(transfer.amount, 'credit')} would be paid, and the account has {held}",
            refusal="insufficient_credit",
        )
    return {account: balances.get(account, 0) + amount for account, amount in transfer.entries}
