"""The four strengths.

*Casual* tries any code not tried before. *Club* never guesses a code that the clues have eliminated. *Strong* plays,
among the codes still standing, the one whose worst clue leaves the fewest (Knuth, "The Computer as Master Mind",
J. Recreational Mathematics 9(1), 1976, restricted to standing codes). *Expert* may guess any code and plays for the
lowest average (`mastermind.players.expert`).

A strategy is a function of the turns so far: the same turns and the same generator state give the same guess.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from mastermind.errors import InvalidClueError
from mastermind.players.codes import Codes, all_codes, partition_sizes, standing
from mastermind.players.symmetry import representatives
from mastermind.rules import Clue, Code, Rules

Turn = tuple[Code, Clue]


class Strategy(Protocol):
    """Chooses guesses."""

    def guess(self, turns: Sequence[Turn]) -> Code:
        """Return the next guess after `turns`.

        Raises:
            InvalidClueError: no code agrees with the clues.
        """
        ...


class Casual:
    """Any code not tried before."""

    def __init__(self, rules: Rules, generator: random.Random) -> None:
        self._rules = rules
        self._generator = generator

    def guess(self, turns: Sequence[Turn]) -> Code:
        tried = {guess for guess, _ in turns}
        codes = all_codes(self._rules)
        while True:
            code = as_code(codes[self._generator.randrange(len(codes))])
            if code not in tried or len(tried) >= len(codes):
                return code


class Club:
    """A code that agrees with every clue, any of them."""

    def __init__(self, rules: Rules, generator: random.Random) -> None:
        self._rules = rules
        self._generator = generator

    def guess(self, turns: Sequence[Turn]) -> Code:
        codes = require_standing(self._rules, turns)
        return as_code(codes[self._generator.randrange(len(codes))])


class Strong:
    """The standing code whose worst clue leaves the fewest; the lowest such code."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def guess(self, turns: Sequence[Turn]) -> Code:
        codes = require_standing(self._rules, turns)
        candidates = codes[representatives(self._rules, codes, [guess for guess, _ in turns])]
        worst = partition_sizes(self._rules, candidates, codes).max(axis=1)
        return as_code(candidates[int(np.argmin(worst))])


def require_standing(rules: Rules, turns: Sequence[Turn]) -> Codes:
    """The codes that agree with every clue.

    Raises:
        InvalidClueError: there is none; the message names the turn at which the last one fell.
    """
    codes = all_codes(rules)
    for number, turn in enumerate(turns, start=1):
        codes = standing(rules, [turn], codes)
        if not len(codes):
            raise InvalidClueError(f"no code agrees with the clues: they contradict each other at turn {number}")
    return codes


def as_code(row: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> Code:
    """A row of an array as a code."""
    return tuple(int(peg) for peg in row)
