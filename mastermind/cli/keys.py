"""`mastermind keys`: key sets travel as one file."""

from __future__ import annotations

import re
from pathlib import Path

import click

from mastermind.cli.ceremony import report_lines
from mastermind.cli.circuits import key_set_json, replaced_by, say_replaced
from mastermind.cli.options import READABLE_FILE, rules_option, specs_of
from mastermind.cli.output import EXIT_CODES, ProgressLine, command_errors, json_option, print_json, store_option
from mastermind.errors import InvalidInputError
from mastermind.game.circuits import specs
from mastermind.rules import Rules
from mastermind.zk.archive import export_key_set, import_key_set
from mastermind.zk.artifacts import ArtifactStore, KeySet


@click.group()
def keys() -> None:
    """Show, export and import key sets, and choose which is in use. Two players need the same one.

    \b
    Examples:
      mastermind keys show --rules classic
      mastermind keys export --rules classic classic.keys
      mastermind keys import classic.keys
    """


@keys.command(epilog=EXIT_CODES)
@rules_option
@json_option
@store_option
@command_errors
def show(rules: Rules, as_json: bool, store: ArtifactStore) -> None:
    """Show the key set in use for some rules: its id, its keys and where they come from.

    \b
    Example:
      mastermind keys show --rules classic
    """
    key_set = store.load_key_set(rules.spelling, specs(rules))
    ceremonies = {found.last_digest: found for circuit in key_set.circuits.values() if (found := circuit.ceremony)}
    if as_json:
        told = [ceremony.to_json() for ceremony in ceremonies.values()]
        print_json(key_set_json(key_set) | ({"ceremonies": told} if told else {}))
        return
    click.echo(f"key set  {key_set.id}")
    click.echo(f"rules    {rules.name} ({rules.spelling})")
    click.echo(f"status   {_status(key_set.status)}")
    for name, circuit in key_set.circuits.items():
        click.echo(f"  {name:<14}{circuit.verifying_key.digest}")
        phase1 = circuit.manifest["setup"]["phase1"]
        contributions = ", ".join(
            "a beacon" if entry["beacon"] else repr(entry["name"])
            for entry in circuit.manifest["setup"]["contributions"]
        )
        click.echo(f"  {'':<14}phase 1 {phase1['origin']}, 2^{phase1['power']}; phase 2 by {contributions}")
    for ceremony in ceremonies.values():
        click.echo("")
        for line in report_lines(ceremony):
            click.echo(line)


@keys.command("export", epilog=EXIT_CODES)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@rules_option
@json_option
@store_option
@command_errors
def export_(file: Path, rules: Rules, as_json: bool, store: ArtifactStore) -> None:
    """Write the key set in use for some rules to a new FILE.

    \b
    Example:
      mastermind keys export --rules classic classic.keys
    """
    key_set = store.load_key_set(rules.spelling, specs(rules))
    export_key_set(key_set, file)
    if as_json:
        print_json({"file": str(file), "key_set_id": key_set.id, "keys": key_set.status, "bytes": file.stat().st_size})
    else:
        click.echo(f"{file}: key set {key_set.id}, {file.stat().st_size / 1e6:.1f} MB ({key_set.status} keys)")


@keys.command("import", epilog=EXIT_CODES)
@click.argument("file", type=READABLE_FILE)
@click.option(
    "--ptau",
    "ptaus",
    type=READABLE_FILE,
    multiple=True,
    help="The phase-1 file of the ceremony that the keys come from. May be given several times.",
)
@json_option
@store_option
@command_errors
def import_(file: Path, ptaus: tuple[Path, ...], as_json: bool, store: ArtifactStore) -> None:
    """Take a key set from FILE and use it. Every file in it is checked first.

    Compare the id with that of the other player. Keys are only as good as their maker's word: whoever made
    development keys can prove false statements with them.

    Keys of a ceremony are taken only when all of it verifies, from the source of the circuits and the phase-1 file:
    give that with --ptau. This needs Node.

    \b
    Examples:
      mastermind keys import classic.keys
      mastermind keys import classic.keys --ptau powersOfTau28_hez_final_11.ptau
    """
    progress = ProgressLine(quiet=as_json)
    key_set, previous = import_key_set(store, file, specs_of, ptaus=ptaus, progress=progress)
    if as_json:
        print_json(_in_use(key_set, previous))
        return
    click.echo(f"{Rules.parse(key_set.name).name}: key set {key_set.id} is now in use ({_status(key_set.status)})")
    say_replaced(key_set, previous)


@keys.command(epilog=EXIT_CODES)
@click.argument("identifier", metavar="ID")
@rules_option
@json_option
@store_option
@command_errors
def use(identifier: str, rules: Rules, as_json: bool, store: ArtifactStore) -> None:
    """Use the key set ID again, one that has been in use here before.

    \b
    Example:
      mastermind keys use --rules classic 5be8f1a0...
    """
    if re.fullmatch(r"[0-9a-f]{64}", identifier) is None:
        raise InvalidInputError("the id of a key set has 64 hexadecimal digits")
    previous = store.id_in_use(rules.spelling)
    key_set = store.load_key_set(rules.spelling, specs(rules), identifier)
    store.use(key_set)
    if as_json:
        print_json(_in_use(key_set, previous))
        return
    click.echo(f"{rules.name}: key set {key_set.id} is now in use ({_status(key_set.status)})")
    say_replaced(key_set, previous)


def _in_use(key_set: KeySet, previous: str | None) -> dict[str, str | None]:
    return {
        "key_set_id": key_set.id,
        "rules": key_set.name,
        "status": key_set.status,
        "replaced": replaced_by(key_set, previous),
    }


def _status(status: str) -> str:
    return status if status == "ceremony" else "development: whoever made the keys can prove anything"
