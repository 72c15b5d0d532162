"""Locks between processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, which others who come here wait for. A process that dies lets go of it."""
    from filelock import FileLock  # It brings asyncio, which most commands have no use for.

    with FileLock(path):
        yield
