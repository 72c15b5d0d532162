"""A ceremony: phase 2 of the trusted setup by several people, each on a machine of their own.

    folder/
      ceremony.json     the transcript (`mastermind.zk.contributions`)
      phase1.ptau       the phase-1 file; may be left out and given again, it is known by its digest
      <circuit>.zkey    the key of each circuit as the latest contribution left it

The folder travels from one to the next, and nobody believes what is in it. Sources do not travel with it, only their
digests: who takes part has them already and knows what they state. Circuits are compiled here from those sources, the
initial keys are made from them and the phase-1 file again, and every contribution is verified from there,
before anything is added. A folder is never changed; every step writes a new one. One participant whose secret is
forgotten is enough for the keys to be safe.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mastermind.errors import (
    InvalidArtifactError,
    InvalidInputError,
    RejectedCeremonyError,
    SetupError,
    WrongProtocolError,
    counted,
)
from mastermind.zk.artifacts import (
    VERIFYING_KEY,
    ArtifactStore,
    BuiltCircuit,
    KeySet,
    SelfTest,
    recipe_of,
    setup_json,
    tool_versions,
    write_artifact,
)
from mastermind.zk.circuit import CircuitSpec
from mastermind.zk.compile import CompiledCircuit, compile_circuit, compiled_folder, require_signals
from mastermind.zk.contributions import (
    TRANSCRIPT,
    Beacon,
    CeremonyCircuit,
    CeremonyTranscript,
    KeyChange,
    OwnSource,
    Phase1Record,
    check_id,
    check_name,
    folded,
)
from mastermind.zk.phase1 import HERMEZ_DIGESTS, Phase1, file_digest, read_power
from mastermind.zk.progress import Progress, silent
from mastermind.zk.r1cs import R1csHeader
from mastermind.zk.render import RenderedCircuit, is_circomlib, own_digests, render
from mastermind.zk.setup import Step, do_steps
from mastermind.zk.tools import Toolchain
from mastermind.zk.zkey import read_contributions

PHASE1 = "phase1.ptau"


@dataclass(frozen=True)
class Source:
    """A circuit compiled here from its source."""

    spec: CircuitSpec
    rendered: RenderedCircuit
    compiled: CompiledCircuit

    @property
    def path(self) -> Path:
        """Where the file with its main component is on this machine."""
        return (self.spec.sources / self.spec.template).resolve()

    @property
    def r1cs_digest(self) -> str:
        """BLAKE2b-512 of the constraints."""
        return file_digest(self.compiled.r1cs)

    @property
    def domain_power(self) -> int:
        """The power of two of its evaluation domain."""
        return R1csHeader.read(self.compiled.r1cs).domain_power


@dataclass(frozen=True)
class Workbench:
    """What this machine brings to a ceremony: the tools, and the circuits as it compiles them itself."""

    toolchain: Toolchain
    sources: Mapping[str, Source]

    @classmethod
    def make(
        cls,
        specs: Sequence[CircuitSpec],
        toolchain: Toolchain,
        store: ArtifactStore,
        folder: Path,
        progress: Progress = silent,
    ) -> Workbench:
        """Compile circuits into `folder`, which has to stay while the workbench is in use.

        What has been compiled here from the same source is taken from the store.

        Raises:
            CompileError: a circuit does not compile.
            WrongProtocolError: a circuit is not for Groth16.
        """
        for spec in specs:
            require_groth16(spec)

        def source(spec: CircuitSpec) -> Source:
            rendered = render(spec, toolchain.modules / "circomlib" / "circuits")
            built = store.find_build(spec, recipe_of(rendered, toolchain))
            if built is not None:
                return Source(spec, rendered, CompiledCircuit(spec.name, built.folder))
            kept = compiled_folder(spec, store.home)
            if kept.is_dir():
                compiled = CompiledCircuit(spec.name, kept)
                require_signals(spec, compiled)
                return Source(spec, rendered, compiled)
            progress(f"{spec.name}: compiling")
            return Source(spec, rendered, compile_circuit(spec, rendered, toolchain, folder / spec.name))

        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            return cls(toolchain, {made.spec.name: made for made in pool.map(source, specs)})

    @property
    def domain_power(self) -> int:
        """The power of a phase-1 file that serves all circuits."""
        return max(source.domain_power for source in self.sources.values())


def read_transcript(folder: Path) -> CeremonyTranscript:
    """Read the transcript in the folder of a ceremony, without a look at the keys.

    Raises:
        InvalidArtifactError: there is none, it is not well formed, or a file beside it is a link.
        RejectedCeremonyError: it has been changed.
    """
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.is_symlink():
            raise InvalidArtifactError(
                f"{path.name} in the ceremony {folder} is a symbolic link; a ceremony has files of its own only",
                path=path,
            )
    return CeremonyTranscript.read(folder / TRANSCRIPT)


def require_groth16(spec: CircuitSpec) -> None:
    """Check that a circuit is proved by Groth16, before anything is compiled.

    Raises:
        WrongProtocolError: it is proved by a protocol whose whole setup is phase 1.
    """
    if spec.protocol != "groth16":
        raise WrongProtocolError(
            f"{spec.name} is proved by {spec.protocol} and needs no ceremony of its own: its keys follow from a public "
            "phase-1 file; `mastermind zk setup --ptau` makes them"
        )


def start(
    name: str | None,
    bench: Workbench,
    phase1: Phase1,
    out: Path,
    progress: Progress = silent,
    *,
    parameters: Mapping[str, bool | int | str] | None = None,
) -> CeremonyTranscript:
    """Begin a ceremony for the keys of all circuits on the workbench.

    `name` is that of the key set which they are for, or None for circuits of somebody's own. Theirs are also the
    `parameters` that have been given over those of their project, which everybody who comes later needs as well.

    Raises:
        InvalidInputError: `out` exists, or no transcript can tell of such circuits.
        Phase1TooSmallError: so it is for one of them.
        ToolchainError: snarkjs failed.
    """
    phase1.require(bench.domain_power, f"the largest of {', '.join(bench.sources)}")
    with _new_folder(out) as folder:
        ptau = folder / PHASE1
        shutil.copyfile(phase1.path, ptau)
        progress("making the initial keys")
        keys = {circuit: folder / f"{circuit}.zkey" for circuit in bench.sources}
        do_steps(bench.toolchain, [_setup(source, ptau, keys[circuit]) for circuit, source in bench.sources.items()])
        transcript = CeremonyTranscript.started_now(
            name,
            {
                tool: version if isinstance(version, str) else " ".join(version)
                for tool, version in tool_versions(bench.toolchain).items()
            },
            Phase1Record(phase1.origin, phase1.power, phase1.digest),
            {
                circuit: CeremonyCircuit(
                    source.rendered.digests,
                    source.r1cs_digest,
                    file_digest(keys[circuit]),
                    own=None if name is not None else OwnSource(source.spec.template, dict(parameters or {})),
                )
                for circuit, source in bench.sources.items()
            },
        )
        (folder / TRANSCRIPT).write_bytes(transcript.to_bytes())
    return transcript


def verify(folder: Path, bench: Workbench, ptau: Path | None = None, progress: Progress = silent) -> CeremonyTranscript:
    """Verify a ceremony from the source of its circuits and the phase-1 file up to its present keys.

    `ptau` is the phase-1 file when it is not in the folder.

    Raises:
        RejectedCeremonyError: something does not hold; it names the circuit and the contribution.
        InvalidArtifactError: a file is missing or damaged.
        ToolchainError: snarkjs failed.
    """
    transcript = read_transcript(folder)
    with _received(folder, transcript, ptau) as (zkeys, phase1):
        verify_keys(transcript, zkeys, phase1, bench, progress=progress)
    return transcript


def verify_keys(
    transcript: CeremonyTranscript,
    zkeys: Mapping[str, Path],
    ptau: Path,
    bench: Workbench,
    *,
    progress: Progress = silent,
    then: Callable[[Mapping[str, Path]], Sequence[Step]] = lambda _: (),
) -> None:
    """Verify keys of a ceremony, by circuit: all or some of those in the transcript.

    `then` takes the initial keys, by circuit, and gives steps to do in the same process once all keys are verified;
    their new files are worth nothing when this raises.

    Raises:
        RejectedCeremonyError, InvalidArtifactError, ToolchainError: as `verify`.
    """
    _require_phase1(transcript.phase1, ptau)
    for circuit, zkey in zkeys.items():
        _require_source(transcript, circuit, bench)
        transcript.require_contributions(circuit, read_contributions(zkey))
        if file_digest(zkey) != transcript.key_digest(circuit):
            number = len(transcript.contributions)
            who = transcript.contributions[-1].who if number else ""
            raise RejectedCeremonyError(
                f"{circuit}: the key is not the one that "
                + (f"contribution {number} ({who}) left" if number else "the ceremony began with"),
                circuit=circuit,
                contribution=number or None,
                contributor=who,
            )
    progress(f"verifying {counted(len(transcript.contributions), 'contribution')} to {counted(len(zkeys), 'key')}")
    with tempfile.TemporaryDirectory() as temporary:
        initial = {circuit: Path(temporary, f"{circuit}.zkey") for circuit in zkeys}
        steps = [_setup(bench.sources[circuit], ptau, initial[circuit]) for circuit in zkeys]
        steps += [_verification(initial[circuit], ptau, zkey) for circuit, zkey in zkeys.items()]
        steps += then(initial)
        results = do_steps(bench.toolchain, steps)
        for circuit, path in initial.items():
            if file_digest(path) != transcript.circuits[circuit].initial:
                raise RejectedCeremonyError(
                    f"{circuit}: the ceremony began with another key than circuit and phase 1 give", circuit=circuit
                )
    refusals = dict(zip(zkeys, results[len(zkeys) : 2 * len(zkeys)], strict=False))
    for circuit, reason in refusals.items():
        if reason:
            raise _refused(transcript, circuit, reason)
    if len(results) != len(steps) or any(results[2 * len(zkeys) :]):
        raise SetupError("snarkjs refuses what it has just made of these keys")


def contribute(
    folder: Path,
    out: Path,
    bench: Workbench,
    name: str,
    identifier: str | None = None,
    ptau: Path | None = None,
    progress: Progress = silent,
) -> CeremonyTranscript:
    """Verify a ceremony and contribute to every key of it, with randomness from the system.

    `identifier` is a public number of the contributor, such as a player id.

    Raises:
        InvalidInputError: the name or the identifier will not do, or `out` exists.
        RejectedCeremonyError: as `verify`; or a beacon has ended this ceremony, or the name has contributed already.
        InvalidArtifactError, ToolchainError: as `verify`.
    """
    check_name(name)
    identifier = None if identifier is None else check_id(identifier)
    transcript = read_transcript(folder)
    if folded(name) in {folded(made.name) for made in transcript.people}:
        raise RejectedCeremonyError(f"{name} has contributed to this ceremony already", contributor=name)
    return _extend(folder, out, bench, transcript, name, identifier, None, ptau, progress)


def end(
    folder: Path, out: Path, bench: Workbench, beacon: Beacon, ptau: Path | None = None, progress: Progress = silent
) -> CeremonyTranscript:
    """Verify a ceremony and end its contributions with a public random value.

    Raises:
        InvalidInputError: `out` exists.
        RejectedCeremonyError: as `verify`; or nobody has contributed, or a beacon has ended this ceremony.
        InvalidArtifactError, ToolchainError: as `verify`.
    """
    transcript = read_transcript(folder)
    if not transcript.people:
        raise RejectedCeremonyError("nobody has contributed to this ceremony: a beacon is known to everybody")
    return _extend(folder, out, bench, transcript, "", None, beacon, ptau, progress)


def finish(
    folder: Path,
    bench: Workbench,
    store: ArtifactStore,
    self_test: SelfTest,
    ptau: Path | None = None,
    others: Sequence[CircuitSpec] = (),
    progress: Progress = silent,
) -> KeySet:
    """Verify a ceremony that has been ended, and put its keys into use: the key set, or each circuit for its sources.

    `others` are the circuits of the key set that have no part in the ceremony: they keep the keys in use.

    Returns:
        The key set in use; of circuits of somebody's own, those of the ceremony, under no name.

    Raises:
        RejectedCeremonyError: as `verify`; or no beacon has ended it, or nobody has contributed.
        WrongKeySetError: there are no keys in use for the other circuits.
        InvalidArtifactError, ToolchainError: as `verify`.
        ProofSelfCheckError: a new key does not prove and verify.
    """
    transcript = read_transcript(folder)
    if not transcript.ended:
        raise RejectedCeremonyError("no beacon has ended this ceremony: somebody could contribute still")
    if not transcript.people:
        raise RejectedCeremonyError("nobody has contributed to this ceremony: a beacon is known to everybody")
    name = transcript.name or ""
    kept = store.load_key_set(name, others).circuits if others else {}
    temporaries: dict[str, Path] = {}
    store.home.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=store.home) as temporary,
        _received(folder, transcript, ptau) as (zkeys, phase1),
    ):
        exports: list[Step] = []
        for circuit, zkey in zkeys.items():
            made = temporaries[circuit] = Path(temporary) / circuit
            made.mkdir()
            zkeys[circuit] = Path(shutil.move(zkey, made / f"{circuit}.zkey"))
            exports.append({"do": "export", "zkey": str(zkeys[circuit]), "vkey": str(made / VERIFYING_KEY)})
        verify_keys(transcript, zkeys, phase1, bench, progress=progress, then=lambda _: exports)
        for circuit, made in temporaries.items():
            source = bench.sources[circuit]
            for path in (source.compiled.r1cs, source.compiled.wasm, source.compiled.sym):
                shutil.copyfile(path, made / path.name)
            (made / TRANSCRIPT).write_bytes(transcript.to_bytes())
            setup = setup_json(transcript.status, transcript.phase1, read_contributions(zkeys[circuit]))
            write_artifact(source.spec, source.rendered, bench.toolchain, made, source.domain_power, setup)
            progress(f"{circuit}: proving and verifying once")
            self_test(BuiltCircuit.load(made, source.spec))
        added = {circuit: store.add(made, bench.sources[circuit].spec) for circuit, made in temporaries.items()}
    key_set = KeySet(name, {**kept, **added})
    if transcript.name is not None:
        store.use(key_set)
    else:
        for built in added.values():
            store.use_circuit(built)
    return key_set


def _extend(
    folder: Path,
    out: Path,
    bench: Workbench,
    transcript: CeremonyTranscript,
    name: str,
    identifier: str | None,
    beacon: Beacon | None,
    ptau: Path | None,
    progress: Progress,
) -> CeremonyTranscript:
    """Verify a ceremony and write it to a new folder with one contribution more, which has been verified too."""
    if transcript.ended:
        raise RejectedCeremonyError("a beacon has ended this ceremony: there are no contributions any more")
    if out.resolve().is_relative_to(folder.resolve()):
        raise InvalidInputError(f"{out} is in the folder of the ceremony, which stays as it is; name another")
    with _new_folder(out) as made, _received(folder, transcript, ptau) as (zkeys, phase1):
        new = {circuit: made / f"{circuit}.zkey" for circuit in zkeys}

        def then(initial: Mapping[str, Path]) -> Iterator[Step]:
            for circuit, zkey in zkeys.items():
                change: Step = {"from": str(zkey), "to": str(new[circuit])}
                if beacon is None:
                    yield {"do": "contribute", **change, "name": name}
                else:
                    yield {"do": "beacon", **change, "value": beacon.value, "power": beacon.iterations_power}
            for circuit in zkeys:
                yield _verification(initial[circuit], phase1, new[circuit])

        verify_keys(transcript, zkeys, phase1, bench, progress=progress, then=lambda initial: list(then(initial)))
        changes = {
            circuit: KeyChange(
                before=transcript.key_digest(circuit),
                after=file_digest(path),
                hash=read_contributions(path)[-1].digest,
            )
            for circuit, path in new.items()
        }
        extended = transcript.with_contribution(name, identifier, beacon, changes)
        for circuit, path in new.items():
            extended.require_contributions(circuit, read_contributions(path))
        (made / TRANSCRIPT).write_bytes(extended.to_bytes())
        if (folder / PHASE1).exists():
            shutil.copyfile(phase1, made / PHASE1)  # never that of the folder: this one has been checked
    return extended


@contextmanager
def _received(
    folder: Path, transcript: CeremonyTranscript, ptau: Path | None
) -> Iterator[tuple[dict[str, Path], Path]]:
    """Copies of the keys in the folder of a ceremony, by circuit, and of its phase-1 file unless one is given.

    What is verified is what is used, whatever becomes of the folder meanwhile.

    Raises:
        InvalidArtifactError: a file is missing or not an ordinary one.
    """
    if ptau is None and not (folder / PHASE1).is_file():
        raise InvalidArtifactError(f"{folder} has no {PHASE1}; give the phase-1 file with --ptau", path=folder / PHASE1)
    with tempfile.TemporaryDirectory() as temporary:
        names = [f"{circuit}.zkey" for circuit in transcript.circuits]
        copies = [_copied(folder / name, Path(temporary)) for name in names]
        phase1 = _copied(folder / PHASE1, Path(temporary)) if ptau is None else ptau
        yield dict(zip(transcript.circuits, copies, strict=True)), phase1


def _copied(path: Path, to: Path) -> Path:
    """Copy an ordinary file, never what a link leads to. Raises InvalidArtifactError."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InvalidArtifactError(f"{path} is not an ordinary file", path=path)
            with (to / path.name).open("wb") as copy:
                shutil.copyfileobj(file, copy, 1 << 20)
    except OSError as error:
        raise InvalidArtifactError(f"{path} cannot be read: {error.strerror}", path=path) from error
    return to / path.name


