"""`mastermind rules`."""

from __future__ import annotations

import click

from mastermind.cli.output import json_option, print_json
from mastermind.rules import NAMED_RULES


@click.command()
@json_option
def rules(as_json: bool) -> None:
    """Show the named rules.

    \b
    Examples:
      mastermind rules
      mastermind rules --json

    Any other rules are spelled: 4x6r12 is 4 pegs, 6 colours, repeats, 12 attempts; 4x8u7 is unique colours.
    """
    if as_json:
        print_json(
            [
                {
                    "name": name,
                    "spelling": rule.spelling,
                    "pegs": rule.pegs,
                    "colours": rule.colours,
                    "repeats": rule.repeats,
                    "attempts": rule.attempts,
                    "codes": rule.code_count,
                }
                for name, rule in NAMED_RULES.items()
            ]
        )
        return
    click.echo(f"{'name':<14}{'spelled':<10}{'pegs':>5}{'colours':>9}{'repeats':>9}{'attempts':>10}{'codes':>9}")
    for name, rule in NAMED_RULES.items():
        repeats = "yes" if rule.repeats else "no"
        click.echo(
            f"{name:<14}{rule.spelling:<10}{rule.pegs:>5}{rule.colours:>9}{repeats:>9}{rule.attempts:>10}"
            f"{rule.code_count:>9,}"
        )
