"""From rendered source to constraints and a witness program.

Owns the compiler call and what its messages mean. Compiler, optimisation level and flags are fixed: another
choice gives another constraint system. Every warning fails the build unless the circuit lists it with a reason.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from filelock import FileLock

from mastermind.errors import CompileError
from mastermind.zk.circuit import CircuitSpec
from mastermind.zk.evidence import canonical_json
from mastermind.zk.interface import Interface
from mastermind.zk.progress import Progress, silent
from mastermind.zk.r1cs import R1csHeader
from mastermind.zk.render import RenderedCircuit, own_digests, render
from mastermind.zk.tools import CIRCOM_VERSION, Toolchain, packages_digest, run

#: Full simplification: linear constraints cost proving time and prove nothing more.
OPTIONS = ("--O2", "--inspect")
TIMEOUT_S = 600.0

_DIAGNOSTIC = re.compile(
    r"^(?P<kind>error|warning)\[(?P<code>\w+)\]: (?P<reason>.*?)(?=^(?:error|warning)\[|^previous errors|\Z)",
    re.MULTILINE | re.DOTALL,
)
_PLACE = re.compile(r'┌─ "(?P<file>[^"]+)":(?P<line>\d+):\d+')


@dataclass(frozen=True)
class CompiledCircuit:
    """The compiler's output, in one folder: `<name>.r1cs`, `<name>.wasm`, `<name>.sym`."""

    name: str
    folder: Path

    @property
    def r1cs(self) -> Path:
        return self.folder / f"{self.name}.r1cs"

    @property
    def wasm(self) -> Path:
        return self.folder / f"{self.name}.wasm"

    @property
    def sym(self) -> Path:
        return self.folder / f"{self.name}.sym"

    @cached_property
    def interface(self) -> Interface:
        """The signals of the main component, as the compiler has written them down. Raises InvalidArtifactError."""
        return Interface.read(self.r1cs, self.sym)


def compile_circuit(
    spec: CircuitSpec,
    rendered: RenderedCircuit,
    toolchain: Toolchain,
    out: Path,
    options: Sequence[str] = OPTIONS,
) -> CompiledCircuit:
    """Compile a circuit into the folder `out`.

    Raises:
        CompileError: the source has an error or a warning that is not accepted, has no constraint or no public
            signal, or its public signals are not those of the specification in that order.
    """
    compiled = compile_source(spec, rendered, toolchain, out, options)
    require_signals(spec, compiled)
    return compiled


def require_signals(spec: CircuitSpec, compiled: CompiledCircuit) -> None:
    """Check that a compiled circuit has the public signals of its specification, in that order.

    Raises:
        CompileError: it has others.
    """
    outputs, inputs = compiled.interface.outputs, compiled.interface.public
    found = tuple(label for signal in (*outputs, *inputs) for label in signal.labels)
    if found != spec.public_labels:
        raise CompileError(
            f"the public signals of {spec.name} are {', '.join(found)}; the specification says "
            f"{', '.join(spec.public_labels)}",
            reason="public signals differ",
        )
    computed = tuple(label for signal in outputs for label in signal.labels)
    if computed != spec.output_labels:
        raise CompileError(
            f"the outputs of {spec.name} are {', '.join(computed) or 'none'}; the specification says "
            f"{', '.join(spec.output_labels) or 'none'}",
            reason="outputs differ",
        )


