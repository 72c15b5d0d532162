"""The computer players by name."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from mastermind.rules import Rules

if TYPE_CHECKING:
    from mastermind.players.strategies import Strategy

#: From the weakest to the strongest.
STRENGTHS = ("casual", "club", "strong", "expert")


def make_strategy(strength: str, rules: Rules, seed: int | None = None) -> Strategy:
    """Return the player of a strength. The same seed guesses alike; without one, the system draws."""
    # NumPy is needed by computer players alone; what only names them starts without it.
    from mastermind.players.expert import Expert
    from mastermind.players.strategies import Casual, Club, Strong

    generator = random.SystemRandom() if seed is None else random.Random(seed)  # noqa: S311
    match strength:
        case "casual":
            return Casual(rules, generator)
        case "club":
            return Club(rules, generator)
        case "strong":
            return Strong(rules)
        case "expert":
            return Expert(rules)
    raise ValueError(f"{strength!r} is not a strength")
