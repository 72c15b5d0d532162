"""All codes of some rules as an array, and clues of many codes at once.

The vectorised twin of `Rules.score`; the tests hold one against the other. Arrays are `uint8` of shape (n, pegs). A
clue is numbered `hits * (pegs + 1) + blows`, so that sorted numbers are sorted clues.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mastermind.rules import Clue, Code, Rules

Codes = NDArray[np.uint8]
Clues = NDArray[np.uint8]

#: Cells of a table computed in one go: small enough for the processor's cache.
_CHUNK_CELLS = 1 << 18


@cache
def all_codes(rules: Rules) -> Codes:
    """Every legal code in ascending order, shape (rules.code_count, pegs). Not to be written to."""
    if rules.repeats:
        grid = np.indices((rules.colours,) * rules.pegs, dtype=np.uint8).reshape(rules.pegs, -1).T
        codes = np.ascontiguousarray(grid)
    else:
        codes = np.array(list(itertools.permutations(range(rules.colours), rules.pegs)), dtype=np.uint8)
    codes.setflags(write=False)
    return codes


def clue_number(rules: Rules, clue: Clue) -> int:
    """The number of a clue, below `clue_count`."""
    return clue.hits * (rules.pegs + 1) + clue.blows


def clue_count(rules: Rules) -> int:
    """One more than the highest clue number (all hits)."""
    return rules.pegs * (rules.pegs + 1) + 1


def score_table(rules: Rules, guesses: Codes, secrets: Codes) -> Clues:
    """The clue numbers of every guess against every secret, shape (len(guesses), len(secrets))."""
    table = np.empty((len(guesses), len(secrets)), dtype=np.uint8)
    for rows, part in score_rows(rules, guesses, secrets):
        table[rows] = part
    return table


def score_rows(rules: Rules, guesses: Codes, secrets: Codes) -> Iterator[tuple[slice, Clues]]:
    """The same table in blocks of rows, for callers that need not keep it all."""
    secret_columns = np.ascontiguousarray(secrets.T)
    secret_counts = _colour_counts(rules, secrets)
    guess_counts = _colour_counts(rules, guesses)
    step = max(1, _CHUNK_CELLS // max(1, len(secrets)))
    for start in range(0, len(guesses), step):
        rows = slice(start, min(start + step, len(guesses)))
        shape = (rows.stop - rows.start, len(secrets))
        hits = np.zeros(shape, dtype=np.uint8)
        for place in range(rules.pegs):
            hits += guesses[rows, place, None] == secret_columns[place]
        both = np.zeros(shape, dtype=np.uint8)
        for colour in range(rules.colours):
            both += np.minimum(guess_counts[colour, rows, None], secret_counts[colour])
        # hits * (pegs + 1) + (both - hits)
        yield rows, hits * np.uint8(rules.pegs) + both


def partition_sizes(rules: Rules, guesses: Codes, secrets: Codes) -> NDArray[np.intp]:
    """How many secrets give each clue, for each guess: shape (len(guesses), clue_count)."""
    width = clue_count(rules)
    sizes = np.empty((len(guesses), width), dtype=np.intp)
    for rows, part in score_rows(rules, guesses, secrets):
        count = rows.stop - rows.start
        cells = part + np.arange(count, dtype=np.int32)[:, None] * width
        sizes[rows] = np.bincount(cells.ravel(), minlength=count * width).reshape(count, width)
    return sizes


def standing(rules: Rules, turns: Sequence[tuple[Code, Clue]], among: Codes | None = None) -> Codes:
    """The codes that agree with every clue so far, in ascending order."""
    codes = all_codes(rules) if among is None else among
    for guess, clue in turns:
        row = score_table(rules, np.array([guess], dtype=np.uint8), codes)[0]
        codes = codes[row == clue_number(rules, clue)]
    return codes


def _colour_counts(rules: Rules, codes: Codes) -> NDArray[np.uint8]:
    """How often each colour occurs in each code, shape (colours, len(codes))."""
    return np.stack([(codes == colour).sum(axis=1, dtype=np.uint8) for colour in range(rules.colours)])
