"""What tests read off rendered Circom: templates, their components, outputs and hints.

A *hint* is a signal that is assigned with `<--`, so by the prover's program and not by a constraint. This is no
parser of Circom, only as much of one as naming signals and components needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mastermind.errors import InvalidArtifactError
from mastermind.zk.render import RenderedCircuit, shown_path

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TEMPLATE = re.compile(r"\btemplate\s+(?:(?:custom|parallel)\s+)*(\w+)\s*\([^)]*\)\s*\{")
_COMPONENT = re.compile(r"\bcomponent\s+(\w+)")
_INSTANCE = re.compile(r"\b(\w+)\s*(?:\[[^\]]*\]\s*)*=\s*(?:parallel\s+)?(\w+)\s*\(")
_HINT = re.compile(r"\b(\w+)\s*(?:\[[^\]]*\]\s*)*<--|-->\s*(\w+)")
_OUTPUT = re.compile(r"\bsignal\s+output\s+(?:\{[^}]*\}\s*)?(\w+)")
_MAIN = re.compile(r"\bcomponent\s+main\b[^=]*=\s*(\w+)\s*\(")
_INDEX = re.compile(r"\[\d+\]")
#: The compiler's name for a component that the source gives none, such as `IsZero_6_249`.
_ANONYMOUS = re.compile(r"(\w+?)_\d+_\d+")


@dataclass(frozen=True)
class Template:
    """One template of a rendered circuit.

    Attributes:
        name: as in the source.
        file: that declares it.
        components: template by name of the component (without indices).
        outputs: names of its output signals.
        hints: names of its signals that are assigned with `<--`.
    """

    name: str
    file: str
    components: dict[str, str]
    outputs: frozenset[str]
    hints: frozenset[str]


class Source:
    """The rendered source of a circuit, and which template each of its components is."""

    def __init__(self, rendered: RenderedCircuit) -> None:
        self._code = {path: _code(text) for path, text in rendered.files.items()}
        self._main = rendered.main

    @cached_property
    def templates(self) -> dict[str, Template]:
        """The templates by name."""
        found: dict[str, Template] = {}
        for path, code in self._code.items():
            for match in _TEMPLATE.finditer(code):
                body = code[match.end() : _closing(code, match.end() - 1, path)]
                declared = set(_COMPONENT.findall(body))
                found[match[1]] = Template(
                    name=match[1],
                    file=shown_path(path),
                    components={name: made for name, made in _INSTANCE.findall(body) if name in declared},
                    outputs=frozenset(_OUTPUT.findall(body)),
                    hints=frozenset(left or right for left, right in _HINT.findall(body)),
                )
        return found

    @cached_property
    def main(self) -> Template:
        """The template of the main component."""
        match = _MAIN.search(self._code[self._main])
        assert match is not None, "it has been compiled, so there is a main component"
        return self.templates[match[1]]

    def path_of(self, component: str) -> Iterator[tuple[str, Template]]:
        """All components that one is in, from `main` down to itself, each with its template.

        Parts of a path that are no component, as those of a bus, belong to the component that they are in.
        """
        template, path = self.main, "main"
        yield path, template
        for part in component.split(".")[1:]:
            name = _INDEX.sub("", part)
            anonymous = _ANONYMOUS.fullmatch(name)
            made = template.components.get(name) or (anonymous and anonymous[1])
            path = f"{path}.{part}"
            if made in self.templates:
                template = self.templates[made]
                yield path, template

    def owner_of(self, signal: str) -> Template:
        """The template that declares a signal given by its full name."""
        *_, (_, template) = self.path_of(signal.rpartition(".")[0])
        return template

    def kind_of(self, signal: str) -> str:
        """A signal by template and name without indices, such as `IsZero.inverse`."""
        return f"{self.owner_of(signal).name}.{_base(signal)}"

    def is_hint(self, signal: str) -> bool:
        """Whether a signal is assigned with `<--`."""
        return _base(signal) in self.owner_of(signal).hints

    def is_output(self, signal: str) -> bool:
        """Whether a signal is an output of its component."""
        return _base(signal) in self.owner_of(signal).outputs


def _code(text: str) -> str:
    """The text without its comments; line numbers stay."""
    return _COMMENT.sub(lambda match: "\n" * match.group().count("\n"), text)


def _base(signal: str) -> str:
    return _INDEX.sub("", signal.rpartition(".")[2])


def _closing(code: str, start: int, path: str) -> int:
    """The place of the brace that closes the one at `start`."""
    depth = 0
    for position in range(start, len(code)):
        depth += {"{": 1, "}": -1}.get(code[position], 0)
        if depth == 0:
            return position
    raise InvalidArtifactError(f"the braces in {path} do not match", path=Path(path))
