"""Packing, to the digit of the reference implementation, and strict the other way round."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mastermind.errors import InvalidClueError, InvalidCodeError
from mastermind.packing import (
    pack_clue,
    pack_clues,
    pack_code,
    pack_guesses,
    unpack_clue,
    unpack_clues,
    unpack_code,
    unpack_guesses,
)
from mastermind.rules import Clue, Rules

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "vectors" / "mina_packing.json").read_text("utf-8"))
REFERENCE = Rules.parse("hit-and-blow")


@pytest.mark.parametrize("game", VECTORS["games"])
def test_games_pack_to_the_digit_of_the_reference(game: dict[str, Any]) -> None:
    guesses, clues = [], []
    for turn in game["turns"]:
        clue = Clue(turn["hits"], turn["blows"])
        assert REFERENCE.score(game["secret"], turn["guess"]) == clue
        assert str(pack_code(REFERENCE, turn["guess"])) == turn["packedGuess"]
        assert str(pack_clue(REFERENCE, clue)) == turn["packedClue"]
        guesses.append(tuple(turn["guess"]))
        clues.append(clue)
        assert str(pack_guesses(REFERENCE, guesses)) == turn["guessHistory"]
        assert str(pack_clues(REFERENCE, clues)) == turn["clueHistory"]
    assert unpack_guesses(REFERENCE, int(turn["guessHistory"]), len(guesses)) == tuple(guesses)
    assert unpack_clues(REFERENCE, int(turn["clueHistory"]), len(clues)) == tuple(clues)


@given(st.integers(min_value=-1, max_value=1 << 13))
def test_unpacking_a_code_is_the_inverse_or_refuses(packed: int) -> None:
    try:
        code = unpack_code(REFERENCE, packed)
    except InvalidCodeError:
        return
    assert pack_code(REFERENCE, code) == packed


@given(st.integers(min_value=-1, max_value=1 << 7))
def test_unpacking_a_clue_is_the_inverse_or_refuses(packed: int) -> None:
    try:
        clue = unpack_clue(REFERENCE, packed)
    except InvalidClueError:
        return
    assert pack_clue(REFERENCE, clue) == packed


def test_a_longer_value_is_not_cut() -> None:
    code = (7, 4, 6, 0)
    packed = pack_code(REFERENCE, code)
    assert unpack_code(REFERENCE, packed) == code
    with pytest.raises(InvalidCodeError):
        unpack_code(REFERENCE, packed + (1 << 12))
    with pytest.raises(InvalidClueError):
        unpack_clue(REFERENCE, 17 + (1 << 6))
    history = pack_guesses(REFERENCE, [code, code])
    with pytest.raises(InvalidCodeError):
        unpack_guesses(REFERENCE, history, 1)


def test_histories_are_no_longer_than_the_attempts() -> None:
    code, clue = (7, 4, 6, 0), Clue(1, 2)
    assert pack_guesses(REFERENCE, [code] * 7)
    with pytest.raises(InvalidCodeError):
        pack_guesses(REFERENCE, [code] * 8)
    with pytest.raises(InvalidClueError):
        pack_clues(REFERENCE, [clue] * 8)
