"""`mastermind sample`, `prove` and `verify`: single statements of the game's circuits, in snarkjs's own files."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click

from mastermind.cli.options import make_prover, make_verifiers, prover_option, rules_option, verifier_option
from mastermind.cli.output import EXIT_CODES, command_errors, json_option, print_json, store_option
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
from mastermind.errors import MalformedKeyError
from mastermind.game.circuits import specs
from mastermind.rules import Rules
from mastermind.zk.artifacts import VERIFYING_KEY, ArtifactStore, BuiltCircuit
from mastermind.zk.evidence import VerifyingKey

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
    write_private(out, json.dumps(values, indent=1).encode())
    if as_json:
        print_json({"file": str(out), "circuit": circuit, "rules": rules.spelling})
    else:
        click.echo(f"{out}: inputs for {circuit} under the rules {rules.name}")


@click.command(epilog=EXIT_CODES)
@circuit_argument
@rules_option
@inputs_option
@statement_out_option
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
    inputs = read_inputs(inputs_file)
    built = store.load_key_set(rules.spelling, specs(rules))[circuit]
    prover = make_prover(prover_name, store)
    start = time.perf_counter()
    proved = prover.prove(built, inputs)
    seconds = time.perf_counter() - start
    write_statement(out, built, proved)
    if as_json:
        print_json({"rules": rules.spelling, **proved_json(built, proved, prover.name, seconds, out)})
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
    proof, public, key_json = (read_evidence(folder / name) for name in (PROOF, PUBLIC, VERIFYING_KEY))
    checks: list[Check] = []
    known: BuiltCircuit | None = None
    rejection = ""
    try:
        key = VerifyingKey.parse(key_json, str(folder / VERIFYING_KEY))
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
            checks = check_all(make_verifiers(verifier_name, store), key, public, proof)
    report_verdict(
        checks,
        rejection=rejection,
        circuit=None if known is None else known.spec.name,
        keys="unknown" if known is None else known.status,
        public=None if known is None else labelled(known.spec.public_labels, public),
        as_json=as_json,
    )
