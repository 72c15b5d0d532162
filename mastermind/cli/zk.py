"""`mastermind zk`: any Circom circuit, of a project or from its file, from its source to a proof and a contract."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from mastermind.cli.circuits import circuit_json, circuit_line
from mastermind.cli.options import (
    READABLE_FILE,
    make_prover,
    make_verifiers,
    param_option,
    prover_option,
    verifier_option,
)
from mastermind.cli.output import (
    EXIT_CODES,
    REJECTED,
    ProgressLine,
    command_errors,
    fail,
    json_option,
    print_json,
)
from mastermind.cli.statements import (
    PROOF,
    PUBLIC,
    Check,
    check_all,
    inputs_option,
    labelled,
    proved_json,
    read_evidence,
    read_inputs,
    report_verdict,
    statement_out_option,
    write_private,
    write_statement,
)
from mastermind.errors import InvalidInputError, WrongKeySetError, WrongProtocolError, counted
from mastermind.zk.artifacts import VERIFYING_KEY, BuiltCircuit
from mastermind.zk.circuit import PROTOCOLS, CircuitSpec, ProofSystem, Signal
from mastermind.zk.evidence import Proof, VerifyingKey, parse_public_signals, public_json
from mastermind.zk.progress import Progress
from mastermind.zk.project import Project
from mastermind.zk.prove import Prover, UniversalProver
from mastermind.zk.r1cs import R1csHeader
from mastermind.zk.snarkjs import SnarkjsCli
from mastermind.zk.solidity import calldata, groth16_verifier, universal_verifier
from mastermind.zk.tools import Toolchain
from mastermind.zk.universal import UniversalKey, UniversalProof, required_power
from mastermind.zk.verify import UniversalVerifier


@click.group(epilog=EXIT_CODES)
def zk() -> None:
    """Compile, prove and verify any Circom circuit.

    CIRCUIT is a name from [tool.mastermind.zk] in pyproject.toml, or the path of a .circom or .circom.j2 file.

    \b
    Examples:
      mastermind zk info circuits/range.circom
      mastermind zk setup circuits/range.circom
      mastermind zk prove circuits/range.circom --inputs inputs.json --out proof
      mastermind zk verify circuits/range.circom proof
    """


def project_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--home` and pass the Project of the current folder as `project`."""

    @click.option(
        "--home",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="MASTERMIND_HOME",
        help="Folder of what is built. [default: the project's home, else a shared one, see `mastermind tools`]",
    )
    @wraps(function)
    def wrapper(*args: Any, home: Path | None, **kwargs: Any) -> Any:
        return function(*args, project=Project.here(home=home), **kwargs)

    return wrapper


protocol_option = click.option(
    "--protocol", type=click.Choice(PROTOCOLS), help="[default: the project's, else groth16]"
)


def circuit_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument CIRCUIT with its options, and pass its specification as `spec` and the Project as `project`."""

    @click.argument("circuit")
    @param_option
    @protocol_option
    @project_option
    @wraps(function)
    def wrapper(
        *args: Any,
        circuit: str,
        parameters: tuple[tuple[str, bool | int | str], ...],
        protocol: ProofSystem | None,
        project: Project,
        **kwargs: Any,
    ) -> Any:
        spec = project.source(circuit, parameters=dict(parameters), protocol=protocol)
        return function(*args, spec=spec, project=project, **kwargs)

    return command_errors(wrapper)


def circuit_or_all_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a command about all circuits of the project when none is named.

    It is called with a list as `chosen`, and yields what it tells of each circuit: an object for machines and a line
    for people. The object of a named circuit is printed as it is, those of all as a list under `circuits`.
    """

    @click.argument("circuit", required=False)
    @param_option
    @protocol_option
    @json_option
    @project_option
    @wraps(function)
    def wrapper(
        *args: Any,
        circuit: str | None,
        parameters: tuple[tuple[str, bool | int | str], ...],
        protocol: ProofSystem | None,
        as_json: bool,
        project: Project,
        **kwargs: Any,
    ) -> None:
        if circuit is None and not project.entries:
            raise InvalidInputError("no circuits are described in a pyproject.toml here or above; name a source")
        if circuit is None and parameters:
            raise InvalidInputError("--param is for one circuit; name it")
        names = project.entries if circuit is None else (circuit,)
        chosen = [project.source(name, parameters=dict(parameters), protocol=protocol) for name in names]
        progress = ProgressLine(quiet=as_json)
        told = []
        for value, line in function(*args, chosen=chosen, project=project, progress=progress, **kwargs):
            told.append(value)
            if not as_json:
                click.echo(line)
        if as_json:
            print_json({"circuits": told} if circuit is None else told[0])

    return command_errors(wrapper)


