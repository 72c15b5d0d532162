"""Circuits under test: each compiled once, in two builds, and kept on disk.

The *shipping* build is what the toolkit makes keys for. In the *open* build every signal keeps its wire and every
constraint its place, and the witness program checks nothing: it makes a witness of any inputs, and the constraints
alone say what they think of it. The two builds have the same solutions.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path

from mastermind.errors import InvalidInputError, InvalidSignalsError, WitnessError
from mastermind.zk import binfile
from mastermind.zk.circom import CIRCOM_VERSION
from mastermind.zk.circuit import CircuitSpec
from mastermind.zk.compile import OPTIONS, CompiledCircuit, compile_circuit, keep
from mastermind.zk.discover import circuit_at, discover
from mastermind.zk.project import Project
from mastermind.zk.r1cs import R1cs, read_symbols
from mastermind.zk.render import RenderedCircuit, render
from mastermind.zk.testing.program import unchecked
from mastermind.zk.testing.solver import Solver
from mastermind.zk.testing.source import Source
from mastermind.zk.testing.undetermined import Undetermined, undetermined
from mastermind.zk.testing.witness import Values, Witness, elements
from mastermind.zk.tools import Toolchain
from mastermind.zk.witness import WitnessCalculator


class Build(Enum):
    """How a circuit is compiled."""

    #: As it ships.
    SHIPPING = OPTIONS
    #: Every signal keeps its wire and every constraint its place; the program checks nothing.
    OPEN = ("--O0", "--inspect")


@dataclass(frozen=True, eq=False)
class System:
    """One build of a circuit: its constraints, its witness program, and the names of its signals."""

    spec: CircuitSpec
    build: Build
    source: Source
    compiled: CompiledCircuit

    @cached_property
    def r1cs(self) -> R1cs:
        """Its constraints."""
        return R1cs.read(self.compiled.r1cs)

    @cached_property
    def solver(self) -> Solver:
        """Completes its witnesses."""
        return Solver(self.r1cs)

    @cached_property
    def wires(self) -> dict[str, int]:
        """Wire by full signal name, for the signals that have one."""
        return {name: wire for name, wire in read_symbols(self.compiled.sym).items() if wire >= 0}

    @cached_property
    def names(self) -> dict[int, str]:
        """A full signal name for each wire but the constant."""
        return {wire: name for name, wire in reversed(self.wires.items())}

    @cached_property
    def hints(self) -> tuple[str, ...]:
        """The signals assigned with `<--` that have a wire, in the order in which a prover would choose them.

        Those come first on which others are likely to depend: not in one constraint only (as an inverse is), further
        out, outputs of their component.
        """

        def order(signal: str) -> tuple[bool, int, bool]:
            used = len(self.solver.occurrences[self.wires[signal]])
            return used == 1, signal.count("."), not self.source.is_output(signal)

        return tuple(sorted(filter(self.source.is_hint, self.wires), key=order))

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The full names of all inputs, public ones first."""
        return tuple(f"main.{label}" for signal in (*self.spec.public, *self.spec.private) for label in signal.labels)

    @cached_property
    def public(self) -> tuple[str, ...]:
        """The full names of the public signals, in order."""
        return tuple(f"main.{label}" for label in self.spec.public_labels)

    @cached_property
    def calculator(self) -> WitnessCalculator:
        """Its witness program."""
        wasm = self.compiled.wasm.read_bytes()
        if self.build is Build.OPEN:
            wasm = unchecked(wasm, self.spec.name)
        return WitnessCalculator(wasm, self.spec.name)

    def by_name(self, inputs: Mapping[str, int]) -> Values:
        """The values of all inputs, given by full name, as `calculate` takes them."""
        signals = (*self.spec.public, *self.spec.private)
        return {signal.name: [inputs[f"main.{label}"] for label in signal.labels] for signal in signals}

    def calculate(self, inputs: Values) -> Witness:
        """Let the circuit's own program compute a witness from inputs that nothing has checked.

        Raises:
            InvalidSignalsError: an input that the circuit does not have, or of another size.
            WitnessError: the program refuses the inputs; that of an open build refuses none.
        """
        given = {name: elements(value) for name, value in inputs.items()}
        witness = self.calculator.calculate(given, self.compiled.source)
        return Witness(self, tuple(binfile.split_elements(witness)))


