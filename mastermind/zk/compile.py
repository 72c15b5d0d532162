"""From rendered source to constraints and a witness program.

Owns the compiler call and what its messages mean. Compiler, optimisation level and flags are fixed: another
choice gives another constraint system. Every warning about a circuit's own templates fails the build unless the circuit
lists it with a reason; those about circomlib, which is pinned and which nobody here can change, are passed over.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mastermind.errors import CompileError, ToolFailedError, WitnessError
from mastermind.locks import locked
from mastermind.zk.circom import CIRCOM_VERSION, find_compiler
from mastermind.zk.circuit import CircuitSpec
from mastermind.zk.evidence import canonical_json
from mastermind.zk.interface import Interface
from mastermind.zk.progress import Progress, silent
from mastermind.zk.r1cs import R1csHeader
from mastermind.zk.render import RenderedCircuit, declared_in, is_circomlib, own_digests, render, shown_path
from mastermind.zk.tools import Toolchain, packages_digest

#: Full simplification: linear constraints cost proving time and prove nothing more.
OPTIONS = ("--O2", "--inspect")
#: The folder of the rendered source, beside what was made of it.
SOURCE = "source"

_DIAGNOSTIC = re.compile(
    r"^(?P<kind>error|warning)\[(?P<code>\w+)\]: (?P<reason>.*?)(?=^(?:error|warning)\[|^previous errors|\Z)",
    re.MULTILINE | re.DOTALL,
)
_PLACE = re.compile(r'┌─ "(?P<file>[^"]+)":(?P<line>\d+):\d+')
#: The line that a diagnostic shows, and what it underlines in it, with a label.
_SHOWN = re.compile(r"^ *\d+ │ (?P<text>.*)\n *│ (?P<before> *)(?P<marks>\^+) ?(?P<label>.*)$", re.MULTILINE)
_ABOUT = re.compile(r'In template "(\w+)\(')
#: How a witness program names the template whose check has failed; it numbers the instances.
_REFUSED = re.compile(r"\bin template (\w+?)(?:_\d+)? line: (\d+)")


@dataclass(frozen=True)
class CompiledCircuit:
    """The compiler's output, in one folder: `<name>.r1cs`, `<name>.wasm`, `<name>.sym`; and what it was made from."""

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

    @property
    def source(self) -> Path:
        """The folder of the rendered source."""
        return self.folder / SOURCE

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
        ToolchainError: the compiler failed.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as folder:
        work = Path(folder)
        rendered.write(work)
        compiler = find_compiler(toolchain)
        arguments = [rendered.main, "--r1cs", "--wasm", "--sym", *options]
        completed = compiler.run(arguments, work)
        output = completed.stdout + "\n" + completed.stderr
        _require_accepted(spec, rendered, list(_DIAGNOSTIC.finditer(output)))
        stem = Path(rendered.main).stem
        made = {
            ".r1cs": work / f"{stem}.r1cs",
            ".wasm": work / f"{stem}_js" / f"{stem}.wasm",
            ".sym": work / f"{stem}.sym",
        }
        if completed.exit_code != 0 or not all(path.is_file() for path in made.values()):
            # About a source the compiler says what is wrong.
            last = [line for line in output.splitlines() if line.strip()][-1:] or ["no output"]
            raise ToolFailedError(
                f"the compiler failed at {rendered.name}: {last[0].strip()}",
                argv=arguments,
                exit_code=completed.exit_code,
                stderr_tail=output[-2000:],
            )
        for suffix, path in made.items():
            path.rename(out / f"{spec.name}{suffix}")
    rendered.write(out / SOURCE)
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
    with locked(folder.with_name(f"{folder.name}.lock")):
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
                made = Path(temporary) / "made"
                make(made)
                made.rename(folder)


