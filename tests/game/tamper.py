"""Every way to change one thing in a JSON document: each leaf, each name, each item of a list."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mastermind.field import COORDINATE_MODULUS, MODULUS

#: A place in a document: names and indices from the top.
Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Mutation:
    """A document with one change.

    Attributes:
        path: of what was changed: a leaf, an object or a list.
        change: what was done to it.
        data: the changed document, encoded.
    """

    path: Path
    change: str
    data: bytes

    def __str__(self) -> str:
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path)
        return f"{place or '.'} {self.change}"


def mutations(document: dict[str, Any], among: Callable[[Path], bool] = lambda _: True) -> Iterator[Mutation]:
    """All changes of `document` at the places `among` its places; none of them leaves the same document."""
    original = json.dumps(document)
    for path, value in _places(document):
        changes = itertools.chain(_other_types(value), _other_values(value)) if among(path) else ()
        for change, changed in changes:
            data = json.dumps(_with(document, path, changed))
            if data != original:
                yield Mutation(path, change, data.encode())


def encode(document: object) -> bytes:
    """A document as bytes."""
    return json.dumps(document).encode()


def at(document: Any, path: Path) -> Any:
    """What is at a place of a document."""
    for part in path:
        document = document[part]
    return document


def _with(document: Any, path: Path, value: object) -> Any:
    changed = copy.deepcopy(document)
    if not path:
        return value
    at(changed, path[:-1])[path[-1]] = value
    return changed


def _places(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield from _places(item, (*path, name))


def _other_types(value: Any) -> Iterator[tuple[str, object]]:
    others: list[object] = [None, True, 7, [value], {"value": value}]
    if not isinstance(value, str):
        others.append(str(value))
    if isinstance(value, str) and value.isdecimal():
        others.append(int(value))
    for other in others:
        yield f"as {type(other).__name__}", other


def _other_values(value: Any) -> Iterator[tuple[str, object]]:
    if isinstance(value, str):
        yield from _other_strings(value)
    elif isinstance(value, int):
        yield from ((f"{by:+}", value + by) for by in (1, -1, 8, MODULUS))
        yield "as fraction", float(value)
    elif isinstance(value, list):
        yield from _other_lists(value)
    elif isinstance(value, dict):
        yield from _other_objects(value)


def _other_strings(value: str) -> Iterator[tuple[str, object]]:
    if value.isdecimal():
        number = int(value)
        yield "+1", str(number + 1)
        yield "-1", str(number - 1)
        yield "+r", str(number + MODULUS)
        yield "+q", str(number + COORDINATE_MODULUS)
        yield "negated", f"-{value}"
        yield "with a sign", f"+{value}"
        yield "with a leading zero", f"0{value}"
        yield "in hex", hex(number)
        yield "in other digits", value.translate({ord("0") + digit: chr(0x0660 + digit) for digit in range(10)})
    middle = len(value) // 2
    flipped = chr(ord(value[middle]) ^ 1)
    yield "with a flipped bit", value[:middle] + flipped + value[middle + 1 :]
    yield "cut", value[:-1]
    yield "with a space", f"{value} "
    yield "in capitals", value.upper()
    yield "empty", ""


def _other_lists(value: list[Any]) -> Iterator[tuple[str, object]]:
    yield "empty", []
    for index in range(len(value)):
        yield f"without {index}", value[:index] + value[index + 1 :]
        yield f"with {index} twice", [*value[: index + 1], *value[index:]]
    for i, j in itertools.combinations(range(len(value)), 2):
        swapped = list(value)
        swapped[i], swapped[j] = value[j], value[i]
        yield f"with {i} and {j} swapped", swapped


def _other_objects(value: dict[str, Any]) -> Iterator[tuple[str, object]]:
    yield "empty", {}
    for name in value:
        rest = {other: item for other, item in value.items() if other != name}
        yield f"without {name}", rest
        yield f"with {name} renamed", {**rest, f"{name}_": value[name]}
    yield "with one more", {**value, "note": "1"}
