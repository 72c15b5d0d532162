"""Who waits for news of which game: one look at the books for all watchers of a process.

What happens in this process is told at once; what other workers do is found by looking, so nothing depends on
which worker somebody is connected to.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

#: How long news from another worker may take.
LOOK_S = 0.25


class Watchers:
    """Wakes those who wait for a game. All of it runs in one event loop."""

    def __init__(self, event_counts: Callable[[Sequence[int]], Awaitable[dict[int, int]]]) -> None:
        """`event_counts` tells how many events some games have."""
        self._event_counts = event_counts
        self._watched: Counter[int] = Counter()
        self._known: dict[int, int] = {}
        self._news = asyncio.Condition()
        self._look_now = asyncio.Event()
        self._stopped = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._look())

    async def stop(self) -> None:
        """Send everybody home: `wait` returns from now on at once."""
        self._stopped = True
        async with self._news:
            self._news.notify_all()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    @property
    def stopped(self) -> bool:
        """Whether watching is over."""
        return self._stopped

    @property
    def count(self) -> int:
        """How many watch."""
        return self._watched.total()

    def tell(self) -> None:
        """Something has happened in this process."""
        self._look_now.set()

    @asynccontextmanager
    async def watching(self, game: int) -> AsyncIterator[None]:
        """Watch a game."""
        self._watched[game] += 1
        try:
            yield
        finally:
            self._watched[game] -= 1
            if not self._watched[game]:
                del self._watched[game]
                self._known.pop(game, None)

    async def wait(self, game: int, seen: int, timeout_s: float) -> None:
        """Wait until the game has more than `seen` events, watching is over, or the time is up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s), self._news:
                await self._news.wait_for(lambda: self._stopped or self._known.get(game, 0) > seen)

    async def _look(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._look_now.wait()
            self._look_now.clear()
            if self._watched:
                counts = await self._event_counts(list(self._watched))
                async with self._news:
                    self._known.update(counts)
                    self._news.notify_all()
