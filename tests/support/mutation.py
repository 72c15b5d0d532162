"""Looking for a false witness that only one constraint stands against.

When there is one, the constraint is needed: without it the circuit would prove something false. The search works on
an open build, where signals have not been merged. Compiling the circuit as it ships eliminates the linear
constraints, so each constraint that ships stands for one that is not linear there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mastermind.field import MODULUS
from mastermind.rules import Rules
from tests.support.circuits import Circuit
from tests.support.solver import Trace
from tests.support.statements import holds
from tests.support.witness import Witness

#: The public inputs that a circuit binds to the others; a prover of something false chooses them last.
BOUND = {
    "authorise": ("player_id",),
    "open_game": ("solution_hash", "master_id"),
    "make_guess": ("breaker_id", "guess"),
    "give_clue": ("solution_hash", "guess", "clue"),
    "certify_game": ("solution_hash", "master_id", "turn_count", "guess_history", "clue_history", "is_solved"),
}

#: Start no more than this many searches from witnesses that the same constraint refuses.
_SAME_REFUSAL = 4


@dataclass(frozen=True)
class _Attempt:
    """A witness with some changes, how it came about, and the constraints against it."""

    origin: Witness
    changes: Mapping[str, int]
    trace: Trace
    violated: frozenset[int]


class Prover:
    """A dishonest prover of one circuit, who may break one constraint.

    Args:
        circuit: an open build.
        rules: those of the circuit.
        starts: true witnesses to start from, each with changes to make first, or none.
    """

    def __init__(self, circuit: Circuit, rules: Rules, starts: Sequence[tuple[Witness, Mapping[str, int]]]) -> None:
        self.circuit = circuit
        self.rules = rules
        bound = {f"main.{name}" for name in BOUND[circuit.spec.name]}
        self._kept = tuple(name for name in circuit.inputs if name not in bound)
        self._hints = [circuit.wires[name] for name in circuit.hints]
        self._starts = [self._attempt(witness, changes) for witness, changes in starts]

    def against(self, row: int) -> Witness | None:
        """A false witness that violates this constraint and no other, or None if none was found."""
        for witness in self._candidates(row):
            if not holds(self.circuit.spec.name, self.rules, witness.inputs):
                return witness
        return None

    def _candidates(self, row: int) -> Iterator[Witness]:
        """Witnesses that violate this constraint alone, the cheap ones first."""
        solver = self.circuit.solver
        wires = sorted({wire for part in self.circuit.r1cs.constraints[row] for wire in part if wire})
        for attempt in self._starts:
            if attempt.violated == {row}:
                yield Witness(self.circuit, tuple(attempt.trace.values))
            # What the constraint alone decided is free without it.
            for wire in sorted(wires, key=lambda wire: wire != attempt.trace.solved.get(row)):
                for value in self._alternatives(attempt.trace.values[wire]):
                    values, changed = attempt.trace.replay({wire: value}, without={row})
                    touched = solver.touched(changed)
                    if row not in touched or attempt.violated - touched:
                        continue
                    if solver.violated(values, touched) == [row]:
                        yield Witness(self.circuit, tuple(values))
        names = [self.circuit.names[wire] for wire in wires]
        refused: Counter[frozenset[int]] = Counter()
        for attempt in (*self._starts, *self._false):
            refused[attempt.violated] += 1
            if attempt.violated == {row}:
                yield Witness(self.circuit, tuple(attempt.trace.values))
            elif len(attempt.violated) < 2 and refused[attempt.violated] <= _SAME_REFUSAL:
                for signal in names:
                    for value in self._alternatives(attempt.origin[signal]):
                        changes = {**attempt.changes, signal: value}
                        witness = attempt.origin.forged(changes, keep=self._kept, without={row})
                        if solver.violated(witness.values) == [row]:
                            yield witness

    @cached_property
    def _false(self) -> list[_Attempt]:
        """Witnesses with one private input or hint changed, and all else adapted to it."""
        private = {f"main.{signal.name}" for signal in self.circuit.spec.private} - {"main.salt", "main.key"}
        inputs = [name for name in self.circuit.inputs if name.partition("[")[0] in private]
        found = []
        for start in self._starts:
            for signal in (*inputs, *self.circuit.hints):
                for value in self._alternatives(start.origin[signal]):
                    attempt = self._attempt(start.origin, {**start.changes, signal: value})
                    if attempt.violated:
                        found.append(attempt)
        return found

    def _attempt(self, origin: Witness, changes: Mapping[str, int]) -> _Attempt:
        wires = self.circuit.wires
        known = {wires[name]: origin[name] for name in self._kept}
        known |= {wires[name]: value for name, value in changes.items()}
        trace = self.circuit.solver.trace(known, origin.values, self._hints)
        return _Attempt(origin, changes, trace, frozenset(self.circuit.solver.violated(trace.values)))

    def _alternatives(self, value: int) -> list[int]:
        """Other values for a wire: a flag, a colour, one that is none, one more."""
        choices = {0, 1, 2, self.rules.colours, (value + 1) % MODULUS}
        return sorted(choices - {value})
