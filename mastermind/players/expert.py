"""The strongest player: any code may be a guess, and the average number of guesses is what counts.

A guess that splits n standing codes into k clues costs at least n + sum over clues of (2 m - 1) guesses in all, where m
codes remain (one guess for a single code, one more for each other). Ranking guesses by this bound is the *most parts*
rule (Kooi, "Yet another Mastermind strategy", ICGA Journal 28(1), 2005). Where few codes stand, the best-ranked guesses
are followed to the end of the game and the one with the lowest total is played.

Of guesses with the same partition sizes one is followed: the others are, for the most part, the same one renamed.
Under the classic rules this finds the published optimum, 5,625 guesses for all codes (Koyama and Lai, "An optimal
Mastermind strategy", J. Recreational Mathematics 25(4), 1993).

How many are followed depends on how many codes stand and on the clues looked at so far, never on the clock: a move is
bounded in time, and the same turns give the same guess.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mastermind.players.codes import Clues, Codes, all_codes, clue_count, partition_sizes, score_table
from mastermind.players.strategies import Turn, as_code, require_standing
from mastermind.players.symmetry import representatives
from mastermind.rules import Code, Rules

#: With more standing codes than this, the best-ranked guess is played without following any.
_SEARCHED = 300
#: Guesses that are considered while following, beside the standing codes.
_POOL = 1_700
#: Clues that are looked at while following, before every guess is followed by the best-ranked ones alone.
_MAX_WORK = 16_000_000


class Expert:
    """Plays for the lowest average."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def guess(self, turns: Sequence[Turn]) -> Code:
        """Return the next guess. Raises InvalidClueError when no code agrees with the clues."""
        codes = require_standing(self._rules, turns)
        if len(codes) <= 2:
            return as_code(codes[0])
        guesses = all_codes(self._rules)
        if len(codes) > _SEARCHED or len(guesses) > _POOL:
            guesses = guesses[representatives(self._rules, guesses, [guess for guess, _ in turns])]
        ranked = guesses[_ranking(partition_sizes(self._rules, guesses, codes))]
        if len(codes) > _SEARCHED:
            return as_code(ranked[0])
        return as_code(_Search(self._rules, ranked[:_POOL], codes).best())


class _Search:
    """Follows guesses for one set of standing codes.

    A set of codes is an ascending array of columns of `table`, whose rows are the guesses considered: the codes that
    stand first, so that a code's row is its column.
    """

    def __init__(self, rules: Rules, pool: Codes, codes: Codes) -> None:
        self._guesses = np.concatenate([codes, pool])
        self._table = score_table(rules, self._guesses, codes)
        self._width = clue_count(rules)
        self._offsets = np.arange(len(self._guesses), dtype=np.int32)[:, None] * self._width
        self._known: dict[bytes, tuple[int, int]] = {}
        self._work = 0

    def best(self) -> NDArray[np.uint8]:
        """The guess with the lowest total found for all codes."""
        _, guess = self._total(np.arange(self._table.shape[1]))
        row: NDArray[np.uint8] = self._guesses[guess]
        return row

    def _total(self, codes: NDArray[np.intp]) -> tuple[int, int]:
        """The lowest total of guesses found for these codes, and the row of the guess that starts it."""
        count = len(codes)
        if count <= 2:
            return 2 * count - 1, int(codes[0])
        key = codes.tobytes()
        if key not in self._known:
            self._known[key] = self._best_of_standing(codes) or self._best_followed(codes)
        return self._known[key]

    def _best_of_standing(self, codes: NDArray[np.intp]) -> tuple[int, int] | None:
        """The same when no guess can do better than one of the codes themselves, else None.

        The least there is: 2 n - 1 when a standing code tells all others apart, 2 n when another code does.
        """
        sizes = self._sizes(self._table[codes[:, None], codes])
        bounds = _bounds(sizes)
        row = int(np.argmin(bounds))
        if bounds[row] <= 2 * len(codes) and sizes[row].max() <= 2:
            return int(bounds[row]), int(codes[row])
        return None

    def _best_followed(self, codes: NDArray[np.intp]) -> tuple[int, int]:
        count = len(codes)
        sizes = self._sizes(self._table[:, codes])
        bounds = _bounds(sizes)
        best, best_guess = count * (count + 1), int(codes[0])
        seen: set[bytes] = set()
        for guess in _ranking(sizes):
            if bounds[guess] >= best or len(seen) >= self._followed(count):
                break
            kind = sizes[guess].tobytes()
            if kind in seen or sizes[guess].max() == count:
                continue
            seen.add(kind)
            total = self._follow(codes, int(guess), sizes[guess], int(bounds[guess]), best)
            if total < best:
                best, best_guess = total, int(guess)
        return best, best_guess

    def _follow(self, codes: NDArray[np.intp], guess: int, sizes: NDArray[np.intp], bound: int, limit: int) -> int:
        """The total when the game goes on with `guess`; anything not below `limit` may be cut short."""
        clues = self._table[guess, codes]
        total = bound
        for clue in np.argsort(-sizes, kind="stable"):
            size = int(sizes[clue])
            if size <= 2 or total >= limit:
                break  # The bound is exact for one and two codes.
            if clue != self._width - 1:
                total += self._total(codes[clues == clue])[0] - (2 * size - 1)
        return total

    def _sizes(self, clues: Clues) -> NDArray[np.intp]:
        """How often each clue occurs in each row."""
        self._work += clues.size
        cells = clues + self._offsets[: len(clues)]
        return np.bincount(cells.ravel(), minlength=len(clues) * self._width).reshape(-1, self._width)

    def _followed(self, count: int) -> int:
        """How many of the best-ranked guesses are followed for so many standing codes."""
        if self._work > _MAX_WORK:
            return 1
        return 20 if count > 60 else 12


def _bounds(sizes: NDArray[np.intp]) -> NDArray[np.intp]:
    """The least total of each guess: n + sum of (2 m - 1) over all clues but the solution."""
    others = sizes[:, :-1]
    bounds: NDArray[np.intp] = sizes.sum(axis=1) + 2 * others.sum(axis=1) - (others > 0).sum(axis=1)
    return bounds


def _ranking(sizes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rows by bound, then by the expected number of codes left, then as they come."""
    expected = (sizes.astype(np.int64) ** 2).sum(axis=1)
    return np.lexsort((expected, _bounds(sizes)))
