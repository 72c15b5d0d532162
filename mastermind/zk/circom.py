"""The Circom compiler: a native `circom` of the pinned version, or the WASM of the npm package circom2 in process.

Owns which compiler is used and how it is run. The WASM runs in wasmtime, in a thread that can be stopped, and sees
one folder and nothing else of the machine. Translating it takes some seconds; the result is kept beside the package.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mastermind.errors import ToolchainError, ToolFailedError, ToolNotFoundError, ToolTimeoutError
from mastermind.locks import locked
from mastermind.zk.tools import Completed, Toolchain, plain_text, run

if TYPE_CHECKING:  # wasmtime is loaded when there is something to compile
    import wasmtime

#: The compiler version whose constraints are pinned.
CIRCOM_VERSION = "2.2.3"
TIMEOUT_S = 600.0

#: The compiler works by recursion. This is the most that wasmtime gives from Python, and twice what Node does.
_STACK_BYTES = 2 << 20
_THREAD_STACK_BYTES = 4 * _STACK_BYTES
#: What a shell says of a process that has aborted, as a WASM program does by a trap.
_ABORTED = 134


class Compiler(Protocol):
    """A compiler of circuits."""

    @property
    def name(self) -> str:
        """What it is, such as `circom2 0.2.23`."""
        ...

    def run(self, arguments: Sequence[str], folder: Path, timeout_s: float = TIMEOUT_S) -> Completed:
        """Run it in a folder, to its end, and return what it printed; its exit code may be any.

        Raises:
            ToolNotFoundError: it cannot be run.
            ToolTimeoutError: it took longer than `timeout_s`.
        """
        ...


@dataclass(frozen=True)
class NativeCompiler:
    """A `circom` that is installed on the machine."""

    path: Path

    @property
    def name(self) -> str:
        return "circom"

    def run(self, arguments: Sequence[str], folder: Path, timeout_s: float = TIMEOUT_S) -> Completed:
        return run([self.path, *arguments], timeout_s=timeout_s, cwd=folder, accept=range(256))


@dataclass(frozen=True)
class PackagedCompiler:
    """The npm package circom2: the compiler as WASM."""

    package: Path
    version: str

    @property
    def name(self) -> str:
        return f"circom2 {self.version}"

    def run(self, arguments: Sequence[str], folder: Path, timeout_s: float = TIMEOUT_S) -> Completed:
        import wasmtime

        config = wasmtime.Config()
        config.epoch_interruption = True
        config.max_wasm_stack = _STACK_BYTES
        # One engine for each run: interrupting it stops nothing else.
        engine = wasmtime.Engine(config)
        module = self._module(engine)
        with tempfile.TemporaryDirectory() as captured:
            stdout, stderr = Path(captured, "stdout"), Path(captured, "stderr")
            wasi = wasmtime.WasiConfig()
            wasi.argv = ["circom", *arguments]
            wasi.stdout_file, wasi.stderr_file = stdout, stderr
            wasi.preopen_dir(str(folder), ".")
            program = _Program(engine, module, wasi)
            try:
                ended = program.wait(timeout_s)
            finally:
                program.stop()
            if not ended:
                raise ToolTimeoutError(
                    f"circom did not finish within {timeout_s:g} s", argv=arguments, timeout_s=timeout_s
                )
            out, err = (plain_text(path.read_bytes()) for path in (stdout, stderr))
        if isinstance(program.ended_by, wasmtime.ExitTrap):
            return Completed(program.ended_by.code, out, err)
        if program.ended_by is not None:
            return Completed(_ABORTED, out, err or str(program.ended_by))
        return Completed(0, out, err)

    def _module(self, engine: wasmtime.Engine) -> wasmtime.Module:
        """The compiler, translated for this machine before or now."""
        from importlib.metadata import version

        import wasmtime

        kept = self.package.parent.parent / f"circom2_{self.version}_wasmtime_{version('wasmtime')}.cwasm"
        # wasmtime refuses what another version, or the same with other settings or for another processor, has made.
        with suppress(wasmtime.WasmtimeError):
            return wasmtime.Module.deserialize_file(engine, str(kept))
        try:
            source = (self.package / "circom.wasm").read_bytes()
        except OSError as error:
            raise ToolNotFoundError("the npm package circom2 is not installed") from error
        try:
            with locked(kept.with_suffix(".lock")):
                with suppress(wasmtime.WasmtimeError):
                    return wasmtime.Module.deserialize_file(engine, str(kept))
                module = wasmtime.Module(engine, source)
                with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
                    made = Path(folder, kept.name)
                    with made.open("wb") as file:
                        file.write(module.serialize())
                        file.flush()
                        os.fsync(file.fileno())  # wasmtime does not notice when a part is missing
                    made.replace(kept)
                return module
        except wasmtime.WasmtimeError as error:
            raise ToolNotFoundError(f"circom2 cannot be run: {str(error).splitlines()[0]}") from error
        except OSError:
            return wasmtime.Module(engine, source)  # Where nothing can be kept, it is translated each time.


class _Program:
    """A WASM program that has been started, in a thread of its own."""

    def __init__(self, engine: wasmtime.Engine, module: wasmtime.Module, wasi: wasmtime.WasiConfig) -> None:
        self._engine = engine
        self._module = module
        self._wasi = wasi
        #: What ended it; None when it came to its end without a word.
        self.ended_by: Exception | None = None
        self._done = threading.Event()
        self._thread = _with_large_stack(self._run)

    def wait(self, timeout_s: float) -> bool:
        """Whether it has ended within this time."""
        # Not by joining the thread: an interrupted `join` makes Python 3.11 believe that it has ended.
        return self._done.wait(timeout_s)

    def stop(self) -> None:
        """End it, if it has not ended."""
        while not self._done.wait(0.05):
            self._engine.increment_epoch()  # once is enough, unless it is just starting
        self._thread.join()

    def _run(self) -> None:
        import wasmtime

        try:
            with wasmtime.Store(self._engine) as store:
                store.set_epoch_deadline(1)
                store.set_wasi(self._wasi)
                linker = wasmtime.Linker(self._engine)
                linker.define_wasi()
                start = linker.instantiate(store, self._module).exports(store)["_start"]
                assert isinstance(start, wasmtime.Func)
                start(store)
        except Exception as error:  # whatever it is: the caller decides, in its own thread
            self.ended_by = error.with_traceback(None)  # which leads back here, and would keep the module in memory
        finally:
            self._done.set()


_starting = threading.Lock()


def _with_large_stack(target: Callable[[], None]) -> threading.Thread:
    """Start a thread with a stack on which deep recursion fits."""
    with _starting:
        before = threading.stack_size(_THREAD_STACK_BYTES)
        try:
            thread = threading.Thread(target=target, name="circom", daemon=True)
            thread.start()
        finally:
            threading.stack_size(before)
    return thread


def find_compiler(toolchain: Toolchain) -> Compiler:
    """Return the compiler to use: a native `circom` of the pinned version, else the npm package.

    Raises:
        ToolNotFoundError: there is none of that version.
    """
    native = shutil.which("circom")
    if native is not None:
        # Whatever else it may be, it is then not a circom that we could use.
        with suppress(ToolchainError):
            compiler = NativeCompiler(Path(native))
            if compiler_version(compiler) == CIRCOM_VERSION:
                return compiler
    packaged = PackagedCompiler(toolchain.modules / "circom2", toolchain.version("circom2"))
    found = compiler_version(packaged)
    if found != CIRCOM_VERSION:
        raise ToolNotFoundError(f"circom {CIRCOM_VERSION} is needed; the npm package circom2 brings {found}")
    return packaged


def compiler_version(compiler: Compiler) -> str:
    """Ask a compiler for its version."""
    with tempfile.TemporaryDirectory() as folder:
        completed = compiler.run(["--version"], Path(folder), timeout_s=60)
    match = re.search(r"circom compiler (\d+\.\d+\.\d+)", completed.stdout)
    if completed.exit_code or match is None:
        raise ToolFailedError(
            f"{compiler.name} does not say its version",
            argv=["--version"],
            exit_code=completed.exit_code,
            stderr_tail=completed.stderr[-2000:],
        )
    return match.group(1)