def _require_phase1(record: Phase1Record, ptau: Path) -> None:
    """Check that a file is the phase 1 of a ceremony, and public if the transcript says so."""
    power, digest = read_power(ptau), file_digest(ptau)
    if (power, digest) != (record.power, record.blake2b):
        raise RejectedCeremonyError(
            f"{ptau.name} is not the phase 1 of this ceremony: its BLAKE2b starts with {digest[:16]}, "
            f"that of the ceremony with {record.blake2b[:16]} (2^{record.power})"
        )
    if (record.origin == "hermez") != (HERMEZ_DIGESTS.get(power) == digest):
        raise RejectedCeremonyError(f"the phase 1 of this ceremony is not what it says, a {record.origin} one")


def require_own_sources(transcript: CeremonyTranscript, spec: CircuitSpec) -> None:
    """Check, before anything is compiled, that a circuit has the sources of the ceremony, circomlib's aside.

    Raises:
        RejectedCeremonyError: not so; the message names the files.
        InvalidArtifactError: it does not render.
    """
    recorded = transcript.circuits[spec.name].sources
    own = {path: digest for path, digest in recorded.items() if not is_circomlib(path)}
    _require_equal(spec.name, own, own_digests(spec))


def _require_equal(circuit: str, recorded: Mapping[str, str], here: Mapping[str, str]) -> None:
    """Check that digests of sources are the same on both sides. Raises RejectedCeremonyError, naming the files."""
    found = {
        "differs": [path for path, digest in recorded.items() if here.get(path, digest) != digest],
        "is missing here": recorded.keys() - here.keys(),
        "has no part in the ceremony": here.keys() - recorded.keys(),
    }
    differences = [f"{path} {what}" for what, paths in found.items() for path in sorted(paths)]
    if differences:
        raise RejectedCeremonyError(
            f"{circuit}: the ceremony began with other sources than those here: {', '.join(differences)}",
            circuit=circuit,
        )


