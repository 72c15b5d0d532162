"""Circuits of somebody's own: described in a `pyproject.toml`, built and proved from there.

    [tool.mastermind.zk]
    home = "build"                          # built circuits and keys; else MASTERMIND_HOME, else a shared folder
    ptau = "powersOfTau28_hez_final_14.ptau"  # a public phase 1; else one is made for development
    accept-private-ptau = false
    protocol = "groth16"                    # or plonk, fflonk

    [tool.mastermind.zk.circuits.membership]
    source = "circuits/membership.circom.j2"  # or a plain .circom
    parameters = { levels = 20 }
    protocol = "plonk"
    sample = "inputs/membership.json"       # proved and verified once by each setup
    accepted-warnings = [{ text = "Local signal unused", reason = "kept for the interface" }]

Everything but `source` may be left out. Paths are relative to the file, and includes must stay below its folder. What
this module does not know, or knows twice, it refuses. A `Project` can do all that `mastermind zk` does.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mastermind.errors import InvalidArtifactError, InvalidProjectError, MissingProjectError, RejectedCeremonyError
from mastermind.sources import default_home
from mastermind.zk.artifacts import ArtifactStore, BuiltCircuit
from mastermind.zk.ceremony import require_own_sources
from mastermind.zk.circuit import PROTOCOLS, CircuitSpec, ProofSystem, no_sample, parse_inputs
from mastermind.zk.compile import CompiledCircuit, compile_once
from mastermind.zk.contributions import CeremonyTranscript, OwnSource
from mastermind.zk.discover import circuit_at, discover
from mastermind.zk.phase1 import Phase1, open_phase1
from mastermind.zk.progress import Progress, silent
from mastermind.zk.prove import (
    NativeProver,
    ProvedStatement,
    UniversalProver,
    UniversalStatement,
    self_test,
    universal_self_test,
)
from mastermind.zk.render import RenderedCircuit, render
from mastermind.zk.snarkjs import SnarkjsCli
from mastermind.zk.tools import Toolchain
from mastermind.zk.verify import NativeVerifier, UniversalVerifier, Verdict, judge

if TYPE_CHECKING:  # wasmtime is loaded when there is a witness to calculate
    from mastermind.zk.witness import CalculatedWitness

FILE = "pyproject.toml"
TABLE = "tool.mastermind.zk"
HOME_VARIABLE = "MASTERMIND_HOME"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)
_SUFFIXES = (".circom", ".circom.j2")

Parameters = Mapping[str, bool | int | str]


@dataclass(frozen=True)
class CircuitEntry:
    """A circuit as its project describes it.

    Attributes:
        source: the file with `component main`.
        sample: JSON file of inputs that the circuit accepts; None when there is none.
    """

    source: Path
    parameters: Parameters = field(default_factory=dict)
    protocol: ProofSystem = "groth16"
    sample: Path | None = None
    accepted_warnings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Project:
    """A folder with circuits.

    Attributes:
        root: holds all their sources.
        home: where what is built goes.
        ptau: a phase-1 file for every setup; None: one is made for development.
        accept_private_ptau: take a phase-1 file that is not a published Hermez one.
        protocol: of circuits that do not say another.
        entries: the described circuits, by name.
    """

    root: Path
    home: Path
    ptau: Path | None = None
    accept_private_ptau: bool = False
    protocol: ProofSystem = "groth16"
    entries: Mapping[str, CircuitEntry] = field(default_factory=dict)

    @classmethod
    def find(cls, folder: Path | None = None, *, home: Path | None = None) -> Project:
        """Read the nearest `pyproject.toml` with a table `[tool.mastermind.zk]`, in `folder` or above it.

        Args:
            folder: where to begin; without one, the current folder.
            home: overrides the home in the file and MASTERMIND_HOME.

        Raises:
            MissingProjectError: there is none.
            InvalidProjectError: it is not as it should be.
        """
        start = (folder or Path.cwd()).absolute()
        for candidate in (start, *start.parents):
            table = _read_table(candidate / FILE)
            if table is not None:
                return _parse(candidate, table, home)
        raise MissingProjectError(f"no {FILE} with a table [{TABLE}] in {start} or above", field=TABLE)

    @classmethod
    def here(cls, *, home: Path | None = None) -> Project:
        """The project of the current folder, or one without a file. Raises InvalidProjectError as `find`."""
        try:
            return cls.find(home=home)
        except MissingProjectError:
            return cls.without_file(home=home)

    @classmethod
    def without_file(cls, *, home: Path | None = None) -> Project:
        """A project that describes no circuit, for sources given by their path."""
        return cls(Path.cwd(), _home(home, None))

    @cached_property
    def store(self) -> ArtifactStore:
        """What has been built."""
        return ArtifactStore(self.home)

    def source(
        self, circuit: str, *, parameters: Parameters | None = None, protocol: ProofSystem | None = None
    ) -> CircuitSpec:
        """Return a circuit by its name in the project or by the path of its source, its signals not known yet.

        The path of the source of a described circuit means that circuit.

        Args:
            circuit: a name, or a path that ends in .circom or .circom.j2.
            parameters: for the template, over those of the project.
            protocol: instead of the project's.

        Raises:
            InvalidProjectError: there is no such circuit, or several have this source.
            InvalidArtifactError: there is no such source, or it is outside the project.
        """
        if circuit.endswith(_SUFFIXES):
            path = Path(circuit).resolve()
            names = [name for name, entry in self.entries.items() if entry.source.resolve() == path]
            if len(names) > 1:
                raise InvalidProjectError(f"{circuit} is the source of {', '.join(names)}; name one", field="circuit")
            circuit = names[0] if names else circuit
        elif circuit not in self.entries:
            known = f"; it has {', '.join(self.entries)}" if self.entries else ""
            raise InvalidProjectError(f"the project has no circuit {circuit[:70]!r}{known}", field="circuit")
        described = self.entries.get(circuit)
        entry = described or CircuitEntry(Path(circuit), protocol=self.protocol)
        name = circuit if described else entry.source.name.removesuffix(".j2").removesuffix(".circom")
        if _NAME.fullmatch(name) is None:
            raise InvalidProjectError(f"{name[:70]!r} is no name for a circuit; rename its file", field="circuit")
        return circuit_at(
            entry.source,
            name=name,
            root=self.root if described else None,
            parameters={**entry.parameters, **(parameters or {})},
            sample=no_sample if entry.sample is None else _Sample(entry.sample),
            accepted_warnings=entry.accepted_warnings,
            protocol=protocol or entry.protocol,
        )

    def circuit(
        self,
        circuit: str,
        *,
        parameters: Parameters | None = None,
        protocol: ProofSystem | None = None,
        progress: Progress = silent,
    ) -> CircuitSpec:
        """Return a circuit with the signals that the compiler finds in it. Raises as `source` and `discover`."""
        return self.with_signals(self.source(circuit, parameters=parameters, protocol=protocol), progress=progress)

    def ceremony_circuits(
        self, transcript: CeremonyTranscript, received: Path, *, progress: Progress = silent
    ) -> list[CircuitSpec]:
        """Return the circuits of a ceremony as they are on this machine, with their signals.

        A source is looked for at the same path below `root` and nowhere else, and never in the folder `received`,
        that of the ceremony: whoever sent it could have put a source there.

        Raises:
            InvalidArtifactError: there is no such source.
            RejectedCeremonyError: there is one, and it is not the one that the ceremony began with.
            InvalidProjectError, CompileError, ToolchainError: as `circuit`.
        """
        found = []
        for name, circuit in transcript.circuits.items():
            if circuit.own is None:
                raise InvalidArtifactError(f"the ceremony is for the key set {transcript.name}", path=self.root)
            place = self._place(name, circuit.own, received)
            spec = self.source(place, parameters=circuit.own.parameters, protocol="groth16")
            if spec.name != name:
                raise RejectedCeremonyError(
                    f"{circuit.own.path} is called {spec.name} here, and {name} in the ceremony", circuit=name
                )
            require_own_sources(transcript, spec)
            found.append(spec)
        return [self.with_signals(spec, progress=progress) for spec in found]

    def _place(self, name: str, own: OwnSource, received: Path) -> str:
        """What `source` takes for a circuit of a ceremony."""
        path = self.root / own.path
        file = path.resolve()
        if not file.is_relative_to(self.root.resolve()):
            raise InvalidArtifactError(f"the source of {name}, {own.path}, is outside {self.root}", path=path)
        if file.is_relative_to(received.resolve()):
            raise InvalidArtifactError(
                f"the source of {name}, {own.path}, is in the folder of the ceremony itself; "
                "get a copy of the sources from elsewhere and give the command in it",
                path=path,
            )
        if not file.is_file():
            raise InvalidArtifactError(
                f"the source of {name}, {own.path}, is not here (in {self.root}): the folder of a ceremony has digests "
                "of the sources only, so get a copy of them and give the command in it",
                path=path,
            )
        is_described = name in self.entries and self.source(name).template == own.path
        return name if is_described else str(path)

    def with_signals(self, spec: CircuitSpec, *, progress: Progress = silent) -> CircuitSpec:
        """Return a circuit from `source` with its signals. Raises as `discover`."""
        return discover(spec, self.home, progress)

    def render(self, spec: CircuitSpec) -> RenderedCircuit:
        """Return the complete source of a circuit. Raises as `render`, and ToolchainError without the npm packages."""
        return render(spec, Toolchain.install(self.home).modules / "circomlib" / "circuits")

    def compile(self, spec: CircuitSpec, *, progress: Progress = silent) -> CompiledCircuit:
        """Return the compiled circuit, compiled before or now. Raises as `compile_once`."""
        return compile_once(spec, self.home, progress)

    def witness(self, spec: CircuitSpec, inputs: Mapping[str, object]) -> CalculatedWitness:
        """Calculate all signals of a circuit for some inputs; needs no keys.

        Raises:
            InvalidSignalsError: the inputs do not fit the circuit.
            WitnessError: the statement is false for these inputs.
        """
        compiled = self.compile(spec)
        values = spec.check_inputs(inputs)
        from mastermind.zk.witness import CalculatedWitness, WitnessCalculator

        calculator = WitnessCalculator(compiled.wasm.read_bytes(), spec.name)
        return CalculatedWitness.read(spec, values, calculator.calculate(values, compiled.source), compiled.sym)

    def setup(self, spec: CircuitSpec, *, force: bool = False, progress: Progress = silent) -> BuiltCircuit:
        """Make the keys of a circuit, or find those made before; `force` makes new ones.

        Raises:
            CompileError, SetupError, ToolchainError: it could not be built. What was in use stays.
            InvalidArtifactError: the phase-1 file is damaged, or neither a published one nor accepted.
        """
        if self.ptau is not None:
            progress(f"checking {self.ptau.name}")
        tested = self_test if spec.protocol == "groth16" else universal_self_test(self._snarkjs)
        return self.store.build_circuit(spec, tested, phase1=self._phase1, force=force, progress=progress)

    def load(self, spec: CircuitSpec) -> BuiltCircuit:
        """Return a circuit with its keys; needs no Node.

        Raises:
            WrongKeySetError: it has not been set up, or its sources have changed since.
            InvalidArtifactError: it is damaged.
        """
        return self.store.load_circuit(spec)

    def prove(self, circuit: BuiltCircuit, inputs: Mapping[str, object]) -> ProvedStatement | UniversalStatement:
        """Prove a statement by the circuit's protocol, and verify the proof. Raises as `Prover.prove`."""
        if circuit.spec.protocol == "groth16":
            return NativeProver().prove(circuit, inputs)
        return UniversalProver(self._snarkjs).prove(circuit, inputs)

    def verify(self, circuit: BuiltCircuit, public_signals: object, proof: object) -> Verdict:
        """Judge evidence from outside (parsed JSON) under the circuit's own key; malformed evidence is rejected."""
        if circuit.spec.protocol == "groth16":
            return judge(NativeVerifier(), circuit.verifying_key, public_signals, proof)
        return UniversalVerifier(self._snarkjs).judge(circuit.universal_key, public_signals, proof)

    def with_phase1(self, ptau: Path, *, accept_private: bool = False) -> Project:
        """The same project with another phase-1 file."""
        return replace(self, ptau=ptau.absolute(), accept_private_ptau=accept_private)

    @cached_property
    def _phase1(self) -> Phase1 | None:
        """The phase-1 file, digested once however many circuits are set up."""
        return None if self.ptau is None else open_phase1(self.ptau, accept_private=self.accept_private_ptau)

    @property
    def _snarkjs(self) -> SnarkjsCli:
        return SnarkjsCli(Toolchain.install(self.home))


