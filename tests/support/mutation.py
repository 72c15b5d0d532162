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
from mastermind.zk.r1cs import Linear, R1cs
from tests.support.circuits import Circuit
from tests.support.solver import Solver, Trace
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

#: Start no more than this many searches from witnesses that the same constraints refuse.
_SAME_REFUSAL = 8


class _Core:
    """The constraints of a circuit that are not about hashing, as a system of their own.

    Whatever goes into a hash, some hash comes out, so a witness of the core can always be completed.
    """

    def __init__(self, circuit: Circuit) -> None:
        def hashing(signal: str) -> bool:
            file = circuit.source.owner_of(signal).file
            return "circomlib/" in file or file.endswith("commitment.circom")

        constraints = circuit.r1cs.constraints
        apart = {wire for wire, signal in circuit.names.items() if hashing(signal)}
        #: Constraints of the circuit, in the order of the core's.
        self.rows = [row for row, parts in enumerate(constraints) if not any(apart & part.keys() for part in parts)]
        used = {wire for row in self.rows for part in constraints[row] for wire in part}
        #: Wires of the circuit, in the order of the core's.
        self.wires = sorted({0} | used)
        index = {wire: place for place, wire in enumerate(self.wires)}

        def renamed(part: Linear) -> Linear:
            return {index[wire]: coefficient for wire, coefficient in part.items()}

        parts = [constraints[row] for row in self.rows]
        system = R1cs(len(self.wires), 0, tuple((renamed(a), renamed(b), renamed(c)) for a, b, c in parts))
        self.solver = Solver(system)
        self.signals = {circuit.names[wire]: index[wire] for wire in self.wires if wire}


@dataclass(frozen=True)
class _Attempt:
    """A witness of the core: a true one, the changes to it, how the rest follows, and the constraints against it."""

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
        self._core = _Core(circuit)
        self._rows = {row: place for place, row in enumerate(self._core.rows)}
        bound = {f"main.{name}" for name in BOUND[circuit.spec.name]}
        self._kept = [name for name in circuit.inputs if name not in bound]
        self._hints = [circuit.wires[name] for name in circuit.hints]
        self._core_hints = [self._core.signals[name] for name in circuit.hints if name in self._core.signals]
        self._starts = [self._attempt(witness, changes) for witness, changes in starts]

    def against(self, row: int) -> Witness | None:
        """A false witness that violates this constraint and no other, or None if none was found."""
        candidates = self._core_candidates(self._rows[row]) if row in self._rows else self._hash_candidates(row)
        for witness in candidates:
            refused = self.circuit.solver.violates_only(witness.values, row)
            if refused and not holds(self.circuit.spec.name, self.rules, witness.inputs):
                return witness
        return None

    def _hash_candidates(self, row: int) -> Iterator[Witness]:
        """Witnesses in which a hash is computed wrongly in one place."""
        solved = self._hash_trace.solved.get(row)
        if solved is not None:
            values, _ = self._hash_trace.replay({solved: self._hash_trace.values[solved] + 1}, without={row})
            yield Witness(self.circuit, tuple(values))

    @cached_property
    def _hash_trace(self) -> Trace:
        wires, origin = self.circuit.wires, self._starts[0].origin
        return self.circuit.solver.trace({wires[name]: origin[name] for name in self._kept}, origin.values, self._hints)

    def _core_candidates(self, row: int) -> Iterator[Witness]:
        """Witnesses that violate one constraint of the core alone, the cheap ones first."""
        core, solver = self._core, self._core.solver
        wires = sorted({wire for part in solver.r1cs.constraints[row] for wire in part if wire})
        for attempt in self._starts:
            if attempt.violated == {row}:
                yield self._completed(attempt, attempt.trace.values, row)
            # What the constraint alone decided is free without it.
            for wire in sorted(wires, key=lambda wire: wire != attempt.trace.solved.get(row)):
                for value in self._alternatives(attempt.trace.values[wire]):
                    values, changed = attempt.trace.replay({wire: value}, without={row})
                    touched = solver.touched(changed)
                    if row not in touched or attempt.violated - touched:
                        continue
                    if solver.violates_only(values, row, touched):
                        yield self._completed(attempt, values, row)
        attempts = [*self._starts, *self._false]
        for attempt in attempts:
            if attempt.violated == {row}:
                yield self._completed(attempt, attempt.trace.values, row)
        signals = [self.circuit.names[core.wires[wire]] for wire in wires]
        refused: Counter[frozenset[int]] = Counter()
        for attempt in attempts:
            refused[attempt.violated] += 1
            if len(attempt.violated) > 1 or refused[attempt.violated] > _SAME_REFUSAL:
                continue
            for signal in signals:
                for value in self._alternatives(attempt.origin[signal]):
                    values = solver.complete(*self._given(attempt.origin, {**attempt.changes, signal: value}), {row})
                    if solver.violates_only(values, row):
                        yield self._completed(attempt, values, row)

    @cached_property
    def _false(self) -> list[_Attempt]:
        """Witnesses of the core with one private input or hint changed, and all else adapted to it."""
        secret = [name for name in self.circuit.inputs if name.startswith("main.secret")]
        found = []
        for start in self._starts:
            for signal in (*secret, *self.circuit.hints):
                for value in self._alternatives(start.origin[signal]):
                    attempt = self._attempt(start.origin, {**start.changes, signal: value})
                    if attempt.violated:
                        found.append(attempt)
        return found

    def _attempt(self, origin: Witness, changes: Mapping[str, int]) -> _Attempt:
        trace = self._core.solver.trace(*self._given(origin, changes))
        return _Attempt(origin, changes, trace, frozenset(self._core.solver.violated(trace.values)))

    def _given(self, origin: Witness, changes: Mapping[str, int]) -> tuple[dict[int, int], list[int], list[int]]:
        """What a prover of the core starts from: fixed wires, old values, and hints in order."""
        signals = self._core.signals
        known = {signals[name]: origin[name] for name in self._kept if name in signals}
        known |= {signals[name]: value for name, value in changes.items() if name in signals}
        return known, [origin.values[wire] for wire in self._core.wires], self._core_hints

    def _completed(self, attempt: _Attempt, values: Sequence[int], row: int) -> Witness:
        """The whole witness with these values in the core."""
        wires = self.circuit.wires
        known = {wires[name]: attempt.origin[name] for name in ("main.salt", "main.key") if name in wires}
        known |= dict(zip(self._core.wires, values, strict=True))
        without = {self._core.rows[row]}
        whole = self.circuit.solver.complete(known, attempt.origin.values, without=without)
        return Witness(self.circuit, tuple(whole))

    def _alternatives(self, value: int) -> list[int]:
        """Other values for a wire: a flag, a colour, one that is none, one more."""
        choices = {0, 1, 2, self.rules.colours, (value + 1) % MODULUS}
        return sorted(choices - {value})