def _discovered(project: Project, spec: CircuitSpec, *, quiet: bool) -> CircuitSpec:
    return project.with_signals(spec, progress=ProgressLine(quiet=quiet))


@zk.command("list", epilog=EXIT_CODES)
@json_option
@command_errors
@project_option
def list_(as_json: bool, project: Project) -> None:
    """Show the circuits of the project, and which of them have keys.

    \b
    Example:
      mastermind zk list
    """
    rows = []
    for name, entry in project.entries.items():
        spec = project.source(name)
        status = _status(project, spec)
        rows.append({"name": name, "source": spec.template, "protocol": entry.protocol, "status": status})
    if as_json:
        print_json({"root": str(project.root), "home": str(project.home), "circuits": rows})
        return
    if not rows:
        click.echo("No circuits are described in a pyproject.toml here or above. See docs/add-a-circuit.md")
    for row in rows:
        click.echo(f"{row['name']:<20} {row['protocol']:<8} {row['status']:<12} {row['source']}")


@zk.command(epilog=EXIT_CODES)
@circuit_option
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="New folder for all files.")
def render(spec: CircuitSpec, project: Project, out: Path | None) -> None:
    """Show the Circom source that CIRCUIT's template renders to, or write it with all that it includes.

    \b
    Examples:
      mastermind zk render circuits/tree.circom.j2 --param levels=20
      mastermind zk render tree --out rendered
    """
    rendered = project.render(spec)
    if out is None:
        click.echo(rendered.files[rendered.main], nl=False)
        return
    out.mkdir(parents=True)
    click.echo(f"{rendered.write(out)}: {counted(len(rendered.files), 'file')}")


@zk.command("compile", epilog=EXIT_CODES)
@circuit_or_all_option
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for the .r1cs, .wasm and .sym.")
def compile_(
    chosen: Sequence[CircuitSpec], project: Project, progress: Progress, out: Path | None
) -> Iterator[tuple[dict[str, Any], str]]:
    """Compile CIRCUIT, or all circuits of the project. Warnings are errors, unless the project accepts them.

    \b
    Examples:
      mastermind zk compile
      mastermind zk compile circuits/range.circom
      mastermind zk compile range --out compiled
    """
    for spec in chosen:
        compiled = project.compile(spec, progress=progress)
        constraints = R1csHeader.read(compiled.r1cs).constraint_count
        folder = compiled.folder
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            for path in (compiled.r1cs, compiled.wasm, compiled.sym):
                shutil.copy(path, out)
            folder = out
        yield (
            {"circuit": spec.name, "constraints": constraints, "folder": str(folder)},
            f"{folder}: {spec.name}, {counted(constraints, 'constraint')}",
        )