def compile_source(
    spec: CircuitSpec,
    rendered: RenderedCircuit,
    toolchain: Toolchain,
    out: Path,
    options: Sequence[str] = OPTIONS,
) -> CompiledCircuit:
    """Compile a circuit into the folder `out`, whatever signals it has.

    Raises:
        CompileError: the source has an error or a warning that is not accepted, or has no constraint or no public
            signal.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as folder:
        # The compiler runs where the source lies: circom2 sees no file outside its working folder.
        work = Path(folder)
        rendered.write(work)
        completed = run(
            [*toolchain.circom, rendered.main, "--r1cs", "--wasm", "--sym", *options],
            timeout_s=TIMEOUT_S,
            cwd=work,
            accept=range(256),
        )
        output = completed.stdout + "\n" + completed.stderr
        for diagnostic in _DIAGNOSTIC.finditer(output):
            text = diagnostic.group()
            if diagnostic["kind"] == "error" or not any(known in text for known, _ in spec.accepted_warnings):
                raise _compile_error(rendered.name, diagnostic)
        stem = Path(rendered.main).stem
        made = {
            ".r1cs": work / f"{stem}.r1cs",
            ".wasm": work / f"{stem}_js" / f"{stem}.wasm",
            ".sym": work / f"{stem}.sym",
        }
        if completed.exit_code != 0 or not all(path.is_file() for path in made.values()):
            last = [line for line in output.splitlines() if line.strip()][-1:] or ["no output"]
            raise CompileError(f"{rendered.name} does not compile: {last[0].strip()}", reason=last[0].strip())
        for suffix, path in made.items():
            path.rename(out / f"{spec.name}{suffix}")
    compiled = CompiledCircuit(spec.name, out)
    header = R1csHeader.read(compiled.r1cs)
    if not header.constraint_count:
        raise CompileError(f"{spec.name} has no constraint: it proves nothing", reason="no constraint")
    if not header.public_count:
        raise CompileError(f"{spec.name} has no public signal: it states nothing", reason="no public signal")
    return compiled


def sources_digest(spec: CircuitSpec) -> str:
    """SHA-256 of all that decides what the compiler makes of a circuit, in hex. Needs no npm packages.

    Raises:
        InvalidArtifactError: the source does not render.
    """
    decisive = {
        "circuit": spec.name,
        "main": spec.template,
        "sources": own_digests(spec),
        "circom": CIRCOM_VERSION,
        "options": list(OPTIONS),
        "packages": packages_digest(),
        # With fewer warnings accepted, it might not compile.
        "warnings": sorted(text for text, _ in spec.accepted_warnings),
    }
    return hashlib.sha256(canonical_json(decisive)).hexdigest()


def compiled_folder(spec: CircuitSpec, home: Path) -> Path:
    """Where `compile_once` keeps a circuit. Raises InvalidArtifactError when the source does not render."""
    return home.absolute() / "compiled" / sources_digest(spec)


def compile_once(spec: CircuitSpec, home: Path, progress: Progress = silent) -> CompiledCircuit:
    """Return a circuit, whatever signals it has, compiled before or now: it is kept under `home`.

    Finding one that has been compiled needs no Node.

    Raises:
        InvalidArtifactError: the source does not render.
        CompileError: as `compile_source`.
        ToolchainError: the compiler cannot be run.
    """

    def compile_into(made: Path) -> None:
        toolchain = Toolchain.install(home, progress)
        progress(f"{spec.name}: compiling")
        rendered = render(spec, toolchain.modules / "circomlib" / "circuits")
        compile_source(spec, rendered, toolchain, made)

    folder = compiled_folder(spec, home)
    keep(folder, compile_into)
    return CompiledCircuit(spec.name, folder)


def keep(folder: Path, make: Callable[[Path], object]) -> None:
    """Have `make` fill a new folder, unless `folder` is there: whole or not at all, and once however many want it."""
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
                made = Path(temporary) / "made"
                make(made)
                made.rename(folder)


def _compile_error(name: str, diagnostic: re.Match[str]) -> CompileError:
    reason = diagnostic["reason"].splitlines()[0].strip()
    place = _PLACE.search(diagnostic.group())
    file, line = (place["file"], int(place["line"])) if place else (None, None)
    where = f"{file}, line {line}: " if place else ""
    hint = (
        ""
        if diagnostic["kind"] == "error"
        else (f" ({diagnostic['code']}; a warning, and warnings fail the build unless accepted-warnings lists them)")
    )
    return CompileError(f"{name} does not compile: {where}{reason}{hint}", file=file, line=line, reason=reason)
