"""Under-constrained signals: can a dishonest prover give a signal another value, and the constraints accept it?

Two questions are asked, each about every signal that it concerns.

1.  *All inputs given*, public and private: has each intermediate signal and each output one value only? A circuit is
    meant to compute; where the constraints leave a choice, the prover has it. Inputs that the circuit binds to the
    others by an equation (a hash, a score that is public) can be counted among its results: they are `derived`.
2.  *The public signals given*: has each private input one value only? Often it must not, as when one shows that one
    knows factors; often nobody can tell, as behind a hash. But a packing that is not injective shows here.

What can be proved unique for all values is (see `propagation`). For the rest, the search starts from examples: it
changes a signal, or two in one linear equation, adapts all else, and lets the constraints judge. So there are these
verdicts:

    unique           proved
    idle             many values, but only where the signal is in no constraint at all (the inverse in a test for zero);
                     never said of an output or a derived input, which others rely on
    free             not looked at, because the caller says that it may have many values, and why
    counterexample   two witnesses that both builds of the circuit accept
    unknown          neither: no proof, and nothing was found
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from mastermind.errors import InvalidInputError
from mastermind.field import MODULUS
from mastermind.zk.r1cs import Linear
from mastermind.zk.testing.propagation import Propagation, linear_equation
from mastermind.zk.testing.witness import Values, Witness

if TYPE_CHECKING:
    from mastermind.zk.testing.circuits import CircuitUnderTest, System

#: Forgeries tried for one signal and one example.
TRIES = 64
#: Counterexamples that are printed.
SHOWN = 10


class Verdict(Enum):
    """What is known about the values of a signal."""

    UNIQUE = "unique"
    IDLE = "idle"
    FREE = "free"
    COUNTEREXAMPLE = "counterexample"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Counterexample:
    """Two witnesses that the constraints accept, alike in what was given.

    Attributes:
        signal: one that differs.
        given: "inputs" or "public signals": which of the two questions it answers.
        witness, other: of the open build; the circuit as it ships accepts both too.
    """

    signal: str
    given: str
    witness: Witness
    other: Witness

    def __str__(self) -> str:
        changed = self.witness.changed(self.other)
        first = self.witness.system.inputs if self.given != "inputs" else ()
        shown = sorted(changed, key=lambda signal: (signal != self.signal, signal not in first))[:4]
        values = ", ".join(f"{signal} = {self.witness[signal]} or {self.other[signal]}" for signal in shown)
        more = f", and {len(changed) - len(shown)} more" if len(changed) > len(shown) else ""
        return f"with the same {self.given}: {values}{more}"


@dataclass(frozen=True)
class Undetermined:
    """What was found about the signals of a circuit.

    Attributes:
        verdicts: by full name: of intermediate signals, outputs and derived inputs with all other inputs given, and of
            the other private inputs with the public signals given.
        counterexamples: by signal, for all that have one.
    """

    verdicts: Mapping[str, Verdict]
    counterexamples: Mapping[str, Counterexample]

    def having(self, verdict: Verdict) -> list[str]:
        """The signals with a verdict."""
        return [signal for signal, found in self.verdicts.items() if found is verdict]

    def __str__(self) -> str:
        counts = ", ".join(f"{len(self.having(verdict))} {verdict.value}" for verdict in Verdict)
        found = [str(example) for example in dict.fromkeys(self.counterexamples.values())]
        more = [f"and {len(found) - SHOWN} more: see `counterexamples`"] if len(found) > SHOWN else []
        return "\n".join([counts, *found[:SHOWN], *more])


def undetermined(
    circuit: CircuitUnderTest,
    examples: Iterable[Values],
    *,
    derived: Collection[str] = (),
    free: Mapping[str, str] | None = None,
    assuming: Mapping[str, Iterable[int]] | None = None,
) -> Undetermined:
    """Say for each signal of a circuit whether it can have another value.

    Args:
        circuit: the circuit.
        examples: inputs that it accepts; the more ways they take through the circuit, the better the search.
        derived: public inputs, by name, that the other inputs determine.
        free: signals that may have many values, with the reason: inputs by name, others by template and name
            (`Score.passed`). They count as given in the first question, so all that follows from them is unique.
        assuming: the possible values of signals, by template and name, that follow from the constraints by reasons
            beyond the rules of `propagation`. What is proved rests on them.

    Raises:
        WitnessError: the circuit refuses an example.
        InvalidInputError: one of the names is none of the circuit.
    """
    search = _Search(circuit, derived, free or {}, assuming or {})
    witnesses = [circuit.witness(example) for example in examples]
    search.computed(witnesses)
    search.private(witnesses)
    return Undetermined(search.verdicts, search.counterexamples)


class _Search:
    def __init__(
        self,
        circuit: CircuitUnderTest,
        derived: Collection[str],
        free: Mapping[str, str],
        assuming: Mapping[str, Iterable[int]],
    ) -> None:
        self.circuit = circuit
        self.system = circuit.open
        self.verdicts: dict[str, Verdict] = {}
        self.counterexamples: dict[str, Counterexample] = {}
        spec = circuit.spec
        kinds = {signal: self.system.source.kind_of(signal) for signal in self.system.wires}
        labels = {signal.name: signal.labels for signal in (*spec.public, *spec.private)}
        for name in (*derived, *free, *assuming):
            if name not in labels and name not in kinds.values():
                raise InvalidInputError(f"{spec.name} has no signal {name}")
        results = {f"main.{label}" for name in derived for label in labels.get(name, ())}
        #: Never idle: others rely on them where no constraint does.
        self.results = results | {f"main.{label}" for label in spec.output_labels}
        self.given = [signal for signal in self.system.inputs if signal not in results]
        self.free_inputs = {f"main.{label}" for name in free for label in labels.get(name, ())}
        self.free = {signal for signal, kind in kinds.items() if kind in free}
        domains = {name: frozenset(value % MODULUS for value in values) for name, values in assuming.items()}
        self.domains = {self.system.wires[name]: domains[kind] for name, kind in kinds.items() if kind in domains}
        self._copies = _copies(self.system)

    def computed(self, witnesses: Sequence[Witness]) -> None:
        """The first question."""
        fixed = [*self.given, *self.free]
        proved = self._propagate(fixed)
        for signal in self.system.wires:
            if signal not in self.given:
                self.verdicts[signal] = self._verdict(signal, proved)
        for signal in self.free:
            self.verdicts[signal] = Verdict.FREE
        open_signals = [signal for signal, verdict in self.verdicts.items() if verdict is Verdict.UNKNOWN]
        for witness in witnesses:
            for signal in open_signals:
                if self.verdicts[signal] is Verdict.UNKNOWN:
                    for changes in self._changes(witness, signal, proved, open_signals):
                        other = witness.forged(changes, keep=fixed)
                        if self._found("inputs", signal, open_signals, witness, other):
                            break

    def private(self, witnesses: Sequence[Witness]) -> None:
        """The second question."""
        public = self.system.public
        proved = self._propagate(public)
        asked = [signal for signal in self.given if signal not in public]
        for signal in asked:
            is_free = signal in self.free_inputs or signal in self.free
            self.verdicts[signal] = Verdict.FREE if is_free else self._verdict(signal, proved)
        open_signals = [signal for signal in asked if self.verdicts[signal] is Verdict.UNKNOWN]
        for witness in witnesses:
            for signal in open_signals:
                if self.verdicts[signal] is Verdict.UNKNOWN:
                    for other in self._others_with(witness, signal, proved, open_signals):
                        if self._found("public signals", signal, open_signals, witness, other):
                            break

    def _others_with(
        self, witness: Witness, signal: str, proved: Propagation, open_signals: Collection[str]
    ) -> Iterator[Witness]:
        """Witnesses with another value of a private input, that an honest program has computed or a cheating prover."""
        public = self.system.public
        for changes in self._changes(witness, signal, proved, open_signals):
            inputs = {**witness.inputs, **changes}
            if inputs.keys() == witness.inputs.keys():
                honest = self.system.calculate(self.system.by_name(inputs))
                if honest.public == witness.public:
                    yield honest
            yield witness.forged(changes, keep=[*self.system.inputs, *public])

    def _propagate(self, given: Iterable[str]) -> Propagation:
        return Propagation(self.system.solver, [self.system.wires[name] for name in given], self.domains)

    def _verdict(self, signal: str, proved: Propagation) -> Verdict:
        wire = self.system.wires[signal]
        if wire in proved.unique:
            return Verdict.UNIQUE
        return Verdict.IDLE if wire in proved.idle and signal not in self.results else Verdict.UNKNOWN

    def _changes(
        self, witness: Witness, signal: str, proved: Propagation, open_signals: Collection[str]
    ) -> Iterator[dict[str, int]]:
        """What to try with a signal: other values, alone or together with a signal in one linear equation."""
        wires, names = self.system.wires, self.system.names
        tries = 0
        for value in _others(witness[signal], proved.domains.get(wires[signal])):
            yield {signal: value}
        for equation in self._equations(wires[signal]):
            own = [wire for wire in equation if self._copies[wire] == self._copies[wires[signal]]]
            for wire in equation.keys() - set(own):
                twins = [name for name in open_signals if self._copies[wires[name]] == self._copies[wire]]
                if len(own) != 1 or not twins:
                    continue
                old = witness.values[wire]
                for value in _others(old, proved.domains.get(wire)):
                    difference = equation[wire] * (value - old) * pow(-equation[own[0]], -1, MODULUS)
                    yield {signal: (witness[signal] + difference) % MODULUS, names[wires[twins[0]]]: value}
                    tries += 1
                    if tries >= TRIES:
                        return

    def _equations(self, wire: int) -> Iterator[Linear]:
        """The linear equations that a wire, or a copy of it, is in."""
        twins = [other for other, copied in enumerate(self._copies) if copied == self._copies[wire]]
        for row in sorted(self.system.solver.touched(twins)):
            equation = linear_equation(self.system.solver.rows[row])
            if equation is not None:
                yield {other: coefficient for other, coefficient in equation.items() if other}

    def _found(self, given: str, signal: str, asked: Iterable[str], witness: Witness, other: Witness) -> bool:
        """Take a forged witness as a counterexample, if it is one."""
        if witness[signal] == other[signal] or not other.accepted or not self.circuit.shipped(other).accepted:
            return False
        for changed in set(asked).intersection(witness.changed(other)):
            if self.verdicts[changed] is Verdict.UNKNOWN:
                self.verdicts[changed] = Verdict.COUNTEREXAMPLE
                self.counterexamples[changed] = Counterexample(changed, given, witness, other)
        return True


def _others(value: int, domain: Collection[int] | None) -> list[int]:
    """Other values to try for a wire."""
    if domain is not None and len(domain) <= TRIES:
        return sorted(set(domain) - {value})
    near = (value + 1, value - 1, -value, 0, 1, 2)
    return [other for other in dict.fromkeys(element % MODULUS for element in near) if other != value]


def _copies(system: System) -> list[int]:
    """For each wire one that it is set equal to, the same for all that are equal."""
    copies = list(range(system.r1cs.wire_count))
    for row in system.solver.rows:
        equation = linear_equation(row)
        if equation is not None and len(equation) == 2 and not sum(equation.values()) % MODULUS:
            one, other = (copies[wire] for wire in equation)
            copies = [one if copied == other else copied for copied in copies]
    return copies
