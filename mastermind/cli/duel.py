"""`mastermind duel`: a duel against the computer at the terminal, every answer proved."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import click

from mastermind.cli.board import LETTERS, show_boards, show_clue, show_letters
from mastermind.cli.output import (
    ACCEPTED,
    EXIT_CODES,
    ProgressLine,
    command_errors,
    json_option,
    print_json_line,
    store_option,
)
from mastermind.cli.pegs import ask_guess, enter_code
from mastermind.game.circuits import specs
from mastermind.game.duel import Duel, Outcome, Player, Seat, begin, next_move, other, outcome, view_for
from mastermind.game.play import Table
from mastermind.game.secret_files import PlayerKey
from mastermind.game.transcript import write_json
from mastermind.players.strengths import STRENGTHS, make_strategy
from mastermind.rules import Rules
from mastermind.zk.artifacts import ArtifactStore
from mastermind.zk.prove import NativeProver, self_test

YOU: Player = 0
COMPUTER: Player = 1
TITLES = ("You break:", "The computer breaks:")

T = TypeVar("T")


@click.command(epilog=EXIT_CODES)
@click.option("--colours", type=click.Choice(["6", "8"]), default="6", show_default=True)
@click.option("--pegs", type=click.Choice(["3", "4", "5"]), default="4", show_default=True)
@click.option("--guesses", type=click.Choice(["8", "10", "12"]), default="10", show_default=True)
@click.option("--repeats/--no-repeats", default=True, show_default=True, help="Whether a colour may stand twice.")
@click.option(
    "--opponent",
    type=click.Choice(STRENGTHS),
    default="club",
    show_default=True,
    help="How well the computer breaks codes.",
)
@click.option("--seed", type=int, help="The computer guesses the same way again; its code stays random.")
@click.option("--save", type=click.Path(path_type=Path, file_okay=False), help="Folder for transcripts and codes.")
@json_option
@store_option
@command_errors
def duel(
    colours: str,
    pegs: str,
    guesses: str,
    repeats: bool,
    opponent: str,
    seed: int | None,
    save: Path | None,
    as_json: bool,
    store: ArtifactStore,
) -> None:
    """Set a code, and break the computer's before it breaks yours.

    You and the computer guess in turn. The duel ends with the round in which somebody breaks a code. Every answer, on
    either side, comes with a proof that is checked at once; at the end both codes are opened.

    Type the letters (or numbers) of the colours; Backspace takes one back, Enter sends. Without a terminal, guesses
    are read as lines, and --json prints a line with both boards after each answer.

    \b
    Examples:
      mastermind duel
      mastermind duel --colours 8 --pegs 5 --guesses 12 --no-repeats --opponent strong --save my-duel
    """
    rules = Rules(int(pegs), int(colours), repeats, int(guesses))
    say: Callable[[str], None] = (lambda _: None) if as_json else click.echo
    if rules.spelling not in store.key_set_names():
        say(f"There are no keys for {rules.name} yet; making them takes a minute or two, once.")
    key_set = store.build_key_set(rules.spelling, specs(rules), self_test, progress=ProgressLine(quiet=as_json))
    table = Table(rules, key_set, NativeProver())
    strategy = make_strategy(opponent, rules, seed)
    say(
        f"{rules.pegs} pegs, {rules.colours} colours ({', '.join(LETTERS[: rules.colours])}), "
        f"{'' if rules.repeats else 'no '}repeats, {rules.attempts} guesses: {rules.code_count:,} codes are possible. "
        f"The computer plays {opponent}; {key_set.status} keys.\n"
    )

    you, computer = Seat(table, YOU, PlayerKey.new()), Seat(table, COMPUTER, PlayerKey.new())
    # The computer commits first, before it could know anything.
    computers_opening = computer.commit(rules.random_code())
    own = enter_code(rules, "Your code (Enter alone draws one)", optional=True) or rules.random_code()
    state = begin(you, you.commit(own), computer, computers_opening)
    say(f"Your code is {show_letters(own)}. Both codes are committed; the commitments are proved.\n")
    _save(save, state)

    while (move := next_move(state.boards)) is not None:
        player, what = move
        if what == "give_clue":
            seat = you if player == YOU else computer
            state, made_s = _timed(partial(seat.answer, state))
            _, checked_s = _timed(partial(state.games[other(player)].verify, table.keys, table.verifier))
            if as_json:
                print_json_line({**view_for(YOU, state, you), "keys": key_set.status})
            else:
                click.echo(_answer_line(rules, state, player, made_s, checked_s))
        elif player == YOU:
            say(show_boards(state.boards, TITLES))
            state = you.guess(state, ask_guess(state.boards[YOU]))
        else:
            state = computer.guess(state, strategy.guess(state.boards[COMPUTER].turns))
        _save(save, state)

    openings = you.open_code(state), computer.open_code(state)
    codes = [
        opening.verify_against(state.boards[other(player)], table.keys, table.verifier)
        for player, opening in zip((YOU, COMPUTER), openings, strict=True)
    ]
    state.verify(table.keys, table.verifier)
    if save is not None:
        for name, opening in zip(("your-code", "computers-code"), openings, strict=True):
            write_json(save / f"{name}.json", opening.to_json())
    if as_json:
        print_json_line({**view_for(YOU, state, you, openings[COMPUTER]), "keys": key_set.status})
    else:
        say(show_boards(state.boards, TITLES))
        say(f"{_result(outcome(state.boards))}")
        say(f"Your code was {show_letters(codes[YOU])}, the computer's {show_letters(codes[COMPUTER])}; both opened.")
        if save is not None:
            say(f"Saved in {save}; check with: mastermind game verify {save / 'your-guesses.json'}")
    raise SystemExit(ACCEPTED)


def _timed(action: Callable[[], T]) -> tuple[T, float]:
    start = time.perf_counter()
    value = action()
    return value, time.perf_counter() - start


def _answer_line(rules: Rules, state: Duel, player: Player, made_s: float, checked_s: float) -> str:
    board = state.boards[other(player)]
    who = "Your answer to the computer" if player == YOU else "The computer's answer to you"
    return (
        f"{who}: {show_letters(board.guesses[-1])}   {show_clue(rules, board.clues[-1])}   "
        f"proved in {made_s * 1000:.0f} ms, checked in {checked_s * 1000:.0f} ms: accepted"
    )


def _result(result: Outcome) -> str:
    match result:
        case Outcome.FIRST_WINS:
            return "You win: you broke the code, and the computer did not."
        case Outcome.SECOND_WINS:
            return "The computer wins: it broke your code."
        case Outcome.BOTH_BROKE:
            return "A draw: both codes were broken in the same round."
        case Outcome.NOBODY_BROKE:
            return "A draw: the guesses ran out."
        case Outcome.ONGOING:
            return "The duel goes on."


def _save(folder: Path | None, state: Duel) -> None:
    """Keep both transcripts after every move, so that nothing is lost when the terminal is."""
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name, transcript in (("your-guesses", state.games[YOU]), ("computers-guesses", state.games[COMPUTER])):
        write_json(folder / f"{name}.json", transcript.to_json())
