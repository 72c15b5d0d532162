"""Play every code of the classic rules against each strength of computer player.

Prints how many guesses were needed, and writes the table to `build/strengths.json` and a histogram to
`build/strengths.svg`. Casual plays a sample with a limit, as it may take hundreds of guesses.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from pathlib import Path

import click

from mastermind.cli.output import default_home
from mastermind.players.codes import all_codes, score_table
from mastermind.players.expert import Expert
from mastermind.players.strategies import Casual, Club, Strategy, Strong, Turn, as_code
from mastermind.rules import Code, Rules

RULES = Rules.parse("classic")
CLUB_SEEDS = (1, 2, 3)
CASUAL_CODES = 50
CASUAL_LIMIT = 10
_BAR_HEIGHT, _BAR_WIDTH, _GAP = 140, 26, 40


def play_all(strategy: Strategy, secrets: list[Code], limit: int | None = None) -> Counter[int]:
    """How many secrets need how many guesses; a game that reaches `limit` unsolved counts as limit + 1."""
    known: dict[tuple[Turn, ...], Code] = {}
    lengths: Counter[int] = Counter()
    for secret in secrets:
        turns: list[Turn] = []
        while (not turns or turns[-1][1].hits < RULES.pegs) and len(turns) != limit:
            key = tuple(turns)
            if key not in known:
                known[key] = strategy.guess(turns)
            turns.append((known[key], RULES.score(secret, known[key])))
        solved = turns[-1][1].hits == RULES.pegs
        lengths[len(turns) if solved else len(turns) + 1] += 1
    return lengths


def histogram(results: dict[str, Counter[int]]) -> str:
    """The distributions as an SVG picture, one row of bars each."""
    longest = max(length for lengths in results.values() for length in lengths)
    width = 130 + longest * _BAR_WIDTH
    height = len(results) * (_BAR_HEIGHT + _GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        f'font-size="11"><rect width="{width}" height="{height}" fill="white"/>'
    ]
    for row, (name, lengths) in enumerate(results.items()):
        foot = (row + 1) * (_BAR_HEIGHT + _GAP) - _GAP / 2
        total = lengths.total()
        mean = sum(length * count for length, count in lengths.items()) / total
        parts.append(f'<text x="8" y="{foot - _BAR_HEIGHT / 2}">{name}, {mean:.3f}</text>')
        for length, count in sorted(lengths.items()):
            size = _BAR_HEIGHT * count / max(lengths.values())
            left = 110 + (length - 1) * _BAR_WIDTH
            parts.append(f'<rect x="{left}" y="{foot - size}" width="{_BAR_WIDTH - 4}" height="{size}" fill="#357"/>')
            parts.append(f'<text x="{left + 4}" y="{foot + 12}">{length}</text>')
    return "\n".join([*parts, "</svg>", ""])


@click.command()
@click.option("--home", type=click.Path(path_type=Path, file_okay=False), help="Where to write. [default: build/]")
def main(home: Path | None) -> None:
    """Play, print and write."""
    folder = home or default_home()
    folder.mkdir(parents=True, exist_ok=True)
    codes = all_codes(RULES)
    secrets = [as_code(code) for code in codes]
    start = time.perf_counter()
    score_table(RULES, codes, codes)
    click.echo(f"all {len(codes)} x {len(codes)} clues in {(time.perf_counter() - start) * 1000:.0f} ms\n")

    results: dict[str, Counter[int]] = {}
    sample = random.Random(1).sample(secrets, CASUAL_CODES)  # noqa: S311
    results["casual"] = play_all(Casual(RULES, random.Random(2)), sample, CASUAL_LIMIT)  # noqa: S311
    results["club"] = sum((play_all(Club(RULES, random.Random(seed)), secrets) for seed in CLUB_SEEDS), Counter())  # noqa: S311
    results["strong"] = play_all(Strong(RULES), secrets)
    results["expert"] = play_all(Expert(RULES), secrets)

    longest = max(length for lengths in results.values() for length in lengths)
    click.echo(
        f"{'strength':<10}{'games':>7}{'guesses':>9}{'mean':>8}  " + "".join(f"{n:>6}" for n in range(1, longest + 1))
    )
    for name, lengths in results.items():
        guesses = sum(length * count for length, count in lengths.items())
        row = "".join(f"{lengths[n] or '':>6}" for n in range(1, longest + 1))
        click.echo(f"{name:<10}{lengths.total():>7}{guesses:>9}{guesses / lengths.total():>8.3f}  {row}")
    click.echo(f"\ncasual: {CASUAL_CODES} codes, {CASUAL_LIMIT + 1} stands for more than {CASUAL_LIMIT} guesses")
    (folder / "strengths.json").write_text(json.dumps(results, indent=1), "utf-8")
    (folder / "strengths.svg").write_text(histogram(results), "utf-8")
    click.echo(f"written to {folder / 'strengths.json'} and {folder / 'strengths.svg'}")


if __name__ == "__main__":
    main()
