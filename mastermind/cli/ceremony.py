"""`mastermind ceremony`: several people make the keys, so that nobody has to believe one of them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from mastermind.cli.circuits import circuit_json, circuit_line, replaced_by, say_replaced
from mastermind.cli.options import READABLE_FILE, param_option, rules_option, specs_of
from mastermind.cli.output import EXIT_CODES, ProgressLine, command_errors, default_home, json_option, print_json
from mastermind.cli.proofs import CIRCUIT_NAMES
from mastermind.errors import InvalidInputError, RejectedCeremonyError, counted
from mastermind.game.circuits import specs
from mastermind.rules import Rules
from mastermind.zk import ceremony as work
from mastermind.zk.artifacts import ArtifactStore
from mastermind.zk.circuit import CircuitSpec
from mastermind.zk.contributions import CEREMONY_PEOPLE, CeremonyTranscript, check_beacon
from mastermind.zk.phase1 import development_phase1, open_phase1
from mastermind.zk.progress import Progress
from mastermind.zk.project import Project
from mastermind.zk.prove import self_test
from mastermind.zk.tools import Toolchain

folder_argument = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False))
out_option = click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="New folder for the ceremony; an existing one is never changed.",
)
ptau_option = click.option("--ptau", type=READABLE_FILE, help="The phase-1 file, when it is not in the folder.")
home_option = click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="MASTERMIND_HOME",
    help="Folder of built circuits and keys. [default: the project's home for its own circuits; else build/ of a "
    "checkout, else the user's cache folder]",
)


@click.group(epilog=EXIT_CODES)
def ceremony() -> None:
    """Make keys together: one participant who forgets the secret is enough for all.

    One starts, each participant contributes on a machine of their own and hands the new folder on, a public random
    value ends it, and everybody can verify all of it. docs/run-a-ceremony.md tells it step by step.

    The keys are those of the game's circuits, or of any Groth16 circuits of your own.

    \b
    Examples:
      mastermind ceremony start --ptau powersOfTau28_hez_final_11.ptau --out round-0
      mastermind ceremony contribute round-0 --name Ada --out round-1
      mastermind ceremony verify round-1
      mastermind ceremony beacon round-1 --beacon HEX --iterations-exp 10 --source "..." --out final
      mastermind ceremony finish final
    """


@ceremony.command(epilog=EXIT_CODES)
@click.argument("own_circuits", metavar="[CIRCUIT]...", nargs=-1)
@rules_option
@click.option(
    "--circuit",
    "circuit_names",
    type=click.Choice(CIRCUIT_NAMES),
    multiple=True,
    help="Only this circuit of the rules; may be given several times. [default: all]",
)
@param_option
@click.option("--ptau", type=READABLE_FILE, help="The public phase-1 file. [default: that of the project]")
@click.option("--accept-private-ptau", is_flag=True, help="Take a phase-1 file that is not a published Hermez one.")
@click.option("--development-phase1", "is_trial", is_flag=True, help="Make a phase 1 here: for trying this out.")
@out_option
@json_option
@home_option
@command_errors
def start(
    own_circuits: tuple[str, ...],
    rules: Rules,
    circuit_names: tuple[str, ...],
    parameters: tuple[tuple[str, bool | int | str], ...],
    ptau: Path | None,
    accept_private_ptau: bool,
    is_trial: bool,
    out: Path,
    as_json: bool,
    home: Path | None,
) -> None:
    """Start a ceremony: the initial keys, to which nobody has contributed yet.

    CIRCUIT is a name from [tool.mastermind.zk] in pyproject.toml, or the path of a .circom or .circom.j2 file; several
    have one ceremony together. Without one, the ceremony is for the circuits of the game.

    With another phase 1 than the public one, its maker can prove anything whoever contributes: the ceremony says so,
    and its keys stay development keys.

    \b
    Examples:
      mastermind ceremony start --rules classic --ptau powersOfTau28_hez_final_11.ptau --out round-0
      mastermind ceremony start --circuit authorise --development-phase1 --out trial-0
      mastermind ceremony start membership circuits/range.circom --ptau powersOfTau28_hez_final_14.ptau --out round-0
    """
    given = dict(parameters)
    progress = ProgressLine(quiet=as_json)
    if own_circuits:
        if circuit_names or _is_given("rules"):
            raise InvalidInputError("circuits of your own and those of --rules have a ceremony each")
        project = Project.here(home=home)
        store = project.store
        if ptau is None and not is_trial:
            ptau, accept_private_ptau = project.ptau, project.accept_private_ptau
    else:
        if given:
            raise InvalidInputError("--param is for circuits of your own; name one")
        store = ArtifactStore(home or default_home())
    if (ptau is None) != is_trial:
        raise InvalidInputError("give a public phase-1 file with --ptau, or --development-phase1 to try this out")
    if own_circuits:
        chosen = _own(project, own_circuits, given, progress)
    else:
        chosen = [spec for spec in specs(rules) if not circuit_names or spec.name in circuit_names]
    with _workbench(chosen, store, progress) as bench:
        if ptau is None:
            phase1 = development_phase1(bench.domain_power, bench.toolchain, store.home, progress)
        else:
            phase1 = open_phase1(ptau.absolute(), accept_private=accept_private_ptau)
        name = None if own_circuits else rules.spelling
        transcript = work.start(name, bench, phase1, out, progress, parameters=given)
    _show_step(out, transcript, bench, as_json)


@ceremony.command(epilog=EXIT_CODES)
@folder_argument
@click.option("--name", required=True, help="What you go by; everybody will see it.")
@click.option(
    "--player-id", help="Your public player id: a referee then takes no game of yours on keys of yours alone."
)
@out_option
@ptau_option
@json_option
@home_option
@command_errors
def contribute(
    folder: Path, name: str, player_id: str | None, out: Path, ptau: Path | None, as_json: bool, home: Path | None
) -> None:
    """Verify the ceremony in DIR and contribute to every key of it.

    The secret is drawn from the system's randomness, never written to a disk, and gone when the command ends. Publish
    the digest that is printed, and hand the new folder on.

    \b
    Examples:
      mastermind ceremony contribute round-0 --name Ada --out round-1
      mastermind ceremony contribute round-1 --name Zoe --player-id 1234 --out round-2
    """
    progress = ProgressLine(quiet=as_json)
    with _workbench_for(folder, home, progress) as (bench, _):
        transcript = work.contribute(folder, out, bench, name, player_id, ptau, progress)
    _show_step(out, transcript, bench, as_json)


@ceremony.command(epilog=EXIT_CODES)
@folder_argument
@click.option(
    "--published",
    "published",
    metavar="DIGEST",
    multiple=True,
    help="A digest that a participant has published; refuse a ceremony without it. May be given several times.",
)
@ptau_option
@json_option
@home_option
@command_errors
def verify(folder: Path, published: tuple[str, ...], ptau: Path | None, as_json: bool, home: Path | None) -> None:
    """Verify the ceremony in DIR from the source of its circuits and its phase 1 up to its present keys.

    What it cannot see is that somebody has left out the latest contributions, or told other times and ids: compare the
    digests with those that the participants have published, or give them with --published.

    \b
    Examples:
      mastermind ceremony verify round-3
      mastermind ceremony verify final --published 4f98523e... --published 0b7f638b...
    """
    progress = ProgressLine(quiet=as_json)
    transcript = work.read_transcript(folder)
    for digest in published:
        transcript.require_published(digest)
    with _workbench_for(folder, home, progress) as (bench, _):
        if work.verify(folder, bench, ptau, progress) != transcript:
            raise RejectedCeremonyError(f"{folder} has been changed while it was verified")
    if as_json:
        print_json({"accepted": True, **_compiled_json(transcript, bench), **_transcript_json(transcript)})
        return
    click.echo(f"accepted: {_summary(transcript)}")
    for line in _sources(transcript, bench):
        click.echo(f"  {line}")
    for number, made in enumerate(transcript.contributions, 1):
        click.echo(f"  {number:>3}  {made.digest}  {made.who}")


@ceremony.command(epilog=EXIT_CODES)
@folder_argument
@click.option("--beacon", "value", metavar="HEX", required=True, help="The public random value.")
@click.option("--iterations-exp", "power", type=int, default=10, show_default=True, help="It is hashed 2^this times.")
@click.option("--source", required=True, help="Where anyone can look the value up.")
@out_option
@ptau_option
@json_option
@home_option
@command_errors
def beacon(
    folder: Path, value: str, power: int, source: str, out: Path, ptau: Path | None, as_json: bool, home: Path | None
) -> None:
    """End the contributions to the ceremony in DIR with a public random value.

    Announce which value it will be before anyone can know it, such as a block or a draw of a day to come.

    \b
    Example:
      mastermind ceremony beacon round-3 --beacon 0123456789abcdef0123456789abcdef --iterations-exp 10
          --source "drand mainnet, round 1234567" --out final
    """
    checked = check_beacon(value, power, source)
    progress = ProgressLine(quiet=as_json)
    with _workbench_for(folder, home, progress) as (bench, _):
        transcript = work.end(folder, out, bench, checked, ptau, progress)
    _show_step(out, transcript, bench, as_json)


@ceremony.command(epilog=EXIT_CODES)
@folder_argument
@ptau_option
@json_option
@home_option
@command_errors
def finish(folder: Path, ptau: Path | None, as_json: bool, home: Path | None) -> None:
    """Verify the ended ceremony in DIR once more and use its keys. Every participant can do this alike.

    Circuits of the rules that have no part in it keep the keys in use. Circuits of your own get these keys as they get
    others from `mastermind zk setup`. The keys of a ceremony are called so when their phase 1 is the public one and two
    or more people have contributed; others stay development keys.

    \b
    Example:
      mastermind ceremony finish final
    """
    progress = ProgressLine(quiet=as_json)
    transcript = work.read_transcript(folder)
    others: Sequence[CircuitSpec] = ()
    if transcript.name is not None:
        others = [spec for spec in specs_of(transcript.name) if spec.name not in transcript.circuits]
    with _workbench_for(folder, home, progress) as (bench, store):
        previous = None if transcript.name is None else store.id_in_use(transcript.name)
        key_set = work.finish(folder, bench, store, self_test, ptau, others, progress)
    if as_json:
        told: dict[str, Any] = {"keys": key_set.status}
        if transcript.name is None:
            told |= {"circuits": [circuit_json(circuit) for circuit in key_set.circuits.values()]}
            told |= _compiled_json(transcript, bench)
        else:
            told |= {"key_set_id": key_set.id, "replaced": replaced_by(key_set, previous)}
        print_json(told | _transcript_json(transcript))
        return
    for line in report_lines(transcript, bench):
        click.echo(line)
    if transcript.name is None:
        click.echo("\nNow in use:")
        for built in key_set.circuits.values():
            click.echo(f"  {circuit_line(built)}")
        return
    click.echo(f"\n{Rules.parse(key_set.name).name}: key set {key_set.id} is now in use ({key_set.status} keys)")
    say_replaced(key_set, previous)


@ceremony.command(epilog=EXIT_CODES)
@folder_argument
@json_option
@command_errors
def report(folder: Path, as_json: bool) -> None:
    """Tell people what the transcript in DIR says, without a look at the keys: `verify` does that.

    \b
    Example:
      mastermind ceremony report final
    """
    transcript = work.read_transcript(folder)
    if as_json:
        print_json(_transcript_json(transcript))
        return
    for line in report_lines(transcript):
        click.echo(line)


def report_lines(transcript: CeremonyTranscript, bench: work.Workbench | None = None) -> Iterator[str]:
    """The report of a ceremony for people: who, when, the digests, what to check, what has to be trusted."""
    phase1 = transcript.phase1
    if transcript.name is None:
        yield f"Ceremony for {', '.join(transcript.circuits)}"
    else:
        rules = Rules.parse(transcript.name)
        yield f"Ceremony for {rules.name} ({rules.spelling}): {', '.join(transcript.circuits)}"
    for line in _sources(transcript, bench):
        yield f"source   {line}"
    yield f"started  {transcript.started}, digest {transcript.digest}"
    yield f"phase 1  {phase1.origin}, 2^{phase1.power}, BLAKE2b {phase1.blake2b}"
    for number, made in enumerate(transcript.contributions, 1):
        yield ""
        if made.beacon is None:
            yield f"{number:>3}  {made.name}, {made.time}" + (f", player {made.id}" if made.id else "")
        else:
            yield f"{number:>3}  the beacon {made.beacon.value}, {made.time}"
            yield f"     hashed 2^{made.beacon.iterations_power} times; from {made.beacon.source}"
        yield f"     to publish    {made.digest}"
        for circuit, change in made.circuits.items():
            yield f"     {circuit:<14}{change.hash}"
    yield ""
    yield f"The keys are {transcript.status} keys: {_why(transcript)}."
    yield ""
    yield "Each participant checks:"
    yield "  - `mastermind ceremony verify` accepts the final folder;"
    yield "  - the digest that they published is beside their name, and the others' beside theirs;"
    yield "  - the beacon is the value that was announced, and could not be known before the last contribution."
    yield "What has to be trusted: that one of these people is real and kept no copy of the secret (one is enough, and"
    yield "who took part can be sure of one); the circuits themselves; and for phase 1 one of its own contributors."


def _why(transcript: CeremonyTranscript) -> str:
    if transcript.phase1.origin != "hermez":
        return "their phase 1 is not the public one, and its maker can prove anything"
    if not transcript.ended:
        return "no beacon has ended the contributions"
    if transcript.status != "ceremony":
        return f"fewer than {CEREMONY_PEOPLE} people have contributed, so that one has to be believed"
    return "all contributors together could prove anything, all but one cannot"


def _summary(transcript: CeremonyTranscript) -> str:
    people = len(transcript.people)
    end = "a beacon has ended it" if transcript.ended else "not ended"
    return (
        f"{counted(people, 'contribution')} to {', '.join(transcript.circuits)}, {end}; "
        f"phase 1 {transcript.phase1.origin}, {transcript.status} keys"
    )


def _sources(transcript: CeremonyTranscript, bench: work.Workbench | None = None) -> Iterator[str]:
    """Which circuits of somebody's own a ceremony is for, whatever they are called, and what was compiled here."""
    for name, begun in transcript.circuits.items():
        if begun.own is not None:
            given = "".join(f", {parameter} = {value!r}" for parameter, value in begun.own.parameters.items())
            here = "" if bench is None else f" (here {bench.sources[name].path})"
            yield f"{name}: {begun.own.path}{given}{here}"