@dataclass(frozen=True)
class _Sample:
    """Sample inputs in a file."""

    path: Path

    def __call__(self) -> Mapping[str, object]:
        try:
            inputs = self.path.read_bytes()
        except OSError as error:
            raise InvalidArtifactError(
                f"the sample inputs {self.path} cannot be read: {error.strerror}", path=self.path
            ) from error
        return parse_inputs(inputs)


def _home(given: Path | None, described: Path | None) -> Path:
    if given is None and os.environ.get(HOME_VARIABLE):
        given = Path(os.environ[HOME_VARIABLE])
    return (given or described or default_home()).absolute()


def _read_table(path: Path) -> dict[str, Any] | None:
    """The project's table of a file, or None when there is no such file or table."""
    try:
        table: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidProjectError(f"{path} cannot be read: {error}", field=FILE) from error
    for name in TABLE.split("."):
        if name not in table:
            return None
        table = table[name]
        if not isinstance(table, dict):
            raise InvalidProjectError(f"[{TABLE}] in {path} is not a table", field=TABLE)
    return table


def _parse(root: Path, table: dict[str, Any], home: Path | None) -> Project:
    reader = _TableReader(TABLE, table, {"home", "ptau", "accept-private-ptau", "protocol", "circuits"})
    protocol = reader.protocol("groth16")
    entries = {}
    for name, entry in reader.get("circuits", dict, {}).items():
        place = f"{TABLE}.circuits.{name}"
        if _NAME.fullmatch(name) is None:
            raise InvalidProjectError(f"{place[:100]} is no name for a circuit", field=place)
        if not isinstance(entry, dict):
            raise InvalidProjectError(f"{place} is not a table", field=place)
        entries[name] = _parse_entry(root, place, entry, protocol)
    return Project(
        root=root,
        home=_home(home, reader.path("home", root)),
        ptau=reader.path("ptau", root),
        accept_private_ptau=reader.get("accept-private-ptau", bool, False),
        protocol=protocol,
        entries=entries,
    )