@zk.command(epilog=EXIT_CODES)
@circuit_option
@click.option("--labels", is_flag=True, help="Show every public signal, numbered as in a proof.")
@json_option
def info(spec: CircuitSpec, project: Project, labels: bool, as_json: bool) -> None:
    """Show the size of CIRCUIT, the status of its keys, and its signals: outputs and public inputs in the order of a
    proof, private inputs.

    Signals are found in the source. What range an input may have is not known: the circuit has to see to that.

    \b
    Examples:
      mastermind zk info circuits/range.circom
      mastermind zk info range --labels
    """
    spec = _discovered(project, spec, quiet=as_json)
    r1cs = project.compile(spec).r1cs
    header = R1csHeader.read(r1cs)
    status = _status(project, spec)
    domain, power = required_power(r1cs, spec.protocol)
    kinds = {"outputs": spec.outputs, "public inputs": spec.public, "private inputs": spec.private}
    if as_json:
        print_json(
            {
                "circuit": spec.name,
                "protocol": spec.protocol,
                "status": status,
                "constraints": header.constraint_count,
                "wires": header.wire_count,
                "domain_power": domain,
                "phase1_power": power,
                **{
                    kind.replace(" ", "_"): [{"name": signal.name, "shape": signal.shape} for signal in signals]
                    for kind, signals in kinds.items()
                },
                "public_signals": spec.public_labels,
            }
        )
        return
    click.echo(f"{spec.name}: {counted(header.constraint_count, 'constraint')}, {counted(header.wire_count, 'wire')}")
    click.echo(f"{spec.protocol}: domain 2^{domain}, needs a phase-1 file of power {power}; keys: {status}")
    for kind, signals in kinds.items():
        click.echo(f"  {kind:<15} {', '.join(map(_declared, signals)) or 'none'}")
    if labels:
        for index, label in enumerate(spec.public_labels):
            click.echo(f"  {index:>5}  {label}")


