"""What a player agrees to with an `authorise` proof.

The message is the SHA-256 of a canonical encoding, cut to 248 bits so that it is a field element and a contract can
recompute it. Every part has a fixed width or a length before it: two different agreements never encode alike.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from mastermind.field import require_field_element
from mastermind.game.circuits import MESSAGE_BITS

_DOMAIN = b"mastermind.authorise.1"
_MAX_AMOUNT = (1 << 64) - 1


@dataclass(frozen=True)
class Agreement:
    """An action that a player agrees to.

    Attributes:
        action: its name, e.g. `join_game`.
        game: the game id.
        nonce: a fresh field element; no agreement fits twice.
        referee: the referee's id, 0 without a referee.
        amount: credits at stake, 0 .. 2^64 - 1.
    """

    action: str
    game: int
    nonce: int
    referee: int = 0
    amount: int = 0

    def message(self) -> int:
        """The public signal `message`. Raises NotInFieldError when a part is out of range."""
        action = self.action.encode("ascii")
        encoded = bytes([len(_DOMAIN)]) + _DOMAIN + bytes([len(action)]) + action
        for name in ("referee", "game", "nonce"):
            encoded += require_field_element(getattr(self, name), name).to_bytes(32, "big")
        encoded += require_field_element(self.amount, "amount", _MAX_AMOUNT + 1).to_bytes(8, "big")
        return int.from_bytes(hashlib.sha256(encoded).digest(), "big") >> 256 - MESSAGE_BITS
