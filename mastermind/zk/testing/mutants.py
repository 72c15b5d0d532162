"""Mutation: leave out one constraint at a time, and see whether anything notices.

A mutant is a circuit without one of its constraints. It is noticed when it accepts something false: one of the given
false cases, or a witness found by search from the given true ones. Both violate this constraint in the whole circuit
and no other. A mutant that survives is a constraint that is not needed, or not tested, or needed for something that no
false statement shows (such as one that only binds a context to the proof).

Mutants are made of the open build, where signals have not been merged and wiring is a constraint like any other. The
circuit as it ships has the non-linear ones of these left, the linear ones solved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from mastermind.errors import InvalidInputError, WitnessError
from mastermind.field import MODULUS
from mastermind.zk.r1cs import Linear, R1cs
from mastermind.zk.testing.solver import Solver, Trace
from mastermind.zk.testing.witness import Guard, Values, Witness, guard

if TYPE_CHECKING:
    from mastermind.zk.testing.circuits import CircuitUnderTest

#: Start no more than this many searches from witnesses that the same constraints refuse.
_SAME_REFUSAL = 8

#: Whether a witness is one of a true statement.
Holds = Callable[[Witness], bool]


def surviving_mutants(
    circuit: CircuitUnderTest,
    true: Iterable[Values],
    false: Iterable[Values | Witness] = (),
    *,
    derived: Collection[str] = (),
    holds: Holds | None = None,
    values: Collection[int] = (),
    where: Callable[[Guard], bool] = lambda guard: True,
) -> list[Guard]:
    """Return the constraints that can be left out without anything false being accepted.

    Args:
        circuit: the circuit.
        true: inputs that it accepts; the search starts there.
        false: inputs, or forged witnesses, that it must reject.
        derived: public inputs, by name, that a prover of something false would choose to fit.
        holds: decides whether a witness, true or forged, is one of a true statement; without it, the circuit's own
            program does, by accepting its inputs and computing its outputs.
        values: field elements worth trying for any signal, such as the first one out of range.
        where: which constraints to leave out; all of them, unless told otherwise.

    Raises:
        WitnessError: the circuit refuses a true case.
        InvalidInputError: there is no true case, it accepts a false one, or `derived` names no public input.
    """
    refused = [case if isinstance(case, Witness) else circuit.open.calculate(case) for case in false]
    for number, witness in enumerate(refused, 1):
        if witness.accepted:
            raise InvalidInputError(f"{circuit.spec.name} accepts false case {number}")
    prover = Prover(circuit, [circuit.witness(case) for case in true], refused, derived, holds, values)
    guards = (guard(circuit.open, row) for row in range(len(circuit.open.r1cs.constraints)))
    return [found for found in guards if where(found) and prover.against(found.row) is None]


@dataclass(frozen=True)
class _Attempt:
    """A witness of the core: a true one, the changes to it, how the rest follows, and the constraints against it."""

    origin: Witness
    changes: Mapping[str, int]
    trace: Trace
    violated: frozenset[int]


class _Core:
    """The constraints that are left of a circuit without those that can always be satisfied last.

    Whatever goes into a hash, some hash comes out: a constraint that alone has a wire which nobody has fixed gives that
    wire its value, and any witness of the others can be completed. So can what then is alone, and so on.
    """

    def __init__(self, solver: Solver, fixed: Collection[int]) -> None:
        #: (wire, row): the wires that are computed last, in order, each from its constraint.
        self.leaves = solver.leaves(fixed)
        left = {row for _, row in self.leaves}
        constraints = solver.r1cs.constraints
        #: Constraints of the circuit, in the order of the core's.
        self.rows = [row for row in range(len(constraints)) if row not in left]
        used = {wire for row in self.rows for part in constraints[row] for wire in part}
        #: Wires of the circuit, in the order of the core's.
        self.wires = sorted({0} | used)
        self.index = {wire: place for place, wire in enumerate(self.wires)}

        def renamed(part: Linear) -> Linear:
            return {self.index[wire]: coefficient for wire, coefficient in part.items()}

        parts = [constraints[row] for row in self.rows]
        system = R1cs(len(self.wires), 0, tuple((renamed(a), renamed(b), renamed(c)) for a, b, c in parts))
        self.solver = Solver(system)


class Prover:
    """A dishonest prover of one circuit, who may break one constraint."""

    def __init__(
        self,
        circuit: CircuitUnderTest,
        true: Sequence[Witness],
        false: Sequence[Witness] = (),
        derived: Collection[str] = (),
        holds: Holds | None = None,
        values: Collection[int] = (),
    ) -> None:
        if not true:
            raise InvalidInputError("the search for false witnesses starts from a true case, and there is none")
        public = {signal.name: signal.labels for signal in circuit.spec.public}
        for name in derived:
            if name not in public:
                raise InvalidInputError(f"{circuit.spec.name} has no public input {name}")
        self._circuit = circuit
        self._system = circuit.open
        self._holds = holds or self._program_holds
        self._values = set(values)
        results = {f"main.{label}" for name in derived for label in public[name]}
        self._kept = [name for name in self._system.inputs if name not in results]
        wires = self._system.wires
        self._core = _Core(self._system.solver, {0, *(wires[name] for name in (*self._kept, *self._system.hints))})
        self._places = {row: place for place, row in enumerate(self._core.rows)}
        index = self._core.index
        self._hints = [index[wires[name]] for name in self._system.hints if wires[name] in index]
        self._true = list(true)
        self._given_false = list(false)

    def against(self, row: int) -> Witness | None:
        """A false witness that violates this constraint and no other, or None if none was found."""
        for witness in self._candidates(row):
            if witness.violated == {row} and not self._holds(witness):
                return witness
        return None

    def _candidates(self, row: int) -> Iterator[Witness]:
        """Witnesses that may violate a constraint alone, the cheap ones first."""
        yield from (witness for witness in self._given_false if row in witness.violated)
        place = self._places.get(row)
        yield from self._leaf_candidates(row) if place is None else self._changed_around(place)
        near, far = self._given_false_around(row)
        yield from (witness.adapted(without={row}) for witness in near)
        if place is not None:
            yield from self._searched(place, [*self._starts, *self._false])
        yield from (witness.adapted(without={row}) for witness in far)
        if place is not None:
            yield from self._searched(place, self._further_false)

    def _given_false_around(self, row: int) -> tuple[list[Witness], list[Witness]]:
        """The given false witnesses: those refused in a component that this constraint is in, and the others."""
        around = self._components(row)
        near: list[Witness] = []
        far: list[Witness] = []
        for witness in self._given_false:
            refused = set[str]().union(*(self._components(other) for other in witness.violated))
            (near if around & refused else far).append(witness)
        return near, far

    def _components(self, row: int) -> set[str]:
        return {name for name in guard(self._system, row).enclosing if name.startswith("main.")}

    def _program_holds(self, witness: Witness) -> bool:
        try:
            right = self._circuit.shipping.calculate(self._system.by_name(witness.inputs))
        except WitnessError:
            return False
        return right.accepted and right.public == witness.public

    def _leaf_candidates(self, row: int) -> Iterator[Witness]:
        """Witnesses in which a wire that is computed last has another value, and all after it follows."""
        wire = next(wire for wire, own in self._core.leaves if own == row)
        for witness, trace in zip(self._true, self._leaf_traces, strict=True):
            for value in self._alternatives(witness.values[wire]):
                values, _ = trace.replay({wire: value}, without={row})
                yield Witness(self._system, tuple(values), witness)

    @cached_property
    def _leaf_traces(self) -> list[Trace]:
        return [Trace(self._system.solver, list(witness.values), self._core.leaves) for witness in self._true]

    def _changed_around(self, row: int) -> Iterator[Witness]:
        """Witnesses that violate one constraint of the core alone: a change of its wires, and all that follows."""
        solver, wires = self._core.solver, self._wires_of(row)
        for attempt in self._starts:
            # What the constraint alone decided is free without it.
            for wire in sorted(wires, key=lambda wire: wire != attempt.trace.solved.get(row)):
                for value in self._alternatives(attempt.trace.values[wire]):
                    values, changed = attempt.trace.replay({wire: value}, without={row})
                    touched = solver.touched(changed)
                    if row in touched and solver.violates_only(values, row, touched):
                        yield self._completed(attempt, values)

    def _searched(self, row: int, attempts: Sequence[_Attempt]) -> Iterator[Witness]:
        """Witnesses that violate one constraint of the core alone: attempts, and what becomes of them without it."""
        core, solver, wires = self._core, self._core.solver, self._wires_of(row)
        for attempt in attempts:
            if attempt.violated == {row}:
                yield self._completed(attempt, attempt.trace.values)
        # What reached the others through the constraint no longer does.
        for attempt in attempts:
            start = self._starts[self._true.index(attempt.origin)]
            if any(attempt.trace.values[wire] != start.trace.values[wire] for wire in wires):
                values = solver.complete(*self._given(attempt.origin, attempt.changes), self._hints, {row})
                if solver.violates_only(values, row):
                    yield self._completed(attempt, values)
        signals = [self._system.names[core.wires[wire]] for wire in wires]
        refused: Counter[frozenset[int]] = Counter()
        for attempt in attempts:
            refused[attempt.violated] += 1
            if len(attempt.violated) > 1 or refused[attempt.violated] > _SAME_REFUSAL:
                continue
            for signal in signals:
                for value in self._alternatives(attempt.origin[signal]):
                    known, old = self._given(attempt.origin, {**attempt.changes, signal: value})
                    values = solver.complete(known, old, self._hints, {row})
                    if solver.violates_only(values, row):
                        yield self._completed(attempt, values)

    def _wires_of(self, row: int) -> list[int]:
        """The wires of a constraint of the core."""
        return sorted({wire for part in self._core.solver.r1cs.constraints[row] for wire in part if wire})

    @cached_property
    def _starts(self) -> list[_Attempt]:
        return [self._attempt(witness, {}) for witness in self._true]

    @cached_property
    def _false(self) -> list[_Attempt]:
        """Witnesses of the core with one input, hint or other choice changed, and all else adapted to it."""
        index, wires = self._core.index, self._system.wires
        changed = {index[wires[name]] for name in (*self._kept, *self._system.hints) if wires[name] in index}
        everything = set(range(1, len(self._core.wires)))
        return self._changing(lambda trace: changed | everything.difference(trace.solved.values()))

    @cached_property
    def _further_false(self) -> list[_Attempt]:
        """The same with a wire changed that only a system of equations has solved."""
        return self._changing(lambda trace: trace.eliminated)

    def _changing(self, wires_of: Callable[[Trace], Collection[int]]) -> list[_Attempt]:
        found = []
        for start in self._starts:
            for wire in sorted(wires_of(start.trace)):
                signal = self._system.names[self._core.wires[wire]]
                for value in self._alternatives(start.origin[signal]):
                    attempt = self._attempt(start.origin, {signal: value})
                    if attempt.violated:
                        found.append(attempt)
        return found

    def _attempt(self, origin: Witness, changes: Mapping[str, int]) -> _Attempt:
        trace = self._core.solver.trace(*self._given(origin, changes), self._hints)
        return _Attempt(origin, changes, trace, frozenset(self._core.solver.violated(trace.values)))

    def _given(self, origin: Witness, changes: Mapping[str, int]) -> tuple[dict[int, int], list[int]]:
        """What a prover of the core starts from: fixed wires and old values."""
        index, wires = self._core.index, self._system.wires
        known = {index[wires[name]]: origin[name] for name in self._kept if wires[name] in index}
        known |= {index[wires[name]]: value for name, value in changes.items() if wires[name] in index}
        return known, [origin.values[wire] for wire in self._core.wires]

    def _completed(self, attempt: _Attempt, core: Sequence[int]) -> Witness:
        """The whole witness with these values in the core."""
        values = list(attempt.origin.values)
        for wire, value in zip(self._core.wires, core, strict=True):
            values[wire] = value
        for wire, row in self._core.leaves:
            solution = self._system.solver.solution(row, wire, values)
            assert solution is not None, "a leaf always has a value"
            values[wire] = solution
        return Witness(self._system, tuple(values), attempt.origin)

    def _alternatives(self, value: int) -> list[int]:
        """Other values for a wire: a flag, one more, and those that the caller knows."""
        return sorted(({0, 1, 2, (value + 1) % MODULUS} | self._values) - {value})