@dataclass(frozen=True, eq=False)
class CircuitUnderTest:
    """A circuit and what tests ask of it.

    Inputs are given by signal name, as integers or lists (nested ones for arrays of arrays); nothing checks them
    against the bounds of the specification, so that only the circuit itself can refuse them.

    Attributes:
        spec: what it was compiled from.
        rendered: its complete source.
    """

    spec: CircuitSpec
    rendered: RenderedCircuit = field(repr=False)
    _circuits: Circuits = field(repr=False)

    @cached_property
    def shipping(self) -> System:
        """The build that keys are made for."""
        return self._circuits.system(self.spec, Build.SHIPPING)

    @cached_property
    def open(self) -> System:
        """The build that shows every signal and checks nothing in its program."""
        return self._circuits.system(self.spec, Build.OPEN)

    @property
    def constraint_count(self) -> int:
        """The constraints of the circuit as it ships."""
        return len(self.shipping.r1cs.constraints)

    def witness(self, inputs: Values) -> Witness:
        """The witness for inputs that the circuit accepts, with every signal by its full name.

        Raises:
            WitnessError: the circuit refuses them.
        """
        shipped = self.shipping.calculate(inputs)
        witness = self.open.calculate(inputs)
        for system, found in ((self.shipping, shipped), (self.open, witness)):
            if not found.accepted:
                refusing = "; ".join(map(str, found.guards))
                raise WitnessError(f"the constraints of {system.spec.name} refuse its own witness: {refusing}")
        return witness

    def accepts(self, inputs: Values, outputs: Values | None = None) -> Witness:
        """Assert that inputs are accepted: by the witness program and by the constraints of both builds.

        Args:
            inputs: all inputs.
            outputs: values that outputs of the main component must have; others are not looked at.

        Returns:
            The witness.

        Raises:
            AssertionError: the circuit refuses them, or an output has another value.
        """
        __tracebackhide__ = True
        try:
            witness = self.witness(inputs)
        except WitnessError as error:
            raise AssertionError(f"{self.spec.name} does not accept these inputs: {error}") from error
        for name, value in self._elements(outputs or {}, self.spec.output_labels).items():
            if witness[name] != value:
                raise AssertionError(f"{name} of {self.spec.name} is {witness[name]}, not {value}")
        return witness

    def rejects(
        self, case: Values | Witness, by: str | Iterable[str] = (), *, outputs: Values | None = None
    ) -> Witness:
        """Assert that the constraints reject inputs, claimed outputs or a forged witness, and which of them do.

        Inputs are completed to a witness twice, by the circuit's own program without its checks, and by solving the
        constraints as far as they go: neither may be accepted. What a program says plays no part, so an `assert` or
        a check outside the circuit does not count.

        Args:
            case: all inputs, or a witness made by `forge`.
            by: what has to reject, by template, component (`main.legal`) or signal. Each stands for the constraints in
                or on it and all that lies inside, but `main` and its template for their own only. Every violated
                constraint must belong to one of these, and each of these must have one that is violated. Without
                any, it is left open what rejects.
            outputs: values claimed for outputs of the main component, the inputs being right.

        Returns:
            The rejected witness, which names the violated constraints in `guards`.

        Raises:
            AssertionError: accepted, or rejected by something else.
            InvalidInputError: `by` names nothing in the circuit.
        """
        __tracebackhide__ = True
        named = [by] if isinstance(by, str) else list(by)
        for name in named:
            self._require_known(name)
        if isinstance(case, Witness):
            candidates = [case]
        else:
            claimed = self._elements(outputs or {}, self.spec.output_labels)
            candidates = list(self._completions(self.open.calculate(case), claimed))
        for witness in candidates:
            if witness.accepted:
                raise AssertionError(f"the constraints of {self.spec.name} accept it")
        refused = min(candidates, key=lambda witness: len(witness.violated))
        guards = refused.guards
        if named:
            others = [str(guard) for guard in guards if not any(guard.belongs_to(name) for name in named)]
            if others:
                raise AssertionError(f"{self.spec.name} is rejected by something else: {'; '.join(others)}")
            idle = [name for name in named if not any(guard.belongs_to(name) for guard in guards)]
            if idle:
                raise AssertionError(f"{idle[0]} does not reject it; {'; '.join(map(str, guards))} does")
        return refused

    def forge(self, witness: Witness, changes: Mapping[str, int], *, keep: Iterable[str] | None = None) -> Witness:
        """The best that a dishonest prover can make of a witness with other values for some signals.

        The changed signals and the inputs (or `keep`, by full names) are fixed, and all that depends on them is
        adapted as far as the constraints go; whether the result is `accepted` is up to the constraints alone.

        Raises:
            InvalidSignalsError: there is no such signal.
        """
        return witness.forged(changes, keep=keep)

    def shipped(self, witness: Witness) -> Witness:
        """A witness of the open build as one of the circuit as it ships: the same values for the signals it has."""
        names = self.shipping.names
        values = (1, *(witness[names[wire]] for wire in range(1, self.shipping.r1cs.wire_count)))
        return Witness(self.shipping, values)

    def undetermined(
        self,
        examples: Iterable[Values],
        *,
        derived: Collection[str] = (),
        free: Mapping[str, str] | None = None,
        assuming: Mapping[str, Iterable[int]] | None = None,
    ) -> Undetermined:
        """Search for signals that the constraints leave a choice; see `mastermind.zk.testing.undetermined`."""
        return undetermined(self, examples, derived=derived, free=free, assuming=assuming)

    def _completions(self, witness: Witness, claimed: Mapping[str, int]) -> Iterator[Witness]:
        yield witness.patched(claimed)
        yield witness.forged(claimed)

    def _elements(self, values: Values, labels: Sequence[str]) -> dict[str, int]:
        """Values of the main component's signals by full name; only `labels` are allowed."""
        found: dict[str, int] = {}
        for signal in self.spec.outputs:
            if signal.name in values:
                given = elements(values[signal.name])
                if len(given) != len(signal.labels):
                    raise InvalidSignalsError(
                        f"the output {signal.name} has {len(signal.labels)} values", signal=signal.name
                    )
                found |= {f"main.{label}": value for label, value in zip(signal.labels, given, strict=True)}
        for name in values:
            if name not in {signal.name for signal in self.spec.outputs}:
                raise InvalidSignalsError(f"{self.spec.name} has no output {name}", signal=name)
        return found

    def _require_known(self, name: str) -> None:
        if name in self.open.wires or name in self.open.source.templates:
            return
        if not any(signal.startswith(f"{name}.") for signal in self.open.wires):
            raise InvalidInputError(f"{self.spec.name} has no template, component or signal {name}")


