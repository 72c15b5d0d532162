"""Codes and clues as people know them: coloured pegs that also differ by number, dark and light pegs."""

from __future__ import annotations

from collections.abc import Sequence

import click

from mastermind.rules import Clue, Rules

#: Terminal colours by peg colour; beyond these the number alone tells.
_COLOURS = ("red", "green", "yellow", "blue", "magenta", "cyan", "white", "bright_red")


def show_code(code: Sequence[int]) -> str:
    """A code as numbers on coloured pegs."""
    return " ".join(click.style(f"{peg}", fg=_COLOURS[peg % len(_COLOURS)], bold=True) for peg in code)


def show_clue(rules: Rules, clue: Clue) -> str:
    """A clue as dark pegs (right place), light pegs (elsewhere) and dots."""
    return "●" * clue.hits + "○" * clue.blows + "·" * (rules.pegs - sum(clue))
