"""`mastermind play duel`: a duel at a referee, for a stake.

A match is a folder of files (`mastermind.referee.duel_seat`): a command that was stopped goes on when it is given the
same folder again.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mastermind.cli import passphrase
from mastermind.cli.board import LETTERS, read_code, show_boards, show_letters
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
from mastermind.cli.pegs import ask_guess
from mastermind.cli.views import follow, show_changes, show_views, view_json
from mastermind.errors import InvalidInputError, counted
from mastermind.game.duel import Outcome, other
from mastermind.game.play import Table
from mastermind.game.secret_files import PlayerKey
from mastermind.game.steps import GameState
from mastermind.game.transcript import VerifyingKeys
from mastermind.players.strengths import make_strategy
from mastermind.referee.contract import MAX_REWARD
from mastermind.referee.match import GUEST, HOST, PLAYER_NAMES, Match
from mastermind.rules import Code, Rules
from mastermind.zk.artifacts import ArtifactStore
from mastermind.zk.verify import NativeVerifier

if TYPE_CHECKING:  # the HTTP client is imported by the commands that need it
    from mastermind.referee.client import MatchView

#: Of host and guest, as far as opened.
Codes = tuple[Code | None, Code | None]
TITLES = ("The host breaks:", "The guest breaks:")

code_option = click.option(
    "--code", help="Your code in a new duel. Others on this machine can see it while the command runs."
)


@click.group()
def duel() -> None:
    """Play a duel at a referee: both set a code, both stake the same, and whoever breaks the other's first wins.

    A command that was stopped goes on with the same --player and --folder.

    \b
    Examples:
      mastermind play duel host --referee URL --reward 10 --player a.json --folder our-duel
      mastermind play duel list --referee URL
      mastermind play duel join 1204 --referee URL --player b.json --folder their-duel
    """


@duel.command(epilog=EXIT_CODES)
@referee_option
@click.option("--rules", type=RulesType(), help="Of a new duel. [default: classic]")
@click.option("--reward", type=click.IntRange(1, MAX_REWARD), help="Credits that each player stakes in a new duel.")
@code_option
@auto_option
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
    auto: str | None,
    player_file: Path,
    folder: Path,
    prover_name: str,
    as_json: bool,
    store: ArtifactStore,
) -> None:
    """Open a duel, wait for a guest, and see it through. The host guesses first.

    Without --code the code is drawn.

    \b
    Examples:
      mastermind play duel host --referee http://localhost:8460 --reward 10 --player a.json --folder our-duel
      mastermind play duel host --player a.json --folder our-duel                        (goes on)
    """
    from mastermind.referee.client import RefereeClient
    from mastermind.referee.duel_seat import DuelSeat, take_host_seat
    from mastermind.referee.seats import key_set_for

    key = PlayerKey.read(player_file, passphrase.ask)
    if not folder.exists():
        if url is None or reward is None:
            raise click.UsageError("a new duel needs --referee and --reward")
        rules = _require_letters(rules or Rules.parse("classic"))
        secret = rules.random_code() if code is None else read_code(rules, [code], "code")
        with RefereeClient(url) as client:
            info = client.info()
        table = Table(rules, key_set_for(info, rules, load_key_sets(rules, store)), make_prover(prover_name, store))
        take_host_seat(folder, table, key, url, info, reward, secret)
    elif DuelSeat.read(folder).player != HOST:
        raise InvalidInputError(f"{folder} is the guest's; go on with `mastermind play duel join`")
    _play(folder, key, auto, prover_name, as_json, store)


@duel.command(epilog=EXIT_CODES)
@click.argument("match", metavar="[DUEL]", required=False)
@referee_option
@code_option
@auto_option
@player_option
@folder_option
@prover_option
@json_option
@store_option
@command_errors
def join(
    match: str | None,
    url: str | None,
    code: str | None,
    auto: str | None,
    player_file: Path,
    folder: Path,
    prover_name: str,
    as_json: bool,
    store: ArtifactStore,
) -> None:
    """Join DUEL with a code of your own, stake the same, and see it through. DUEL may be the first digits only.

    Without --code the code is drawn.

    \b
    Examples:
      mastermind play duel join 1204 --referee http://localhost:8460 --player b.json --folder their-duel
      mastermind play duel join --player b.json --folder their-duel --auto expert        (goes on)
    """
    from mastermind.referee.client import RefereeClient, find_match, require_open
    from mastermind.referee.duel_seat import DuelSeat, take_guest_seat
    from mastermind.referee.seats import key_set_for

    key = PlayerKey.read(player_file, passphrase.ask)
    if not folder.exists():
        if match is None or url is None:
            raise click.UsageError("a new duel needs DUEL and --referee")
        with RefereeClient(url) as client:
            view, info = find_match(client, match), client.info()
            require_open(view)
            rules = _require_letters(view.contract.rules)
            secret = rules.random_code() if code is None else read_code(rules, [code], "code")
            table = Table(rules, key_set_for(info, rules, load_key_sets(rules, store)), make_prover(prover_name, store))
            take_guest_seat(folder, table, key, client, info, view, secret)
    elif DuelSeat.read(folder).player != GUEST:
        raise InvalidInputError(f"{folder} is the host's; go on with `mastermind play duel host`")
    _play(folder, key, auto, prover_name, as_json, store)


@duel.command(epilog=EXIT_CODES)
@click.argument("match", metavar="DUEL")
@url_option
@json_option
@store_option
@command_errors
def watch(match: str, url: str, as_json: bool, store: ArtifactStore) -> None:
    """Watch DUEL until it is paid out. Every proof is verified here, whatever the referee says.

    DUEL may be the first digits only, of a duel that is over too.

    \b
    Example:
      mastermind play duel watch 1204 --referee http://localhost:8460
    """
    from mastermind.referee.client import RefereeClient, find_match

    with RefereeClient(url) as client:
        view = find_match(client, match)
        name, rules = view.contract.solution_hash, view.contract.rules
        keys = VerifyingKeys.of(load_key_sets(rules, store)(view.key_set_id), rules)
        client.be_patient(tell)
        follow(name, client.watch_match, client.match, show_changes(_describe, as_json))
        log = client.log(name, "matches")
        audited = log.audit(keys, NativeVerifier())
    assert isinstance(audited, Match)
    if as_json:
        codes = _codes_json(audited.codes)
        print_json_line({"accepted": True, "keys": keys.status, "packed": str(audited.packed), "opened": codes})
        return
    _show_codes(audited, audited.codes)
    click.echo(f"accepted: {counted(len(log.events), 'event')}, all proved and all by the rules ({keys.status} keys)")


@duel.command("list", epilog=EXIT_CODES)
@url_option
@click.option("--status", type=click.Choice(["open", "playing", "closed"]), default="open", show_default=True)
@json_option
@command_errors
def list_(url: str, status: str, as_json: bool) -> None:
    """List the newest duels of a referee.

    \b
    Example:
      mastermind play duel list --referee http://localhost:8460
    """
    from mastermind.referee.client import RefereeClient

    with RefereeClient(url) as client:
        views = client.matches(status)
    show_views("duel", views, as_json)


@duel.command(epilog=EXIT_CODES)
@player_option
@folder_option
@prover_option
@json_option
@store_option
@command_errors
def claim(player_file: Path, folder: Path, prover_name: str, as_json: bool, store: ArtifactStore) -> None:
    """Claim the pot while the other player is late, or take back the stake of a duel that nobody has joined.

    \b
    Example:
      mastermind play duel claim --player a.json --folder our-duel
    """
    from mastermind.referee.duel_seat import seated_at_duel

    key = PlayerKey.read(player_file, passphrase.ask)
    with seated_at_duel(folder, key, make_tables(prover_name, store), ask=passphrase.ask) as player:
        amount = player.client.match(player.seat.match).contract.pot
        player.claim()
    if as_json:
        print_json({"match": str(player.seat.match), "keys": player.own.table.key_set.status, "amount": amount})
    else:
        click.echo(f"Claimed: {counted(amount, 'credit')} ({player.own.table.key_set.status} keys)")


def show_match(match: Match) -> str:
    """How a match stands, in one sentence."""
    if not match.accepted:
        return "Nobody has joined; the stake has gone back to the host." if match.closed else "Waiting for a guest."
    if not match.closed:
        assert match.next_move is not None
        player, step = match.next_move
        doing = {"join_game": "begin", "make_guess": "guess", "give_clue": "answer"}[step]
        return f"The {PLAYER_NAMES[player]} is to {doing}."
    match match.outcome:
        case Outcome.BOTH_BROKE:
            return "A draw: both codes were broken in the same round. Both stakes have gone back."
        case Outcome.NOBODY_BROKE:
            return "A draw: the guesses ran out. Both stakes have gone back."
        case Outcome.ONGOING:
            return f"The pot has gone to the {PLAYER_NAMES[match.paid[0]]}, without an end of the duel."
    winner = match.paid[0]
    return f"The {PLAYER_NAMES[winner]} wins: the {PLAYER_NAMES[other(winner)]}'s code was broken first."


def _play(
    folder: Path, key: PlayerKey, auto: str | None, prover_name: str, as_json: bool, store: ArtifactStore
) -> None:
    from mastermind.referee.duel_seat import seated_at_duel

    def guess(board: GameState) -> Code:
        return ask_guess(board) if auto is None else make_strategy(auto, board.rules).guess(board.turns)

    tables, show = make_tables(prover_name, store), show_changes(_describe, as_json)
    with seated_at_duel(folder, key, tables, ask=passphrase.ask, show=show, tell=tell) as player:
        if not as_json:
            click.echo(f"duel {player.seat.match} ({player.own.table.key_set.status} keys)")
        ended = player.play(guess)
        credits = player.client.credits(key.id)
    if as_json:
        print_json_line({**view_json(ended.view), "opened": _codes_json(ended.codes), "credits": credits})
        return
    _show_codes(ended.view.contract, ended.codes)
    click.echo(f"You have {counted(credits, 'credit')}.")


def _describe(view: MatchView) -> list[str]:
    return [show_boards(view.contract.boards, TITLES), show_match(view.contract)]


def _show_codes(match: Match, codes: Codes) -> None:
    """What has been opened after the end, and who has not."""
    for name, code in zip(PLAYER_NAMES, codes, strict=True):
        if code is not None:
            click.echo(f"The {name}'s code was {show_letters(code)}; opened and checked.")
        elif match.outcome is not Outcome.ONGOING:
            click.echo(f"The {name} has not opened the code.")


def _codes_json(codes: Codes) -> list[list[int] | None]:
    return [None if code is None else list(code) for code in codes]


def _require_letters(rules: Rules) -> Rules:
    if rules.colours > len(LETTERS):
        raise InvalidInputError(f"duels are played here with at most {len(LETTERS)} colours")
    return rules
