"""Witness generation in process: the WASM that circom compiles, run by wasmtime.

Owns the calling convention of that WASM (circom 2: `setInputSignal`, `getWitness`, a shared 32-byte word). Every
calculation has an instance of its own, so calculations neither meet nor leave anything behind; the compiled
module is shared, and kept in wasmtime's cache. A program may be anybody's and have no end: it runs in a thread that
can be stopped, for so long and in so much memory.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import wasmtime

from mastermind.errors import InvalidArtifactError, InvalidSignalsError, MissingSampleError, WitnessError
from mastermind.zk import binfile
from mastermind.zk.circom import CIRCOM_VERSION
from mastermind.zk.circuit import CircuitSpec, SignalValues
from mastermind.zk.compile import CompiledCircuit, refused
from mastermind.zk.r1cs import encode_witness, read_symbols
from mastermind.zk.wasm import WasmThread

#: Even a large circuit takes seconds.
TIMEOUT_S = 600.0

_ELEMENT_BYTES = 32
#: All that 32-bit addresses reach.
_MEMORY_BYTES = 4 << 30
_PAGE_BYTES = 1 << 16
_RUNTIME = "runtime"
#: What circom's runtime functions take; an import beyond these comes from another compiler version.
_IMPORTS = frozenset({"exceptionHandler", "printErrorMessage", "writeBufferMessage", "showSharedRWMemory"})
_CALLED = ("init", "setInputSignal", "getInputSignalSize", "getWitnessSize", "getInputSize", "getMessageChar")
_EXPORTS = frozenset({*_CALLED, "getSharedRWMemoryStart", "getWitness", "memory"})
_ASSERT_FAILED = 4

# One call from Python costs more than all the copying: this loop fetches the whole witness in one.
_COLLECTOR = """
(module
  (import "circuit" "memory" (memory 0))
  (import "circuit" "getWitness" (func $getWitness (param i32)))
  (func (export "collect") (param $count i32) (param $shared i32) (param $to i32)
    (local $index i32)
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $index) (local.get $count)))
        (call $getWitness (local.get $index))
        (i64.store (local.get $to) (i64.load (local.get $shared)))
        (i64.store offset=8 (local.get $to) (i64.load offset=8 (local.get $shared)))
        (i64.store offset=16 (local.get $to) (i64.load offset=16 (local.get $shared)))
        (i64.store offset=24 (local.get $to) (i64.load offset=24 (local.get $shared)))
        (local.set $to (i32.add (local.get $to) (i32.const 32)))
        (local.set $index (i32.add (local.get $index) (i32.const 1)))
        (br $next)))))
