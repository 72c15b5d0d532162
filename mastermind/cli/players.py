"""`mastermind player`: keys of players."""

from __future__ import annotations

from pathlib import Path

import click

from mastermind.cli import passphrase
from mastermind.cli.options import READABLE_FILE
from mastermind.cli.output import EXIT_CODES, command_errors, json_option, print_json
from mastermind.game.secret_files import PlayerKey, read_player_id


@click.group()
def player() -> None:
    """Make a player key, and show its public id.

    \b
    Examples:
      mastermind player new --out player.json
      mastermind player show player.json
    """


@player.command(epilog=EXIT_CODES)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="New file for the key.")
@click.option("--encrypt", is_flag=True, help=f"Encrypt it; asks for a passphrase (or takes ${passphrase.VARIABLE}).")
@json_option
@command_errors
def new(out: Path, encrypt: bool, as_json: bool) -> None:
    """Draw a new key. Its file can be read by its owner only; whoever has it can play in your name.

    \b
    Examples:
      mastermind player new --out player.json
      mastermind player new --out player.json --encrypt
    """
    key = PlayerKey.new()
    key.write(out, passphrase.choose(out) if encrypt else None)
    if as_json:
        print_json({"player_id": str(key.id), "file": str(out)})
    else:
        click.echo(f"{out}: player {key.id}")


@player.command(epilog=EXIT_CODES)
@click.argument("file", type=READABLE_FILE)
@json_option
@command_errors
def show(file: Path, as_json: bool) -> None:
    """Show the public id of a player, and nothing else.

    \b
    Example:
      mastermind player show player.json
    """
    identifier = read_player_id(file)
    if as_json:
        print_json({"player_id": str(identifier)})
    else:
        click.echo(str(identifier))
