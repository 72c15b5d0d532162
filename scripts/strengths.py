"""Play every code of the classic rules against each strength of computer player, and time what they do.

Prints how many guesses were needed, how long moves take and a duel with its proofs, and writes all of it to
`build/strengths.json` and a histogram to `build/strengths.svg`. Casual plays a sample with a limit, as it may take
hundreds of guesses.
"""

from __future__ import annotations

import itertools
import json
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from mastermind.cli.output import default_home
from mastermind.game.circuits import specs
from mastermind.game.duel import Seat, begin, next_move
from mastermind.game.play import Table
from mastermind.game.secret_files import PlayerKey
from mastermind.players.codes import all_codes, score_table
from mastermind.players.strategies import Strategy, Turn, as_code
from mastermind.players.strengths import make_strategy
from mastermind.rules import Code, Rules
from mastermind.zk.artifacts import ArtifactStore
from mastermind.zk.prove import NativeProver, self_test

RULES, LARGE = Rules.parse("classic"), Rules.parse("deluxe")
RUNS = 7
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


def all_distributions() -> dict[str, Counter[int]]:
    """How many guesses each strength needs, by strength."""
    secrets = [as_code(code) for code in all_codes(RULES)]
    sample = random.Random(1).sample(secrets, CASUAL_CODES)  # noqa: S311
    return {
        "casual": play_all(make_strategy("casual", RULES, 2), sample, CASUAL_LIMIT),
        "club": sum((play_all(make_strategy("club", RULES, seed), secrets) for seed in CLUB_SEEDS), Counter()),
        "strong": play_all(make_strategy("strong", RULES), secrets),
        "expert": play_all(make_strategy("expert", RULES), secrets),
    }


def table_s() -> float:
    """The time of the clues of all codes with all codes, the median of some runs."""
    codes = all_codes(RULES)
    return statistics.median(timed_s(lambda: score_table(RULES, codes, codes)) for _ in range(RUNS))


def slowest_moves_s(strengths: Sequence[str], games: int = 4) -> dict[str, float]:
    """The slowest move after the first guess of some games under the largest rules, by strength."""
    slowest = dict.fromkeys(strengths, 0.0)
    for strength, seed in itertools.product(strengths, range(games)):
        strategy = make_strategy(strength, LARGE, seed)
        secret = as_code(random.Random(seed).choice(all_codes(LARGE)))  # noqa: S311
        turns: list[Turn] = []
        while not turns or turns[-1][1].hits < LARGE.pegs:
            start = time.perf_counter()
            guess = strategy.guess(turns)
            if turns:
                slowest[strength] = max(slowest[strength], time.perf_counter() - start)
            turns.append((guess, LARGE.score(secret, guess)))
    return slowest


def peak_mb() -> float:
    """The peak memory of a process that plays these games."""
    script = (
        "import resource, sys\nsys.path.insert(0, sys.argv[1])\nimport strengths\n"
        "strengths.slowest_moves_s(['strong', 'expert'], 1)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    command = [sys.executable, "-c", script, str(Path(__file__).parent)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) / 1024


def duel_rounds_s(home: Path) -> list[float]:
    """Rounds of a duel against the expert: from your guess to your next one, four proofs made and two checked."""
    key_set = ArtifactStore(home).build_key_set(RULES.spelling, specs(RULES), self_test)
    table = Table(RULES, key_set, NativeProver())
    you, computer = Seat(table, 0, PlayerKey.new()), Seat(table, 1, PlayerKey.new())
    strategy = make_strategy("expert", RULES)
    state = begin(you, you.commit((5, 4, 3, 5)), computer, computer.commit((1, 2, 3, 4)))
    rounds = []
    while next_move(state.boards) is not None:
        start = time.perf_counter()
        state = computer.answer(you.guess(state, (0, 0, 0, 0)))
        state.first.verify(table.keys, table.verifier)
        state = computer.guess(state, strategy.guess(state.boards[1].turns))
        state = you.answer(state)
        state.second.verify(table.keys, table.verifier)
        rounds.append(time.perf_counter() - start)
    return rounds


def timed_s(action: Callable[[], object]) -> float:
    """The time of one run."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def measure(home: Path) -> dict[str, Any]:
    """All figures of the computer players, as `show` prints them."""
    return {
        "table_s": table_s(),
        "guesses": all_distributions(),
        "slowest_move_s": slowest_moves_s(["strong", "expert"]),
        "peak_mb": peak_mb(),
        "duel_round_s": duel_rounds_s(home),
    }


def show(report: dict[str, Any]) -> None:
    """Print the figures."""
    count = RULES.code_count
    print(f"\nall {count} x {count} clues in {report['table_s'] * 1000:.0f} ms")
    results: dict[str, Counter[int]] = report["guesses"]
    longest = max(length for lengths in results.values() for length in lengths)
    print(
        f"{'strength':<10}{'games':>7}{'guesses':>9}{'mean':>8}  " + "".join(f"{n:>6}" for n in range(1, longest + 1))
    )
    for name, lengths in results.items():
        guesses = sum(length * count for length, count in lengths.items())
        row = "".join(f"{lengths[n] or '':>6}" for n in range(1, longest + 1))
        print(f"{name:<10}{lengths.total():>7}{guesses:>9}{guesses / lengths.total():>8.3f}  {row}")
    print(f"casual: {CASUAL_CODES} codes, {CASUAL_LIMIT + 1} stands for more than {CASUAL_LIMIT} guesses")
    moves = ", ".join(f"{name} {seconds * 1000:.0f} ms" for name, seconds in report["slowest_move_s"].items())
    print(f"{LARGE.name}: slowest move after the first {moves}; peak memory {report['peak_mb']:.0f} MB")
    rounds = report["duel_round_s"]
    print(
        f"duel against the expert, your guess to your next, all proved and checked: "
        f"{statistics.median(rounds) * 1000:.0f} ms, worst {max(rounds) * 1000:.0f} ms"
    )


@click.command()
@click.option("--home", type=click.Path(path_type=Path, file_okay=False), help="Where to write. [default: build/]")
def main(home: Path | None) -> None:
    """Play, print and write."""
    folder = home or default_home()
    folder.mkdir(parents=True, exist_ok=True)
    report = measure(folder)
    show(report)
    (folder / "strengths.json").write_text(json.dumps(report, indent=1), "utf-8")
    (folder / "strengths.svg").write_text(histogram(report["guesses"]), "utf-8")
    print(f"\nwritten to {folder / 'strengths.json'} and {folder / 'strengths.svg'}")


if __name__ == "__main__":
    main()
