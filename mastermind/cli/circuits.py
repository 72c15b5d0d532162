"""`mastermind build`, `circuits` and `tools`: making circuits and keys, and saying what there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mastermind.cli.options import READABLE_FILE, RulesType
from mastermind.cli.output import EXIT_CODES, ProgressLine, command_errors, json_option, print_json, store_option
from mastermind.errors import InvalidInputError, counted
from mastermind.game.circuits import specs
from mastermind.rules import Rules
from mastermind.zk.artifacts import ArtifactStore, BuiltCircuit, KeySet
from mastermind.zk.circom import compiler_version, find_compiler
from mastermind.zk.phase1 import open_phase1
from mastermind.zk.prove import self_test
from mastermind.zk.tools import MINIMUM_NODE, Toolchain, find_node


@click.command(epilog=EXIT_CODES)
@click.option(
    "--rules",
    "rules_list",
    type=RulesType(),
    multiple=True,
    help="Rules to build for, by name or spelled (4x6r12); may be given several times. [default: hit-and-blow]",
)
@click.option("--ptau", type=READABLE_FILE, help="A public phase-1 file; without it, one is made for development.")
@click.option("--accept-private-ptau", is_flag=True, help="Take a phase-1 file that is not a published Hermez one.")
@click.option("--force", is_flag=True, help="Make new keys even if nothing has changed.")
@json_option
@store_option
@command_errors
def build(
    rules_list: tuple[Rules, ...],
    ptau: Path | None,
    accept_private_ptau: bool,
    force: bool,
    as_json: bool,
    store: ArtifactStore,
) -> None:
    """Build the circuits and keys of some rules.

    Does nothing when they are built and nothing they depend on has changed.

    \b
    Examples:
      mastermind build
      mastermind build --rules classic --rules 4x6r12
      mastermind build --ptau powersOfTau28_hez_final_11.ptau
    """
    progress = ProgressLine(quiet=as_json)
    if ptau is not None:
        progress(f"checking {ptau.name}")
    phase1 = None if ptau is None else open_phase1(ptau.absolute(), accept_private=accept_private_ptau)
    key_sets = []
    for rules in rules_list or (Rules.parse("hit-and-blow"),):
        previous = store.id_in_use(rules.spelling)
        key_set = store.build_key_set(
            rules.spelling, specs(rules), self_test, phase1=phase1, force=force, progress=progress
        )
        key_sets.append(key_set)
        if not as_json:
            click.echo(
                f"{rules.name}: {', '.join(key_set.circuits)} built; {key_set.status} keys, key set {key_set.id[:16]}"
            )
            say_replaced(key_set, previous)
    if as_json:
        print_json([key_set_json(key_set) for key_set in key_sets])


@click.command(epilog=EXIT_CODES)
@json_option
@store_option
@command_errors
def circuits(as_json: bool, store: ArtifactStore) -> None:
    """Show each built circuit: size, public signals, key and the origin of its setup.

    \b
    Examples:
      mastermind circuits
      mastermind circuits --json
    """
    key_sets: list[KeySet] = []
    damaged: list[tuple[str, str]] = []
    for name in store.key_set_names():
        try:
            key_sets.append(store.load_key_set(name, specs(Rules.parse(name))))
        except InvalidInputError as error:
            damaged.append((name, str(error)))
    if as_json:
        print_json(
            [key_set_json(key_set) for key_set in key_sets]
            + [{"rules": name, "error": message} for name, message in damaged]
        )
        return
    if not key_sets and not damaged:
        click.echo("No circuits have been built. Start with: mastermind build")
    for key_set in key_sets:
        rules = Rules.parse(key_set.name)
        click.echo(f"{rules.name} ({rules.spelling}), key set {key_set.id[:16]}, {key_set.status} keys")
        for name, circuit in key_set.circuits.items():
            manifest = circuit.manifest
            phase1 = manifest["setup"]["phase1"]
            public = counted(len(manifest["public"]), "public signal")
            click.echo(
                f"  {name:<14}{manifest['constraints']:>6} constraints  {public}  "
                f"domain 2^{manifest['domain_power']:<3} key {circuit.verifying_key.digest[:16]}  "
                f"phase 1 {phase1['origin']}, {counted(len(manifest['setup']['contributions']), 'contribution')}"
            )
    for name, message in damaged:
        click.echo(f"{name}: {message}")


@click.command(epilog=EXIT_CODES)
@json_option
@store_option
@command_errors
def tools(as_json: bool, store: ArtifactStore) -> None:
    """Install the pinned npm packages if needed, and show what the toolkit works with.

    \b
    Example:
      mastermind tools
    """
    toolchain = Toolchain.install(store.home, ProgressLine(quiet=as_json))
    compiler = find_compiler(toolchain)
    found = {
        "node": str(find_node()),
        "circom": f"{compiler_version(compiler)} ({compiler.name})",
        "snarkjs": toolchain.version("snarkjs"),
        "circomlib": toolchain.version("circomlib"),
        "home": str(store.home),
    }
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        click.echo(f"{name:<10} {value}")
    click.echo(f"Node {MINIMUM_NODE} or newer: yes")


def replaced_by(key_set: KeySet, previous: str | None) -> str | None:
    """The id of what was in use before a key set, if it was another."""
    return previous if previous != key_set.id else None


def say_replaced(key_set: KeySet, previous: str | None) -> None:
    """Say which key set has been in use until now, if it was another, and how to go back to it."""
    if replaced_by(key_set, previous):
        click.echo(f"It replaces {previous}, which is kept for the games begun with it. To go back:")
        click.echo(f"  mastermind keys use --rules {key_set.name} {previous}")


def circuit_json(built: BuiltCircuit) -> dict[str, Any]:
    """What commands tell of a single circuit and its keys."""
    return {
        "circuit": built.spec.name,
        "protocol": built.spec.protocol,
        "status": built.status,
        "key_digest": built.key.digest,
        "setup": built.manifest["setup"],
        "folder": str(built.folder),
    }


def circuit_line(built: BuiltCircuit) -> str:
    """The same for people."""
    return f"{built.spec.name}: {built.spec.protocol}, {built.status} keys, key {built.key.digest[:16]}"


def key_set_json(key_set: KeySet) -> dict[str, Any]:
    rules = Rules.parse(key_set.name)
    return {
        "rules": rules.name,
        "spelling": rules.spelling,
        "key_set_id": key_set.id,
        "status": key_set.status,
        "circuits": [
            {
                "name": name,
                "constraints": circuit.manifest["constraints"],
                "public": circuit.manifest["public"],
                "domain": 1 << circuit.manifest["domain_power"],
                "key_digest": circuit.verifying_key.digest,
                "setup": circuit.manifest["setup"],
                "folder": str(circuit.folder),
            }
            for name, circuit in key_set.circuits.items()
        ],
    }
