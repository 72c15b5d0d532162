"""`mastermind game`: a game between two people who exchange one file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from mastermind.cli import passphrase
from mastermind.cli.board import read_code, show_board, show_clue, show_code, show_rules, show_status
from mastermind.cli.options import (
    READABLE_FILE,
    make_prover,
    make_verifiers,
    prover_option,
    rules_option,
    verifier_option,
)
from mastermind.cli.output import EXIT_CODES, command_errors, json_option, print_json, store_option
from mastermind.errors import InvalidCodeError, InvalidInputError, counted
from mastermind.game.certificate import Certificate
from mastermind.game.circuits import specs
from mastermind.game.play import Table
from mastermind.game.reveal import Reveal
from mastermind.game.secret_files import GameSecret, PlayerKey
from mastermind.game.steps import CIRCUITS, GameState
from mastermind.game.transcript import Transcript, VerifyingKeys, lock_path, write_json
from mastermind.locks import locked
from mastermind.rules import Code, Rules
from mastermind.zk.artifacts import VERIFYING_KEY, ArtifactStore, KeySet

NEW_FILE = click.Path(path_type=Path, dir_okay=False)
game_option = click.option("--game", "game_file", type=READABLE_FILE, required=True, help="The transcript.")
player_option = click.option("--player", "player_file", type=READABLE_FILE, required=True, help="Your player file.")
secret_option = click.option("--secret", "secret_file", type=READABLE_FILE, required=True, help="Your secret file.")


@click.group()
def game() -> None:
    """Play a game by exchanging one file, every step of it proved.

    \b
    Example: the master                              the breaker
      mastermind game open --random \\
        --player m.json --game g.json --secret s.json
                                                       mastermind game join --game g.json --player b.json
                                                       mastermind game guess --game g.json --player b.json 5 7 2 6
      mastermind game clue --game g.json \\
        --player m.json --secret s.json
    and so on; at any time, anyone: mastermind game show g.json
    """


@game.command("open", epilog=EXIT_CODES)
@rules_option
@click.option("--player", "player_file", type=READABLE_FILE, required=True, help="Your player file.")
@click.option("--code", help="The secret, e.g. 5634. Others on this machine can see it while the command runs.")
@click.option("--random", "draw", is_flag=True, help="Draw the secret (so does giving neither, without a terminal).")
@click.option("--game", "game_file", type=NEW_FILE, required=True, help="New file for the transcript.")
@click.option("--secret", "secret_file", type=NEW_FILE, required=True, help="New file for what you keep.")
@prover_option
@json_option
@store_option
@command_errors
def open_(
    rules: Rules,
    player_file: Path,
    code: str | None,
    draw: bool,
    game_file: Path,
    secret_file: Path,
    prover_name: str,
    as_json: bool,
    store: ArtifactStore,
) -> None:
    """Open a game as its master: commit to a secret.

    Without --code and --random the secret is asked for.

    \b
    Examples:
      mastermind game open --rules classic --player master.json --random --game game.json --secret game.secret.json
      mastermind game open --player master.json --game game.json --secret game.secret.json
    """
    if code is not None and draw:
        raise click.UsageError("--code and --random exclude each other")
    if game_file.exists():
        raise InvalidInputError(f"{game_file} exists; a transcript is only ever continued")
    if code is not None:
        secret = read_code(rules, [code], "secret")
    elif draw or not sys.stdin.isatty():
        secret = rules.random_code()
    else:
        secret = _ask_code(rules, "secret", hidden=True)
    master = PlayerKey.read(player_file, passphrase.ask)
    table = _table(rules, store.load_key_set(rules.spelling, specs(rules)), prover_name, store)
    transcript, kept = table.open_game(master, secret)
    # The secret first: a commitment that cannot be opened is worth nothing.
    kept.write_new(secret_file, master)
    transcript.write_new(game_file)
    _show_move(transcript, table, as_json, f"{game_file}: opened; keep {secret_file} to yourself")


@game.command(epilog=EXIT_CODES)
@game_option
@player_option
@prover_option
@json_option
@store_option
@command_errors
def join(game_file: Path, player_file: Path, prover_name: str, as_json: bool, store: ArtifactStore) -> None:
    """Join an open game as its breaker.

    \b
    Example:
      mastermind game join --game game.json --player breaker.json
    """
    transcript, table = _load(game_file, prover_name, store)
    transcript = table.join_game(transcript, PlayerKey.read(player_file, passphrase.ask))
    transcript.append_to(game_file)
    _show_move(transcript, table, as_json, f"{game_file}: joined")


@game.command(epilog=EXIT_CODES)
@game_option
@player_option
@click.argument("code", nargs=-1)
@prover_option
@json_option
@store_option
@command_errors
def guess(
    game_file: Path, player_file: Path, code: tuple[str, ...], prover_name: str, as_json: bool, store: ArtifactStore
) -> None:
    """Make a guess; without CODE it is asked for.

    \b
    Examples:
      mastermind game guess --game game.json --player breaker.json 5 7 2 6
      mastermind game guess --game game.json --player breaker.json 5726
    """
    transcript, table = _load(game_file, prover_name, store)
    if code or not sys.stdin.isatty():
        guessed = read_code(table.rules, code, "guess")
    else:
        guessed = _ask_code(table.rules, "guess", hidden=False)
    transcript = table.make_guess(transcript, PlayerKey.read(player_file, passphrase.ask), guessed)
    transcript.append_to(game_file)
    _show_move(transcript, table, as_json, f"{game_file}: guessed {show_code(guessed)}")


@game.command(epilog=EXIT_CODES)
@game_option
@secret_option
@player_option
@prover_option
@json_option
@store_option
@command_errors
def clue(
    game_file: Path, secret_file: Path, player_file: Path, prover_name: str, as_json: bool, store: ArtifactStore
) -> None:
    """Answer the newest guess. Nothing to type: the clue follows from your secret.

    \b
    Example:
      mastermind game clue --game game.json --secret game.secret.json --player master.json
    """
    transcript, table = _load(game_file, prover_name, store)
    master = PlayerKey.read(player_file, passphrase.ask)
    # Two commands at once must not answer two guesses of one turn, by whatever name they know the file.
    secret_file = secret_file.resolve()
    with locked(lock_path(secret_file)):
        kept = GameSecret.read(secret_file, passphrase.ask)
        transcript = table.give_clue(
            transcript, master, kept, lambda record: record.replace(secret_file, master, passphrase.ask)
        )
    transcript.append_to(game_file)
    given = show_clue(table.rules, transcript.state().clues[-1])
    _show_move(transcript, table, as_json, f"{game_file}: answered {given}")


@game.command(epilog=EXIT_CODES)
@click.argument("game_file", metavar="GAME", type=READABLE_FILE)
@json_option
@store_option
@command_errors
def show(game_file: Path, as_json: bool, store: ArtifactStore) -> None:
    """Show the board: guesses, dark and light pegs, whose turn it is, who has won. Proofs are checked.

    \b
    Example:
      mastermind game show game.json
    """
    transcript, table = _load(game_file, "auto", store)
    state = transcript.verify(table.keys, table.verifier)
    if as_json:
        print_json(_state_json(state, table.keys))
        return
    _show_board(state, table.keys)


@game.command(epilog=EXIT_CODES)
@click.argument("game_file", metavar="GAME", type=READABLE_FILE)
@verifier_option
@json_option
@store_option
@command_errors
def verify(game_file: Path, verifier_name: str, as_json: bool, store: ArtifactStore) -> None:
    """Check every step and every proof of a transcript.

    \b
    Examples:
      mastermind game verify game.json
      mastermind game verify game.json --verifier all
    """
    transcript, table = _load(game_file, "auto", store)
    verifiers = make_verifiers(verifier_name, store)
    for verifier in verifiers:
        state = transcript.verify(table.keys, verifier)
    names = [verifier.name for verifier in verifiers]
    if as_json:
        print_json({"accepted": True, "verifiers": names, **_state_json(state, table.keys)})
    else:
        click.echo(
            f"accepted: {counted(len(transcript.steps), 'step')}, each proved; checked by {', '.join(names)} "
            f"({table.keys.status} keys)"
        )
        _show_parties(state, table.keys)
        click.echo(show_status(state))


@game.command(epilog=EXIT_CODES)
@game_option
@secret_option
@player_option
@click.option("--out", type=NEW_FILE, required=True, help="File for the certificate.")
@prover_option
@json_option
@store_option
@command_errors
def certify(
    game_file: Path,
    secret_file: Path,
    player_file: Path,
    out: Path,
    prover_name: str,
    as_json: bool,
    store: ArtifactStore,
) -> None:
    """Fold the game so far into a certificate of less than 3 KB.

    \b
    Example:
      mastermind game certify --game game.json --secret game.secret.json --player master.json --out certificate.json
    """
    transcript, table = _load(game_file, prover_name, store)
    master = PlayerKey.read(player_file, passphrase.ask)
    certificate = table.certify(transcript, master, GameSecret.read(secret_file, passphrase.ask))
    write_json(out, certificate.to_json())
    if as_json:
        print_json({"file": str(out), "keys": table.keys.status, "bytes": out.stat().st_size})
    else:
        click.echo(f"{out}: certificate of {out.stat().st_size} bytes ({table.keys.status} keys)")


@game.command(epilog=EXIT_CODES)
@click.argument("certificate_file", metavar="CERTIFICATE", type=READABLE_FILE)
@verifier_option
@json_option
@store_option
@command_errors
def verify_certificate(certificate_file: Path, verifier_name: str, as_json: bool, store: ArtifactStore) -> None:
    """Check a certificate and say what it shows.

    \b
    Example:
      mastermind game verify-certificate certificate.json
    """
    certificate = Certificate.read(certificate_file)
    rules = certificate.rules
    keys = VerifyingKeys.of(_key_set(rules, certificate.key_set_id, store), rules)
    verifiers = make_verifiers(verifier_name, store)
    for verifier in verifiers:
        state = certificate.verify(keys, verifier)
    if as_json:
        names = [verifier.name for verifier in verifiers]
        print_json({"accepted": True, "verifiers": names, **_state_json(state, keys)})
        return
    click.echo("accepted: two proofs show this game")
    _show_parties(state, keys)
    _show_board(state, keys)


@game.command(epilog=EXIT_CODES)
@game_option
@click.option("--step", "step_index", type=click.IntRange(min=0), required=True, help="Which step, from 0.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder for the files.")
@json_option
@store_option
@command_errors
def export(game_file: Path, step_index: int, out: Path, as_json: bool, store: ArtifactStore) -> None:
    """Write one step as proof.json, public.json and verification_key.json, for plain snarkjs.

    \b
    Examples:
      mastermind game export --game game.json --step 3 --out step3
      snarkjs groth16 verify step3/verification_key.json step3/public.json step3/proof.json
    """
    transcript, table = _load(game_file, "auto", store)
    if step_index >= len(transcript.steps):
        raise InvalidInputError(f"the game has the steps 0 .. {len(transcript.steps) - 1}")
    proved = transcript.steps[step_index]
    key = table.keys.keys[CIRCUITS[proved.step.kind]]
    content = proved.to_json()
    out.mkdir(parents=True, exist_ok=True)
    for name, value in (
        ("proof.json", content["proof"]),
        ("public.json", content["public"]),
        (VERIFYING_KEY, key.to_json()),
    ):
        write_json(out / name, value)
    if as_json:
        circuit = CIRCUITS[proved.step.kind]
        print_json({"step": proved.step.kind, "circuit": circuit, "keys": table.keys.status, "out": str(out)})
    else:
        click.echo(f"{out}: step {step_index}, {proved.step.kind} ({table.keys.status} keys)")


@game.command(epilog=EXIT_CODES)
@game_option
@secret_option
@player_option
@click.option("--out", type=NEW_FILE, required=True, help="File for the opened secret.")
@prover_option
@json_option
@store_option
@command_errors
def reveal(
    game_file: Path,
    secret_file: Path,
    player_file: Path,
    out: Path,
    prover_name: str,
    as_json: bool,
    store: ArtifactStore,
) -> None:
    """Open the secret after the end of the game. Your key and the salt stay secret: it is opened by a proof.

    \b
    Examples:
      mastermind game reveal --game game.json --secret game.secret.json --player master.json --out reveal.json
      mastermind game verify-reveal --game game.json reveal.json
    """
    transcript, table = _load(game_file, prover_name, store)
    master = PlayerKey.read(player_file, passphrase.ask)
    opened = table.reveal(transcript, master, GameSecret.read(secret_file, passphrase.ask))
    write_json(out, opened.to_json())
    if as_json:
        print_json({"file": str(out), "keys": table.keys.status, "secret": list(opened.secret)})
    else:
        click.echo(f"{out}: the secret was {show_code(opened.secret)} ({table.keys.status} keys)")


@game.command(epilog=EXIT_CODES)
@game_option
@click.argument("reveal_file", metavar="REVEAL", type=READABLE_FILE)
@verifier_option
@json_option
@store_option
@command_errors
def verify_reveal(game_file: Path, reveal_file: Path, verifier_name: str, as_json: bool, store: ArtifactStore) -> None:
    """Check an opened secret against the solution hash of the game.

    \b
    Example:
      mastermind game verify-reveal --game game.json reveal.json
    """
    transcript, table = _load(game_file, "auto", store)
    opened = Reveal.read(reveal_file)
    for verifier in make_verifiers(verifier_name, store):
        secret = opened.verify(transcript, table.keys, verifier)
    if as_json:
        print_json({"accepted": True, "keys": table.keys.status, "secret": list(secret)})
    else:
        click.echo(f"accepted: the secret was {show_code(secret)} ({table.keys.status} keys)")


def _load(game_file: Path, prover_name: str, store: ArtifactStore) -> tuple[Transcript, Table]:
    transcript = Transcript.read(game_file)
    key_set = _key_set(transcript.rules, transcript.key_set_id, store)
    return transcript, _table(transcript.rules, key_set, prover_name, store)


def _key_set(rules: Rules, identifier: str, store: ArtifactStore) -> KeySet:
    """The key set that evidence names, if it is one of ours: what is not on this machine vouches for nothing."""
    return store.load_key_set(rules.spelling, specs(rules), identifier)


def _table(rules: Rules, key_set: KeySet, prover_name: str, store: ArtifactStore) -> Table:
    return Table(rules, key_set, make_prover(prover_name, store))


def _ask_code(rules: Rules, what: str, *, hidden: bool) -> Code:
    """Ask until a legal code is typed; no turn is used by a mistake."""
    while True:
        text = click.prompt(f"Your {what} ({rules.pegs} of 0 .. {rules.colours - 1})", hide_input=hidden, err=True)
        try:
            return read_code(rules, [str(text)], what)
        except InvalidCodeError as error:
            click.echo(str(error), err=True)


def _show_move(transcript: Transcript, table: Table, as_json: bool, what: str) -> None:
    state = transcript.state()
    if as_json:
        print_json(_state_json(state, table.keys))
    else:
        click.echo(f"{what} ({table.keys.status} keys)")
        click.echo(show_status(state))


def _show_board(state: GameState, keys: VerifyingKeys) -> None:
    rules = state.rules
    click.echo(f"{rules.name}: {show_rules(rules)}; {keys.status} keys")
    for line in show_board(state):
        click.echo(line)
    click.echo(show_status(state))


def _show_parties(state: GameState, keys: VerifyingKeys) -> None:
    """Whose game it is and what it is proved with: for whoever has to compare that with something."""
    for name, value in (("key set", keys.id), ("master", state.master_id), ("breaker", state.breaker_id)):
        if value is not None:
            click.echo(f"{name:<8} {value}")


def _state_json(state: GameState, keys: VerifyingKeys) -> dict[str, Any]:
    def text(value: int | None) -> str | None:
        return None if value is None else str(value)

    return {
        "rules": state.rules.spelling,
        "key_set_id": keys.id,
        "keys": keys.status,
        "game_id": text(state.game_id),
        "solution_hash": text(state.solution_hash),
        "master_id": text(state.master_id),
        "breaker_id": text(state.breaker_id),
        "turn_count": state.turn_count,
        "guesses": [list(code) for code in state.guesses],
        "clues": [{"hits": clue.hits, "blows": clue.blows} for clue in state.clues],
        "solved": state.solved,
        "winner": state.winner,
        "next_step": state.next_step,
    }
