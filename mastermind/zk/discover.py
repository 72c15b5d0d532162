"""A circuit from nothing but its source: the compiler says which signals it has.

What a compiler cannot say, nobody knows: ranges of the inputs (see `mastermind.zk.interface`) and sample inputs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from mastermind.errors import InvalidArtifactError
from mastermind.zk.circuit import CircuitSpec, ProofSystem, no_sample
from mastermind.zk.compile import compile_once
from mastermind.zk.progress import Progress, silent

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
    protocol: ProofSystem = "groth16",
) -> CircuitSpec:
    """Return the specification, without signals, of a `.circom` file or a `.circom.j2` template.

    Args:
        source: the file with `component main`.
        name: of the circuit; without one, that of the file.
        root: folder that holds the file and all that it includes; without one, the nearest folder above the file
            with one of ROOT_MARKS, else the file's own.
        parameters: values for the template.
        sample: makes inputs that the circuit accepts.
        accepted_warnings, protocol: as in `CircuitSpec`.

    Raises:
        InvalidArtifactError: there is no such file, or it is not below `root`.
    """
    source = Path(os.path.normpath(source.absolute()))
    if not source.is_file():
        raise InvalidArtifactError(f"there is no file {source}", path=source)
    if not source.name.removesuffix(".j2").endswith(".circom"):
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
        protocol=protocol,
    )


def discover(spec: CircuitSpec, home: Path, progress: Progress = silent) -> CircuitSpec:
    """Return `spec` with the signals of its main component.

    The circuit is compiled once (`compile_once`); finding the signals of the same sources again needs no Node.

    Raises:
        InvalidArtifactError: the source does not render.
        CompileError: it does not compile, has no constraint or no public signal.
        ToolchainError: the compiler cannot be run.
    """
    interface = compile_once(spec, home, progress).interface
    return replace(spec, outputs=interface.outputs, public=interface.public, private=interface.private)
