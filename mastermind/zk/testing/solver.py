"""Completing a witness from a part of it: what a dishonest prover does.

Given some wires, the others follow from the constraints, one unknown at a time or by elimination among a few. What
the constraints leave open keeps a preferred value. No constraint is ever trusted to hold: a completed witness may
violate some, and the constraint system alone says so.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from heapq import heappop, heappush

from mastermind.field import MODULUS
from mastermind.zk.r1cs import Linear, R1cs

#: Equations with more unknowns than this wait until they have fewer.
ELIMINATION_UNKNOWNS = 10

Row = tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]


class Solver:
    """Completes witnesses of one constraint system."""

    def __init__(self, r1cs: R1cs) -> None:
        self.r1cs = r1cs
        self.rows: list[Row] = [(_terms(a), _terms(b), _terms(c)) for a, b, c in r1cs.constraints]
        #: For each wire: (row, part) of each occurrence.
        self.occurrences: list[list[tuple[int, int]]] = [[] for _ in range(r1cs.wire_count)]
        for index, row in enumerate(self.rows):
            for part in range(3):
                for wire, _ in row[part]:
                    self.occurrences[wire].append((index, part))
        self._sizes = [[len(row[part]) for row in self.rows] for part in range(3)]
        #: For each row, the most occurrences that one wire has in it.
        self._repeated = [
            max(Counter(wire for part in row for wire, _ in part).values(), default=0) for row in self.rows
        ]

    def complete(
        self,
        known: Mapping[int, int],
        preferred: Sequence[int],
        order: Sequence[int] = (),
        without: Collection[int] = (),
    ) -> list[int]:
        """Return a whole witness that has the values `known`.

        Args:
            known: value by wire; not changed.
            preferred: a value for every wire, taken where the constraints leave a choice.
            order: wires that are chosen first when there is a choice; then all others by number.
            without: constraints that are not used; where there is a choice, their wires come last, as these are what
                is free to satisfy the others.
        """
        if without:
            freed = {wire for row in without for part in self.rows[row] for wire, _ in part}
            order = [wire for wire in (*order, *range(self.r1cs.wire_count)) if wire not in freed]
        completion = _Completion(self, without)
        completion.take(known)
        return completion.run(preferred, order)

    def start(self, known: Mapping[int, int]) -> Start:
        """Deduce what follows from the values `known`, once for many completions."""
        return Start(self, known)

    def trace(self, known: Mapping[int, int], preferred: Sequence[int], order: Sequence[int] = ()) -> Trace:
        """Remember which constraint gave which wire its value when `complete` went from `known` to a whole witness."""
        completion = _Completion(self, ())
        completion.take(known)
        return Trace(self, completion.run(preferred, order), completion.solved_by, completion.eliminated)

    def leaves(self, fixed: Collection[int]) -> list[tuple[int, int]]:
        """The (wire, row) that can be computed last, in the order of computing, whatever the other wires are.

        Each wire is in its own row and otherwise only in rows that come later, and its row gives it exactly one value.
        Wires that are `fixed` are never computed.
        """
        rows_of = [{row for row, _ in occurrences} for occurrences in self.occurrences]
        waiting = [wire for wire, rows in enumerate(rows_of) if len(rows) == 1]
        found = []
        while waiting:
            wire = waiting.pop()
            if wire in fixed or len(rows_of[wire]) != 1:
                continue
            (row,) = rows_of[wire]
            if not self._computes(row, wire):
                continue
            found.append((wire, row))
            for other in {other for part in self.rows[row] for other, _ in part}:
                rows_of[other].discard(row)
                if len(rows_of[other]) == 1:
                    waiting.append(other)
        return found[::-1]

    def _computes(self, row: int, wire: int) -> bool:
        """Whether a row gives a wire one value, whatever its other wires are."""
        a, b, c = map(dict, self.rows[row])
        if wire in c and wire not in a and wire not in b:
            return True
        if b.keys() <= {0}:
            a, b = b, a
        # With a constant factor, the row is a linear equation.
        return a.keys() <= {0} and bool((a.get(0, 0) * b.get(wire, 0) - c.get(wire, 0)) % MODULUS)

    def solution(self, row: int, unknown: int, values: Sequence[int]) -> int | None:
        """The value of a wire that satisfies a row, if there is exactly one and the row is linear in it."""
        sums = []
        coefficients = []
        for part in self.rows[row]:
            total = 0
            own = 0
            for wire, coefficient in part:
                if wire == unknown:
                    own = coefficient
                else:
                    total += coefficient * values[wire]
            sums.append(total % MODULUS)
            coefficients.append(own)
        (a, b, c), (own_a, own_b, own_c) = sums, coefficients
        slope = (own_a * b + own_b * a - own_c) % MODULUS
        if slope == 0 or (own_a and own_b):
            return None
        return (c - a * b) * pow(slope, -1, MODULUS) % MODULUS

    def touched(self, wires: Iterable[int]) -> set[int]:
        """The constraints that contain one of these wires."""
        return {row for wire in wires for row, _ in self.occurrences[wire]}

    def violated(self, witness: Sequence[int], rows: Iterable[int] | None = None) -> list[int]:
        """The constraints that a witness violates, in order; only among `rows` if given."""
        return [row for row in (range(len(self.rows)) if rows is None else sorted(rows)) if self.violates(witness, row)]

    def violates(self, witness: Sequence[int] | Mapping[int, int], row: int) -> bool:
        """Whether a witness violates one constraint."""
        a, b, c = self.rows[row]
        left = sum([coefficient * witness[wire] for wire, coefficient in a]) if a else 0
        right = sum([coefficient * witness[wire] for wire, coefficient in b]) if b else 0
        return (left * right - sum([coefficient * witness[wire] for wire, coefficient in c])) % MODULUS != 0

    def violates_only(self, witness: Sequence[int], row: int, rows: Iterable[int] | None = None) -> bool:
        """Whether a witness violates one constraint and no other (among `rows` if given)."""
        others = range(len(self.rows)) if rows is None else rows
        return self.violates(witness, row) and not any(
            self.violates(witness, other) for other in others if other != row
        )


class Trace:
    """A completed witness and how it came about, so that small changes need little work.

    Attributes:
        values: the witness.
        eliminated: wires that a system of equations gave their values, not a single one.
    """

    def __init__(
        self, solver: Solver, values: list[int], solved_by: Sequence[tuple[int, int]], eliminated: Sequence[int] = ()
    ) -> None:
        self.values = values
        self.eliminated = eliminated
        self._solver = solver
        self._solved_by = solved_by

    @cached_property
    def solved(self) -> dict[int, int]:
        """The wire that a constraint gave its value, by constraint."""
        return {row: wire for wire, row in self._steps}

    @cached_property
    def _steps(self) -> list[tuple[int, int]]:
        """(wire, row): an order in which rows, one at a time, give all wires their values that had no choice.

        What elimination has solved among many rows is the work of one, once the others are done.
        """
        rows_of = dict(self._solved_by)
        waiting = [*rows_of, *(wire for wire in self.eliminated if wire not in rows_of)]
        unknown = set(waiting)
        used = set(rows_of.values())
        steps: list[tuple[int, int]] = []
        while waiting:
            later = []
            for wire in waiting:
                candidates = [rows_of[wire]] if wire in rows_of else sorted(self._solver.touched([wire]) - used)
                row = next((row for row in candidates if self._gives(row, wire, unknown)), None)
                if row is None:
                    later.append(wire)
                    continue
                unknown.discard(wire)
                used.add(row)
                steps.append((wire, row))
            if len(later) == len(waiting):
                unknown.discard(later.pop(0))
            waiting = later
        return steps

    def _gives(self, row: int, wire: int, unknown: Collection[int]) -> bool:
        """Whether a row gives a wire its value when others are unknown."""
        others = {other for part in self._solver.rows[row] for other, _ in part} - {wire}
        return others.isdisjoint(unknown) and self._solver.solution(row, wire, self.values) == self.values[wire]

    @cached_property
    def _users(self) -> dict[int, list[int]]:
        """For each wire, the steps that use its value."""
        users: dict[int, list[int]] = {}
        for step, (solved, row) in enumerate(self._steps):
            for wire in {wire for part in self._solver.rows[row] for wire, _ in part} - {solved}:
                users.setdefault(wire, []).append(step)
        return users

    def replay(self, changes: Mapping[int, int], without: Collection[int] = ()) -> tuple[list[int], set[int]]:
        """Change some wires and do again every step that depends on them, each by the constraint it used before.

        Wires that no single constraint had solved keep their values, and so do one that its constraint no longer
        decides and those of the constraints `without`. Returns the witness and the wires that differ.
        """
        values = list(self.values)
        changed: set[int] = set()
        waiting: list[int] = []
        queued: set[int] = set()

        def change(wire: int, value: int) -> None:
            if values[wire] != value:
                values[wire] = value
                changed.add(wire)
                for step in self._users.get(wire, ()):
                    if step not in queued:
                        queued.add(step)
                        heappush(waiting, step)

        for wire, value in changes.items():
            change(wire, value % MODULUS)
        while waiting:
            wire, row = self._steps[heappop(waiting)]
            if wire in changes or row in without:
                continue
            solution = self._solver.solution(row, wire, values)
            if solution is not None:
                change(wire, solution)
        return values, changed


class Start:
    """Some values, and what follows from them without any choice."""

    def __init__(self, solver: Solver, known: Mapping[int, int]) -> None:
        self._completion = _Completion(solver, ())
        self._completion.take(known)
        # Elimination waits: most of what it would find follows more easily once the changes are known.
        self._completion.settle()
        self._completion.close()
        #: The preferred values that were completed last without any change, and how.
        self._unchanged: tuple[Sequence[int], Trace] | None = None

    def complete(self, changes: Mapping[int, int], preferred: Sequence[int], order: Sequence[int] = ()) -> list[int]:
        """Return a whole witness that has these values too, as `Solver.complete` does.

        A determined wire that is changed breaks the constraint that determines it; all that follows from it is
        computed again.
        """
        determined = self._completion.values
        forced = {wire: value for wire, value in changes.items() if determined[wire] not in (None, value % MODULUS)}
        if len(forced) < len(changes):
            chosen = {wire: value for wire, value in changes.items() if wire not in forced}
            return self._trace(chosen, preferred, order).replay(forced)[0]
        if self._unchanged is None or self._unchanged[0] is not preferred:
            self._unchanged = (preferred, self._trace({}, preferred, order))
        return self._unchanged[1].replay(forced)[0]

    def _trace(self, chosen: Mapping[int, int], preferred: Sequence[int], order: Sequence[int]) -> Trace:
        completion = self._completion.copy()
        completion.take(chosen)
        values = completion.run(preferred, order)
        return Trace(completion.solver, values, completion.solved_by, completion.eliminated)


class _Completion:
    def __init__(self, solver: Solver, without: Collection[int]) -> None:
        self.solver = solver
        self.values: list[int | None] = [None] * solver.r1cs.wire_count
        #: Unknown wires left in each part of each row.
        self.left = [list(sizes) for sizes in solver._sizes]
        #: Rows whose left or right factor is known to be zero: the other factor no longer matters.
        self.dead = [False] * len(solver.rows)
        self.done = [False] * len(solver.rows)
        for row in without:
            self.done[row] = True
        #: Rows that may still have unknown wires.
        self.open = [row for row in range(len(solver.rows)) if not self.done[row]]
        self.system = LinearSystem()
        #: (wire, row) in the order in which single rows gave wires their values.
        self.solved_by: list[tuple[int, int]] = []
        #: Wires that the linear system gave their values, in order.
        self.eliminated: list[int] = []
        #: Rows with one unknown wire, in a factor.
        self.checks: deque[int] = deque()
        self.queue: list[int] = [
            row
            for row in range(len(solver.rows))
            if not self.done[row] and not (self.left[0][row] and self.left[1][row])
        ]
        self.learn(0, 1)

    def copy(self) -> _Completion:
        """One that goes on from here by itself."""
        twin = copy(self)
        twin.values = list(self.values)
        twin.left = [list(counts) for counts in self.left]
        twin.dead, twin.done, twin.open = list(self.dead), list(self.done), list(self.open)
        twin.system = self.system.copy()
        twin.solved_by, twin.eliminated = list(self.solved_by), list(self.eliminated)
        twin.checks, twin.queue = deque(self.checks), list(self.queue)
        return twin

    def take(self, known: Mapping[int, int]) -> None:
        """Give wires the values from which all else has to follow."""
        for wire, value in known.items():
            self.learn(wire, value)

    def deduce(self) -> None:
        """Go as far as there is no choice."""
        self.settle()
        while self.take_solved() or self.eliminate():
            self.settle()

    def run(self, preferred: Sequence[int], order: Sequence[int]) -> list[int]:
        """Go to the end, choosing where there is a choice."""
        choices = iter([*order, *range(len(self.values))])
        while True:
            self.deduce()
            wire = next((wire for wire in choices if self.values[wire] is None), None)
            if wire is None:
                break
            self.learn(wire, self.choice(wire, preferred))
        return [value if value is not None else 0 for value in self.values]

    def close(self) -> None:
        """Forget the rows that have no unknown wires left."""
        left_a, left_b, left_c = self.left
        self.open = [row for row in self.open if not self.done[row] and (left_a[row] or left_b[row] or left_c[row])]

    def learn(self, wire: int, value: int) -> None:
        if self.values[wire] is not None:
            return
        self.values[wire] = value % MODULUS
        if wire in self.system.rows or wire in self.system.uses:
            self.system.fix(wire, value)
        left_a, left_b, left_c = self.left
        repeated = self.solver._repeated
        for row, part in self.solver.occurrences[wire]:
            counts = self.left[part]
            counts[row] -= 1
            if self.done[row]:
                continue
            left = left_c[row] if self.dead[row] else left_a[row] + left_b[row] + left_c[row]
            if left <= repeated[row] or (part < 2 and counts[row] == 0):
                self.queue.append(row)

    def settle(self) -> None:
        """Solve rows with one unknown wire until there are none: those that compute it first, then the checks."""
        while True:
            while self.queue:
                row = self.queue.pop()
                if not self.done[row]:
                    self.visit(row, checks=False)
            if not self.checks:
                break
            row = self.checks.popleft()
            if not self.done[row]:
                self.visit(row, checks=True)

    def visit(self, row: int, checks: bool) -> None:
        a, b, c = self.left[0][row], self.left[1][row], self.left[2][row]
        if a and b:
            return
        if not self.dead[row]:
            # One factor is known, or both.
            self.dead[row] = any(self.left[part][row] == 0 and self.known_sum(row, part) == 0 for part in range(2))
        if (c if self.dead[row] else a + b + c) > self.solver._repeated[row]:
            return
        equation = self.equation(row)
        if equation is None:
            return
        unknown, constant = equation
        if len(unknown) == 0:
            self.done[row] = True
        elif len(unknown) == 1:
            if not checks and (a or b):
                # Divide only when no row gives the wire by multiplication.
                self.checks.append(row)
                return
            self.done[row] = True
            ((wire, coefficient),) = unknown.items()
            self.solved_by.append((wire, row))
            self.learn(wire, -constant * pow(coefficient, -1, MODULUS))

    def known_sum(self, row: int, part: int) -> int:
        total = 0
        for wire, coefficient in self.solver.rows[row][part]:
            value = self.values[wire]
            if value is not None:
                total += coefficient * value
        return total % MODULUS

    def equation(self, row: int) -> tuple[dict[int, int], int] | None:
        """The row as a linear equation, sum of coefficient * wire + constant = 0, or None if it is not linear."""
        a, b, c = self.solver.rows[row]
        if self.left[0][row]:
            a, b = b, a
        factor = 0
        for wire, coefficient in a:
            value = self.values[wire]
            if value is None:
                return None
            factor += coefficient * value
        factor %= MODULUS
        unknown: dict[int, int] = {}
        constant = 0
        for terms, scale in ((b, factor), (c, -1)):
            if scale == 0:
                continue
            for wire, coefficient in terms:
                value = self.values[wire]
                if value is None:
                    unknown[wire] = (unknown.get(wire, 0) + scale * coefficient) % MODULUS
                else:
                    constant += scale * coefficient * value
        return {wire: coefficient for wire, coefficient in unknown.items() if coefficient}, constant % MODULUS

    def choice(self, wire: int, preferred: Sequence[int]) -> int:
        """The preferred value of a wire, unless a row (x - r)(x - s) = 0 in it alone asks for r or s."""
        rows = self.solver.rows
        for row, part in self.solver.occurrences[wire]:
            counts = [self.left[each][row] for each in range(3)]
            if part == 0 and not self.done[row] and counts == [1, 1, 0] and self.known_sum(row, 2) == 0:
                own = [dict(rows[row][each]).get(wire, 0) for each in range(2)]
                if all(own):
                    roots = [-self.known_sum(row, each) * pow(own[each], -1, MODULUS) % MODULUS for each in range(2)]
                    if preferred[wire] not in roots:
                        return roots[0]
        return preferred[wire]

    def eliminate(self) -> bool:
        """Move linear rows with few unknown wires to the linear system; say whether that gave a wire a value."""
        left_a, left_b, left_c = self.left
        still_open = []
        for row in self.open:
            a, b, c = left_a[row], left_b[row], left_c[row]
            if self.done[row] or not (a or b or c):
                continue
            still_open.append(row)
            if (a and b and not self.dead[row]) or c > ELIMINATION_UNKNOWNS:
                continue
            equation = self.equation(row)
            if equation is None or len(equation[0]) > ELIMINATION_UNKNOWNS:
                continue
            self.done[row] = True
            self.system.add(*equation)
        self.open = still_open
        return self.take_solved()

    def take_solved(self) -> bool:
        """Learn what the linear system has solved."""
        found = False
        while self.system.solved:
            wire, value = self.system.solved.popitem()
            if self.values[wire] is None:
                found = True
                self.eliminated.append(wire)
                self.learn(wire, value)
        return found


class LinearSystem:
    """Linear equations, sum of coefficient * wire + constant = 0, kept in reduced form.

    An equation that contradicts the others is dropped: the constraint system will see it violated.
    """

    def __init__(self) -> None:
        #: For each pivot wire, pivot + sum of coefficient * wire + constant = 0; no pivot occurs in the sums.
        self.rows: dict[int, tuple[Linear, int]] = {}
        #: The pivots in whose rows a wire occurs.
        self.uses: dict[int, set[int]] = {}
        #: Wires that have one value, not yet taken.
        self.solved: dict[int, int] = {}

    def copy(self) -> LinearSystem:
        """One that goes on from here by itself."""
        twin = LinearSystem()
        twin.rows = dict(self.rows)
        twin.uses = {wire: set(pivots) for wire, pivots in self.uses.items()}
        twin.solved = dict(self.solved)
        return twin

    def add(self, unknown: Linear, constant: int) -> None:
        for wire in list(unknown):
            factor = unknown.get(wire, 0)
            if not factor:
                continue
            if wire in self.solved:
                unknown, constant = _without(unknown, wire), constant + factor * self.solved[wire]
            elif wire in self.rows:
                other, other_constant = self.rows[wire]
                unknown = _subtracted(_without(unknown, wire), other, factor)
                constant -= factor * other_constant
        if not unknown:
            return
        pivot = next(iter(unknown))
        inverse = pow(unknown[pivot], -1, MODULUS)
        row = {wire: coefficient * inverse % MODULUS for wire, coefficient in unknown.items() if wire != pivot}
        constant = constant * inverse % MODULUS
        if not row:
            self.fix(pivot, -constant)
            return
        for user in self.uses.pop(pivot, set()):
            other, other_constant = self.rows[user]
            factor = other[pivot]
            self.store(user, _subtracted(_without(other, pivot), row, factor), other_constant - factor * constant)
        self.store(pivot, row, constant)

    def fix(self, wire: int, value: int) -> None:
        """Give a wire a value."""
        value %= MODULUS
        self.solved[wire] = value
        if wire in self.rows:
            row, constant = self.rows.pop(wire)
            for used in row:
                self.uses[used].discard(wire)
            self.add(dict(row), constant + value)
        for user in self.uses.pop(wire, set()):
            other, other_constant = self.rows[user]
            self.store(user, _without(other, wire), other_constant + other[wire] * value)

    def store(self, pivot: int, row: Linear, constant: int) -> None:
        if pivot in self.rows:
            for used in self.rows[pivot][0]:
                if used not in row and used in self.uses:
                    self.uses[used].discard(pivot)
        if not row:
            self.rows.pop(pivot, None)
            self.fix(pivot, -constant)
            return
        self.rows[pivot] = row, constant % MODULUS
        for used in row:
            self.uses.setdefault(used, set()).add(pivot)


def _terms(part: Linear) -> tuple[tuple[int, int], ...]:
    return tuple((wire, coefficient) for wire, coefficient in part.items() if coefficient)


def _without(combination: Linear, wire: int) -> Linear:
    return {other: coefficient for other, coefficient in combination.items() if other != wire}


def _subtracted(left: Linear, right: Linear, factor: int) -> Linear:
    """left - factor * right, without zero coefficients."""
    result = dict(left)
    for wire, coefficient in right.items():
        value = (result.get(wire, 0) - factor * coefficient) % MODULUS
        if value:
            result[wire] = value
        else:
            result.pop(wire, None)
    return result
