"""What the tests read off rendered Circom: templates, their components, outputs and hints.

A *hint* is a signal that is assigned with `<--`, so by the prover's program and not by a constraint. This is no
parser of Circom, only as much of one as our templates and circomlib's Poseidon need.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from mastermind.zk.render import RenderedCircuit

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TEMPLATE = re.compile(r"\btemplate\s+(\w+)\s*\([^)]*\)\s*\{")
_COMPONENT = re.compile(r"\bcomponent\s+(\w+)")
_INSTANCE = re.compile(r"\b(\w+)\s*(?:\[[^\]]*\]\s*)*=\s*(\w+)\s*\(")
_HINT = re.compile(r"\b(\w+)\s*(?:\[[^\]]*\]\s*)*<--|-->\s*(\w+)")
_OUTPUT = re.compile(r"\bsignal\s+output\s+(\w+)")
_MAIN = re.compile(r"\bcomponent\s+main\b[^=]*=\s*(\w+)\s*\(")
_INDEX = re.compile(r"\[\d+\]")


@dataclass(frozen=True)
class Template:
    """One template of a rendered circuit.

    Attributes:
        name: as in the source.
        file: path of its file within the rendered circuit.
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
        self.files = rendered.files
        self._main_file = rendered.main

    @cached_property
    def code(self) -> dict[str, str]:
        """The files without their comments; line numbers stay."""
        return {
            path: _COMMENT.sub(lambda match: "\n" * match.group().count("\n"), text)
            for path, text in self.files.items()
        }

    @cached_property
    def templates(self) -> dict[str, Template]:
        found: dict[str, Template] = {}
        for path, code in self.code.items():
            for match in _TEMPLATE.finditer(code):
                body = _block(code, match.end() - 1)
                declared = set(_COMPONENT.findall(body))
                found[match[1]] = Template(
                    name=match[1],
                    file=path,
                    components={name: made for name, made in _INSTANCE.findall(body) if name in declared},
                    outputs=frozenset(_OUTPUT.findall(body)),
                    hints=frozenset(left or right for left, right in _HINT.findall(body)),
                )
        return found

    @cached_property
    def main(self) -> Template:
        match = _MAIN.search(self.code[self._main_file])
        assert match is not None, "no component main"
        return self.templates[match[1]]

    def template_of(self, component: str) -> Template:
        """The template of a component given by its path, such as `main.score.same[0]`."""
        template = self.main
        for part in component.split(".")[1:]:
            template = self.templates[template.components[_INDEX.sub("", part)]]
        return template

    def owner_of(self, signal: str) -> Template:
        """The template that declares a signal given by its full name."""
        return self.template_of(signal.rpartition(".")[0])

    def is_hint(self, signal: str) -> bool:
        return _base(signal) in self.owner_of(signal).hints

    def is_output(self, signal: str) -> bool:
        return _base(signal) in self.owner_of(signal).outputs

    def row(self, template: str, line: int) -> str:
        """The source line of a template that an error message names."""
        return self.files[self.templates[template].file].splitlines()[line - 1].strip()


def _base(signal: str) -> str:
    return _INDEX.sub("", signal.rpartition(".")[2])


def _block(code: str, start: int) -> str:
    """The text of the braces that open at `start`."""
    depth = 0
    for position in range(start, len(code)):
        depth += {"{": 1, "}": -1}.get(code[position], 0)
        if depth == 0:
            return code[start : position + 1]
    raise AssertionError("braces do not match")
