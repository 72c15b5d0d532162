"""What a circuit is to the toolkit: its template, its parameters, its inputs and outputs.

Owns the check of witness inputs by name, count and range, before any tool sees them. The order of the outputs and the
public inputs in a `CircuitSpec` is the order of the public signals of its proofs; the build verifies that.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from mastermind.errors import InvalidSignalsError, MissingSampleError, NotInFieldError
from mastermind.field import MODULUS, parse_field_element
from mastermind.zk.nesting import shallow_text

#: The largest integer that a JSON reader built on doubles (such as JavaScript's) keeps exactly.
MAX_SAFE_INTEGER = 2**53 - 1

#: How proofs are made: Groth16 has a phase 2 for each circuit, the others a universal setup (`universal`).
ProofSystem = Literal["groth16", "plonk", "fflonk"]
PROTOCOLS: tuple[ProofSystem, ...] = get_args(ProofSystem)

#: Checked inputs: every signal as a list of field elements, one long for a single signal.
SignalValues = dict[str, list[int]]


def no_sample() -> Mapping[str, object]:
    """The `sample` of a circuit for which nobody has given any."""
    raise MissingSampleError("the circuit has no sample inputs")


@dataclass(frozen=True)
class Signal:
    """An input or output of a circuit.

    Attributes:
        name: as in the template.
        size: number of elements of an array, or of each dimension of one that has several, outermost first; None for
            a single signal.
        bound: values are 0 .. bound - 1; the circuit enforces it too, this is for an early, clear refusal.
    """

    name: str
    size: int | tuple[int, ...] | None = None
    bound: int = MODULUS

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of elements in each dimension; empty for a single signal."""
        if self.size is None:
            return ()
        return (self.size,) if isinstance(self.size, int) else self.size

    @property
    def labels(self) -> tuple[str, ...]:
        """Its elements one by one, the last index running fastest: `clue`, or `pegs[0]`, `pegs[1]`, ..."""
        indices = itertools.product(*(range(size) for size in self.shape))
        return tuple(self.name + "".join(f"[{index}]" for index in element) for element in indices)


@dataclass(frozen=True)
class CircuitSpec:
    """A circuit: where its source is, and what goes in.

    Attributes:
        name: of the circuit and of its files.
        sources: folder that the template paths are relative to.
        template: the file with `component main`, relative to `sources`.
        parameters: values for the templates; `public`, the names of the public inputs, is added unless it is one.
        public: public inputs, in the order of the public signals.
        private: private inputs.
        sample: makes inputs that the circuit accepts, fresh ones at each call; the build proves them.
        accepted_warnings: compiler warnings that do not fail the build: (text that occurs in it, reason).
        outputs: what the circuit computes; circom makes them the first public signals.
        protocol: how it is proved.
    """

    name: str
    sources: Path
    template: str
    parameters: Mapping[str, bool | int | str]
    public: tuple[Signal, ...]
    private: tuple[Signal, ...]
    sample: Callable[[], Mapping[str, object]] = field(default=no_sample, compare=False)
    accepted_warnings: tuple[tuple[str, str], ...] = ()
    outputs: tuple[Signal, ...] = ()
    protocol: ProofSystem = "groth16"

    @property
    def output_labels(self) -> tuple[str, ...]:
        """The outputs one by one: the first of the public signals."""
        return tuple(label for signal in self.outputs for label in signal.labels)

    @property
    def public_labels(self) -> tuple[str, ...]:
        """The public signals one by one: outputs, then public inputs."""
        return self.output_labels + tuple(label for signal in self.public for label in signal.labels)

    def check_inputs(self, inputs: Mapping[str, object]) -> SignalValues:
        """Return `inputs` as lists of field elements, in the order of the signals.

        A value is an `int` or its canonical decimal spelling. No message repeats a value: it may be a secret.

        Raises:
            InvalidSignalsError: a signal is missing, unknown, of the wrong size or out of range.
        """
        signals = {signal.name: signal for signal in (*self.public, *self.private)}
        for name in inputs:
            if name not in signals:
                # The name comes from outside too; it is shown only in part.
                raise InvalidSignalsError(
                    f"{self.name} has no input {str(name)[:40]!r}; it takes {', '.join(signals)}", signal=str(name)[:40]
                )
        checked: SignalValues = {}
        for name, signal in signals.items():
            if name not in inputs:
                raise InvalidSignalsError(f"the input {name} of {self.name} is missing", signal=name)
            checked[name] = _elements(signal, inputs[name])
        return checked

    def public_inputs(self, values: SignalValues) -> tuple[int, ...]:
        """The public signals after the outputs that a proof for these checked inputs has."""
        return tuple(value for signal in self.public for value in values[signal.name])


