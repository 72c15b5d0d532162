"""Constraint systems and witnesses as circom writes them: `.r1cs`, `.sym` and `.wtns`.

A constraint is a triple of linear combinations (A, B, C) that a witness w must satisfy as <A,w> <B,w> = <C,w>.
Wire 0 is the constant 1; then come the public signals, in the order of the proof's. Formats:
https://github.com/iden3/r1csfile/blob/master/doc/r1cs_bin_format.md and snarkjs's `wtns_utils`.
"""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mastermind.errors import InvalidArtifactError
from mastermind.field import MODULUS
from mastermind.zk import binfile
from mastermind.zk.binfile import SectionedFile

#: A linear combination: coefficient by wire.
Linear = dict[int, int]
Constraint = tuple[Linear, Linear, Linear]

_ELEMENT_BYTES = 32
_SYMBOL = re.compile(r"[0-9]{1,10},(?P<wire>-1|0|[1-9][0-9]{0,9}),[0-9]{1,10},(?P<name>[^,]+)", re.ASCII)


@dataclass(frozen=True)
class R1csHeader:
    """What a `.r1cs` file says about itself.

    Attributes:
        wire_count: length of a witness, the constant included.
        output_count, public_input_count, private_input_count: elements of the main component's signals.
        constraint_count: constraints in the file.
    """

    wire_count: int
    output_count: int
    public_input_count: int
    private_input_count: int
    constraint_count: int

    @classmethod
    def read(cls, path: Path) -> R1csHeader:
        """Read the header only, whatever the size of the file.

        Raises:
            InvalidArtifactError: not a `.r1cs` file, damaged, or over another field.
        """
        return cls._parse(SectionedFile.open(path, b"r1cs"))

    @classmethod
    def _parse(cls, file: SectionedFile) -> R1csHeader:
        header = file.read(1, limit_bytes=1024)
        if file.version != 1 or len(header) != 4 + _ELEMENT_BYTES + 28:
            raise InvalidArtifactError(f"{file.path.name} has a header of {len(header)} bytes", path=file.path)
        (element_bytes,) = struct.unpack_from("<I", header)
        prime = int.from_bytes(header[4 : 4 + _ELEMENT_BYTES], "little")
        if element_bytes != _ELEMENT_BYTES or prime != MODULUS:
            raise InvalidArtifactError(f"{file.path.name} is not over the BN254 scalar field", path=file.path)
        wires, outputs, public, private, _, count = struct.unpack_from("<IIIIQI", header, 4 + _ELEMENT_BYTES)
        return cls(wires, outputs, public, private, count)

    @property
    def public_count(self) -> int:
        """Public outputs and inputs together."""
        return self.output_count + self.public_input_count

    @property
    def domain_power(self) -> int:
        """The power of two of Groth16's evaluation domain: constraints + public signals + 1 must fit it."""
        return _domain_power(self.constraint_count, self.public_count)


@dataclass(frozen=True)
class R1cs:
    """A constraint system over the BN254 scalar field.

    Attributes:
        wire_count: length of a witness, the constant included.
        public_count: public outputs and inputs together.
        constraints: in the order of the file.
    """

    wire_count: int
    public_count: int
    constraints: tuple[Constraint, ...]

    @classmethod
    def read(cls, path: Path) -> R1cs:
        """Parse a `.r1cs` file.

        Raises:
            InvalidArtifactError: not one, damaged, or over another field.
        """
        file = SectionedFile.open(path, b"r1cs")
        header = R1csHeader._parse(file)
        wires = header.wire_count
        data = file.read(2)
        position = 0

        def linear() -> Linear:
            nonlocal position
            (terms,) = struct.unpack_from("<I", data, position)
            position += 4
            combination: Linear = {}
            for _ in range(terms):
                (wire,) = struct.unpack_from("<I", data, position)
                coefficient = int.from_bytes(data[position + 4 : position + 4 + _ELEMENT_BYTES], "little")
                if (
                    wire >= wires
                    or wire in combination
                    or coefficient >= MODULUS
                    or len(data) < position + 4 + _ELEMENT_BYTES
                ):
                    raise InvalidArtifactError(f"{path.name} has a damaged constraint", path=path)
                combination[wire] = coefficient
                position += 4 + _ELEMENT_BYTES
            return combination

        try:
            constraints = tuple((linear(), linear(), linear()) for _ in range(header.constraint_count))
        except struct.error as error:
            raise InvalidArtifactError(f"{path.name} has fewer constraints than it says", path=path) from error
        if position != len(data):
            raise InvalidArtifactError(f"{path.name} has more constraints than it says", path=path)
        return cls(wires, header.public_count, constraints)

    def unsatisfied(self, witness: Sequence[int]) -> int | None:
        """Return the index of the first constraint that `witness` violates, or None.

        Raises:
            ValueError: the witness has another length or does not start with 1.
        """
        if len(witness) != self.wire_count or witness[0] != 1:
            raise ValueError("not a witness of this constraint system")
        for index, (a, b, c) in enumerate(self.constraints):
            if (evaluate(a, witness) * evaluate(b, witness) - evaluate(c, witness)) % MODULUS:
                return index
        return None

    @cached_property
    def domain_power(self) -> int:
        """The power of two of the evaluation domain: constraints + public signals + 1 must fit it."""
        return _domain_power(len(self.constraints), self.public_count)


