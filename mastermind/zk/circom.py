"""The Circom compiler: a native `circom` of the pinned version, or the WASM of the npm package circom2 in process.

Owns which compiler is used and how it is run. The WASM runs in wasmtime, in a thread that can be stopped, and sees
one folder and nothing else of the machine. Translating it takes some seconds; the result is kept beside the package.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mastermind.errors import ToolchainError, ToolFailedError, ToolNotFoundError, ToolTimeoutError
from mastermind.locks import locked
from mastermind.zk.tools import Completed, Toolchain, plain_text, run
from mastermind.zk.wasm import WasmThread

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
        if isinstance(program.error, wasmtime.ExitTrap):
            return Completed(program.error.code, out, err)
        if program.error is not None:
            return Completed(_ABORTED, out, err or str(program.error))
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


class _Program(WasmThread):
    """A WASM program that has been started."""

    def __init__(self, engine: wasmtime.Engine, module: wasmtime.Module, wasi: wasmtime.WasiConfig) -> None:
        self._module = module
        self._wasi = wasi
        super().__init__(engine, "circom", _THREAD_STACK_BYTES)

    def _work(self) -> None:
        import wasmtime

        with wasmtime.Store(self._engine) as store:
            store.set_epoch_deadline(1)
            store.set_wasi(self._wasi)
            linker = wasmtime.Linker(self._engine)
            linker.define_wasi()
            start = linker.instantiate(store, self._module).exports(store)["_start"]
            assert isinstance(start, wasmtime.Func)
            start(store)


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