def _items(signal: Signal, label: str, shape: Sequence[int], given: object) -> list[object]:
    """The elements of a value of the given shape, the last index running fastest."""
    if not shape:
        return [given]
    if not isinstance(given, list | tuple) or len(given) != shape[0]:
        found = f"{len(given)}" if isinstance(given, list | tuple) else "no list"
        items = "values" if len(shape) == 1 else "lists"
        raise InvalidSignalsError(f"{label} must be a list of {shape[0]} {items}, not {found}", signal=signal.name)
    return [
        element for index, item in enumerate(given) for element in _items(signal, f"{label}[{index}]", shape[1:], item)
    ]


def _elements(signal: Signal, given: object) -> list[int]:
    elements = []
    for label, item in zip(signal.labels, _items(signal, signal.name, signal.shape, given), strict=True):
        try:
            if isinstance(item, str):
                value = parse_field_element(item, label)
            elif isinstance(item, int) and not isinstance(item, bool):
                value = item
            else:
                raise NotInFieldError(f"{label} must be an integer or a decimal string")
        except NotInFieldError as error:
            raise InvalidSignalsError(str(error), signal=signal.name) from error
        if not 0 <= value < signal.bound:
            limit = "r" if signal.bound == MODULUS else str(signal.bound)
            raise InvalidSignalsError(f"{label} must be 0 .. {limit} - 1", signal=signal.name)
        elements.append(value)
    return elements


def parse_inputs(text: str | bytes, *, max_bytes: int = 1 << 20) -> dict[str, object]:
    """Read witness inputs from JSON, refusing what another reader might read differently.

    Raises:
        InvalidSignalsError: not a JSON object, a name twice, a fraction, or a bare integer beyond 2^53 - 1
            (many JSON readers round those; they must be strings).
    """
    if len(text) > max_bytes:
        raise InvalidSignalsError(f"the inputs are larger than {max_bytes} bytes", signal="")

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        values: dict[str, object] = {}
        for name, value in pairs:
            if name in values:
                raise InvalidSignalsError(f"the input {name[:40]!r} is given twice", signal=name[:40])
            values[name] = value
        return values

    def no_fraction(_: str) -> object:
        raise InvalidSignalsError("the inputs contain a number that is not an integer", signal="")

    def integer(digits: str) -> int:
        # Python refuses to convert very long digit strings; they are out of range anyway.
        return int(digits) if len(digits) <= 100 else MODULUS * 2**64

    try:
        parsed = json.loads(
            shallow_text(text),
            object_pairs_hook=unique,
            parse_float=no_fraction,
            parse_int=integer,
            parse_constant=no_fraction,
        )
    except ValueError as error:
        if isinstance(error, InvalidSignalsError):
            raise
        raise InvalidSignalsError("the inputs are not JSON", signal="") from error
    if not isinstance(parsed, dict):
        raise InvalidSignalsError("the inputs must be a JSON object of signal names and values", signal="")
    for name, value in parsed.items():
        if not _is_safe(value):
            raise InvalidSignalsError(f"{name} holds a bare integer beyond 2^53 - 1; write it as a string", signal=name)
    return parsed


def _is_safe(value: object) -> bool:
    if isinstance(value, list):
        return all(_is_safe(item) for item in value)
    return not isinstance(value, int) or isinstance(value, bool) or abs(value) <= MAX_SAFE_INTEGER