def _compiled_json(transcript: CeremonyTranscript, bench: work.Workbench) -> dict[str, Any]:
    """The files of somebody's own that were compiled on this machine, by circuit."""
    if transcript.name is not None:
        return {}
    return {"sources": {name: str(bench.sources[name].path) for name in transcript.circuits}}


def _show_step(out: Path, transcript: CeremonyTranscript, bench: work.Workbench, as_json: bool) -> None:
    if as_json:
        print_json({"folder": str(out), **_compiled_json(transcript, bench), **_transcript_json(transcript)})
        return
    click.echo(f"{out}: {_summary(transcript)}")
    for line in _sources(transcript, bench):
        click.echo(f"  {line}")
    click.echo(f"publish  {transcript.last_digest}")


def _transcript_json(transcript: CeremonyTranscript) -> dict[str, Any]:
    return {"status": transcript.status, "publish": transcript.last_digest, "transcript": transcript.to_json()}


def _is_given(option: str) -> bool:
    source = click.get_current_context().get_parameter_source(option)
    return source is not click.core.ParameterSource.DEFAULT


def _own(
    project: Project, circuits: Sequence[str], parameters: Mapping[str, bool | int | str], progress: Progress
) -> list[CircuitSpec]:
    """Circuits of somebody's own to begin a ceremony with."""
    chosen = {}
    for circuit in circuits:
        spec = project.source(circuit, parameters=parameters)
        work.require_groth16(spec)
        if spec.name in chosen:
            raise InvalidInputError(f"two circuits of one ceremony are called {spec.name}")
        chosen[spec.name] = spec
    return [project.with_signals(spec, progress=progress) for spec in chosen.values()]


@contextmanager
def _workbench_for(
    folder: Path, home: Path | None, progress: Progress
) -> Iterator[tuple[work.Workbench, ArtifactStore]]:
    """The circuits of the ceremony in a folder as they are on this machine, and the store of their keys."""
    transcript = work.read_transcript(folder)
    chosen: Sequence[CircuitSpec]
    if transcript.name is None:
        project = Project.here(home=home)
        store, chosen = project.store, project.ceremony_circuits(transcript, folder, progress=progress)
    else:
        store = ArtifactStore(home or default_home())
        chosen = [spec for spec in specs_of(transcript.name) if spec.name in transcript.circuits]
    with _workbench(chosen, store, progress) as bench:
        yield bench, store


@contextmanager
def _workbench(chosen: Sequence[CircuitSpec], store: ArtifactStore, progress: Progress) -> Iterator[work.Workbench]:
    toolchain = Toolchain.install(store.home, progress)
    with tempfile.TemporaryDirectory() as folder:
        yield work.Workbench.make(chosen, toolchain, store, Path(folder), progress)
