"""The sectioned binary container that circom and snarkjs share (.r1cs, .wtns, .zkey, .ptau).

A file is a 4-byte magic, a version, a section count, then sections of (type, size, bytes); all integers are
little-endian. Follows iden3's `binfileutils`. Parsing is strict: sections must fill the file exactly, and no
declared size is believed before it has been compared with what is there.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mastermind.errors import InvalidArtifactError

_MAX_SECTIONS = 64


@dataclass(frozen=True)
class SectionedFile:
    """A parsed container: where each section lies in its file.

    Attributes:
        path: the file.
        version: of the format.
        sections: (offset, size) in bytes, by section type.
    """

    path: Path
    version: int
    sections: Mapping[int, tuple[int, int]]

    @classmethod
    def open(cls, path: Path, magic: bytes) -> SectionedFile:
        """Read the section table.

        Raises:
            InvalidArtifactError: not such a file, cut short, or with sections that do not add up.
        """
        kind = magic.decode()
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                head = file.read(12)
                if len(head) < 12 or head[:4] != magic:
                    found = "an empty file" if not head else repr(head[:6])
                    raise InvalidArtifactError(
                        f"{path.name} is not a {kind} file: expected {magic!r} at its start, found {found}", path=path
                    )
                version, count = struct.unpack("<II", head[4:])
                if not 1 <= count <= _MAX_SECTIONS:
                    raise InvalidArtifactError(f"{path.name} is damaged: {count} sections", path=path)
                sections: dict[int, tuple[int, int]] = {}
                position = 12
                for _ in range(count):
                    entry = file.read(12)
                    if len(entry) < 12:
                        raise InvalidArtifactError(f"{path.name} is cut short", path=path)
                    section, length = struct.unpack("<IQ", entry)
                    position += 12
                    if section in sections:
                        raise InvalidArtifactError(f"{path.name} is damaged: section {section} twice", path=path)
                    if length > size - position:
                        raise InvalidArtifactError(
                            f"{path.name} is cut short: section {section} has {length} bytes, "
                            f"{size - position} are there",
                            path=path,
                        )
                    sections[section] = (position, length)
                    position += length
                    file.seek(position)
        except OSError as error:
            raise InvalidArtifactError(f"cannot read {path}: {error.strerror}", path=path) from error
        if position != size:
            raise InvalidArtifactError(f"{path.name} has {size - position} bytes after its last section", path=path)
        return cls(path, version, sections)

    def read(self, section: int, *, limit_bytes: int = 1 << 30) -> bytes:
        """Return the bytes of one section.

        Raises:
            InvalidArtifactError: it is missing or larger than `limit_bytes`.
        """
        offset, size = self.require(section)
        if size > limit_bytes:
            raise InvalidArtifactError(f"section {section} of {self.path.name} has {size} bytes", path=self.path)
        with self.path.open("rb") as file:
            file.seek(offset)
            return file.read(size)

    def require(self, section: int) -> tuple[int, int]:
        """Return (offset, size) of a section that must be there. Raises InvalidArtifactError."""
        if section not in self.sections:
            raise InvalidArtifactError(f"{self.path.name} has no section {section}", path=self.path)
        return self.sections[section]


def build(magic: bytes, version: int, sections: list[tuple[int, bytes]]) -> bytes:
    """Return the bytes of a container."""
    parts = [magic, struct.pack("<II", version, len(sections))]
    for section, content in sections:
        parts += [struct.pack("<IQ", section, len(content)), content]
    return b"".join(parts)


def split_elements(data: bytes, size_bytes: int = 32) -> list[int]:
    """Cut bytes into little-endian integers of `size_bytes` each."""
    return [int.from_bytes(data[at : at + size_bytes], "little") for at in range(0, len(data), size_bytes)]
