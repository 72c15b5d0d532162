"""Witnesses by signal name: computed, patched, forged, and judged by the constraints alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mastermind.zk import binfile
from tests.support.circuits import Circuit, signal_names

#: Inputs by signal name, as the witness program takes them: nothing has checked them.
Values = Mapping[str, int | Sequence[int]]


@dataclass(frozen=True)
class Guard:
    """A constraint that a witness violates.

    Attributes:
        row: its place in the constraint system.
        component: the innermost component that all its signals are in, such as `main.score.same[0]`.
        template: of that component.
        signals: full names of its signals.
    """

    row: int
    component: str
    template: str
    signals: frozenset[str]

    def __str__(self) -> str:
        return f"{self.template} {self.component}: {', '.join(sorted(self.signals))}"


@dataclass(frozen=True)
class Witness:
    """A value for each wire of a circuit, true or false."""

    circuit: Circuit
    values: tuple[int, ...]

    @classmethod
    def of(cls, circuit: Circuit, inputs: Values) -> Witness:
        """Let the circuit's own program compute it from inputs that nothing has checked.

        Raises:
            WitnessError: the program refuses the inputs; one of an open build refuses none.
        """
        values = circuit.calculator.calculate({name: as_list(value) for name, value in inputs.items()})
        return cls(circuit, tuple(binfile.split_elements(values)))

    def __getitem__(self, signal: str) -> int:
        return self.values[self.circuit.wires[signal]]

    @property
    def inputs(self) -> dict[str, int]:
        """The values of the inputs, by full name."""
        return {name: self[name] for name in self.circuit.inputs}

    @property
    def public(self) -> tuple[int, ...]:
        return self.values[1 : self.circuit.r1cs.public_count + 1]

    def patched(self, changes: Mapping[str, int]) -> Witness:
        """The same witness with other values for some signals, and nothing else changed."""
        values = list(self.values)
        for signal, value in changes.items():
            values[self.circuit.wires[signal]] = value
        return Witness(self.circuit, tuple(values))

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
        circuit = self.circuit
        if keep is None and not without:
            known = dict(self._determined)
        else:
            known = {circuit.wires[signal]: self[signal] for signal in (circuit.inputs if keep is None else keep)}
        known |= {circuit.wires[signal]: value for signal, value in changes.items()}
        values = circuit.solver.complete(
            known,
            self.values,
            [circuit.wires[signal] for signal in circuit.hints],
            without,
        )
        return Witness(circuit, tuple(values))

    @cached_property
    def _determined(self) -> dict[int, int]:
        """The wires that follow from the inputs without any choice."""
        return self.circuit.solver.determined({self.circuit.wires[name]: self[name] for name in self.circuit.inputs})

    @cached_property
    def accepted(self) -> bool:
        """Whether the constraint system accepts it."""
        return self.circuit.r1cs.unsatisfied(self.values) is None

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The constraints it violates."""
        return tuple(guard(self.circuit, row) for row in self.circuit.solver.violated(self.values))


def guard(circuit: Circuit, row: int) -> Guard:
    """Name a constraint by what it touches."""
    wires = {wire for part in circuit.r1cs.constraints[row] for wire in part if wire}
    signals = frozenset(circuit.names[wire] for wire in wires)
    component = common_component(signals)
    return Guard(row, component, circuit.source.template_of(component).name, signals)


def common_component(signals: Iterable[str]) -> str:
    """The innermost component that all of these signals are in."""
    paths = [signal.split(".")[:-1] for signal in signals]
    common = []
    for parts in zip(*paths, strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    return ".".join(common)


def as_list(value: int | Sequence[int]) -> list[int]:
    return [value] if isinstance(value, int) else list(value)


def by_signal(inputs: Values) -> dict[str, int]:
    """Inputs by full signal name: `main.secret[0]` and so on."""
    return {
        name: element
        for signal, value in inputs.items()
        for name, element in zip(
            signal_names(signal, None if isinstance(value, int) else len(value)), as_list(value), strict=True
        )
    }
