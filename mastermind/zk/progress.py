"""How long work says what it is doing."""

from __future__ import annotations

from collections.abc import Callable

#: Called with a short phrase when a step of a second or more begins. Must be safe to call from several threads.
Progress = Callable[[str], None]


def silent(_: str) -> None:
    """Report nothing."""
