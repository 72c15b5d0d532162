"""`mastermind referee`: run a referee, and check what one has done.

Web framework and database are imported by the commands that need them, so that others start fast.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import click

from mastermind.cli import passphrase
from mastermind.cli.board import show_board, show_boards, show_status
from mastermind.cli.matches import TITLES, show_match
from mastermind.cli.options import READABLE_FILE, RulesType, make_verifiers, verifier_option
from mastermind.cli.output import ACCEPTED, EXIT_CODES, command_errors, json_option, print_json, store_option
from mastermind.errors import InvalidInputError, counted
from mastermind.referee.contract import DEFAULT_SLOT_SECONDS
from mastermind.referee.match import GUEST, HOST, PLAYER_NAMES, Match
from mastermind.rules import Rules
from mastermind.zk.artifacts import ArtifactStore

folder_option = click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("referee"),
    show_default=True,
    help="The referee's folder: key, settings and, with SQLite, the books.",
)


@click.group()
def referee() -> None:
    """Run a referee that holds the stakes and accepts no move without its proof.

    \b
    Examples:
      mastermind referee init --rules hit-and-blow --rules classic
      mastermind referee serve --allow-development-keys
      mastermind referee audit log.json
    """


@referee.command(epilog=EXIT_CODES)
@folder_option
@click.option(
    "--rules",
    "rules_list",
    type=RulesType(),
    multiple=True,
    default=["hit-and-blow"],
    show_default=True,
    help="Rules to take games of; repeat it for several. Their keys are pinned as they are now.",
)
@click.option("--database", help="An SQLAlchemy URL, e.g. postgresql://host/name. [default: SQLite in the folder]")
@click.option("--slot-seconds", type=click.IntRange(1, 86_400), default=DEFAULT_SLOT_SECONDS, show_default=True)
@click.option("--supply", type=click.IntRange(1), default=10**12, show_default=True, help="All credits there will be.")
@click.option("--welcome", type=click.IntRange(0), default=100, show_default=True, help="Credits of a new player.")
@click.option("--games-per-player", type=click.IntRange(1), default=20, show_default=True)
@click.option(
    "--requests-per-second",
    type=click.IntRange(0),
    default=50,
    show_default=True,
    help="What each address may ask each worker for; 0: no limit.",
)
@click.option("--encrypt", is_flag=True, help="Encrypt the referee's key; asks for a passphrase.")
@json_option
@store_option
@command_errors
def init(
    folder: Path,
    rules_list: tuple[Rules, ...],
    database: str | None,
    slot_seconds: int,
    supply: int,
    welcome: int,
    games_per_player: int,
    requests_per_second: int,
    encrypt: bool,
    as_json: bool,
    store: ArtifactStore,
) -> None:
    """Make the folder of a new referee: its key, its settings, and empty books with the whole supply.

    \b
    Examples:
      mastermind referee init
      mastermind referee init --folder r --rules classic --database postgresql://localhost/referee
    """
    from mastermind.game.circuits import specs
    from mastermind.game.secret_files import PlayerKey
    from mastermind.referee.config import KEY_FILE, Settings, require_time_for_proofs
    from mastermind.referee.storage import RefereeRecord, Storage

    if (folder / KEY_FILE).exists():
        raise InvalidInputError(f"{folder} is a referee's folder already")
    key_sets = {rules.spelling: store.load_key_set(rules.spelling, specs(rules)) for rules in rules_list}
    pinned = {spelling: key_set.id for spelling, key_set in key_sets.items()}
    url = database or f"sqlite:///{(folder / 'books.db').absolute()}"
    settings = Settings(url, pinned, welcome, games_per_player, requests_per_second)
    require_time_for_proofs(settings, store, slot_seconds)
    storage = Storage(url)
    folder.mkdir(parents=True, exist_ok=True)
    key = PlayerKey.new()
    storage.create(RefereeRecord(key.id, slot_seconds, supply))
    settings.write_new(folder)
    key_file = folder / KEY_FILE
    key.write(key_file, passphrase.choose(key_file) if encrypt else None)
    if as_json:
        statuses = {spelling: key_set.status for spelling, key_set in key_sets.items()}
        print_json({"referee_id": str(key.id), "folder": str(folder), "key_sets": pinned, "keys": statuses})
    else:
        click.echo(f"{folder}: referee {key.id}")
        for rules in rules_list:
            key_set = key_sets[rules.spelling]
            click.echo(f"  {rules.name:<14}key set {key_set.id} ({key_set.status} keys)")


@referee.command(epilog=EXIT_CODES)
@folder_option
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(1, 65_535), default=8_460, show_default=True)
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes.")
@click.option(
    "--allow-development-keys",
    is_flag=True,
    help="Take stakes on keys whose maker can prove anything. Every answer then says so.",
)
@store_option
@command_errors
def serve(folder: Path, host: str, port: int, workers: int, allow_development_keys: bool, store: ArtifactStore) -> None:
    """Serve until interrupted. Logs are JSON on stderr; a proxy in front has to bring TLS.

    \b
    Examples:
      mastermind referee serve --allow-development-keys
      mastermind referee serve --folder r --host 0.0.0.0 --workers 2
    """
    from mastermind.referee.worker import serve as run

    # The server repeats the signal when it has ended in good order; that is no failure.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ACCEPTED))
    run(folder, store.home, host=host, port=port, workers=workers, allow_development_keys=allow_development_keys)


@referee.command(epilog=EXIT_CODES)
@click.argument("log_file", metavar="FILE", type=READABLE_FILE)
@verifier_option
@json_option
@store_option
@command_errors
def audit(log_file: Path, verifier_name: str, as_json: bool, store: ArtifactStore) -> None:
    """Check all that a referee did in one game or duel, offline: every proof, rule and slot.

    FILE is from /games/GAME/log or /matches/MATCH/log.

    \b
    Examples:
      mastermind referee audit log.json
      mastermind referee audit log.json --verifier all
    """
    from mastermind.game.circuits import specs
    from mastermind.game.transcript import VerifyingKeys
    from mastermind.referee.log import GameLog, staked_json

    log = GameLog.read(log_file)
    key_set = store.load_key_set(log.rules.spelling, specs(log.rules), log.key_set_id)
    keys = VerifyingKeys.of(key_set, log.rules)
    verifiers = make_verifiers(verifier_name, store)
    for verifier in verifiers:
        contract = log.audit(keys, verifier)
    last = log.events[-1]
    if as_json:
        print_json(
            {
                "accepted": True,
                "keys": keys.status,
                "events": len(log.events),
                "contract": staked_json(contract, last.slot),
            }
        )
        return
    click.echo(
        f"accepted: {counted(len(log.events), 'event')}, all proved and all by the rules; checked by "
        f"{', '.join(verifier.name for verifier in verifiers)} ({keys.status} keys)"
    )
    if isinstance(contract, Match):
        click.echo(show_boards(contract.boards, TITLES))
        click.echo(show_match(contract))
    else:
        click.echo("\n".join([*show_board(contract.game), show_status(contract.game)]))
    click.echo("The pot has been paid." if contract.closed else f"The pot holds {counted(contract.pot, 'credit')}.")


@referee.command(epilog=EXIT_CODES)
@click.argument("game", metavar="GAME")
@folder_option
@click.option("--referee", "url", required=True, help="URL of the running referee.")
@click.option(
    "--winner", type=click.Choice(["master", "breaker", *PLAYER_NAMES]), required=True, help="Of a game, or of a duel."
)
@json_option
@store_option
@command_errors
def forfeit(game: str, folder: Path, url: str, winner: str, as_json: bool, store: ArtifactStore) -> None:
    """Give the pot of GAME to one of its players, with the referee's key. All can see in the log that it was you.

    \b
    Examples:
      mastermind referee forfeit 1204... --referee http://localhost:8460 --winner breaker
      mastermind referee forfeit 1204... --referee http://localhost:8460 --winner host        (a duel)
    """
    from mastermind.game.circuits import specs
    from mastermind.game.secret_files import PlayerKey
    from mastermind.referee.client import RefereeClient, find_game, find_match, make_consent
    from mastermind.referee.config import KEY_FILE
    from mastermind.referee.contract import Role
    from mastermind.referee.requests import Consent, ForfeitMatch, ForfeitWin
    from mastermind.zk.prove import NativeProver

    key = PlayerKey.read(folder / KEY_FILE, passphrase.ask)
    with RefereeClient(url) as client:
        of_match = winner in PLAYER_NAMES
        view = find_match(client, game) if of_match else find_game(client, game)
        name, amount, rules = view.contract.solution_hash, view.contract.pot, view.contract.rules
        key_set = store.load_key_set(rules.spelling, specs(rules), view.key_set_id)

        def agree(action: str) -> Consent:
            return make_consent(key_set, NativeProver(), key, action, referee_id=key.id, game=name, amount=amount)

        if of_match:
            player = HOST if winner == PLAYER_NAMES[HOST] else GUEST
            client.send_to_match(name, ForfeitMatch(key.id, player, amount, agree(ForfeitMatch.action(player))))
        else:
            role: Role = "master" if winner == "master" else "breaker"
            client.send(name, ForfeitWin(key.id, role, amount, agree(ForfeitWin.action(role))))
    if as_json:
        print_json({"game": str(name), "winner": winner, "keys": key_set.status, "amount": amount})
    else:
        click.echo(f"{counted(amount, 'credit')} to the {winner} ({key_set.status} keys)")


@referee.command(epilog=EXIT_CODES)
@click.argument("player_id", metavar="PLAYER_ID")
@click.argument("amount", type=click.IntRange(1, 1 << 62))
@folder_option
@json_option
@store_option
@command_errors
def grant(player_id: str, amount: int, folder: Path, as_json: bool, store: ArtifactStore) -> None:
    """Give a player AMOUNT credits of the house. Works on the books of --folder, while the referee runs or not.

    PLAYER_ID is what `mastermind player show` says. It is said when the referee has never seen that player.

    \b
    Example:
      mastermind referee grant 1204... 500
    """
    from mastermind.field import parse_field_element
    from mastermind.referee.client import FULL_DIGITS
    from mastermind.referee.config import Settings, load_referee

    player = parse_field_element(player_id, "PLAYER_ID")
    if len(player_id) < FULL_DIGITS:
        raise InvalidInputError(f"PLAYER_ID has only {counted(len(player_id), 'digit')}: it is not the whole of an id")
    referee = load_referee(Settings.read(folder), store, allow_development_keys=True)
    try:
        credits, seen = referee.grant(player, amount)
    finally:
        referee.storage.close()
    if as_json:
        print_json({"player_id": str(player), "amount": amount, "credits": credits, "seen_before": seen})
    else:
        click.echo(f"player {player} has {counted(credits, 'credit')}")
        if not seen:
            click.echo("This referee has never seen this player: compare the id with `mastermind player show`.")
