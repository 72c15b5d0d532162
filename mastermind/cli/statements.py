"""Single statements in snarkjs's own files, for the commands that prove and verify them."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click

from mastermind.cli.output import ACCEPTED, BAD_INPUT, REJECTED, fail, print_json
from mastermind.zk.artifacts import VERIFYING_KEY, BuiltCircuit
from mastermind.zk.circuit import parse_inputs
from mastermind.zk.evidence import MAX_BYTES, VerifyingKey, parse_json, public_json
from mastermind.zk.prove import ProvedStatement, UniversalStatement
from mastermind.zk.verify import Verdict, Verifier, judge

PROOF = "proof.json"
PUBLIC = "public.json"

inputs_option = click.option(
    "--inputs",
    "inputs_file",
    type=click.File("rb"),
    required=True,
    help="JSON object of input signals, large integers as strings; - for stdin.",
)
statement_out_option = click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder for proof.json, public.json and verification_key.json.",
)


def read_inputs(file: Any) -> dict[str, object]:
    """Read witness inputs, and point out a file that other users can read: it holds secrets.

    Raises:
        InvalidSignalsError: they are not such inputs.
    """
    try:
        mode = os.fstat(file.fileno()).st_mode
    except (OSError, AttributeError):
        pass  # Not a file of the system, so nobody else's to read.
    else:
        if stat.S_ISREG(mode) and mode & 0o077:
            click.echo(f"mastermind: others can read {file.name}, which holds secrets; chmod 600 it", err=True)
    return parse_inputs(file.read(MAX_BYTES + 1))


def write_private(path: Path, content: bytes) -> None:
    """Write a new file that only its owner can read. Raises FileExistsError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def write_statement(out: Path, circuit: BuiltCircuit, proved: ProvedStatement | UniversalStatement) -> None:
    """Write a proof, its public signals and the verifying key into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    for name, content in (
        (PROOF, proved.proof.to_json()),
        (PUBLIC, public_json(proved.public_signals)),
        (VERIFYING_KEY, circuit.key.to_json()),
    ):
        # In one step: a reader never sees half a file.
        temporary = out / f".{name}.{os.getpid()}"
        temporary.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
        temporary.replace(out / name)


def proved_json(
    circuit: BuiltCircuit, proved: ProvedStatement | UniversalStatement, prover: str, seconds: float, out: Path
) -> dict[str, Any]:
    """What `prove` reports for machines."""
    return {
        "circuit": circuit.spec.name,
        "keys": circuit.status,
        "prover": prover,
        "seconds": round(seconds, 4),
        "public": dict(zip(circuit.spec.public_labels, public_json(proved.public_signals), strict=True)),
        "out": str(out),
    }


def read_evidence(path: Path) -> Any:
    """Parse a file with a proof, public signals or a key; one that is not acceptable JSON ends the command."""
    try:
        with path.open("rb") as file:
            return parse_json(file.read(MAX_BYTES + 1))
    except ValueError as error:
        fail(f"{path} is not acceptable JSON: {error}", BAD_INPUT)


@dataclass(frozen=True)
class Check:
    """What one verifier has said."""

    verifier: str
    accepted: bool
    reason: str
    seconds: float

    @classmethod
    def run(cls, verifier: str, ask: Callable[[], Verdict]) -> Check:
        """Ask a verifier, and take the time."""
        start = time.perf_counter()
        verdict = ask()
        return cls(verifier, verdict.accepted, verdict.reason, round(time.perf_counter() - start, 4))


def check_all(verifiers: Sequence[Verifier], key: VerifyingKey, public: object, proof: object) -> list[Check]:
    """Ask each verifier about evidence from outside."""
    return [Check.run(verifier.name, partial(judge, verifier, key, public, proof)) for verifier in verifiers]


def labelled(labels: Sequence[str], public: object) -> dict[str, str] | None:
    """The public signals of evidence by name; None when they are not as many as the names."""
    return dict(zip(labels, public, strict=True)) if isinstance(public, list) and len(public) == len(labels) else None


def report_verdict(
    checks: Sequence[Check],
    *,
    rejection: str,
    circuit: str | None,
    keys: str,
    public: Mapping[str, str] | None,
    as_json: bool,
) -> NoReturn:
    """Say what was found and exit with 0 or 1.

    Args:
        checks: the answers of the verifiers; none when `rejection` says why nobody was asked.
        circuit: whose key it is; None for a key of none of ours.
        keys: how far that key can be trusted.
        public: the statement, when the evidence has one of the circuit's length.
    """
    accepted = not rejection and bool(checks) and all(check.accepted for check in checks)
    if as_json:
        print_json(
            {
                "accepted": accepted,
                "reason": rejection or next((check.reason for check in checks if not check.accepted), ""),
                "circuit": circuit,
                "keys": keys,
                "public": public if accepted else None,
                "checks": [asdict(check) for check in checks],
            }
        )
        raise SystemExit(ACCEPTED if accepted else REJECTED)
    if rejection:
        click.echo(f"rejected: {rejection}")
    for check in checks:
        word = "accepted" if check.accepted else f"rejected: {check.reason}"
        click.echo(f"{check.verifier:<10} {word} ({check.seconds:.3f} s)")
    if accepted and circuit is not None:
        click.echo(f"{circuit}, {keys} keys")
        for label, value in (public or {}).items():
            click.echo(f"  {label} = {value}")
    elif accepted:
        click.echo("under a key that is in none of your key sets")
    raise SystemExit(ACCEPTED if accepted else REJECTED)