"""


#: Held while an engine is made: `cache` alone lets two threads make one each, and wasmtime ends the whole process
#: when parts of two engines meet.
_making_engine = threading.Lock()


def _engine() -> wasmtime.Engine:
    with _making_engine:
        return _one_engine()


@cache
def _one_engine() -> wasmtime.Engine:
    config = wasmtime.Config()
    config.epoch_interruption = True
    try:
        config.cache = True
    except wasmtime.WasmtimeError:
        pass  # Without a writable cache folder, modules are compiled anew in each process.
    return wasmtime.Engine(config)


@cache
def _collector() -> wasmtime.Module:
    return wasmtime.Module(_engine(), _COLLECTOR)


@dataclass(frozen=True)
class CalculatedWitness:
    """All signals of a circuit for inputs that it accepts, by name. It holds secrets, and shows none in its `repr`.

    Attributes:
        outputs, public, private: values by label, such as `root` or `path[3]`.
        signals: values by full name, such as `main.hasher.out`, of all that the compiler has not optimised away.
        encoded: the `.wtns` file.
    """

    outputs: Mapping[str, int] = field(repr=False)
    public: Mapping[str, int] = field(repr=False)
    private: Mapping[str, int] = field(repr=False)
    signals: Mapping[str, int] = field(repr=False)
    encoded: bytes = field(repr=False)

    @classmethod
    def read(cls, spec: CircuitSpec, inputs: SignalValues, calculated: bytes, sym: Path) -> CalculatedWitness:
        """Name the values that a calculator has calculated from checked inputs.

        Raises:
            InvalidArtifactError: the symbol file is damaged or of another circuit.
        """
        values = binfile.split_elements(calculated)
        wires = {name: wire for name, wire in read_symbols(sym).items() if wire >= 0}
        if any(wire >= len(values) for wire in wires.values()):
            raise InvalidArtifactError(f"{sym.name} does not belong to {spec.name}", path=sym)
        given = {
            label: value
            for signal in (*spec.public, *spec.private)
            for label, value in zip(signal.labels, inputs[signal.name], strict=True)
        }
        return cls(
            # Wire 0 is the constant 1; the outputs come next.
            outputs=dict(zip(spec.output_labels, values[1:], strict=False)),
            public={label: given[label] for signal in spec.public for label in signal.labels},
            private={label: given[label] for signal in spec.private for label in signal.labels},
            signals={name: values[wire] for name, wire in wires.items()},
            encoded=encode_witness(calculated),
        )


def require_true_sample(spec: CircuitSpec, compiled: CompiledCircuit) -> None:
    """Check that the sample inputs of a circuit, if it has any, are those of a true statement.

    Raises:
        InvalidSignalsError: they do not fit the circuit.
        WitnessError: the statement is false.
    """
    try:
        inputs = spec.sample()
    except MissingSampleError:
        return
    WitnessCalculator(compiled.wasm.read_bytes(), spec.name).calculate(spec.check_inputs(inputs), compiled.source)


class WitnessCalculator:
    """Calculates witnesses of one circuit. Safe to use from several threads at once."""

    def __init__(self, wasm: bytes, name: str) -> None:
        """Compile (or fetch from the cache) the WASM of the circuit `name`.

        Raises:
            InvalidArtifactError: it is not WASM that this version can run.
        """
        self._name = name
        path = Path(f"{name}.wasm")
        try:
            self._module = wasmtime.Module(_engine(), wasm)
        except wasmtime.WasmtimeError as error:
            raise InvalidArtifactError(f"{path} is damaged: {str(error).splitlines()[0]}", path=path) from error
        # Also when Python ends with this still in use: wasmtime cannot free it by then.
        weakref.finalize(self, self._module.close)
        missing = sorted(_EXPORTS - {item.name for item in self._module.exports})
        if missing:
            raise InvalidArtifactError(
                f"{path} has no {missing[0]!r}: it is not what circom 2 makes of a circuit", path=path
            )
        unknown = [i.name for i in self._module.imports if i.module != _RUNTIME or i.name not in _IMPORTS]
        if unknown:
            raise InvalidArtifactError(
                f"{path} needs {unknown[0]!r}, which this runtime (for circom {CIRCOM_VERSION}) does not provide: "
                "it was made by another compiler version",
                path=path,
            )

    def calculate(self, inputs: Mapping[str, Sequence[int]], source: Path | None = None) -> bytes:
        """Return the witness as concatenated 32-byte little-endian values.

        `source`, the folder of the rendered source, lets errors name the file.

        Raises:
            InvalidSignalsError: an input that the circuit does not have, or of another size.
            WitnessError: the circuit has no witness for these inputs, or its program failed or did not end in time.
                The message names no value.
        """
        calculation = _Calculation(lambda store: self._calculate(store, inputs, source))
        try:
            ended = calculation.wait(TIMEOUT_S)
        finally:
            calculation.stop()
        if not ended:
            raise WitnessError(f"the witness program of {self._name} did not finish within {TIMEOUT_S:g} s")
        error = calculation.error
        if isinstance(error, wasmtime.Trap | wasmtime.WasmtimeError):
            raise WitnessError(f"the witness program of {self._name} failed: {_reason(error)}") from error
        if error is not None:
            raise error
        return calculation.witness

    def _calculate(self, store: wasmtime.Store, inputs: Mapping[str, Sequence[int]], source: Path | None) -> bytes:
        messages: list[str] = []
        call: dict[str, Any] = {}

        def message() -> None:
            text = bytearray()
            while character := call["getMessageChar"](store):
                text.append(character & 0xFF)
            messages.append(text.decode("utf-8", "replace").strip())

        def fail(code: int) -> None:
            if code != _ASSERT_FAILED:
                raise WitnessError(f"{self._name} cannot take these inputs (circom error {code})")
            raise refused(self._name, " ".join(messages), source)

        handlers: dict[str, Callable[..., Any]] = {"exceptionHandler": fail, "printErrorMessage": message}
        imports = []
        for item in self._module.imports:
            assert isinstance(item.type, wasmtime.FuncType)
            assert item.name is not None
            # Log lines and dumps of the shared word may show secrets: they are dropped.
            imports.append(wasmtime.Func(store, item.type, handlers.get(item.name, _ignore)))
        instance = wasmtime.Instance(store, self._module, imports)
        exports = instance.exports(store)
        for name in _CALLED:
            call[name] = exports[name]
        memory = exports["memory"]
        assert isinstance(memory, wasmtime.Memory)
        shared = _function(exports["getSharedRWMemoryStart"])(store)

        call["init"](store, 1)
        total = 0
        for name, values in inputs.items():
            high, low = _signal_hash(name)
            size = call["getInputSignalSize"](store, high, low)
            if size <= 0:
                raise InvalidSignalsError(f"{self._name} has no input {name}", signal=name)
            if size != len(values):
                raise InvalidSignalsError(
                    f"{self._name} has {size} values for the input {name}, not {len(values)}", signal=name
                )
            for index, value in enumerate(values):
                memory.write(store, value.to_bytes(_ELEMENT_BYTES, "little"), shared)
                call["setInputSignal"](store, high, low, index)
                total += 1
        expected = call["getInputSize"](store)
        if total != expected:
            raise InvalidSignalsError(f"{self._name} takes {expected} input values, not {total}", signal="")

        count = call["getWitnessSize"](store)
        size_bytes = count * _ELEMENT_BYTES
        start = memory.data_len(store)
        memory.grow(store, -(-size_bytes // _PAGE_BYTES))
        collector = wasmtime.Instance(store, _collector(), [memory, _function(exports["getWitness"])])
        _function(collector.exports(store)["collect"])(store, count, shared, start)
        return bytes(memory.read(store, start, start + size_bytes))


class _Calculation(WasmThread):
    """A calculation that has been started."""

    def __init__(self, calculate: Callable[[wasmtime.Store], bytes]) -> None:
        self._calculate = calculate
        self.witness = b""
        super().__init__(_engine(), "witness")

    def _work(self) -> None:
        while not self._attempt():
            pass

    def _attempt(self) -> bool:
        """Calculate. False when it was interrupted because another one had to stop: an epoch is the whole engine's."""
        # Closed at once: left to the garbage collector, a store with callbacks is never freed.
        with wasmtime.Store(self._engine) as store:
            store.set_epoch_deadline(1)
            store.set_limits(memory_size=_MEMORY_BYTES, memories=1)
            try:
                self.witness = self._calculate(store)
            except wasmtime.Trap as trap:
                if self._stopping or trap.trap_code is not wasmtime.TrapCode.INTERRUPT:
                    raise
                return False
        return True


def _reason(error: wasmtime.Trap | wasmtime.WasmtimeError) -> str:
    """What stopped a program. Nothing of the error's own text: it may tell addresses, which may depend on secrets."""
    if not isinstance(error, wasmtime.Trap):
        return "it cannot be run, or asks for more memory than there is"
    if error.trap_code is wasmtime.TrapCode.STACK_OVERFLOW:
        return "it calls itself too often, and the stack is full"
    return "it made an invalid operation"


def _ignore(*_: object) -> None:
    return None


def _function(export: object) -> Any:
    assert isinstance(export, wasmtime.Func)
    return export


def _signal_hash(name: str) -> tuple[int, int]:
    """FNV-1a of a signal name, as the two signed 32-bit halves that circom's WASM looks inputs up by."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    high, low = value >> 32, value & 0xFFFFFFFF
    return high - (high >> 31 << 32), low - (low >> 31 << 32)