@zk.command(epilog=EXIT_CODES)
@circuit_option
@inputs_option
@click.option("--private", is_flag=True, help="Print private inputs too.")
@click.option("--all", "everything", is_flag=True, help="Print every signal by its full name, private ones included.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="New file for all signals, private ones included, that its owner alone can read; .json or snarkjs's .wtns.",
)
@json_option
def witness(
    spec: CircuitSpec,
    project: Project,
    inputs_file: Any,
    private: bool,
    everything: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Calculate CIRCUIT's signals for some inputs, and show the outputs and public inputs. Needs no keys.

    \b
    Examples:
      mastermind zk witness range --inputs inputs.json
      mastermind zk witness range --inputs inputs.json --out witness.wtns
    """
    if out is not None and out.suffix not in (".json", ".wtns"):
        raise InvalidInputError("--out must end in .json or .wtns")
    inputs = read_inputs(inputs_file)
    spec = _discovered(project, spec, quiet=as_json)
    found = project.witness(spec, inputs)
    if out is not None:
        write_private(out, found.encoded if out.suffix == ".wtns" else json.dumps(_texts(found.signals)).encode())
    shown = {"outputs": found.outputs, "public": found.public}
    if private or everything:
        shown["private"] = found.private
    if everything:
        shown["signals"] = found.signals
    if as_json:
        print_json({kind: _texts(values) for kind, values in shown.items()})
        return
    for values in [found.signals] if everything else shown.values():
        for name, value in values.items():
            click.echo(f"{name} = {value}")


@zk.command(epilog=EXIT_CODES)
@circuit_or_all_option
@click.option(
    "--ptau", type=READABLE_FILE, help="A public phase-1 file. [default: the project's, else a development one]"
)
@click.option("--accept-private-ptau", is_flag=True, help="Take a phase-1 file that is not a published Hermez one.")
@click.option("--force", is_flag=True, help="Make new keys even if nothing has changed.")
def setup(
    chosen: Sequence[CircuitSpec],
    project: Project,
    progress: Progress,
    ptau: Path | None,
    accept_private_ptau: bool,
    force: bool,
) -> Iterator[tuple[dict[str, Any], str]]:
    """Make the keys of CIRCUIT, or of all circuits of the project.

    Does nothing when there are keys and nothing they depend on has changed, nor when they are those of a ceremony. With
    sample inputs in the project, a proof of them is made and verified once.

    \b
    Examples:
      mastermind zk setup
      mastermind zk setup circuits/range.circom
      mastermind zk setup range --protocol plonk --ptau powersOfTau28_hez_final_14.ptau
    """
    if ptau is not None:
        project = project.with_phase1(ptau, accept_private=accept_private_ptau)
    for spec in chosen:
        built = project.setup(project.with_signals(spec, progress=progress), force=force, progress=progress)
        yield circuit_json(built), circuit_line(built)


@zk.command(epilog=EXIT_CODES)
@circuit_option
@inputs_option
@statement_out_option
@prover_option
@json_option
def prove(spec: CircuitSpec, project: Project, inputs_file: Any, out: Path, prover_name: str, as_json: bool) -> None:
    """Prove one statement of CIRCUIT, and verify the proof.

    \b
    Examples:
      mastermind zk prove circuits/range.circom --inputs inputs.json --out proof
      mastermind zk prove range --inputs - --out proof --prover snarkjs < inputs.json
    """
    inputs = read_inputs(inputs_file)
    built = _loaded(project, spec, quiet=as_json)
    prover: Prover | UniversalProver
    if spec.protocol == "groth16":
        prover = make_prover(prover_name, project.store)
    elif prover_name == "native":
        raise WrongProtocolError(f"{spec.protocol} is proved by snarkjs only")
    else:
        prover = UniversalProver(SnarkjsCli(Toolchain.install(project.home)))
    start = time.perf_counter()
    proved = prover.prove(built, inputs)
    seconds = time.perf_counter() - start
    write_statement(out, built, proved)
    if as_json:
        print_json({"protocol": spec.protocol, **proved_json(built, proved, prover.name, seconds, out)})
        return
    click.echo(f"{out}: {spec.name} proved by {prover.name} in {seconds:.3f} s ({spec.protocol}, {built.status} keys)")
    for label, value in zip(built.spec.public_labels, public_json(proved.public_signals), strict=True):
        click.echo(f"  {label} = {value}")


@zk.command(epilog=EXIT_CODES)
@circuit_option
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--key",
    "key_file",
    type=READABLE_FILE,
    help="A verifying key from somebody you trust, instead of your own: whoever makes a key can prove anything.",
)
@verifier_option
@json_option
def verify(
    spec: CircuitSpec, project: Project, folder: Path, key_file: Path | None, verifier_name: str, as_json: bool
) -> None:
    """Verify the proof in DIR (proof.json, public.json) of a statement of CIRCUIT.

    It is checked under your own key. A key that lies in DIR is not looked at. PLONK and FFLONK are checked by snarkjs,
    whatever --verifier says.

    \b
    Examples:
      mastermind zk verify circuits/range.circom proof
      mastermind zk verify range proof --verifier all
      mastermind zk verify range proof --key verification_key.json
    """
    proof, public = (read_evidence(folder / name) for name in (PROOF, PUBLIC))
    if key_file is None:
        built = _loaded(project, spec, quiet=as_json)
        spec, key, keys = built.spec, built.key, built.status
    else:
        spec, keys = _discovered(project, spec, quiet=as_json), "foreign"
        key = _read_key(key_file, spec)
    checks: list[Check] = []
    rejection = _of_another_protocol(proof, spec)
    if not rejection and isinstance(key, VerifyingKey):
        checks = check_all(make_verifiers(verifier_name, project.store), key, public, proof)
    elif not rejection:
        assert isinstance(key, UniversalKey)
        universal = UniversalVerifier(SnarkjsCli(Toolchain.install(project.home)))
        checks = [Check.run(universal.name, partial(universal.judge, key, public, proof))]
    refused = any(not check.accepted for check in checks)
    if refused and not as_json and key_file is None and _has_another_key(folder, key):
        click.echo(f"{folder / VERIFYING_KEY} is not the key in use: the proof may have been made under it", err=True)
    report_verdict(
        checks,
        rejection=rejection,
        circuit=spec.name,
        keys=keys,
        public=labelled(spec.public_labels, public),
        as_json=as_json,
    )


def _of_another_protocol(proof: object, spec: CircuitSpec) -> str:
    """Why a proof cannot be one of this circuit's protocol; nothing when it says that it is, or says nothing clear."""
    said = proof.get("protocol") if isinstance(proof, dict) else None
    if isinstance(said, str) and said in PROTOCOLS and said != spec.protocol:
        return f"the proof is one of {said}, and {spec.name} is set up for {spec.protocol}"
    return ""


def _has_another_key(folder: Path, key: VerifyingKey | UniversalKey) -> bool:
    try:
        return bool(json.loads((folder / VERIFYING_KEY).read_bytes()) != key.to_json())
    except (OSError, ValueError, RecursionError):
        return False


@zk.command(epilog=EXIT_CODES)
@circuit_option
@click.argument("what", type=click.Choice(["solidity", "calldata", "key"]))
@click.option(
    "--proof",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with proof.json and public.json, for calldata.",
)
@click.option("--contract", default="Verifier", show_default=True, help="Name of the contract.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="File instead of the standard output.")
def export(
    spec: CircuitSpec, project: Project, what: str, folder: Path | None, contract: str, out: Path | None
) -> None:
    """Write what others need to verify proofs of CIRCUIT.

    solidity: a contract; calldata: the arguments of its verifyProof for a proof; key: verification_key.json.

    \b
    Examples:
      mastermind zk export range solidity --contract RangeVerifier --out RangeVerifier.sol
      mastermind zk export range calldata --proof proof
      mastermind zk export range key --out verification_key.json
    """
    built = _loaded(project, spec, quiet=False)
    if what == "calldata":
        if folder is None:
            raise InvalidInputError("calldata needs a proof: --proof DIR")
        public = parse_public_signals(read_evidence(folder / PUBLIC))
        data = read_evidence(folder / PROOF)
        proof = Proof.parse(data) if spec.protocol == "groth16" else UniversalProof.parse(data, spec.protocol)
        verdict = project.verify(built, public_json(public), data)
        if not verdict:
            fail(f"rejected: the proof in {folder} is not valid: {verdict.reason}", REJECTED)
        text = calldata(public, proof) + "\n"
    elif what == "key":
        text = json.dumps(built.key.to_json(), indent=1) + "\n"
    elif spec.protocol == "groth16":
        text = groth16_verifier(built.verifying_key, contract, built.spec.public_labels)
    else:
        text = universal_verifier(built, contract, Toolchain.install(project.home))
    if out is None:
        click.echo(text, nl=False)
    else:
        out.write_text(text, "utf-8")
        click.echo(f"{out}: {what} of {spec.name} ({built.status} keys)", err=True)


@zk.command(epilog=EXIT_CODES)
@circuit_option
@json_option
def clean(spec: CircuitSpec, project: Project, as_json: bool) -> None:
    """Remove what has been built of CIRCUIT, its keys included. Packages and phase-1 files stay.

    \b
    Example:
      mastermind zk clean range
    """
    removed = project.store.remove_circuit(spec)
    if as_json:
        print_json({"circuit": spec.name, "removed": [str(path) for path in removed]})
        return
    for path in removed:
        click.echo(f"removed {path}")
    if not removed:
        click.echo(f"nothing has been built of {spec.name}")


def _status(project: Project, spec: CircuitSpec) -> str:
    """What can be said of a circuit's keys without its signals, which only a compiler finds."""
    try:
        return project.store.circuit_status(spec) or "no keys"
    except InvalidInputError as error:
        return f"damaged: {error}"


def _loaded(project: Project, spec: CircuitSpec, *, quiet: bool) -> BuiltCircuit:
    """The circuit with its keys."""
    try:
        return project.load(_discovered(project, spec, quiet=quiet))
    except WrongKeySetError as error:
        raise WrongKeySetError(
            f"{error}; make them with `mastermind zk setup`, or `mastermind ceremony finish` takes those of a ceremony"
        ) from error


def _read_key(path: Path, spec: CircuitSpec) -> VerifyingKey | UniversalKey:
    if spec.protocol == "groth16":
        return VerifyingKey.read(path)
    return UniversalKey.read(path, spec.protocol)


def _declared(signal: Signal) -> str:
    return signal.name + "".join(f"[{size}]" for size in signal.shape)


def _texts(values: Any) -> dict[str, str]:
    """Values as strings: JSON readers round large integers."""
    return {name: str(value) for name, value in values.items()}
