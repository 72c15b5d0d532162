"""Threads in which WASM runs, so that it can be ended: Python sees no Ctrl-C while its main thread runs WASM."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # wasmtime is loaded when there is something to run
    import wasmtime

_starting = threading.Lock()


class WasmThread(ABC):
    """WASM that has been started, in a thread of its own.

    The engine's `epoch_interruption` is on, and each store has a deadline of one epoch.

    Attributes:
        error: what ended it; None when it came to its end without a word.
    """

    def __init__(self, engine: wasmtime.Engine, name: str, stack_bytes: int = 0) -> None:
        """Start it, with a stack of this size (0: the usual one). What `_work` needs is there before."""
        self.error: Exception | None = None
        self._engine = engine
        self._stopping = False
        self._done = threading.Event()
        with _starting:
            before = threading.stack_size(stack_bytes)
            try:
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()
            finally:
                threading.stack_size(before)

    def wait(self, timeout_s: float) -> bool:
        """Whether it has ended within this time."""
        # Not by joining the thread: an interrupted `join` makes Python 3.11 believe that it has ended.
        return self._done.wait(timeout_s)

    def stop(self) -> None:
        """End it, if it has not ended."""
        self._stopping = True
        while not self._done.wait(0.05):
            self._engine.increment_epoch()  # once is enough, unless it is just starting
        self._thread.join()

    @abstractmethod
    def _work(self) -> None: ...

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:  # whatever it is: the caller decides, in its own thread
            # Its traceback leads back here: it would keep the module and the inputs in memory.
            self.error = error.with_traceback(None)
        finally:
            self._done.set()
