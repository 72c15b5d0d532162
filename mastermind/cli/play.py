"""`mastermind play`: play at a referee, for a stake.

A game is a folder of files (`mastermind.referee.seats`): a command that was stopped goes on when it is given the same
folder again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mastermind.cli import passphrase
from mastermind.cli.board import read_code, show_board, show_status
from mastermind.cli.matches import duel
from mastermind.cli.options import (
    RulesType,
    auto_option,
    folder_option,
    load_key_sets,
    make_prover,
    make_tables,
    player_option,
    prover_option,
    referee_option,
    url_option,
)
from mastermind.cli.output import (
    EXIT_CODES,
    command_errors,
    json_option,
    print_json,
    print_json_line,
    store_option,
    tell,
)
from mastermind.cli.pegs import read_line
from mastermind.cli.views import follow, show_changes, show_views, view_json
from mastermind.errors import InvalidCodeError, InvalidInputError, counted
from mastermind.game.play import Table
from mastermind.game.secret_files import PlayerKey
from mastermind.game.steps import GameState
from mastermind.game.transcript import VerifyingKeys
from mastermind.players.strengths import make_strategy
from mastermind.referee.contract import MAX_REWARD
from mastermind.rules import Code, Rules
from mastermind.zk.artifacts import ArtifactStore
from mastermind.zk.verify import NativeVerifier

if TYPE_CHECKING:  # the HTTP client is imported by the commands that need it
    from mastermind.referee.client import GameView


@click.group()
def play() -> None:
    """Play at a referee, for credits. A command that was stopped goes on with the same --player and --folder.

    \b
    Examples:
      mastermind play host --referee URL --reward 10 --player m.json --folder my-game
      mastermind play list --referee URL
      mastermind play join 1204 --referee URL --player b.json --folder their-game
      mastermind play duel host --referee URL --reward 10 --player m.json --folder my-duel
    """


play.add_command(duel)


@play.command(epilog=EXIT_CODES)
@referee_option
@click.option("--rules", type=RulesType(), help="Of a new game. [default: hit-and-blow]")
@click.option("--reward", type=click.IntRange(1, MAX_REWARD), help="Credits that each player stakes in a new game.")
@click.option("--code", help="The secret of a new game. Others on this machine can see it while the command runs.")
@player_option
@folder_option
@prover_option
@json_option
@store_option
@command_errors
def host(
    url: str | None,
    rules: Rules | None,
    reward: int | None,
    code: str | None,
    player_file: Path,
    folder: Path,
    prover_name: str,
    as_json: bool,
    store: ArtifactStore,
) -> None:
    """Open a game as its master and see it through: every guess is answered, the end is certified and claimed.

    Without --code the secret is drawn.

    \b
    Examples:
      mastermind play host --referee http://localhost:8460 --reward 10 --player m.json --folder my-game
      mastermind play host --player m.json --folder my-game                  (goes on)
    """
    from mastermind.referee.client import RefereeClient
    from mastermind.referee.seats import Seat, key_set_for, take_master_seat

    key = PlayerKey.read(player_file, passphrase.ask)
    if not folder.exists():
        if url is None or reward is None:
            raise click.UsageError("a new game needs --referee and --reward")
        rules = rules or Rules.parse("hit-and-blow")
        secret = rules.random_code() if code is None else read_code(rules, [code], "secret")
        with RefereeClient(url) as client:
            info = client.info()
        table = Table(rules, key_set_for(info, rules, load_key_sets(rules, store)), make_prover(prover_name, store))
        take_master_seat(folder, table, key, url, info, reward, secret)
    elif Seat.read(folder).role != "master":
        raise InvalidInputError(f"{folder} is the breaker's; go on with `mastermind play join`")

    def no_guess(state: GameState) -> Code:
        raise AssertionError("the master does not guess")

    _play(folder, key, no_guess, prover_name, as_json, store)


@play.command(epilog=EXIT_CODES)
@click.argument("game", metavar="[GAME]", required=False)
@referee_option
@auto_option
@player_option
@folder_option
@prover_option
@json_option
@store_option
@command_errors
def join(
    game: str | None,
    url: str | None,
    auto: str | None,
    player_file: Path,
    folder: Path,
    prover_name: str,
    as_json: bool,
    store: ArtifactStore,
) -> None:
    """Join GAME as its breaker, stake the reward, and guess. GAME may be the first digits only.

    \b
    Examples:
      mastermind play join 1204 --referee http://localhost:8460 --player b.json --folder their-game
      mastermind play join --player b.json --folder their-game --auto strong     (goes on)
    """
    from mastermind.referee.client import RefereeClient, find_game, require_open
    from mastermind.referee.seats import Seat, key_set_for, take_breaker_seat

    key = PlayerKey.read(player_file, passphrase.ask)
    if not folder.exists():
        if game is None or url is None:
            raise click.UsageError("a new game needs GAME and --referee")
        with RefereeClient(url) as client:
            view, info = find_game(client, game), client.info()
            require_open(view)
            rules = view.contract.game.rules
            table = Table(rules, key_set_for(info, rules, load_key_sets(rules, store)), make_prover(prover_name, store))
            take_breaker_seat(folder, table, key, client, info, view)
    elif Seat.read(folder).role != "breaker":
        raise InvalidInputError(f"{folder} is the master's; go on with `mastermind play host`")

    def guess(state: GameState) -> Code:
        return _ask_guess(state) if auto is None else make_strategy(auto, state.rules).guess(state.turns)

    _play(folder, key, guess, prover_name, as_json, store)


@play.command(epilog=EXIT_CODES)
@click.argument("game", metavar="GAME")
@url_option
@json_option
@store_option
@command_errors
def watch(game: str, url: str, as_json: bool, store: ArtifactStore) -> None:
    """Watch GAME until it is paid out. Every proof is verified here, whatever the referee says.

    GAME may be the first digits only, of a game that is over too.

    \b
    Example:
      mastermind play watch 1204 --referee http://localhost:8460
    """
    from mastermind.referee.client import RefereeClient, find_game

    with RefereeClient(url) as client:
        view = find_game(client, game)
        name, rules = view.contract.solution_hash, view.contract.rules
        keys = VerifyingKeys.of(load_key_sets(rules, store)(view.key_set_id), rules)
        client.be_patient(tell)
        follow(name, client.watch, client.game, show_changes(_describe, as_json))
        log = client.log(name)
        contract = log.audit(keys, NativeVerifier())
    if as_json:
        print_json_line({"accepted": True, "keys": keys.status, "packed": str(contract.packed)})
    else:
        click.echo(
            f"accepted: {counted(len(log.events), 'event')}, all proved and all by the rules ({keys.status} keys)"
        )


@play.command("list", epilog=EXIT_CODES)
@url_option
@click.option("--status", type=click.Choice(["open", "playing", "closed"]), default="open", show_default=True)
@json_option
@command_errors
def list_(url: str, status: str, as_json: bool) -> None:
    """List the newest games of a referee.

    \b
    Examples:
      mastermind play list --referee http://localhost:8460
      mastermind play list --referee http://localhost:8460 --status playing
    """
    from mastermind.referee.client import RefereeClient

    with RefereeClient(url) as client:
        views = client.games(status)
    show_views("game", views, as_json)


@play.command(epilog=EXIT_CODES)
@player_option
@folder_option
@prover_option
@json_option
@store_option
@command_errors
def claim(player_file: Path, folder: Path, prover_name: str, as_json: bool, store: ArtifactStore) -> None:
    """Claim the pot of the game in a folder, or take back the stake of one that nobody has joined.

    \b
    Example:
      mastermind play claim --player m.json --folder my-game
    """
    from mastermind.referee.seats import seated

    key = PlayerKey.read(player_file, passphrase.ask)
    with seated(folder, key, make_tables(prover_name, store), ask=passphrase.ask) as player:
        view = player.client.game(player.seat.game)
        player.claim()
    if as_json:
        print_json({"game": str(player.seat.game), "keys": player.table.key_set.status, "amount": view.contract.pot})
    else:
        click.echo(f"Claimed: {counted(view.contract.pot, 'credit')} ({player.table.key_set.status} keys)")


def _play(
    folder: Path,
    key: PlayerKey,
    guess: Callable[[GameState], Code],
    prover_name: str,
    as_json: bool,
    store: ArtifactStore,
) -> None:
    from mastermind.referee.seats import seated

    show = show_changes(_describe, as_json)
    tables = make_tables(prover_name, store)
    with seated(folder, key, tables, ask=passphrase.ask, show=show, tell=tell) as player:
        if not as_json:
            click.echo(f"game {player.seat.game} ({player.table.key_set.status} keys)")
        ended = player.play(guess)
        credits = player.client.credits(key.id)
    if as_json:
        print_json_line({**view_json(ended), "credits": credits})
    else:
        click.echo(f"The game is over and paid out. You have {counted(credits, 'credit')}.")


def _ask_guess(state: GameState) -> Code:
    """Ask until a legal code is typed; no turn is used by a mistake."""
    rules = state.rules
    while True:
        text = read_line(f"Your guess ({rules.pegs} of 0 .. {rules.colours - 1})")
        try:
            return read_code(rules, [text], "guess")
        except InvalidCodeError as error:
            click.echo(str(error), err=True)


def _describe(view: GameView) -> list[str]:
    contract = view.contract
    left = not contract.accepted and contract.closed
    status = "Nobody has joined; the stake has gone back to the master." if left else show_status(contract.game)
    return ["\n".join(["", *show_board(contract.game)]), status]