def _parse_entry(root: Path, place: str, table: dict[str, Any], protocol: ProofSystem) -> CircuitEntry:
    reader = _TableReader(place, table, {"source", "parameters", "protocol", "sample", "accepted-warnings"})
    source = reader.path("source", root)
    if source is None or not source.name.endswith(_SUFFIXES):
        raise reader.error("source", "is missing or not the path of a .circom or .circom.j2 file")
    parameters = reader.get("parameters", dict, {})
    for name, value in parameters.items():
        if not isinstance(value, bool | int | str):
            raise reader.error(f"parameters.{name}", "is not a boolean, an integer or a string")
    warnings = []
    for warning in reader.get("accepted-warnings", list, []):
        if (
            not isinstance(warning, dict)
            or warning.keys() != {"text", "reason"}
            or not all(isinstance(part, str) and part for part in warning.values())
        ):
            raise reader.error("accepted-warnings", "is not a list of { text = ..., reason = ... }")
        warnings.append((warning["text"], warning["reason"]))
    return CircuitEntry(
        source=source,
        parameters=parameters,
        protocol=reader.protocol(protocol),
        sample=reader.path("sample", root),
        accepted_warnings=tuple(warnings),
    )


class _TableReader:
    """Reads the fields of one table, raising InvalidProjectError with the name of the bad one."""

    def __init__(self, place: str, table: dict[str, Any], known: set[str]) -> None:
        self._place = place
        self._table = table
        for name in table.keys() - known:
            raise self.error(name, f"is unknown; [{place}] takes {', '.join(sorted(known))}")

    def error(self, name: str, problem: str) -> InvalidProjectError:
        return InvalidProjectError(f"{self._place}.{name} {problem}", field=f"{self._place}.{name}")

    def get(self, name: str, kind: type, default: Any) -> Any:
        value = self._table.get(name, default)
        if not isinstance(value, kind):
            kinds = {str: "a string", bool: "true or false", dict: "a table", list: "a list"}
            raise self.error(name, f"is not {kinds[kind]}")
        return value

    def path(self, name: str, root: Path) -> Path | None:
        value = self.get(name, str, "")
        if name in self._table and not value:
            raise self.error(name, "is empty")
        return root / value if value else None

    def protocol(self, default: ProofSystem) -> ProofSystem:
        value = self.get("protocol", str, default)
        for protocol in PROTOCOLS:
            if value == protocol:
                return protocol
        raise self.error("protocol", f"is not one of {', '.join(PROTOCOLS)}")
