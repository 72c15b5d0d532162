"""Key sets as one file, to be carried to another machine.

Keys are made once and distributed: whoever makes new ones plays another game. The archive is a ZIP with
`key_set.json` and the artifacts of the key set. On import nothing is believed: every name must be one that the
manifests list, every file is checked by SHA-256, sizes are bounded, the artifacts must be those of *our* circuits
(rendered from the same templates), and the keys must have a phase 2. Keys of a ceremony are taken only after all of it
has been verified, from our own source and a phase-1 file that the caller has. An archive that does not hold changes
nothing.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mastermind.errors import InvalidArtifactError, InvalidInputError, MastermindError
from mastermind.zk.artifacts import FORMAT, MANIFEST, ArtifactStore, BuiltCircuit, KeySet
from mastermind.zk.ceremony import Workbench, verify_keys
from mastermind.zk.circuit import CircuitSpec
from mastermind.zk.evidence import parse_json
from mastermind.zk.phase1 import file_digest
from mastermind.zk.progress import Progress, silent
from mastermind.zk.prove import self_test
from mastermind.zk.tools import Toolchain

INDEX = "key_set.json"
#: A key set of the largest rules takes some 20 MB. The bound is on all files together, as they unpack.
MAX_BYTES = 1 << 28
MAX_FILES = 1 << 10

# Equal archives for equal key sets: ZIP wants a time, and this is the earliest it has.
_TIME = (1980, 1, 1, 0, 0, 0)


def export_key_set(key_set: KeySet, path: Path) -> None:
    """Write a key set to a new archive.

    Raises:
        InvalidInputError: the file exists.
    """
    index = {"format": FORMAT, "name": key_set.name, "key_set_id": key_set.id, "circuits": key_set.artifacts}
    try:
        with zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED) as archive:
            _add(archive, INDEX, json.dumps(index, indent=1, sort_keys=True).encode())
            for _, circuit in sorted(key_set.circuits.items()):
                for name in sorted([MANIFEST, *circuit.manifest["files"]]):
                    _add(archive, f"{circuit.digest}/{name}", (circuit.folder / name).read_bytes())
    except FileExistsError as error:
        raise InvalidInputError(f"{path} exists") from error


def import_key_set(
    store: ArtifactStore,
    path: Path,
    specs_of: Callable[[str], Sequence[CircuitSpec]],
    *,
    ptaus: Sequence[Path] = (),
    progress: Progress = silent,
) -> tuple[KeySet, str | None]:
    """Take a key set from an archive into the store and put it into use.

    `specs_of` gives the circuits that a key set of some name must have; it raises for a name it does not know.
    `ptaus` are the phase-1 files of the ceremonies that the keys come from; other keys need none.

    Returns:
        The key set, and the id of the one in use before, which may be the same; None when there was none.

    Raises:
        InvalidArtifactError: not such an archive, damaged, of other circuits, or not the key set it says it is.
        InvalidInputError: its keys are of a ceremony whose phase-1 file is not given.
        RejectedCeremonyError: its keys are not those of the ceremony that it tells of.
        ToolchainError: a ceremony could not be verified, which takes Node.
        InsecureKeyError: a key in it has no phase 2.
        WitnessError, ProofSelfCheckError: a circuit in it does not prove and verify a sample.
    """
    store.home.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory(dir=store.home) as temporary:
            entries = archive.infolist()
            _require_bounds(entries, path)
            name, identifier, artifacts = _read_index(archive, path)
            specs = {spec.name: spec for spec in specs_of(name)}
            if specs.keys() != artifacts.keys():
                raise InvalidArtifactError(f"{path} does not hold the circuits of {name}", path=path)
            expected = {INDEX}
            for name_in_set, digest in artifacts.items():
                expected |= _extract(archive, path, digest, Path(temporary) / name_in_set)
            unexpected = {entry.filename for entry in entries} - expected
            if unexpected:
                raise InvalidArtifactError(f"{path} holds a file that belongs to nothing", path=path)
            # First all checks, then all moves: a bad archive leaves nothing behind.
            loaded = {circuit: BuiltCircuit.load(Path(temporary) / circuit, specs[circuit]) for circuit in artifacts}
            for circuit in loaded.values():
                circuit.require_current()
            _verify_ceremonies(store, path, loaded, ptaus, progress)
            for circuit in loaded.values():
                # The key set id covers the verifying keys. That proofs hide the witness is checked with the header of
                # each proving key; this shows that it and the program prove at least one true statement.
                self_test(circuit)
            found = KeySet(name, loaded)
            if found.artifacts != artifacts or found.id != identifier:
                raise InvalidArtifactError(
                    f"{path} says it is key set {identifier[:16]}; what is in it is {found.id[:16]}", path=path
                )
            try:
                # What works already under this id stays: the archive could only replace it by something else.
                circuits = dict(store.load_key_set(name, list(specs.values()), identifier).circuits)
            except InvalidInputError:
                circuits = {circuit: store.add(Path(temporary) / circuit, specs[circuit]) for circuit in artifacts}
    except MastermindError:
        raise
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        # ValueError: among others, names that no file can have.
        raise InvalidArtifactError(f"{path} cannot be read as a key set: {error}", path=path) from error
    key_set = KeySet(name, circuits)
    previous = store.id_in_use(name)
    store.use(key_set)
    return key_set, previous


def _verify_ceremonies(
    store: ArtifactStore,
    path: Path,
    circuits: Mapping[str, BuiltCircuit],
    ptaus: Sequence[Path],
    progress: Progress,
) -> None:
    """Verify every circuit that says it is from a ceremony, whatever its status; an archive's word is not enough."""
    claimed = {name: transcript for name, circuit in circuits.items() if (transcript := circuit.ceremony) is not None}
    if not claimed:
        return
    given = {file_digest(ptau): ptau for ptau in ptaus}
    for name, transcript in claimed.items():
        phase1 = transcript.phase1
        if phase1.blake2b not in given:
            raise InvalidInputError(
                f"{path} says that the key of {name} is from a ceremony, and nothing shows it without its phase-1 "
                f"file: {phase1.origin}, 2^{phase1.power}, BLAKE2b {phase1.blake2b[:16]}...; give that with --ptau"
            )
        if file_digest(circuits[name].r1cs) != transcript.circuits[name].r1cs:
            raise InvalidArtifactError(f"{path} has other constraints of {name} than its ceremony", path=path)
    toolchain = Toolchain.install(store.home, progress)
    with tempfile.TemporaryDirectory() as folder:
        bench = Workbench.make([circuits[name].spec for name in claimed], toolchain, store, Path(folder), progress)
        # A digest covers all of a transcript: equal ones are one ceremony.
        for digest, transcript in {found.last_digest: found for found in claimed.values()}.items():
            zkeys = {name: circuits[name].zkey for name, found in claimed.items() if found.last_digest == digest}
            verify_keys(transcript, zkeys, given[transcript.phase1.blake2b], bench, progress=progress)