class Circuits:
    """Compiles circuits, or finds them compiled, and keeps them. Safe for parallel test runs.

    Args:
        toolchain: compiles.
        home: folder for what is compiled, below `test_circuits`, and for what is known about bare files.
    """

    def __init__(self, toolchain: Toolchain, home: Path) -> None:
        self.toolchain = toolchain
        self._home = home
        self._folder = home / "test_circuits"
        self._loaded: dict[str, CircuitUnderTest] = {}
        self._systems: dict[str, System] = {}

    def load(self, circuit: CircuitSpec | str | Path) -> CircuitUnderTest:
        """A circuit by its specification, by its name in the project of the current folder, or by the path of its file.

        Compiler warnings about a bare file do not matter: tests find what they warn of. Those about a specification
        fail unless it accepts them.

        Raises:
            InvalidProjectError: there is no project, or it has no circuit of this name.
            InvalidArtifactError: the source is missing or does not render.
            CompileError: it does not compile.
        """
        if isinstance(circuit, str) and not circuit.endswith((".circom", ".circom.j2")):
            circuit = Project.find(home=self._home).circuit(circuit)
        if not isinstance(circuit, CircuitSpec):
            bare = circuit_at(Path(circuit), accepted_warnings=(("", "the tests look for themselves"),))
            circuit = discover(bare, self._home)
        rendered = self.render(circuit)
        key = _digest(circuit, rendered, ())
        if key not in self._loaded:
            self._loaded[key] = CircuitUnderTest(circuit, rendered, self)
        return self._loaded[key]

    def compile(self, circuits: Iterable[CircuitSpec], builds: Iterable[Build] = Build) -> None:
        """Compile several at once, side by side; `load` finds them then."""
        wanted = [(spec, build) for spec in circuits for build in builds]
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            list(pool.map(lambda pair: self.system(*pair), wanted))

    def render(self, spec: CircuitSpec) -> RenderedCircuit:
        """The complete source of a circuit."""
        return render(spec, self.toolchain.modules / "circomlib" / "circuits")

    def system(self, spec: CircuitSpec, build: Build) -> System:
        """One build of a circuit."""
        rendered = self.render(spec)
        key = _digest(spec, rendered, build.value)
        if key not in self._systems:
            target = self._folder / key
            keep(target, lambda made: compile_circuit(spec, rendered, self.toolchain, made, build.value))
            self._systems[key] = System(spec, build, Source(rendered), CompiledCircuit(spec.name, target))
        return self._systems[key]


def _digest(spec: CircuitSpec, rendered: RenderedCircuit, options: Sequence[str]) -> str:
    recipe = [rendered.digests, rendered.main, spec.name, spec.public_labels, options, CIRCOM_VERSION]
    return hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:32]