def _domain_power(constraint_count: int, public_count: int) -> int:
    return max(1, (constraint_count + public_count).bit_length())


def evaluate(combination: Linear, witness: Sequence[int]) -> int:
    """The value of a linear combination, not reduced."""
    return sum(coefficient * witness[wire] for wire, coefficient in combination.items())


def read_symbols(path: Path) -> dict[str, int]:
    """Parse a `.sym` file: wire by full signal name, -1 for signals that were optimised away.

    Raises:
        InvalidArtifactError: a line is not `label,wire,component,name`, or a name comes twice.
    """
    symbols: dict[str, int] = {}
    try:
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
            symbol = _SYMBOL.fullmatch(line)
            if symbol is None or symbol["name"] in symbols:
                raise InvalidArtifactError(f"line {number} of {path.name} is not a symbol", path=path)
            symbols[symbol["name"]] = int(symbol["wire"])
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArtifactError(f"{path.name} is not a symbol file", path=path) from error
    return symbols


def read_first_symbols(path: Path, count: int) -> list[tuple[str, int]]:
    """Parse the first `count` lines of a `.sym` file, which number the main component's outputs, public inputs and
    private inputs in this order: full signal name and wire.

    Raises:
        InvalidArtifactError: there are fewer lines, or one is not the symbol of its number.
    """
    symbols: list[tuple[str, int]] = []
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(itertools.islice(file, count), start=1):
                label, wire, _, name = line.rstrip("\n").split(",")
                if int(label) != number:
                    raise InvalidArtifactError(f"line {number} of {path.name} is the symbol {label}", path=path)
                symbols.append((name, int(wire)))
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidArtifactError):
            raise
        raise InvalidArtifactError(f"{path.name} is not a symbol file", path=path) from error
    if len(symbols) != count:
        raise InvalidArtifactError(f"{path.name} has {len(symbols)} symbols, fewer than {count}", path=path)
    return symbols


def encode_witness(values: bytes) -> bytes:
    """Return the `.wtns` file for concatenated 32-byte little-endian values."""
    header = struct.pack("<I", _ELEMENT_BYTES) + MODULUS.to_bytes(_ELEMENT_BYTES, "little")
    header += struct.pack("<I", len(values) // _ELEMENT_BYTES)
    return binfile.build(b"wtns", 2, [(1, header), (2, values)])


def read_witness(path: Path) -> list[int]:
    """Parse a `.wtns` file.

    Raises:
        InvalidArtifactError: not one, damaged, over another field, or with a value out of range.
    """
    file = SectionedFile.open(path, b"wtns")
    if (file.version, list(file.sections)) != (2, [1, 2]):
        raise InvalidArtifactError(f"{path.name} is not a witness of version 2", path=path)
    header = file.read(1, limit_bytes=1024)
    expected = struct.pack("<I", _ELEMENT_BYTES) + MODULUS.to_bytes(_ELEMENT_BYTES, "little")
    if header[:-4] != expected:
        raise InvalidArtifactError(f"{path.name} is not over the BN254 scalar field", path=path)
    data = file.read(2)
    if len(data) != int.from_bytes(header[-4:], "little") * _ELEMENT_BYTES:
        raise InvalidArtifactError(f"{path.name} has another length than it says", path=path)
    values = binfile.split_elements(data)
    if any(value >= MODULUS for value in values):
        raise InvalidArtifactError(f"{path.name} has a value out of range", path=path)
    return values