def _require_source(transcript: CeremonyTranscript, circuit: str, bench: Workbench) -> None:
    """Check that the circuit of a ceremony is the one that this machine has."""
    source = bench.sources.get(circuit)
    if source is None:
        raise RejectedCeremonyError(f"there is no circuit {circuit} here", circuit=circuit)
    recorded = transcript.circuits[circuit]
    _require_equal(circuit, recorded.sources, source.rendered.digests)
    if recorded.r1cs != source.r1cs_digest:
        made_by = ", ".join(f"{tool} {version}" for tool, version in transcript.tools.items())
        raise RejectedCeremonyError(
            f"{circuit}: the ceremony has other constraints than its source gives here (it names {made_by})",
            circuit=circuit,
        )


def _refused(transcript: CeremonyTranscript, circuit: str, reason: str) -> RejectedCeremonyError:
    """What snarkjs says about a key that it refuses; `INVALID(1): ...` is about the second contribution."""
    head, _, what = reason.partition("): ")
    place = head.removeprefix("INVALID(")
    if head.startswith("INVALID(") and place.isdigit() and int(place) < len(transcript.contributions):
        number = int(place) + 1
        who = transcript.contributions[int(place)].who
        return RejectedCeremonyError(
            f"{circuit}: contribution {number} ({who}) does not follow from those before it: {what.strip()}",
            circuit=circuit,
            contribution=number,
            contributor=who,
        )
    return RejectedCeremonyError(
        f"{circuit}: the key does not follow from its contributions: {reason.removeprefix('INVALID:').strip()}",
        circuit=circuit,
    )


def _setup(source: Source, ptau: Path, zkey: Path) -> Step:
    return {"do": "setup", "r1cs": str(source.compiled.r1cs), "ptau": str(ptau), "zkey": str(zkey)}


def _verification(initial: Path, ptau: Path, zkey: Path) -> Step:
    return {"do": "verify", "initial": str(initial), "ptau": str(ptau), "zkey": str(zkey)}


@contextmanager
def _new_folder(out: Path) -> Iterator[Path]:
    """A folder that becomes `out` when all that belongs in it is there.

    Raises:
        InvalidInputError: `out` exists.
    """
    if out.exists() or out.is_symlink():
        raise InvalidInputError(f"{out} exists; a ceremony is never written over")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as temporary:
        folder = Path(temporary, out.name)
        folder.mkdir()
        yield folder
        try:
            folder.rename(out)
        except OSError as error:
            raise InvalidInputError(f"{out} exists; a ceremony is never written over") from error
