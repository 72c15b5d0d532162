"""Witnesses by signal name: patched, forged, and judged by the constraints alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from mastermind.errors import InvalidSignalsError
from mastermind.field import MODULUS
from mastermind.zk.testing.solver import Start

if TYPE_CHECKING:
    from mastermind.zk.testing.circuits import System

#: One input: an integer, a list of them for an array, or a list of lists and so on.
Value: TypeAlias = int | Sequence[Any]
#: Inputs by signal name, as the witness program takes them: nothing has checked them.
Values = Mapping[str, Value]


@dataclass(frozen=True)
class Guard:
    """A constraint that a witness violates.

    Attributes:
        row: its place in the constraint system.
        component: the innermost component that all its signals are in, such as `main.score.same[0]`.
        template: of that component.
        file: that declares the template.
        enclosing: the components and templates that this component is in, and itself, but for main's.
        signals: full names of its signals.
    """

    row: int
    component: str
    template: str
    file: str
    enclosing: frozenset[str]
    signals: frozenset[str]

    def __str__(self) -> str:
        return f"{self.template} {self.component} ({self.file}): {', '.join(sorted(self.signals))}"

    def belongs_to(self, name: str) -> bool:
        """Whether it is in a template or component of this name, or on a signal."""
        return name in self.enclosing or name in (self.component, self.template) or name in self.signals


@dataclass(frozen=True, eq=False)
class Witness:
    """A value for each wire of one build of a circuit, true or false.

    Values are shown by full signal name, elements of arrays with their index: `witness["main.score.hits"]`,
    `witness["main.secret[0]"]`. A whole array is `witness.array("main.secret")`.
    """

    system: System = field(repr=False)
    values: tuple[int, ...] = field(repr=False)
    _origin: Witness | None = field(default=None, repr=False)
    _changes: Mapping[str, int] = field(default_factory=dict, repr=False)
    _keep: tuple[str, ...] | None = field(default=None, repr=False)

    def __getitem__(self, signal: str) -> int:
        return self.values[self._wire(signal)]

    def array(self, signal: str) -> list[int]:
        """The elements of an array of any dimensions, the last index running fastest."""
        names = [name for name in self.system.wires if name.startswith(f"{signal}[")]
        elements = [name for name in names if "." not in name[len(signal) :]]
        if not elements:
            raise InvalidSignalsError(f"{self.system.spec.name} has no array {signal}", signal=signal)
        return [self[name] for name in elements]

    @property
    def inputs(self) -> dict[str, int]:
        """The values of the inputs, by full name."""
        return {name: self[name] for name in self.system.inputs}

    @property
    def public(self) -> tuple[int, ...]:
        """The public signals, in order."""
        return self.values[1 : self.system.r1cs.public_count + 1]

    @cached_property
    def violated(self) -> frozenset[int]:
        """The constraints that it violates, by place."""
        solver = self.system.solver
        if self._origin is None:
            return frozenset(solver.violated(self.values))
        old = self._origin.values
        touched = solver.touched(wire for wire, value in enumerate(self.values) if value != old[wire])
        return (self._origin.violated - touched) | frozenset(solver.violated(self.values, touched))

    @property
    def accepted(self) -> bool:
        """Whether the constraint system accepts it."""
        return not self.violated

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The constraints that it violates."""
        return tuple(guard(self.system, row) for row in sorted(self.violated))

    def changed(self, other: Witness) -> list[str]:
        """The full names of the signals that have another value in another witness of the same build."""
        return [name for name, wire in self.system.wires.items() if wire and self.values[wire] != other.values[wire]]

    def patched(self, changes: Mapping[str, int]) -> Witness:
        """The same witness with other values for some signals, and nothing else changed."""
        values = list(self.values)
        for signal, value in changes.items():
            values[self._wire(signal)] = value % MODULUS
        return Witness(self.system, tuple(values), self)

    def forged(
        self,
        changes: Mapping[str, int],
        *,
        keep: Iterable[str] | None = None,
        without: Collection[int] = (),
    ) -> Witness:
        """The best witness a dishonest prover gets with other values for some signals.

        The changed signals and the inputs (or `keep`) are fixed. All else follows from the constraints as far as
        they go; where they leave a choice, hints first, the old value stays. Constraints `without` are not used.
        """
        system = self.system
        fixed = frozenset(system.inputs if keep is None else keep).difference(changes)
        known = {self._wire(signal): value % MODULUS for signal, value in changes.items()}
        order = [system.wires[signal] for signal in system.hints]
        if without:
            known |= {self._wire(signal): self[signal] for signal in fixed}
            values = system.solver.complete(known, self.values, order, without)
        else:
            values = self._start(fixed).complete(known, self.values, order)
        return Witness(system, tuple(values), self, dict(changes), tuple(fixed))

    def adapted(self, without: Collection[int]) -> Witness:
        """The same forgery, or the same inputs, where a prover need not satisfy some constraints."""
        if self._origin is None:
            return self.forged({}, without=without)
        return self._origin.forged(self._changes, keep=self._keep, without=without)

    def _start(self, fixed: frozenset[str]) -> Start:
        """What follows from some signals without any choice; remembered, as many forgeries start there."""
        if fixed not in self._starts:
            self._starts[fixed] = self.system.solver.start({self._wire(name): self[name] for name in fixed})
        return self._starts[fixed]

    @cached_property
    def _starts(self) -> dict[frozenset[str], Start]:
        return {}

    def _wire(self, signal: str) -> int:
        try:
            return self.system.wires[signal]
        except KeyError:
            raise InvalidSignalsError(
                f"the {self.system.build.name.lower()} build of {self.system.spec.name} has no signal {signal}",
                signal=signal,
            ) from None


def guard(system: System, row: int) -> Guard:
    """Name a constraint by what it touches."""
    wires = {wire for part in system.r1cs.constraints[row] for wire in part if wire}
    signals = frozenset(system.names[wire] for wire in wires)
    path = list(system.source.path_of(common_component(signals)))
    component, template = path[-1]
    enclosing = frozenset(name for component, template in path[1:] for name in (component, template.name))
    return Guard(row, component, template.name, template.file, enclosing, signals)


def common_component(signals: Iterable[str]) -> str:
    """The innermost component that all of these signals are in."""
    paths = [signal.split(".")[:-1] for signal in signals]
    common = []
    for parts in zip(*paths, strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    return ".".join(common)


def elements(value: Value) -> list[int]:
    """The elements of an input, the last index running fastest."""
    if isinstance(value, int):
        return [value % MODULUS]
    return [element for item in value for element in elements(item)]
