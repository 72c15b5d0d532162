"""Codes and clues as people know them: coloured pegs that also differ by number, dark and light pegs."""

from __future__ import annotations

from collections.abc import Sequence

import click

from mastermind.errors import InvalidCodeError, counted
from mastermind.game.steps import GameState
from mastermind.rules import Clue, Code, Rules

#: Terminal colours by peg colour; beyond these the number alone tells.
_COLOURS = ("red", "green", "yellow", "blue", "magenta", "cyan", "white", "bright_red")
#: The letters of the colours above, red to orange: pegs differ without colour too.
LETTERS = ("R", "G", "Y", "B", "M", "C", "W", "O")


def show_peg(peg: int, width: int = 1) -> str:
    """A peg as a coloured number."""
    return click.style(f"{peg:>{width}}", fg=_COLOURS[peg % len(_COLOURS)], bold=True)


def show_code(code: Sequence[int]) -> str:
    """A code as coloured numbers."""
    return " ".join(show_peg(peg) for peg in code)


def read_code(rules: Rules, words: Sequence[str], what: str) -> Code:
    """Read a code as people type it: `5 7 2 6`, `5,7,2,6` or `5726` (colours of one digit).

    Raises:
        InvalidCodeError: it is not a legal code; the message repeats nothing of it.
    """
    text = " ".join(words).replace(",", " ")
    parts = text.split()
    if len(parts) == 1 and rules.pegs > 1 and rules.colours <= 10:
        parts = list(parts[0])
    if not all(part.isascii() and part.isdecimal() and len(part) <= 3 for part in parts):
        raise InvalidCodeError(f"the {what} must be {rules.pegs} numbers of 0 .. {rules.colours - 1}")
    return rules.require_code([int(part) for part in parts], what)


def show_letters(code: Sequence[int]) -> str:
    """A code as coloured letters (LETTERS), or numbers where these end."""
    return " ".join(
        click.style(LETTERS[peg] if peg < len(LETTERS) else str(peg), fg=_COLOURS[peg % len(_COLOURS)], bold=True)
        for peg in code
    )


def show_clue(rules: Rules, clue: Clue) -> str:
    """A clue as dark pegs (right place), light pegs (elsewhere) and dots."""
    return "●" * clue.hits + "○" * clue.blows + "·" * (rules.pegs - sum(clue))


def show_rules(rules: Rules) -> str:
    """What a code is under some rules."""
    return f"{counted(rules.pegs, 'peg')}, {rules.colours} colours, {'' if rules.repeats else 'no '}repeats"


def show_board(state: GameState) -> list[str]:
    """The lines of a board: newest guess on top, empty rows for attempts that are left."""
    rules = state.rules
    width = len(str(rules.colours - 1))
    lines = []
    for turn in reversed(range(rules.attempts)):
        if turn < len(state.guesses):
            row = " ".join(show_peg(peg, width) for peg in state.guesses[turn])
            answer = show_clue(rules, state.clues[turn]) if turn < len(state.clues) else "?"
        else:
            row, answer = " ".join("." * width for _ in range(rules.pegs)), ""
        lines.append(f"  {turn + 1:>2}  {row}   {answer}".rstrip())
    return lines


def show_boards(boards: Sequence[GameState], titles: Sequence[str]) -> str:
    """Two boards side by side with their titles, the newest row on top."""
    width = 3 * boards[0].rules.pegs + 10
    lines = ["", titles[0].ljust(width) + titles[1]]
    for turn in reversed(range(max(len(board.guesses) for board in boards))):
        cells = []
        for board in boards:
            cell = ""
            if turn < len(board.guesses):
                clue = show_clue(board.rules, board.clues[turn]) if turn < len(board.clues) else "?"
                cell = f"{turn + 1:>3}  {show_letters(board.guesses[turn])}  {clue}"
            cells.append(cell + " " * (width - len(click.unstyle(cell))))
        lines.append("".join(cells).rstrip())
    return "\n".join([*lines, ""])


def show_status(state: GameState) -> str:
    """What the game waits for, or who has won, in one sentence."""
    left = state.rules.attempts - len(state.guesses)
    match state.next_step:
        case None if state.winner == "breaker":
            return f"The breaker has won, in {counted(len(state.guesses), 'guess')}."
        case None:
            return "The master has won: the attempts are used up."
        case "open_game":
            return "The game is not open yet."
        case "join_game":
            return "Waiting for a breaker to join."
        case "make_guess":
            return f"The breaker is to guess; attempts left: {left}."
        case "give_clue":
            return "The master is to answer."
