"""Codes, clues and histories as field elements, bit-compatible with the reference zkApp.

Little-endian throughout (PROTOCOL section 2): peg `i` at bit `peg_bits * i`, hits below blows, turn `t` at
bit `size * t`. Unpacking is strict: a value that no legal code, clue or history packs to is refused,
so packing is a bijection.
"""

from __future__ import annotations

from collections.abc import Sequence

from mastermind.errors import InvalidClueError, InvalidCodeError, counted
from mastermind.rules import CLUE_BITS, Clue, Code, Rules

_COUNT_BITS = CLUE_BITS // 2


def pack_code(rules: Rules, code: Sequence[int]) -> int:
    """Pack a legal code. Raises InvalidCodeError."""
    return _join(rules.require_code(code), rules.peg_bits)


def unpack_code(rules: Rules, packed: int) -> Code:
    """Unpack a code. Raises InvalidCodeError when `packed` is not a packed legal code."""
    pegs = _split(packed, rules.peg_bits, rules.pegs)
    if pegs is None:
        raise InvalidCodeError(f"a packed code has {rules.peg_bits * rules.pegs} bits")
    return rules.require_code(pegs)


def pack_clue(rules: Rules, clue: Clue) -> int:
    """Pack a clue as hits + 8 blows. Raises InvalidClueError."""
    return _join(rules.require_clue(clue), _COUNT_BITS)


def unpack_clue(rules: Rules, packed: int) -> Clue:
    """Unpack a clue. Raises InvalidClueError when no guess can have it."""
    counts = _split(packed, _COUNT_BITS, 2)
    if counts is None:
        raise InvalidClueError(f"a packed clue has {CLUE_BITS} bits")
    return rules.require_clue(Clue(*counts))


def pack_guesses(rules: Rules, guesses: Sequence[Sequence[int]]) -> int:
    """Pack a guess history, at most `rules.attempts` long. Raises InvalidCodeError."""
    if len(guesses) > rules.attempts:
        raise InvalidCodeError(f"{len(guesses)} guesses where the rules allow {rules.attempts}")
    return _join([pack_code(rules, guess) for guess in guesses], rules.peg_bits * rules.pegs)


def unpack_guesses(rules: Rules, packed: int, count: int) -> tuple[Code, ...]:
    """Unpack the `count` guesses of a history. Raises InvalidCodeError."""
    guesses = _split(packed, rules.peg_bits * rules.pegs, count)
    if guesses is None or count > rules.attempts:
        raise InvalidCodeError(f"the guess history does not hold {counted(count, 'guess')}")
    return tuple(unpack_code(rules, guess) for guess in guesses)


def pack_clues(rules: Rules, clues: Sequence[Clue]) -> int:
    """Pack a clue history, at most `rules.attempts` long. Raises InvalidClueError."""
    if len(clues) > rules.attempts:
        raise InvalidClueError(f"{len(clues)} clues where the rules allow {rules.attempts}")
    return _join([pack_clue(rules, clue) for clue in clues], CLUE_BITS)


def unpack_clues(rules: Rules, packed: int, count: int) -> tuple[Clue, ...]:
    """Unpack the `count` clues of a history. Raises InvalidClueError."""
    clues = _split(packed, CLUE_BITS, count)
    if clues is None or count > rules.attempts:
        raise InvalidClueError(f"the clue history does not hold {counted(count, 'clue')}")
    return tuple(unpack_clue(rules, clue) for clue in clues)


def _join(parts: Sequence[int], size_bits: int) -> int:
    return sum(part << size_bits * index for index, part in enumerate(parts))


def _split(packed: int, size_bits: int, count: int) -> tuple[int, ...] | None:
    """Cut `packed` into `count` parts, or return None when it has more bits than that (or is no count)."""
    if isinstance(packed, bool) or not isinstance(packed, int) or packed < 0 or packed >> size_bits * count:
        return None
    mask = (1 << size_bits) - 1
    return tuple(packed >> size_bits * index & mask for index in range(count))
