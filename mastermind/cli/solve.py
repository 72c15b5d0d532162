"""`mastermind solve`: advice for somebody who breaks a code elsewhere."""

from __future__ import annotations

import re

import click

from mastermind.cli.board import read_code, show_clue, show_code
from mastermind.cli.options import rules_option
from mastermind.cli.output import EXIT_CODES, command_errors, json_option, print_json
from mastermind.errors import InvalidClueError
from mastermind.rules import Clue, Code, Rules

_TURN = re.compile(r"([0-9,]+):([0-9]),([0-9])", re.ASCII)
_SHOWN = 10


@click.command(epilog=EXIT_CODES)
@rules_option
@click.option(
    "--strength",
    type=click.Choice(["strong", "expert"]),
    default="expert",
    show_default=True,
    help="strong: a code still possible, for the best worst case; expert: any code, for the best average.",
)
@click.argument("turns", nargs=-1, metavar="[GUESS:HITS,BLOWS]...")
@json_option
@command_errors
def solve(rules: Rules, strength: str, turns: tuple[str, ...], as_json: bool) -> None:
    """Say which codes agree with the clues so far, and the best next guess.

    Colours are numbered from 0. Colours of two digits are separated by commas: 10,3,0,11:1,2.

    \b
    Examples:
      mastermind solve --rules classic
      mastermind solve --rules classic 0011:1,1 2345:0,2
    """
    # NumPy is needed by computer players alone; other commands start without it.
    from mastermind.players.expert import Expert
    from mastermind.players.strategies import Strong, as_code, require_standing

    played = [_read_turn(rules, turn) for turn in turns]
    codes = require_standing(rules, played)
    guess = (Expert(rules) if strength == "expert" else Strong(rules)).guess(played)
    if as_json:
        print_json(
            {
                "rules": rules.spelling,
                "standing": len(codes),
                "codes": [list(as_code(code)) for code in codes[:_SHOWN]],
                "guess": list(guess),
                "strength": strength,
            }
        )
        return
    for code, clue in played:
        click.echo(f"  {show_code(code)}   {show_clue(rules, clue)}")
    shown = "; ".join(show_code(as_code(code)) for code in codes[:_SHOWN])
    if len(codes) == 1:
        click.echo(f"One code is possible: {shown}")
        return
    click.echo(f"{len(codes):,} codes are possible: {shown}{'; ...' if len(codes) > _SHOWN else ''}")
    click.echo(f"Best next guess: {show_code(guess)}")


def _read_turn(rules: Rules, text: str) -> tuple[Code, Clue]:
    match = _TURN.fullmatch(text)
    if match is None:
        raise InvalidClueError(f"{text!r} is not a turn; write the guess and its clue like 0011:1,0")
    return read_code(rules, [match[1]], "guess"), rules.require_clue(Clue(int(match[2]), int(match[3])))
