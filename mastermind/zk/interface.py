"""What goes into a circuit and comes out, as the compiler has written it down.

The header of a `.r1cs` file counts the elements of the main component's outputs, public inputs and private inputs; the
`.sym` file lists them first, in this order, and within each kind in the order of their declaration (not in that of
`public [...]`). That gives names, sizes and kinds. It cannot give ranges: to the compiler every signal is any field
element, so no signal read here has a `bound`, and what the circuit itself does not refuse is accepted.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mastermind.errors import InvalidArtifactError
from mastermind.zk.circuit import Signal
from mastermind.zk.r1cs import R1csHeader, read_first_symbols

# The name of a signal of a bus is `point.x`; indices at the end are those of an array.
_SYMBOL = re.compile(r"main\.(?P<name>.*?[^\]])(?P<indices>(?:\[\d+\])*)")


@dataclass(frozen=True)
class Interface:
    """The signals of a main component, each kind in the order of the proof's public signals or of the template."""

    outputs: tuple[Signal, ...]
    public: tuple[Signal, ...]
    private: tuple[Signal, ...]

    @classmethod
    def read(cls, r1cs: Path, sym: Path) -> Interface:
        """Read the signals from the compiler's output.

        Raises:
            InvalidArtifactError: the files are damaged or do not fit together.
        """
        header = R1csHeader.read(r1cs)
        counts = (header.output_count, header.public_input_count, header.private_input_count)
        symbols = iter(read_first_symbols(sym, sum(counts)))
        kinds = []
        for kind, count in zip(("output", "public", "private"), counts, strict=True):
            found = list(itertools.islice(symbols, count))
            kinds.append(_signals([name for name, _ in found], sym))
            wires = [wire for _, wire in found]
            start = 1 if kind == "output" else 1 + header.output_count
            # Public signals are the first wires; a private input may have none, when it is a sum of others.
            if kind != "private" and wires != list(range(start, start + count)):
                raise InvalidArtifactError(f"{sym.name} does not belong to {r1cs.name}", path=sym)
        return cls(*kinds)


def _signals(names: Sequence[str], path: Path) -> tuple[Signal, ...]:
    """Gather elements into arrays: `main.a[0][0]`, `main.a[0][1]` are `a` of the size (1, 2)."""
    signals = []
    for name, elements in itertools.groupby(names, lambda element: _parts(element, path)[0]):
        labels = list(elements)
        sizes = tuple(index + 1 for index in _parts(labels[-1], path)[1])
        signal = Signal(name, size=sizes[0] if len(sizes) == 1 else sizes or None)
        if [f"main.{label}" for label in signal.labels] != labels:
            raise InvalidArtifactError(f"{path.name} has no whole array {name}", path=path)
        signals.append(signal)
    return tuple(signals)


def _parts(symbol: str, path: Path) -> tuple[str, tuple[int, ...]]:
    match = _SYMBOL.fullmatch(symbol)
    if match is None:
        raise InvalidArtifactError(f"{path.name} has {symbol[:60]!r} where a signal of main belongs", path=path)
    return match["name"], tuple(int(index) for index in re.findall(r"\d+", match["indices"]))
