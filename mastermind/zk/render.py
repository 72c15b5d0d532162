"""Circom source from Jinja templates: the main file of a circuit and all that it includes.

Rendering is deterministic and follows `include` statements, so that a circuit depends on exactly the files
it uses. circomlib is taken from its npm package, as it is.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
from jinja2.sandbox import SandboxedEnvironment

from mastermind.errors import InvalidArtifactError
from mastermind.zk.circuit import CircuitSpec

# Wherever on a line, and not in a comment or another string: those are matched to be passed over.
_INCLUDE = re.compile(r'//[^\n]*|/\*.*?\*/|\binclude\s*"(?P<path>[^"\n]+)"|"[^"\n]*"', re.DOTALL)
_TEMPLATE = re.compile(r"//[^\n]*|/\*.*?\*/|\btemplate\s+(?:(?:custom|parallel)\s+)*(?P<name>\w+)\s*\(", re.DOTALL)


@dataclass(frozen=True)
class RenderedCircuit:
    """The complete source of one circuit.

    Attributes:
        name: of the circuit.
        main: path of the main file within `files`.
        files: text by relative path, with `/` between folders.
    """

    name: str
    main: str
    files: Mapping[str, str]

    @cached_property
    def digests(self) -> dict[str, str]:
        """SHA-256 of each file, by path in order."""
        return {path: hashlib.sha256(text.encode()).hexdigest() for path, text in sorted(self.files.items())}

    def write(self, folder: Path) -> Path:
        """Write all files below `folder` and return the path of the main one."""
        for path, text in self.files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8", newline="\n")
        return folder / self.main


def render(spec: CircuitSpec, circomlib: Path) -> RenderedCircuit:
    """Render a circuit; `circomlib` is the folder `circuits` of that package.

    Raises:
        InvalidArtifactError: a template is missing, uses an unknown parameter or has a syntax error, no template uses
            a parameter that is given, or a circomlib file is missing.
    """
    files = _render_own(spec)
    waiting = [path for path in _includes(files) if path not in files]
    while waiting:
        path = waiting.pop()
        source = circomlib / path.rpartition("circomlib/")[2].removeprefix("circuits/")
        try:
            files[path] = source.read_text("utf-8")
        except OSError as error:
            by = _included_by(path, files)
            raise InvalidArtifactError(
                f"{by} includes {shown_path(path)}, which circomlib does not have", path=source
            ) from error
        waiting += [included for included in _includes({path: files[path]}) if included not in files]
    return RenderedCircuit(spec.name, spec.template.removesuffix(".j2"), files)


def is_circomlib(path: str) -> bool:
    """Whether a path of a rendered circuit is a file of circomlib, which is pinned with the other npm packages."""
    return "circomlib" in path.split("/")[:-1]


def declared_in(files: Mapping[str, str]) -> dict[str, str]:
    """The path of the file that declares each template. Of one name there is one: the compiler takes no two."""
    return {found["name"]: path for path, text in files.items() for found in _TEMPLATE.finditer(text) if found["name"]}


def shown_path(path: str) -> str:
    """A path of a rendered circuit as people know it: files of circomlib by their place in that package."""
    return path[path.rindex("circomlib/") :] if is_circomlib(path) else path


def own_digests(spec: CircuitSpec) -> dict[str, str]:
    """The digests of a circuit's rendered files without those of circomlib: needs no npm packages."""
    return RenderedCircuit(spec.name, spec.template, _render_own(spec)).digests


class _Environment(SandboxedEnvironment):
    """Knows which parameters templates have asked for."""

    def __init__(self, sources: Path) -> None:
        super().__init__(
            loader=jinja2.FileSystemLoader(sources),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        self.context_class = _Context
        self.used: set[str] = set()


class _Context(jinja2.runtime.Context):
    environment: _Environment

    def resolve_or_missing(self, key: str) -> Any:
        self.environment.used.add(key)
        return super().resolve_or_missing(key)


def _render_own(spec: CircuitSpec) -> dict[str, str]:
    # A template from somebody else must not run anything: it is text.
    environment = _Environment(spec.sources)
    # Undefined, not empty, when the public inputs are not known: a template that uses it is refused then.
    public = {"public": [signal.name for signal in spec.public]} if spec.public else {}
    parameters = {**public, **spec.parameters}
    files: dict[str, str] = {}
    waiting = [spec.template.removesuffix(".j2")]
    while waiting:
        path = waiting.pop()
        if path in files or is_circomlib(path):
            continue
        source = spec.sources / f"{path}.j2"
        try:
            if source.is_file():
                files[path] = environment.get_template(f"{path}.j2").render(parameters)
            else:
                source = spec.sources / path
                files[path] = source.read_text("utf-8")
        except (jinja2.TemplateError, OSError, ValueError, ArithmeticError, TypeError, RecursionError) as error:
            # The latter are those of a source that is no UTF-8, of paths that cannot be, and of a template's own sums.
            by = _included_by(path, files)
            place = f"{source}, included by {by}" if by else str(source)
            raise InvalidArtifactError(f"cannot render {place}: {error}", path=source) from error
        waiting += _includes({path: files[path]})
    for name in sorted(spec.parameters.keys() - environment.used):
        # Most likely misspelled, and what was meant is not what would be built.
        raise InvalidArtifactError(
            f"no template of {spec.name} uses the parameter {name[:40]!r}; a plain .circom file takes none",
            path=spec.sources / spec.template,
        )
    return files


def _included_by(path: str, files: Mapping[str, str]) -> str:
    """The file that includes a path, as people know it; nothing for the main file."""
    return next((shown_path(by) for by, text in files.items() if path in _includes({by: text})), "")


def _includes(files: Mapping[str, str]) -> list[str]:
    """The paths that files include, relative to the same root."""
    paths = []
    for path, text in files.items():
        for included in filter(None, (found["path"] for found in _INCLUDE.finditer(text))):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), included))
            if target.startswith(("..", "/")):
                raise InvalidArtifactError(f"{path} includes a file outside its sources", path=Path(path))
            paths.append(target)
    return paths
