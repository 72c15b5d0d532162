"""A circuit from nothing but its source: the compiler says which signals it has.

What a compiler cannot say, nobody knows: ranges of the inputs (see `mastermind.zk.interface`) and sample inputs.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mastermind.errors import InvalidArtifactError
from mastermind.zk.circuit import CircuitSpec, Signal, no_sample
from mastermind.zk.compile import OPTIONS, compile_source
from mastermind.zk.evidence import canonical_json, parse_json
from mastermind.zk.interface import Interface
from mastermind.zk.progress import Progress, silent
from mastermind.zk.render import own_digests, render
from mastermind.zk.tools import CIRCOM_VERSION, Toolchain, packages_digest

#: A folder with one of these is taken for the root of somebody's sources.
ROOT_MARKS = ("pyproject.toml", "package.json", ".git")


def circuit_at(
    source: Path,
    *,
    name: str = "",
    root: Path | None = None,
    parameters: Mapping[str, bool | int | str] | None = None,
    sample: Callable[[], Mapping[str, object]] = no_sample,
    accepted_warnings: tuple[tuple[str, str], ...] = (),
) -> CircuitSpec:
    """Return the specification, without signals, of a `.circom` file or a `.circom.j2` template.

    Args:
        source: the file with `component main`.
        name: of the circuit; without one, that of the file.
        root: folder that holds the file and all that it includes; without one, the nearest folder above the file
            with one of ROOT_MARKS, else the file's own.
        parameters: values for the template.
        sample: makes inputs that the circuit accepts.
        accepted_warnings: as in `CircuitSpec`.

    Raises:
        InvalidArtifactError: there is no such file, or it is not below `root`.
    """
    source = source.absolute()
    if not source.is_file() or not source.name.removesuffix(".j2").endswith(".circom"):
        raise InvalidArtifactError(f"{source} is not a .circom or .circom.j2 file", path=source)
    if root is None:
        marked = (folder for folder in source.parents if any((folder / mark).exists() for mark in ROOT_MARKS))
        root = next(marked, source.parent)
    root = root.absolute()
    if not source.is_relative_to(root):
        raise InvalidArtifactError(f"{source} is outside {root}", path=source)
    return CircuitSpec(
        name=name or source.name.removesuffix(".j2").removesuffix(".circom"),
        sources=root,
        template=source.relative_to(root).as_posix(),
        parameters=dict(parameters or {}),
        public=(),
        private=(),
        sample=sample,
        accepted_warnings=accepted_warnings,
    )


def discover(spec: CircuitSpec, home: Path, progress: Progress = silent) -> CircuitSpec:
    """Return `spec` with the signals of its main component.

    The circuit is compiled once; what was found is kept under `home` for the same sources and compiler, so that
    finding it again needs no Node.

    Raises:
        InvalidArtifactError: the source does not render.
        CompileError: it does not compile, has no constraint or no public signal.
        ToolchainError: the compiler cannot be run.
    """
    record = home.absolute() / "interfaces" / f"{_digest(spec)}.json"
    interface = _read(record)
    if interface is None:
        toolchain = Toolchain.install(home, progress)
        progress(f"{spec.name}: finding its signals")
        rendered = render(spec, toolchain.modules / "circomlib" / "circuits")
        with tempfile.TemporaryDirectory() as folder:
            interface = compile_source(spec, rendered, toolchain, Path(folder)).interface
        _write(record, interface)
    return replace(spec, outputs=interface.outputs, public=interface.public, private=interface.private)


def _digest(spec: CircuitSpec) -> str:
    """A digest of all that decides which signals a circuit has."""
    decisive = {
        "main": spec.template,
        "sources": own_digests(spec),
        "circom": CIRCOM_VERSION,
        "options": list(OPTIONS),
        "packages": packages_digest(),
    }
    return hashlib.sha256(canonical_json(decisive)).hexdigest()


def _read(record: Path) -> Interface | None:
    """What was found before, or None (a damaged record counts as none)."""

    def signals(items: list[dict[str, Any]]) -> tuple[Signal, ...]:
        return tuple(
            Signal(str(item["name"]), tuple(item["size"]) if isinstance(item["size"], list) else item["size"])
            for item in items
        )

    try:
        found = parse_json(record.read_bytes())
        return Interface(signals(found["outputs"]), signals(found["public"]), signals(found["private"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(record: Path, interface: Interface) -> None:
    """Keep what was found, in one step."""
    content = {
        kind: [{"name": signal.name, "size": signal.size} for signal in getattr(interface, kind)]
        for kind in ("outputs", "public", "private")
    }
    record.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=record.parent, prefix=".", delete=False, encoding="utf-8") as file:
        json.dump(content, file, indent=1)
    Path(file.name).chmod(0o644)
    Path(file.name).replace(record)
