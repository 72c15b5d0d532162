"""Entering a code peg by peg at a terminal, or as a line elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from mastermind.cli.board import LETTERS, show_letters
from mastermind.errors import InvalidCodeError, InvalidInputError, counted
from mastermind.game.steps import GameState
from mastermind.rules import Code, Rules

try:
    import termios
    import tty
except ImportError:  # not a POSIX system: codes are entered as lines
    _HAS_KEYS = False
else:
    _HAS_KEYS = True

_UNDO = {"\x7f", "\x08", "-"}
_SEND = {"\r", "\n"}
_LEAVE = {"\x03", "\x04", ""}


def enter_code(rules: Rules, prompt: str, *, optional: bool = False) -> Code | None:
    """Ask for a code of at most eight colours until it is legal; None for an empty entry when `optional`.

    Raises:
        InvalidInputError: the player leaves, or the input ends; nothing has been played.
    """
    while True:
        entered = _enter_keys(rules, prompt) if _HAS_KEYS and sys.stdin.isatty() else _enter_line(prompt)
        if not entered and optional:
            return None
        try:
            return rules.require_code([_peg(rules, character) for character in entered])
        except InvalidCodeError as error:
            click.echo(f"{error}. Nothing has been played.", err=True)


def ask_guess(board: GameState) -> Code:
    """Ask for the next guess of a game and say how many codes are left. Raises as `enter_code`."""
    # NumPy is needed by computer players alone; other commands start without it.
    from mastermind.players.codes import standing

    left = len(standing(board.rules, board.turns))
    guess = enter_code(board.rules, f"Guess {len(board.guesses) + 1} ({counted(left, 'code')} possible)")
    assert guess is not None
    return guess


def _peg(rules: Rules, character: str) -> int:
    """The colour of a letter or number. Raises InvalidCodeError."""
    peg = LETTERS.index(character.upper()) if character.upper() in LETTERS else -1
    if character.isascii() and character.isdecimal():
        peg = int(character)
    if not 0 <= peg < rules.colours:
        raise InvalidCodeError(f"the colours are {', '.join(LETTERS[: rules.colours])} or 0 .. {rules.colours - 1}")
    return peg


def read_line(prompt: str) -> str:
    """Ask for a line. Raises InvalidInputError when the input has ended."""
    click.echo(f"{prompt}: ", nl=False, err=True)
    line = sys.stdin.readline()
    if not line:
        raise _ended()
    return line.strip()


def _enter_line(prompt: str) -> str:
    return "".join(read_line(prompt).replace(",", " ").split())


def _ended() -> InvalidInputError:
    click.echo(err=True)
    return InvalidInputError("the input has ended before the game; nothing more has been played")


def _enter_keys(rules: Rules, prompt: str) -> str:
    """Read keys one by one and show the pegs as they are set."""
    entered: list[str] = []
    with _keys() as next_key:
        while True:
            pegs = [_peg(rules, character) for character in entered]
            places = " ".join([show_letters(pegs)] * bool(pegs) + ["."] * (rules.pegs - len(pegs)))
            click.echo(f"\r\x1b[K{prompt}: {places} ", nl=False, err=True)
            key = next_key()
            if key in _LEAVE:
                raise _ended()
            if key in _SEND and len(entered) in (0, rules.pegs):
                click.echo(err=True)
                return "".join(entered)
            if key in _UNDO:
                del entered[-1:]
            elif len(entered) < rules.pegs:
                try:
                    _peg(rules, key)
                except InvalidCodeError:
                    continue  # Not the key of a colour.
                entered.append(key)


@contextmanager
def _keys() -> Iterator[Callable[[], str]]:
    """The terminal without line editing for as long as a code is entered, so that no key gets lost in between."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor, termios.TCSADRAIN)
    try:
        yield lambda: os.read(descriptor, 1).decode("latin-1")
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
