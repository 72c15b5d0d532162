"""Built circuits and key sets on disk: made once, found again, never half there.

    home/
      node/        npm packages, by digest of the lock file
      phase1/      development powers of tau
      artifacts/   one folder per built circuit, named by the SHA-256 of its manifest; never changed
      recipes/     what was built from what: recipe digest -> artifact
      key_sets/    what is in use: name -> artifacts of its circuits
      circuits/    single circuits in use (`build_circuit`): digest of the sources and protocol -> artifact
      compiled/    compiled circuits without keys, by digest of the sources
      known/       every key set there has been: key set id -> the same
      locks/ tmp/

A *recipe* is all that decides a circuit's constraints and the form of its keys: rendered sources, compiler, options,
snarkjs. An artifact is written to a temporary folder, proved and verified once, and moved into place in one step, so
an interrupted build leaves nothing that counts. The manifest ties all files by SHA-256; loading checks them.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mastermind.errors import (
    InvalidArtifactError,
    InvalidInputError,
    RejectedCeremonyError,
    WrongKeySetError,
    WrongProtocolError,
)
from mastermind.locks import locked
from mastermind.zk.circom import CIRCOM_VERSION, find_compiler
from mastermind.zk.circuit import CircuitSpec, ProofSystem
from mastermind.zk.compile import (
    OPTIONS,
    SOURCE,
    CompiledCircuit,
    compile_circuit,
    compiled_folder,
    require_signals,
    sources_digest,
)
from mastermind.zk.contributions import TRANSCRIPT, CeremonyTranscript, Phase1Record
from mastermind.zk.evidence import VerifyingKey, canonical_json, key_set_id, parse_json
from mastermind.zk.phase1 import Phase1, development_phase1
from mastermind.zk.progress import Progress, silent
from mastermind.zk.r1cs import R1csHeader
from mastermind.zk.render import RenderedCircuit, is_circomlib, own_digests, render
from mastermind.zk.setup import make_keys
from mastermind.zk.tools import Toolchain
from mastermind.zk.universal import UniversalKey, make_universal_keys, required_power
from mastermind.zk.zkey import Contribution, ZkeyHeader

FORMAT = 1
MANIFEST = "manifest.json"
VERIFYING_KEY = "verification_key.json"
#: How far a trusted setup can be trusted.
STATUSES = ("development", "ceremony")


@dataclass(frozen=True, eq=False)
class BuiltCircuit:
    """A circuit ready to prove and verify with. Its files have been checked against the manifest.

    Attributes:
        spec: what it was built from.
        folder: where its files are.
        digest: SHA-256 of the manifest; identifies the artifact.
        manifest: parsed.
        key: the verifying key of its key pair.
    """

    spec: CircuitSpec
    folder: Path
    digest: str
    manifest: Mapping[str, Any]
    key: VerifyingKey | UniversalKey

    @property
    def verifying_key(self) -> VerifyingKey:
        """The verifying key of a Groth16 circuit.

        Raises:
            WrongProtocolError: it was set up for another protocol.
        """
        if not isinstance(self.key, VerifyingKey):
            raise WrongProtocolError(f"{self.spec.name} was set up for {self.key.protocol}, not for groth16")
        return self.key

    @property
    def universal_key(self) -> UniversalKey:
        """The verifying key of a PLONK or FFLONK circuit.

        Raises:
            WrongProtocolError: it was set up for Groth16.
        """
        if not isinstance(self.key, UniversalKey):
            raise WrongProtocolError(f"{self.spec.name} was set up for groth16")
        return self.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BuiltCircuit) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def r1cs(self) -> Path:
        return self.folder / f"{self.spec.name}.r1cs"

    @property
    def wasm(self) -> Path:
        return self.folder / f"{self.spec.name}.wasm"

    @property
    def zkey(self) -> Path:
        return self.folder / f"{self.spec.name}.zkey"

    @property
    def sym(self) -> Path:
        return self.folder / f"{self.spec.name}.sym"

    @property
    def status(self) -> str:
        """`development` or `ceremony`: how far its trusted setup can be trusted."""
        return str(self.manifest["setup"]["status"])

    @property
    def ceremony(self) -> CeremonyTranscript | None:
        """The transcript of the ceremony that its keys come from; None when they were made by a build."""
        return CeremonyTranscript.read(self.folder / TRANSCRIPT) if TRANSCRIPT in self.manifest["files"] else None

    @classmethod
    def load(cls, folder: Path, spec: CircuitSpec) -> BuiltCircuit:
        """Load an artifact and check every file of it.

        Raises:
            InvalidArtifactError: a file is missing, damaged or not the one in the manifest.
            InsecureKeyError: the phase 2 of its key was skipped.
        """
        manifest, digest = read_manifest(folder)
        if manifest["circuit"] != spec.name or tuple(manifest["public"]) != spec.public_labels:
            raise InvalidArtifactError(f"{folder} holds another circuit than {spec.name}", path=folder)
        for name in (f"{spec.name}.{kind}" for kind in ("r1cs", "wasm", "zkey", "sym")):
            if name not in manifest["files"]:
                raise InvalidArtifactError(f"the manifest in {folder} does not list {name}", path=folder / MANIFEST)
        if manifest.get("protocol", "groth16") != spec.protocol:
            raise InvalidArtifactError(f"{folder} holds no {spec.protocol} keys of {spec.name}", path=folder)
        keys = _read_keys(folder, spec)
        if spec.protocol == "groth16":
            _require_ceremony(folder, spec.name, manifest)
        return cls(spec, folder, digest, manifest, keys)

    def require_current(self) -> None:
        """Check that the templates still render to the sources this was built from (circomlib aside), and
        that it was built by the compiler and with the options that are pinned now.

        Raises:
            InvalidArtifactError: not so; the message names the files or the compiler.
        """
        tools = self.manifest["tools"]
        if (tools.get("circom"), tools.get("options")) != (CIRCOM_VERSION, list(OPTIONS)):
            raise InvalidArtifactError(
                f"{self.spec.name} was built by another compiler than circom {CIRCOM_VERSION} {' '.join(OPTIONS)}; "
                "build it again",
                path=self.folder,
            )
        built = {path: sha for path, sha in self.manifest["sources"].items() if not is_circomlib(path)}
        current = own_digests(self.spec)
        changed = sorted(path for path in built.keys() | current.keys() if built.get(path) != current.get(path))
        if changed:
            raise InvalidArtifactError(
                f"{self.spec.name} was built from other sources ({', '.join(changed)} changed); build it again",
                path=self.folder,
            )


def _read_keys(folder: Path, spec: CircuitSpec) -> VerifyingKey | UniversalKey:
    """Read the verifying key of an artifact, which must go with the proving key as far as that tells."""
    if spec.protocol != "groth16":
        universal = UniversalKey.read(folder / VERIFYING_KEY, spec.protocol)
        if universal.public_count != len(spec.public_labels):
            raise InvalidArtifactError(f"the key in {folder} is not of {spec.name}", path=folder)
        return universal
    key = VerifyingKey.read(folder / VERIFYING_KEY)
    if not ZkeyHeader.read(folder / f"{spec.name}.zkey").matches(key):
        raise InvalidArtifactError(f"the keys in {folder} do not belong together", path=folder)
    return key


@dataclass(frozen=True)
class KeySet:
    """The built circuits of one purpose, by circuit name."""

    name: str
    circuits: Mapping[str, BuiltCircuit]

    @cached_property
    def id(self) -> str:
        """SHA-256 over the verifying keys, in hex: equal exactly when all of them are."""
        return key_set_id({name: circuit.verifying_key for name, circuit in self.circuits.items()})

    @property
    def artifacts(self) -> dict[str, str]:
        """The digests of the artifacts, by circuit name."""
        return {name: circuit.digest for name, circuit in self.circuits.items()}

    @property
    def status(self) -> str:
        """`ceremony` when that is the status of every circuit, else `development`."""
        statuses = {circuit.status for circuit in self.circuits.values()}
        return "ceremony" if statuses == {"ceremony"} else "development"

    @property
    def sole_contributors(self) -> frozenset[str]:
        """The ids of those who alone have contributed to the key of some circuit, as far as they have given one."""
        found: set[str] = set()
        for circuit in self.circuits.values():
            transcript = circuit.ceremony
            ids = set() if transcript is None else {made.id for made in transcript.people}
            if len(ids) == 1:
                found |= {identifier for identifier in ids if identifier is not None}
        return frozenset(found)

    def __getitem__(self, name: str) -> BuiltCircuit:
        return self.circuits[name]


#: Proves and verifies once with a new artifact; raises when that does not work.
SelfTest = Callable[[BuiltCircuit], None]


class ArtifactStore:
    """Builds circuits and finds them again. Safe for several threads and processes at once."""

    def __init__(self, home: Path) -> None:
        """Use the folder `home`, which is created when something is built."""
        self.home = home.absolute()

    def load_key_set(self, name: str, specs: Sequence[CircuitSpec], identifier: str | None = None) -> KeySet:
        """Load the key set in use under a name, or the one of that name with a given key set id.

        Raises:
            WrongKeySetError: there is none, or not for these circuits.
            InvalidArtifactError: it is damaged, or the templates have changed since.
        """
        if identifier is None:
            artifacts = _circuits(_read_record(self.home / "key_sets" / f"{name}.json"))
            missing = (
                f"there are no keys for {name} in {self.home}; import those of the other player with "
                f"`mastermind keys import`, or make new ones with `mastermind build --rules {name}`"
            )
        else:
            artifacts = _circuits(_read_record(self.home / "known" / f"{identifier}.json"))
            missing = f"the key set {identifier[:16]} is not on this machine; import it from whoever has it"
        if artifacts is None or not {spec.name for spec in specs} <= artifacts.keys():
            raise WrongKeySetError(missing)
        circuits = {}
        for spec in specs:
            circuit = self._load(artifacts[spec.name], spec)
            circuit.require_current()
            circuits[spec.name] = circuit
        return KeySet(name, circuits)

    def id_in_use(self, name: str) -> str | None:
        """The id of the key set in use under a name, in whatever state its files are; None when there is none."""
        record = _read_record(self.home / "key_sets" / f"{name}.json")
        known = (self.home / "known").glob("*.json")
        return None if record is None else next((path.stem for path in known if _read_record(path) == record), None)

    def key_set_names(self) -> list[str]:
        """The names of all built key sets, sorted."""
        folder = self.home / "key_sets"
        return sorted(path.stem for path in folder.glob("*.json")) if folder.is_dir() else []

    def find_circuit(self, key: VerifyingKey, specs_of: Callable[[str], Sequence[CircuitSpec]]) -> BuiltCircuit | None:
        """Find the circuit that a verifying key belongs to, among all key sets there have been.

        `specs_of` gives the circuits of a key set by its name. A circuit that is damaged or stale is not found: it
        vouches for nothing.
        """
        for path in sorted((self.home / "known").glob("*.json")):
            record = _read_record(path)
            for circuit, digest in (_circuits(record) or {}).items():
                folder = self.home / "artifacts" / digest
                try:
                    if VerifyingKey.read(folder / VERIFYING_KEY) != key:
                        continue
                    specs = {spec.name: spec for spec in specs_of(str(record and record.get("name")))}
                    built = BuiltCircuit.load(folder, specs[circuit])
                    built.require_current()
                except (InvalidInputError, KeyError):
                    continue
                return built
        return None

    def find_build(self, spec: CircuitSpec, recipe: str) -> BuiltCircuit | None:
        """Find what a build has made on this machine by a recipe; what was imported does not count."""
        for index in sorted((self.home / "recipes").glob(f"{recipe}-*.json")):
            found = self._usable(self._indexed(index), spec, recipe)
            if found is not None:
                return found
        return None

    def build_key_set(
        self,
        name: str,
        specs: Sequence[CircuitSpec],
        self_test: SelfTest,
        *,
        phase1: Phase1 | None = None,
        force: bool = False,
        progress: Progress = silent,
    ) -> KeySet:
        """Build what is missing or stale of a key set, circuits side by side, and put it into use.

        Without `phase1`, a circuit that is in use keeps its keys while its recipe is the same; a new one gets
        development keys. Keys of a ceremony are kept whatever `phase1` is. `force` makes new keys in any case.

        Raises:
            CompileError, SetupError, ToolchainError: a circuit could not be built. What was in use stays.
            InvalidArtifactError: the keys in use are of a ceremony and damaged; `force` replaces them.
        """
        toolchain = Toolchain.install(self.home, progress)
        with locked(self._folder("locks") / f"key_set_{name}.lock"):
            in_use = _circuits(_read_record(self.home / "key_sets" / f"{name}.json")) or {}

            def build(spec: CircuitSpec) -> BuiltCircuit:
                return self._build(spec, toolchain, in_use.get(spec.name), self_test, phase1, force, progress)

            with ThreadPoolExecutor(max_workers=max(1, min(len(specs), os.cpu_count() or 1))) as pool:
                built = list(pool.map(build, specs))
            key_set = KeySet(name, {circuit.spec.name: circuit for circuit in built})
            self.use(key_set)
        return key_set

    def build_circuit(
        self,
        spec: CircuitSpec,
        self_test: SelfTest,
        *,
        phase1: Phase1 | None = None,
        force: bool = False,
        progress: Progress = silent,
    ) -> BuiltCircuit:
        """Build a single circuit, if it is missing or `force` is set, and put it into use for its sources and protocol.

        Raises:
            CompileError, SetupError, ToolchainError: it could not be built. What was in use stays.
            InvalidArtifactError: the keys in use are of a ceremony and damaged; `force` replaces them.
        """
        toolchain = Toolchain.install(self.home, progress)
        in_use = self._indexed(self._circuit_record(spec))
        built = self._build(spec, toolchain, in_use, self_test, phase1, force, progress)
        self.use_circuit(built)
        return built

    def use_circuit(self, built: BuiltCircuit) -> None:
        """Put a single circuit, which is in the store, into use for its sources and protocol."""
        spec = built.spec
        record = self._circuit_record(spec)
        content = {
            "format": FORMAT,
            "circuit": spec.name,
            "sources": str(spec.sources.absolute()),
            "protocol": spec.protocol,
            "artifact": built.digest,
        }
        if _read_record(record) != content:
            self._folder("circuits")
            _write(record, content)

    def load_circuit(self, spec: CircuitSpec) -> BuiltCircuit:
        """Load what `use_circuit` has put into use for these sources and this protocol. Needs no Node.

        Raises:
            WrongKeySetError: nothing; it has not been built, or its sources have changed since.
            InvalidArtifactError: it is damaged.
        """
        record = _read_record(self._circuit_record(spec))
        if record is None:
            raise WrongKeySetError(f"there are no {spec.protocol} keys for {spec.name} as its sources are now")
        return self._load(str(record.get("artifact")), spec)

    def circuit_status(self, spec: CircuitSpec) -> str | None:
        """`development` or `ceremony`, the status of the keys that `load_circuit` would load; None without keys.

        Of `spec`, its signals need not be known.

        Raises:
            InvalidArtifactError: they are damaged.
        """
        record = _read_record(self._circuit_record(spec))
        if record is None:
            return None
        manifest = self._manifest(str(record.get("artifact")))
        return str(manifest["setup"]["status"])

    def remove_circuit(self, spec: CircuitSpec) -> list[Path]:
        """Remove what has been built of a single circuit, from these sources or earlier ones in the same folder.

        Artifacts that a key set uses stay. Returns the removed folders.
        """
        kept = {
            digest
            for path in [*(self.home / "known").glob("*.json"), *(self.home / "key_sets").glob("*.json")]
            for digest in (_circuits(_read_record(path)) or {}).values()
        }
        removed = []
        for path in sorted((self.home / "circuits").glob("*.json")):
            record = _read_record(path) or {}
            if (record.get("circuit"), record.get("sources")) != (spec.name, str(spec.sources.absolute())):
                continue
            path.unlink(missing_ok=True)
            digest = str(record.get("artifact"))
            folder = self.home / "artifacts" / digest
            if digest not in kept and folder.is_dir():
                for index in (self.home / "recipes").glob("*.json"):
                    if self._indexed(index) == digest:
                        index.unlink(missing_ok=True)
                shutil.rmtree(folder)
                removed.append(folder)
        compiled = compiled_folder(spec, self.home)
        if compiled.is_dir():
            shutil.rmtree(compiled)
            removed.append(compiled)
        return removed

    def _circuit_record(self, spec: CircuitSpec) -> Path:
        return self.home / "circuits" / f"{sources_digest(spec)}-{spec.protocol}.json"

    def use(self, key_set: KeySet) -> None:
        """Put a key set whose artifacts are in the store into use under its name."""
        record = {"format": FORMAT, "name": key_set.name, "circuits": key_set.artifacts}
        for folder, name in (("known", key_set.id), ("key_sets", key_set.name)):
            path = self._folder(folder) / f"{name}.json"
            if _read_record(path) != record:
                _write(path, record)

    def add(self, folder: Path, spec: CircuitSpec) -> BuiltCircuit:
        """Move a complete artifact from elsewhere into the store, after checking all of it.

        Raises:
            InvalidArtifactError, InsecureKeyError: it is not whole, or its key is not safe.
        """
        circuit = BuiltCircuit.load(folder, spec)
        target = self._folder("artifacts") / circuit.digest
        if not target.is_dir():
            folder.chmod(0o755)
            folder.rename(target)
        return self._load(circuit.digest, spec)

    def _load(self, digest: str, spec: CircuitSpec) -> BuiltCircuit:
        """Load an artifact of this store; the manifest must be the one that the digest was taken of."""
        circuit = BuiltCircuit.load(self.home / "artifacts" / digest, spec)
        _require_digest(circuit.folder, digest, circuit.digest)
        return circuit

    def _manifest(self, digest: str) -> dict[str, Any]:
        """The manifest of an artifact of this store that is whole. Raises InvalidArtifactError."""
        folder = self.home / "artifacts" / digest
        manifest, found = read_manifest(folder)
        _require_digest(folder, digest, found)
        return manifest

    def _require_whole_ceremony(self, circuit: str, digest: str | None) -> None:
        """Check that keys in use are not damaged ones of a ceremony, which this machine cannot make again.

        Raises:
            InvalidArtifactError: they are.
        """
        if digest is None:
            return
        folder = self.home / "artifacts" / digest
        try:
            self._manifest(digest)
        except InvalidArtifactError as error:
            manifest = folder / MANIFEST
            is_listed = manifest.is_file() and TRANSCRIPT.encode() in manifest.read_bytes()
            if is_listed or (folder / TRANSCRIPT).exists():
                raise InvalidArtifactError(
                    f"{circuit} has damaged keys of a ceremony ({error}); `mastermind ceremony finish` restores them "
                    "from its folder once the damaged folder is gone, and --force replaces them by development keys",
                    path=folder,
                ) from error

    def _build(
        self,
        spec: CircuitSpec,
        toolchain: Toolchain,
        in_use: str | None,
        self_test: SelfTest,
        phase1: Phase1 | None,
        force: bool,
        progress: Progress,
    ) -> BuiltCircuit:
        rendered = render(spec, toolchain.modules / "circomlib" / "circuits")
        recipe = recipe_of(rendered, toolchain, spec.protocol)
        origin = "development" if phase1 is None else phase1.digest
        index = self._folder("recipes") / f"{recipe}-{origin[:32]}.json"
        with locked(self._folder("locks") / f"{recipe}.lock"):
            if not force:
                self._require_whole_ceremony(spec.name, in_use)
                used = self._usable(in_use, spec, recipe)
                # Keys of a ceremony are more than this machine can make, from whatever phase 1.
                is_shared = used is not None and used.status == "ceremony" and used.ceremony is not None
                if used is not None and (phase1 is None or is_shared):
                    return used
                found = self._usable(self._indexed(index), spec, recipe)
                if found is not None:
                    return found
            for leftover in self._folder("tmp").glob(f"{recipe}-*"):
                shutil.rmtree(leftover, ignore_errors=True)
            temporary = Path(tempfile.mkdtemp(prefix=f"{recipe}-", dir=self._folder("tmp")))
            try:
                made = self._make(spec, rendered, toolchain, temporary, phase1, progress)
                progress(f"{spec.name}: proving and verifying once")
                self_test(made)
                built = self.add(temporary, spec)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
            _write(index, {"format": FORMAT, "artifact": built.digest})
        return built

    def _make(
        self,
        spec: CircuitSpec,
        rendered: RenderedCircuit,
        toolchain: Toolchain,
        folder: Path,
        phase1: Phase1 | None,
        progress: Progress,
    ) -> BuiltCircuit:
        kept = compiled_folder(spec, self.home)
        if kept.is_dir():
            shutil.copytree(kept, folder, dirs_exist_ok=True)
            compiled = CompiledCircuit(spec.name, folder)
            require_signals(spec, compiled)
        else:
            progress(f"{spec.name}: compiling")
            compiled = compile_circuit(spec, rendered, toolchain, folder)
        # Keys may take minutes: what can be wrong is known before.
        from mastermind.zk.witness import require_true_sample  # Loads wasmtime, which finding keys does without.

        require_true_sample(spec, compiled)
        domain, needed = required_power(compiled.r1cs, spec.protocol)
        if phase1 is None:
            phase1 = development_phase1(needed, toolchain, self.home, progress)
        contributions: tuple[Contribution, ...] = ()
        if spec.protocol == "groth16":
            contributions = make_keys(compiled, domain, phase1, toolchain, folder, progress).header.contributions
            # One contributor, whatever the phase 1: nobody else can know that delta was forgotten.
            status = "development"
        else:
            make_universal_keys(compiled, spec.protocol, domain, phase1, toolchain, folder, progress)
            # Phase 1 is the whole setup.
            status = "ceremony" if phase1.origin == "hermez" else "development"
        write_artifact(spec, rendered, toolchain, folder, domain, setup_json(status, phase1, contributions))
        return BuiltCircuit.load(folder, spec)

    def _usable(self, digest: str | None, spec: CircuitSpec, recipe: str) -> BuiltCircuit | None:
        """The artifact if it is whole and was made by this recipe."""
        if digest is None:
            return None
        try:
            circuit = self._load(digest, spec)
        except InvalidInputError:
            return None
        return circuit if circuit.manifest["recipe"] == recipe else None

    def _indexed(self, index: Path) -> str | None:
        record = _read_record(index)
        return None if record is None else str(record.get("artifact"))

    def _folder(self, name: str) -> Path:
        folder = self.home / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def setup_json(status: str, phase1: Phase1 | Phase1Record, contributions: Sequence[Contribution]) -> dict[str, Any]:
    """What a manifest says about the trusted setup."""
    digest = phase1.digest if isinstance(phase1, Phase1) else phase1.blake2b
    return {
        "status": status,
        "phase1": {"origin": phase1.origin, "power": phase1.power, "blake2b": digest},
        "contributions": [
            {
                "name": contribution.name,
                "digest": contribution.digest,
                "beacon": contribution.beacon,
                "beacon_iterations_power": contribution.beacon_iterations_power,
            }
            for contribution in contributions
        ],
    }


def write_artifact(
    spec: CircuitSpec,
    rendered: RenderedCircuit,
    toolchain: Toolchain,
    folder: Path,
    domain_power: int,
    setup: Mapping[str, Any],
) -> None:
    """Complete a folder of compiled circuit and keys: add the source, and the manifest over all that is there."""
    rendered.write(folder / SOURCE)
    r1cs = R1csHeader.read(folder / f"{spec.name}.r1cs")
    manifest = {
        "format": FORMAT,
        "circuit": spec.name,
        "parameters": dict(spec.parameters),
        "public": list(spec.public_labels),
        "recipe": recipe_of(rendered, toolchain, spec.protocol),
        "sources": rendered.digests,
        "constraints": r1cs.constraint_count,
        "wires": r1cs.wire_count,
        "domain_power": domain_power,
        "protocol": spec.protocol,
        "tools": tool_versions(toolchain),
        "setup": dict(setup),
        "files": {
            path.relative_to(folder).as_posix(): _sha256(path) for path in sorted(folder.rglob("*")) if path.is_file()
        },
    }
    _write(folder / MANIFEST, manifest)


def tool_versions(toolchain: Toolchain) -> dict[str, Any]:
    """What circuits are compiled and keys are made with."""
    return {
        "circom": CIRCOM_VERSION,
        "compiler": find_compiler(toolchain).name,
        "options": list(OPTIONS),
        "circomlib": toolchain.version("circomlib"),
        "snarkjs": toolchain.version("snarkjs"),
    }


def read_manifest(folder: Path) -> tuple[dict[str, Any], str]:
    """Read the manifest of an artifact and check every file that it lists.

    Returns:
        The manifest and its SHA-256.

    Raises:
        InvalidArtifactError: it is not readable, or a file is missing or differs.
    """
    path = folder / MANIFEST
    try:
        data = path.read_bytes()
        manifest = parse_json(data)
        files = dict(manifest["files"])
        complete = (
            manifest["format"] == FORMAT
            and not isinstance(manifest["format"], bool)
            and all(isinstance(manifest[name], dict) for name in ("sources", "setup", "tools"))
            and isinstance(manifest["public"], list)
            and manifest["setup"]["status"] in STATUSES
            and all(name in manifest for name in ("circuit", "recipe", "constraints", "domain_power"))
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidArtifactError(f"{path} is missing or damaged", path=path) from error
    if not complete:
        raise InvalidArtifactError(f"{path} is not a manifest of this version", path=path)
    if VERIFYING_KEY not in files:
        raise InvalidArtifactError(f"{path} does not list {VERIFYING_KEY}", path=path)
    for name, expected in files.items():
        file = folder / name
        if ".." in Path(name).parts or Path(name).is_absolute():
            raise InvalidArtifactError(f"{path} lists a file outside its folder", path=path)
        try:
            found = _sha256(file)
        except (OSError, ValueError) as error:  # a name may have a zero byte in it
            raise InvalidArtifactError(f"{file} is missing", path=file) from error
        if found != expected:
            raise InvalidArtifactError(
                f"{file} is not the file in the manifest: "
                f"expected SHA-256 {str(expected)[:16]}..., found {found[:16]}...",
                path=file,
            )
    return manifest, hashlib.sha256(data).hexdigest()


def _require_digest(folder: Path, expected: str, found: str) -> None:
    """Check that a manifest is the one that a digest was taken of. Raises InvalidArtifactError."""
    if found != expected:
        path = folder / MANIFEST
        raise InvalidArtifactError(
            f"{path} has been changed: expected SHA-256 {expected[:16]}..., found {found[:16]}...", path=path
        )


def recipe_of(rendered: RenderedCircuit, toolchain: Toolchain, protocol: ProofSystem = "groth16") -> str:
    """The digest of all that decides a circuit's constraints and the form of its keys."""
    recipe: dict[str, Any] = {
        "format": FORMAT,
        "circuit": rendered.name,
        "sources": rendered.digests,
        "circom": CIRCOM_VERSION,
        "options": list(OPTIONS),
        "snarkjs": toolchain.version("snarkjs"),
    }
    if protocol != "groth16":  # which was the only one before
        recipe["protocol"] = protocol
    return hashlib.sha256(canonical_json(recipe)).hexdigest()


