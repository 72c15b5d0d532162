"""`mastermind sample`, `prove` and `verify`: single statements, in snarkjs's own files."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path
from typing import Any

import click

from mastermind.cli.options import make_prover, make_verifiers, prover_option, rules_option, verifier_option
from mastermind.cli.output import (
    ACCEPTED,
    BAD_INPUT,
    EXIT_CODES,
    REJECTED,
    command_errors,
    fail,
    json_option,
    print_json,
    store_option,
)
from mastermind.errors import MalformedKeyError
from mastermind.game.circuits import specs
from mastermind.rules import Rules
from mastermind.zk.artifacts import VERIFYING_KEY, ArtifactStore, BuiltCircuit
from mastermind.zk.circuit import parse_inputs
from mastermind.zk.evidence import MAX_BYTES, VerifyingKey, parse_json, public_json
from mastermind.zk.verify import judge

CIRCUIT_NAMES = tuple(spec.name for spec in specs(Rules.parse("hit-and-blow")))

circuit_argument = click.argument("circuit", type=click.Choice(CIRCUIT_NAMES))


@click.command(epilog=EXIT_CODES)
@circuit_argument
@rules_option
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="New file for the inputs.")
@json_option
@command_errors
def sample(circuit: str, rules: Rules, out: Path, as_json: bool) -> None:
    """Write inputs that CIRCUIT accepts, with fresh secrets, to try `prove` with.

    The file can be read by its owner only, as inputs hold secrets.

    \b
    Example:
      mastermind sample give_clue --rules classic --out inputs.json
    """
    spec = next(spec for spec in specs(rules) if spec.name == circuit)
    values = {
        name: [str(item) for item in value] if isinstance(value, list) else str(value)
        for name, value in spec.sample().items()
    }
    descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(values, file, indent=1)
    if as_json:
        print_json({"file": str(out), "circuit": circuit, "rules": rules.spelling})
    else:
        click.echo(f"{out}: inputs for {circuit} under the rules {rules.name}")


@click.command(epilog=EXIT_CODES)
@circuit_argument
@rules_option
@click.option(
    "--inputs",
    "inputs_file",
    type=click.File("rb"),
    required=True,
    help="JSON object of input signals, large integers as strings; - for stdin.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder for proof.json, public.json and verification_key.json.",
)
@prover_option
@json_option
@store_option
@command_errors
def prove(
    circuit: str,
    rules: Rules,
    inputs_file: Any,
    out: Path,
    prover_name: str,
    as_json: bool,
    store: ArtifactStore,
) -> None:
    """Prove one statement of CIRCUIT.

    \b
    Examples:
      mastermind sample give_clue --out inputs.json
      mastermind prove give_clue --inputs inputs.json --out turn
      mastermind prove give_clue --rules classic --inputs - --out turn --prover snarkjs < inputs.json
    """
    _warn_when_readable(inputs_file)
    inputs = parse_inputs(inputs_file.read(MAX_BYTES + 1))
    built = store.load_key_set(rules.spelling, specs(rules))[circuit]
    prover = make_prover(prover_name, store)
    start = time.perf_counter()
    proved = prover.prove(built, inputs)
    seconds = time.perf_counter() - start
    out.mkdir(parents=True, exist_ok=True)
    for name, content in (
        ("proof.json", proved.proof.to_json()),
        ("public.json", public_json(proved.public_signals)),
        (VERIFYING_KEY, built.verifying_key.to_json()),
    ):
        _write(out / name, content)
    if as_json:
        print_json(
            {
                "circuit": circuit,
                "rules": rules.spelling,
                "keys": built.status,
                "prover": prover.name,
                "seconds": round(seconds, 4),
                "public": dict(zip(built.spec.public_labels, public_json(proved.public_signals), strict=True)),
                "out": str(out),
            }
        )
        return
    click.echo(f"{out}: {circuit} proved by {prover.name} in {seconds:.3f} s ({built.status} keys)")


@click.command(epilog=EXIT_CODES)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False))
@verifier_option
@click.option(
    "--trust-key",
    is_flag=True,
    help="Verify against a key that is in none of your key sets; the answer is then worth what its maker's word is.",
)
@json_option
@store_option
@command_errors
def verify(folder: Path, verifier_name: str, trust_key: bool, as_json: bool, store: ArtifactStore) -> None:
    """Verify the proof in DIR (proof.json, public.json, verification_key.json).

    The key must be one of yours: whoever makes a key can make it accept anything.

    \b
    Examples:
      mastermind verify turn
      mastermind verify turn --verifier all
    """
    evidence: dict[str, Any] = {}
    for name in ("proof.json", "public.json", VERIFYING_KEY):
        try:
            with (folder / name).open("rb") as file:
                evidence[name] = parse_json(file.read(MAX_BYTES + 1))
        except ValueError as error:
            fail(f"{folder / name} is not acceptable JSON: {error}", BAD_INPUT)

    checks: list[dict[str, Any]] = []
    known: BuiltCircuit | None = None
    rejection = ""
    try:
        key = VerifyingKey.parse(evidence[VERIFYING_KEY], str(folder / VERIFYING_KEY))
    except MalformedKeyError as error:
        rejection = f"the verifying key is refused: {error}"
    else:
        known = store.find_circuit(key, lambda name: specs(Rules.parse(name)))
        if known is None and not trust_key:
            rejection = (
                f"the verifying key {key.digest[:16]} is in none of your key sets; build or import the key set, "
                "or pass --trust-key"
            )
        else:
            for verifier in make_verifiers(verifier_name, store):
                start = time.perf_counter()
                verdict = judge(verifier, key, evidence["public.json"], evidence["proof.json"])
                checks.append(
                    {
                        "verifier": verifier.name,
                        "accepted": verdict.accepted,
                        "reason": verdict.reason,
                        "seconds": round(time.perf_counter() - start, 4),
                    }
                )
    accepted = not rejection and bool(checks) and all(check["accepted"] for check in checks)
    if as_json:
        print_json(
            {
                "accepted": accepted,
                "reason": rejection or next((check["reason"] for check in checks if not check["accepted"]), ""),
                "circuit": None if known is None else known.spec.name,
                "keys": "unknown" if known is None else known.status,
                "public": dict(zip(known.spec.public_labels, evidence["public.json"], strict=True))
                if accepted and known is not None
                else None,
                "checks": checks,
            }
        )
    else:
        if rejection:
            click.echo(f"rejected: {rejection}")
        for check in checks:
            word = "accepted" if check["accepted"] else f"rejected: {check['reason']}"
            click.echo(f"{check['verifier']:<10} {word} ({check['seconds']:.3f} s)")
        if accepted and known is not None:
            click.echo(f"{known.spec.name}, {known.status} keys")
            for label, value in zip(known.spec.public_labels, evidence["public.json"], strict=True):
                click.echo(f"  {label} = {value}")
        elif accepted:
            click.echo("under a key that is in none of your key sets")
    raise SystemExit(ACCEPTED if accepted else REJECTED)


def _warn_when_readable(file: Any) -> None:
    """Point out an input file that other users can read: it holds secrets."""
    try:
        mode = os.fstat(file.fileno()).st_mode
    except (OSError, AttributeError):
        return  # Not a file of the system, so nobody else's to read.
    if stat.S_ISREG(mode) and mode & 0o077:
        click.echo(f"mastermind: others can read {file.name}, which holds secrets; chmod 600 it", err=True)


def _write(path: Path, content: Any) -> None:
    """Write JSON in one step."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    temporary.replace(path)
