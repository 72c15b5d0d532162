"""Guesses that differ only by renaming what nobody can tell apart yet.

Colours that occur in no guess so far are interchangeable, and so are places that have held the same peg in every
guess. Of each class of guesses that such a renaming maps onto each other one is enough: the partition sizes of the
standing codes are the same for all, as the set of standing codes is mapped onto itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mastermind.players.codes import Codes
from mastermind.rules import Code, Rules


def representatives(rules: Rules, codes: Codes, guesses: Sequence[Code]) -> NDArray[np.intp]:
    """Return the indices of one code of each class among `codes`, ascending; the lowest code of each class.

    `codes` must be closed under the renamings, as the set of all codes is, and the set of standing codes.
    """
    fresh = sorted(set(range(rules.colours)) - {peg for guess in guesses for peg in guess})
    place_groups: dict[tuple[int, ...], list[int]] = {}
    for place in range(rules.pegs):
        place_groups.setdefault(tuple(guess[place] for guess in guesses), []).append(place)
    keep = np.ones(len(codes), dtype=bool)
    if len(fresh) > 1:
        # Fresh colours appear for the first time in ascending order, without gaps.
        highest = np.full(len(codes), -1, dtype=np.int16)
        rank = np.full(rules.colours, -1, dtype=np.int16)
        rank[fresh] = np.arange(len(fresh))
        for place in range(rules.pegs):
            here = rank[codes[:, place]]
            keep &= here <= highest + 1
            highest = np.maximum(highest, here)
    for places in place_groups.values():
        if len(places) > 1 and not guesses:
            # Only before the first guess is this compatible with ordering the colours: equal pegs stand together.
            ordered = codes[:, places]
            keep &= (np.diff(ordered.astype(np.int16), axis=1) >= 0).all(axis=1)
    return np.flatnonzero(keep)
