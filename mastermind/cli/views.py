"""What a referee shows of its games and matches, for the commands that play at one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from mastermind.cli.output import print_json

if TYPE_CHECKING:  # the HTTP client is imported by the commands that need it
    from mastermind.referee.client import GameView, MatchView


def view_json(view: GameView | MatchView) -> dict[str, Any]:
    """A game or a match, for machines."""
    from mastermind.referee.log import staked_json

    return {
        "events": view.events,
        "keys": view.keys,
        "key_set_id": view.key_set_id,
        "contract": staked_json(view.contract, view.slot),
    }


def show_views(title: str, views: Sequence[GameView | MatchView], as_json: bool) -> None:
    """Print a list of games or of matches; `title` stands over their names."""
    if as_json:
        print_json([view_json(view) for view in views])
        return
    click.echo(f"{title:<14}{'rules':<14}{'reward':>8}  {'keys':<12}")
    for view in views:
        staked = view.contract
        click.echo(f"{str(staked.solution_hash)[:12]:<14}{staked.rules.name:<14}{staked.reward:>8}  {view.keys:<12}")