def refused(name: str, said: str, source: Path | None) -> WitnessError:
    """The error for what the witness program of a circuit says when it refuses inputs.

    Args:
        said: by the program.
        source: the folder of the rendered source, which knows the file; None where there is none.
    """
    # The template that refuses comes first, then those that it is in.
    places = [(place[1], int(place[2])) for place in _REFUSED.finditer(said)]
    if not places:
        return WitnessError(f"the inputs do not satisfy {name}")
    files = {} if source is None else _texts_in(source)
    declared = declared_in(files)

    def where(template: str, line: int) -> str:
        file = declared.get(template)
        return f"{template}, line {line}" if file is None else f"{template} in {shown_path(file)}, line {line}"

    (template, line), *around = places
    file = declared.get(template)
    message = f"the inputs do not satisfy {name}: {where(template, line)}, refuses them"
    own = [place for place in around if not is_circomlib(declared.get(place[0], ""))]
    if own and file is not None and is_circomlib(file):
        message += f"; it is used by {where(*own[0])}"
    return WitnessError(message, template=template, file=None if file is None else shown_path(file), line=line)


def _texts_in(folder: Path) -> dict[str, str]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8", "replace") for path in paths}


def _require_accepted(spec: CircuitSpec, rendered: RenderedCircuit, diagnostics: Sequence[re.Match[str]]) -> None:
    """Check that a compiler has said nothing but what is accepted. Raises CompileError."""
    declared = declared_in(rendered.files)

    def accepted(diagnostic: re.Match[str]) -> bool:
        text = diagnostic.group()
        place, about = _PLACE.search(text), _ABOUT.search(text)
        file = place["file"] if place else declared.get(about[1], "") if about else ""
        return is_circomlib(file) or any(known in text for known, _ in spec.accepted_warnings)

    errors = [found for found in diagnostics if found["kind"] == "error"]
    warnings = [found for found in diagnostics if found["kind"] == "warning" and not accepted(found)]
    if not errors and not warnings:
        return
    first = (*errors, *warnings)[0]
    reason = _reason(first) + _detail(first)
    place = _PLACE.search(first.group())
    file, line = (shown_path(place["file"]), int(place["line"])) if place else (None, None)
    where = f"{file}, line {line}: " if place else ""
    hint = "" if errors else _warning_hint(spec, first["code"], list(dict.fromkeys(map(_known_by, warnings))))
    raise CompileError(f"{rendered.name} does not compile: {where}{reason}{hint}", file=file, line=line, reason=reason)


def _reason(diagnostic: re.Match[str]) -> str:
    return diagnostic["reason"].splitlines()[0].strip()


def _detail(diagnostic: re.Match[str]) -> str:
    """What of the line is meant: the compiler gives names there only."""
    shown = _SHOWN.search(diagnostic.group())
    if shown is None:
        return ""
    marked = shown["text"][len(shown["before"]) :][: len(shown["marks"])].strip()
    return f" (`{marked}`)" if shown["label"] in ("", "found here") else f" (`{marked}`: {shown['label']})"


def _known_by(diagnostic: re.Match[str]) -> str:
    """A text by which to accept a warning and no other: the line it is about, where it shows one."""
    shown = _SHOWN.search(diagnostic.group())
    text = shown["text"].strip() if shown else ""
    return text if text and "'" not in text else _reason(diagnostic)


def _warning_hint(spec: CircuitSpec, code: str, texts: Sequence[str]) -> str:
    """What to do about warnings: the lines for a project's file stand by themselves, to be copied."""
    unused = "if outputs are unused on purpose, `_ <== Template(...)(...)` says so; " if code == "CA02" else ""
    listed = "".join(f"    {{ text = '{text}', reason = \"...\" }},\n" for text in texts)
    return (
        f" ({code}, a warning, which fails the build; {unused}what is meant is accepted by this in pyproject.toml; "
        f"a table that is there already needs the last key only:)\n\n"
        f"[tool.mastermind.zk.circuits.{spec.name}]\nsource = '{spec.template}'\naccepted-warnings = [\n{listed}]"
    )