def _require_bounds(entries: Sequence[zipfile.ZipInfo], path: Path) -> None:
    if len(entries) > MAX_FILES or len({entry.filename for entry in entries}) != len(entries):
        raise InvalidArtifactError(f"{path} is not a key set: too many files, or one twice", path=path)
    # What an entry says it unpacks to is all that is ever read of it.
    if sum(entry.file_size for entry in entries) > MAX_BYTES:
        raise InvalidArtifactError(f"{path} is not a key set: it unpacks to more than {MAX_BYTES} bytes", path=path)
    if not {entry.compress_type for entry in entries} <= {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise InvalidArtifactError(f"{path} is not a key set: it is compressed in another way", path=path)


def _read_index(archive: zipfile.ZipFile, path: Path) -> tuple[str, str, dict[str, str]]:
    try:
        index: Any = parse_json(_read(archive, INDEX, path))
        name, identifier, circuits = index["name"], index["key_set_id"], index["circuits"]
        well_formed = index["format"] == FORMAT and isinstance(name, str) and isinstance(identifier, str)
        well_formed = well_formed and all(
            isinstance(key, str) and isinstance(value, str) and len(value) == 64 and value.isalnum()
            for key, value in circuits.items()
        )
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        if isinstance(error, InvalidArtifactError):
            raise
        raise InvalidArtifactError(f"{path} has no readable {INDEX}", path=path) from error
    if not well_formed:
        raise InvalidArtifactError(f"{path} has a malformed {INDEX}", path=path)
    return name, identifier, dict(circuits)


def _extract(archive: zipfile.ZipFile, path: Path, digest: str, folder: Path) -> set[str]:
    """Write the files of one artifact, as its manifest lists them, and return their names in the archive."""
    folder.mkdir()
    data = _read(archive, f"{digest}/{MANIFEST}", path)
    (folder / MANIFEST).write_bytes(data)
    try:
        manifest = parse_json(data)
        names = [str(name) for name in manifest["files"]]
        well_formed = _is_well_formed(manifest)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidArtifactError(f"{path} has a damaged manifest", path=path) from error
    if not well_formed:
        raise InvalidArtifactError(f"{path} has a malformed manifest", path=path)
    for name in names:
        target = folder / name
        if not target.resolve().is_relative_to(folder.resolve()):
            raise InvalidArtifactError(f"{path} lists a file outside its folder", path=path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(_read(archive, f"{digest}/{name}", path))
    return {f"{digest}/{name}" for name in (MANIFEST, *names)}


def _is_well_formed(manifest: Any) -> bool:
    """Whether all that is ever taken from a manifest has its type. Raises KeyError, TypeError or AttributeError."""
    setup = manifest["setup"]
    phase1, contributions = setup["phase1"], setup["contributions"]
    texts = [manifest["circuit"], manifest["recipe"], phase1["origin"], *manifest["public"]]
    texts += [*manifest["files"].values(), *manifest["sources"].values()]
    texts += [contribution["name"] for contribution in contributions]
    texts += [contribution["beacon"] for contribution in contributions if contribution["beacon"] is not None]
    counts = [manifest["constraints"], manifest["domain_power"], phase1["power"]]
    return (
        setup["status"] in ("development", "ceremony")
        and isinstance(manifest["public"], list)
        and isinstance(contributions, list)
        and all(isinstance(text, str) for text in texts)
        and all(type(count) is int and 0 <= count < 1 << 32 for count in counts)
    )


def _read(archive: zipfile.ZipFile, name: str, path: Path) -> bytes:
    try:
        with archive.open(name) as file:
            # With a number, or else zipfile unpacks all that the entry has before it looks at what it says it has.
            return file.read(archive.getinfo(name).file_size + 1)
    except KeyError as error:
        raise InvalidArtifactError(f"{path} has no {name}", path=path) from error


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, _TIME)
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, data)
