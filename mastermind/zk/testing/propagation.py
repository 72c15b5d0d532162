"""Which wires follow from given ones, whatever the values: uniqueness proved from the constraints.

A wire is *unique* when all solutions of the constraint system that agree on the given wires agree on it. The rules,
until none of them finds anything new:

    linear      linear equations between wires not yet unique, by elimination; a factor that is unique but constant
                counts as a number, a product of unique factors as known
    non-zero    in A B = C with C a non-zero constant, neither factor is zero, so a unique A makes B unique
    domains     finite sets of values, from polynomials in one wire that split into small roots, and from x (y - x) = 0
    digits      a unique sum of wires with domains, each weight larger than all that the smaller ones can reach
    cases       the finite combinations of a few wires, when no two give the same unique sums
    zero test   a unique A in A B = C, ... is zero or not; what is unique in both cases is unique
    roots       A_i B_i = C_i with all A_i and C_i unique: were the B_i not, more of the A_i would be zero than their
                linear form allows

A wire that the zero test finds unique in one case, and in the other in no constraint at all, is *idle*: it has many
values exactly where none of them matters, as the inverse in the usual test for zero does.

Nothing here is a guess: a wire that no rule reaches is not thereby free. It follows Ecne (Wang, 2022) and Picus
(Pailoor et al., 2023) in spirit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mastermind.field import MODULUS
from mastermind.zk.r1cs import Linear
from mastermind.zk.testing.solver import ELIMINATION_UNKNOWNS, LinearSystem, Row, Solver

Domain = frozenset[int]

#: Roots of polynomials are looked for among these.
_SMALL_ROOTS = range(-16, 272)
_MAX_DEGREE = 64
_MAX_CASES = 1 << 13
#: The rule of roots looks at no more unknown wires and rows than this.
_MAX_ROOT_UNKNOWNS, _MAX_ROOT_ROWS = 3, 64

#: A linear form up to a factor: sorted (wire, coefficient), the first coefficient 1.
Form = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class _Scaled:
    """A row A B = C with A unique and not constant: its factor A, and the unknown parts of B and C."""

    factor: Form
    unknown: Linear
    product: Linear


class Propagation:
    """What is unique once some wires are given.

    Args:
        solver: of the constraint system.
        given: wires whose values are given.
        domains: wires that are known to have one of some values, for reasons that are not looked for here.

    Attributes:
        unique: the given wires, and all that follow from them.
        idle: wires that are in no constraint wherever they are not unique.
        domains: the possible values of wires, as far as they are few.
    """

    def __init__(self, solver: Solver, given: Iterable[int], domains: Mapping[int, Domain]) -> None:
        self.unique: set[int] = set()
        self.idle: set[int] = set()
        self.domains = dict(domains)
        self._solver = solver
        self._system = LinearSystem()
        self._waiting = set(range(len(solver.rows)))
        self._nonzero: set[Form] = set()
        #: By row: what is left of it, in the form that the rules for it need.
        self._sums: dict[int, Linear] = {}
        self._scaled: dict[int, _Scaled] = {}
        #: The sums that have been put into the linear system.
        self._eliminated: set[int] = set()
        self._find_domains()
        self._learn({0, *given})
        self._run()

    def _run(self) -> None:
        while True:
            self._settle()
            if not (self._digits() or self._cases() or self._zero_tests() or self._roots()):
                return

    def _learn(self, wires: Iterable[int]) -> bool:
        """Take wires as unique; say whether any was not before."""
        new = [wire for wire in wires if wire not in self.unique]
        self.unique.update(new)
        self.idle.difference_update(new)
        self._waiting |= self._solver.touched(new)
        for wire in new:
            self._system.fix(wire, 0)
        return bool(new)

    def _settle(self) -> None:
        """The rules linear and non-zero, until they find nothing."""
        while self._waiting or self._system.solved:
            while self._system.solved:
                wire, _ = self._system.solved.popitem()
                self._learn([wire])
            if self._waiting:
                self._visit(self._waiting.pop())

    def _visit(self, row: int) -> None:
        a, b, c = (dict(part) for part in self._solver.rows[row])
        self._sums.pop(row, None)
        self._scaled.pop(row, None)
        if self._left(a) and not self._left(b):
            a, b = b, a
        # If a factor is unique now, it is `a`.
        if self._left(a):
            if not c.keys() - {0} and c.get(0):
                self._nonzero |= {_form(a), _form(b)}
            return
        left_b, left_c = self._left(b), self._left(c)
        if a.keys() <= {0}:
            self._equation(row, _combined(left_b, a.get(0, 0), left_c))
        elif not left_b:
            self._equation(row, left_c)
        else:
            factor = _form(a)
            if not c.keys() - {0} and c.get(0):
                self._nonzero |= {factor, _form(b)}
            scaled = _Scaled(factor, left_b, left_c)
            if factor in self._nonzero:
                self._learn(_follows_if_not_zero([scaled]))
                if not left_c:
                    self._equation(row, left_b)
                    return
            self._scaled[row] = scaled

    def _equation(self, row: int, unknown: Linear) -> None:
        """A combination of wires that is unique."""
        if len(unknown) == 1:
            self._learn(unknown)
        elif unknown:
            self._sums[row] = unknown
            # As unique wires are taken out of the system too, what was put in once stays right.
            if len(unknown) <= ELIMINATION_UNKNOWNS and row not in self._eliminated:
                self._eliminated.add(row)
                self._system.add(dict(unknown), 0)

    def _left(self, part: Linear) -> Linear:
        return {wire: coefficient for wire, coefficient in part.items() if wire not in self.unique}

    def _digits(self) -> bool:
        found = False
        for sum_ in list(self._sums.values()):
            found |= self._are_digits(sum_) and self._learn(sum_)
        return found

    def _are_digits(self, sum_: Linear) -> bool:
        if not all(wire in self.domains for wire in sum_):
            return False
        for scale in {1, pow(next(iter(sum_.values())), -1, MODULUS)}:
            reach = 0
            for weight, domain in sorted(
                (abs(_signed(coefficient * scale)), [_signed(value) for value in self.domains[wire]])
                for wire, coefficient in sum_.items()
            ):
                values = sorted(domain)
                gap = min((after - before for before, after in itertools.pairwise(values)), default=MODULUS)
                if weight * gap <= reach:
                    break
                reach += weight * (values[-1] - values[0])
            else:
                if reach < MODULUS:
                    return True
        return False

    def _cases(self) -> bool:
        found = False
        for sum_ in list(self._sums.values()):
            found |= self._is_injective(sum_) and self._learn(sum_)
        return found

    def _is_injective(self, sum_: Linear) -> bool:
        """Whether no two possible combinations of the wires of a sum give the same sum."""
        if not all(wire in self.domains for wire in sum_):
            return False
        if math.prod(len(self.domains[wire]) for wire in sum_) > _MAX_CASES:
            return False
        rows = {
            row: {wire for part in self._solver.rows[row] for wire, _ in part} for row in self._solver.touched(sum_)
        }
        fixed = {wire for wires in rows.values() for wire in wires if len(self.domains.get(wire, ())) == 1} | {0}
        wires = [*sum_, *fixed]
        inside = [row for row, own in rows.items() if own <= fixed.union(sum_)]
        seen: set[int] = set()
        for combination in itertools.product(*(self.domains.get(wire, {1}) for wire in wires)):
            values = dict(zip(wires, combination, strict=True))
            if any(self._solver.violates(values, row) for row in inside):
                continue
            total = sum(coefficient * values[wire] for wire, coefficient in sum_.items()) % MODULUS
            if total in seen:
                return False
            seen.add(total)
        return True

    def _zero_tests(self) -> bool:
        found = False
        groups: dict[Form, list[_Scaled]] = {}
        for scaled in self._scaled.values():
            groups.setdefault(scaled.factor, []).append(scaled)
        for factor, rows in groups.items():
            otherwise = _follows_if_not_zero(rows)
            if_zero = _follows(row.product for row in rows)
            found |= self._learn(otherwise & if_zero)
            self.idle |= {wire for wire in otherwise - if_zero if self._only_scaled_by(factor, wire)}
        return found

    def _only_scaled_by(self, factor: Form, wire: int) -> bool:
        """Whether a wire is in constraints only as a multiple of a factor."""
        rows = self._solver.rows
        return all(
            part < 2 and wire not in dict(rows[row][1 - part]) and _form(dict(rows[row][1 - part])) == factor
            for row, part in self._solver.occurrences[wire]
        )

    def _roots(self) -> bool:
        found = False
        candidates = [row for row in self._scaled.values() if not row.product]
        for wires in {frozenset(row.unknown) for row in candidates if len(row.unknown) <= _MAX_ROOT_UNKNOWNS}:
            rows = [row for row in candidates if row.unknown.keys() <= wires]
            if len(rows) <= _MAX_ROOT_ROWS and self._have_one_solution(sorted(wires), rows):
                found |= self._learn(wires)
        return found

    def _have_one_solution(self, wires: Sequence[int], rows: Sequence[_Scaled]) -> bool:
        """Whether two solutions cannot differ: along any difference, too many factors would have to be zero."""
        vectors = [[row.unknown.get(wire, 0) for wire in wires] for row in rows]
        # A difference on which the fewest rows do not vanish is given by as many rows as it takes on which it does.
        for chosen in itertools.combinations(vectors, len(wires) - 1):
            difference = _orthogonal(chosen, len(wires))
            if difference is None:
                continue
            zero = [
                row.factor
                for row, vector in zip(rows, vectors, strict=True)
                if sum(x * y for x, y in zip(vector, difference, strict=True)) % MODULUS
            ]
            if _have_common_zero(zero):
                return False
        return _rank(vectors) == len(wires)

    def _find_domains(self) -> None:
        """The rule of domains, as far as it goes."""
        rows = self._solver.rows
        for a, b, _ in rows:
            factors = [{wire for wire, _ in factor} - {0} for factor in (a, b)]
            if all(factors):
                for wires in factors:
                    if len(wires) == 1 and not wires & self.domains.keys():
                        self._split_polynomials(*wires)
        waiting = set(range(len(rows)))
        while waiting:
            row = waiting.pop()
            for wire, domain in self._domains_from(row):
                if wire not in self.domains or len(domain) < len(self.domains[wire]):
                    self.domains[wire] = domain
                    waiting |= self._solver.touched([wire])

    def _domains_from(self, row: int) -> Iterator[tuple[int, Domain]]:
        """What one row says about the possible values of a wire, the domains of its others being known."""
        a, b, c = (dict(part) for part in self._solver.rows[row])
        equation = linear_equation(self._solver.rows[row])
        if equation is not None:
            wires = equation.keys() - {0}
            if len(wires) <= 2:
                for wire in wires:
                    yield from self._solutions([equation], wire)
        elif not c:
            for one in (a, b):
                wires = one.keys() - {0}
                if len(wires) == 1:
                    yield from self._solutions([a, b], *wires)

    def _solutions(self, alternatives: Sequence[Linear], wire: int) -> Iterator[tuple[int, Domain]]:
        """The values of a wire with which one of some linear forms is zero, if they are few."""
        found: set[int] = set()
        for form in alternatives:
            others = [other for other in form if other not in (wire, 0)]
            if wire not in form or not all(other in self.domains for other in others):
                return
            if math.prod(len(self.domains[other]) for other in others) > _MAX_CASES:
                return
            inverse = pow(-form[wire], -1, MODULUS)
            for combination in itertools.product(*(self.domains[other] for other in others)):
                total = form.get(0, 0) + sum(
                    form[other] * value for other, value in zip(others, combination, strict=True)
                )
                found.add(total * inverse % MODULUS)
        yield wire, frozenset(found)

    def _split_polynomials(self, base: int) -> None:
        """Write wires as polynomials in one of them; rows that have no other give its roots."""
        polynomials: dict[int, list[int]] = {0: [1], base: [0, 1]}
        waiting, seen = self._solver.touched([base]), set[int]()
        while waiting:
            row = waiting.pop()
            a, b, c = self._solver.rows[row]
            factors = [wire for wire, _ in (*a, *b) if wire not in polynomials]
            others = {wire for wire, _ in c if wire not in polynomials}
            if row in seen or factors or len(others) > 1:
                continue
            seen.add(row)
            left, right, product = (_sum_polynomials(part, polynomials) for part in (a, b, c))
            value = _subtracted(_multiplied(left, right), product)
            if len(value) > _MAX_DEGREE:
                continue
            if others:
                (wire,) = others
                inverse = pow(dict(c)[wire], -1, MODULUS)
                polynomials[wire] = [coefficient * inverse % MODULUS for coefficient in value]
                waiting |= self._solver.touched([wire])
            elif value:
                roots = _roots_of(value)
                if roots and (base not in self.domains or len(roots) < len(self.domains[base])):
                    self.domains[base] = roots
                    return


def linear_equation(row: Row) -> Linear | None:
    """A row as a linear form that is zero, the constant among its wires; None if it is not linear."""
    a, b, c = (dict(part) for part in row)
    if not a.keys() <= {0}:
        a, b = b, a
    return _combined(b, a.get(0, 0), c) if a.keys() <= {0} else None


def _follows(equations: Iterable[Linear]) -> set[int]:
    """The wires that linear equations with unique constants make unique."""
    system = LinearSystem()
    for equation in equations:
        system.add(dict(equation), 0)
    return set(system.solved)


def _follows_if_not_zero(rows: Sequence[_Scaled]) -> set[int]:
    """The wires that rows with a factor that is not zero make unique."""
    found: set[int] = set()
    while True:
        equations = []
        for row in rows:
            unknown = {wire: factor for wire, factor in row.unknown.items() if wire not in found}
            product = {wire: factor for wire, factor in row.product.items() if wire not in found}
            wires = unknown.keys() | product.keys()
            if len(wires) == 1 and not unknown.keys() & product.keys():
                equations.append(dict.fromkeys(wires, 1))
            elif unknown and not product:
                equations.append(unknown)
        new = _follows(equations) - found
        if not new:
            return found
        found |= new


def _form(part: Linear) -> Form:
    items = sorted(part.items())
    inverse = pow(items[0][1], -1, MODULUS)
    return tuple((wire, coefficient * inverse % MODULUS) for wire, coefficient in items)


def _combined(left: Linear, factor: int, right: Linear) -> Linear:
    """factor * left - right."""
    wires = left.keys() | right.keys()
    total = {wire: (factor * left.get(wire, 0) - right.get(wire, 0)) % MODULUS for wire in wires}
    return {wire: coefficient for wire, coefficient in total.items() if coefficient}


def _signed(value: int) -> int:
    value %= MODULUS
    return value - MODULUS if value > MODULUS // 2 else value


def _reduced(vectors: Iterable[Sequence[int]]) -> dict[int, list[int]]:
    """Row echelon form: vectors by the place of their leading 1, reduced by each other."""
    rows: dict[int, list[int]] = {}
    for given in vectors:
        vector = [value % MODULUS for value in given]
        for place, row in rows.items():
            if vector[place]:
                vector = [(x - vector[place] * y) % MODULUS for x, y in zip(vector, row, strict=True)]
        leading = next((place for place, value in enumerate(vector) if value), None)
        if leading is None:
            continue
        inverse = pow(vector[leading], -1, MODULUS)
        vector = [value * inverse % MODULUS for value in vector]
        for place, row in rows.items():
            if row[leading]:
                rows[place] = [(x - row[leading] * y) % MODULUS for x, y in zip(row, vector, strict=True)]
        rows[leading] = vector
    return rows


def _rank(vectors: Iterable[Sequence[int]]) -> int:
    return len(_reduced(vectors))


def _orthogonal(vectors: Sequence[Sequence[int]], size: int) -> list[int] | None:
    """The direction orthogonal to size - 1 vectors, or None if they leave more than one."""
    rows = _reduced(vectors)
    if len(rows) != size - 1:
        return None
    (open_place,) = set(range(size)) - rows.keys()
    return [1 if place == open_place else -rows[place][open_place] % MODULUS for place in range(size)]


def _have_common_zero(forms: Sequence[Form]) -> bool:
    """Whether linear forms, the constant among their wires, can all be zero at once."""
    wires = sorted({wire for form in forms for wire, _ in form} - {0})
    vectors = [[*(dict(form).get(wire, 0) for wire in wires), dict(form).get(0, 0)] for form in forms]
    return len(wires) not in _reduced(vectors)


def _sum_polynomials(part: Iterable[tuple[int, int]], polynomials: Mapping[int, Sequence[int]]) -> list[int]:
    """The value of a linear combination, low coefficient first; wires without a polynomial are left out."""
    total: list[int] = []
    for wire, factor in part:
        polynomial = polynomials.get(wire, ())
        total += [0] * (len(polynomial) - len(total))
        for power, coefficient in enumerate(polynomial):
            total[power] = (total[power] + factor * coefficient) % MODULUS
    return total


def _multiplied(left: Sequence[int], right: Sequence[int]) -> list[int]:
    total = [0] * max(len(left) + len(right) - 1, 0)
    for i, x in enumerate(left):
        for j, y in enumerate(right):
            total[i + j] = (total[i + j] + x * y) % MODULUS
    return total


def _subtracted(left: Sequence[int], right: Sequence[int]) -> list[int]:
    """left - right, without leading zeros."""
    total = [(x - y) % MODULUS for x, y in itertools.zip_longest(left, right, fillvalue=0)]
    while total and not total[-1]:
        total.pop()
    return total


def _roots_of(polynomial: Sequence[int]) -> Domain | None:
    """All roots, or None if the polynomial has more than the small ones and one other."""
    roots: set[int] = set()
    rest = list(polynomial)
    for root in _SMALL_ROOTS:
        while len(rest) > 1:
            # Synthetic division from the top.
            quotient, carried = [], 0
            for coefficient in reversed(rest):
                carried = (carried * root + coefficient) % MODULUS
                quotient.append(carried)
            if carried:
                break
            roots.add(root % MODULUS)
            rest = quotient[-2::-1]
    if len(rest) == 2:
        roots.add(-rest[0] * pow(rest[1], -1, MODULUS) % MODULUS)
    return frozenset(roots) if len(rest) <= 2 else None
