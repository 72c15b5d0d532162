"""What a referee shows of its games and matches, for the commands that play at one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from mastermind.cli.output import print_json, print_json_line

if TYPE_CHECKING:  # the HTTP client is imported by the commands that need it
    from mastermind.referee.client import GameView, MatchView

V = TypeVar("V", "GameView", "MatchView")


Seen = TypeVar("Seen", covariant=True)


class News(Protocol[Seen]):
    """`RefereeClient.watch` or `watch_match`."""

    def __call__(self, name: int, /, *, after: int) -> Iterator[Seen]: ...


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


def show_changes(describe: Callable[[V], Sequence[str]], as_json: bool) -> Callable[[V], None]:
    """Prints a game or match whenever it has changed; of what `describe` says, only what has not just been said."""
    said: Sequence[str] = ()

    def show(view: V) -> None:
        nonlocal said
        if as_json:
            print_json_line(view_json(view))
            return
        texts = describe(view)
        for text in texts:
            if text not in said:
                click.echo(text)
        said = texts

    return show


def follow(name: int, news: News[V], look: Callable[[int], V], show: Callable[[V], None]) -> None:
    """Show all that happens in a game or match, from its beginning until it is paid out."""
    view, seen = look(name), -1
    while not view.contract.closed or seen < view.events - 1:
        for view in news(name, after=seen):
            seen = view.events - 1
            show(view)
            if view.contract.closed:
                break
        else:
            view = look(name)