def _require_ceremony(folder: Path, circuit: str, manifest: Mapping[str, Any]) -> None:
    """Check that a circuit has the transcript of its ceremony if it says it is from one, and that they agree.

    Raises:
        InvalidArtifactError: not so.
    """
    if TRANSCRIPT not in manifest["files"]:
        if manifest["setup"]["status"] == "ceremony":
            raise InvalidArtifactError(f"the keys in {folder} have no transcript of a ceremony", path=folder / MANIFEST)
        return
    header = ZkeyHeader.read(folder / f"{circuit}.zkey")
    try:
        transcript = CeremonyTranscript.read(folder / TRANSCRIPT)
        if circuit not in transcript.circuits:
            raise InvalidArtifactError(f"{circuit} has no part in the ceremony in {folder}", path=folder)
        transcript.require_contributions(circuit, header.contributions)
    except RejectedCeremonyError as error:
        raise InvalidArtifactError(f"the keys in {folder} are not of their ceremony: {error}", path=folder) from error
    expected = setup_json(transcript.status, transcript.phase1, header.contributions)
    if manifest["setup"] != expected or manifest["sources"] != transcript.circuits[circuit].sources:
        raise InvalidArtifactError(f"the manifest in {folder} tells of another ceremony", path=folder / MANIFEST)


def _read_record(path: Path) -> dict[str, Any] | None:
    """A JSON record of this format, or None when there is none (a damaged one counts as none)."""
    try:
        record = parse_json(path.read_bytes())
        return record if record["format"] == FORMAT else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _circuits(record: dict[str, Any] | None) -> dict[str, str] | None:
    try:
        return None if record is None else {str(name): str(digest) for name, digest in record["circuits"].items()}
    except (KeyError, AttributeError):
        return None


def _write(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON in one step: readers see the old file or the new one."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".", delete=False, encoding="utf-8") as file:
        json.dump(content, file, indent=1, sort_keys=True)
    Path(file.name).chmod(0o644)
    Path(file.name).replace(path)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
