"""The vectorised clues against the reference and against published numbers."""

from __future__ import annotations

import numpy as np
import pytest

from mastermind.players.codes import all_codes, clue_number, partition_sizes, score_table, standing
from mastermind.players.strategies import as_code
from mastermind.rules import Clue, Rules

CLASSIC = Rules.parse("classic")


@pytest.mark.parametrize("spelling", ["1x2r1", "3x4r1", "3x6u1", "4x5u1", "2x17r1"])
def test_the_table_agrees_with_the_reference_on_every_pair(spelling: str) -> None:
    rules = Rules.parse(spelling)
    codes = all_codes(rules)
    assert len(codes) == rules.code_count
    table = score_table(rules, codes, codes)
    for i, guess in enumerate(codes):
        for j, secret in enumerate(codes):
            assert table[i, j] == clue_number(rules, rules.score(as_code(secret), as_code(guess)))


@pytest.mark.parametrize("name", ["hit-and-blow", "classic", "deluxe"])
def test_the_table_agrees_with_the_reference_on_a_sample(name: str) -> None:
    rules = Rules.parse(name)
    chosen = np.random.default_rng(5).choice(all_codes(rules), 60)
    table = score_table(rules, chosen, chosen)
    for i, guess in enumerate(chosen):
        for j, secret in enumerate(chosen):
            assert table[i, j] == clue_number(rules, rules.score(as_code(secret), as_code(guess)))


def test_the_published_partition_of_1122() -> None:
    # Knuth, "The Computer as Master Mind" (1976), the table for the first guess 1122.
    published = {
        (0, 0): 256, (0, 1): 256, (0, 2): 96, (0, 3): 16, (0, 4): 1, (1, 0): 256, (1, 1): 208, (1, 2): 36,
        (1, 3): 0, (2, 0): 114, (2, 1): 32, (2, 2): 4, (3, 0): 20, (4, 0): 1,
    }  # fmt: skip
    assert len(published) == 14
    sizes = partition_sizes(CLASSIC, np.array([[0, 0, 1, 1]], dtype=np.uint8), all_codes(CLASSIC))[0]
    assert {clue: int(sizes[clue_number(CLASSIC, Clue(*clue))]) for clue in published} == published
    assert sizes.sum() == 1296
    assert sizes.max() == 256


def test_clu_8_the_known_numbers_of_standing_codes() -> None:
    def left(*turns: tuple[tuple[int, ...], tuple[int, int]]) -> int:
        return len(standing(CLASSIC, [(tuple(peg - 1 for peg in guess), Clue(*clue)) for guess, clue in turns]))

    assert left(((1, 1, 2, 2), (1, 1)), ((3, 4, 5, 6), (0, 2))) == 84
    assert left(((1, 1, 2, 2), (1, 1)), ((3, 3, 4, 4), (0, 2)), ((5, 5, 6, 6), (0, 1))) == 0
