"""The Poseidon hash over the BN254 scalar field, with the parameters of circomlib.

Owns the permutation and its constants; what is hashed, and why, is the callers' business.
The constants are not stored: they follow from the Grain LFSR of the reference script
(Grassi et al., "Poseidon", eprint 2019/458, appendix E, `generate_parameters_grain.sage`), which circomlib's
tables come from too. The tests compare with circomlib's circuit and with published values.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from operator import add, mul

from mastermind.field import MODULUS, require_field_element

FULL_ROUNDS = 8
#: Partial rounds by number of inputs, as in circomlib's `poseidon.circom` (`N_ROUNDS_P`).
PARTIAL_ROUNDS = {1: 56, 2: 57, 3: 56}

_FIELD_BITS = 254


def poseidon(*inputs: int) -> int:
    """Hash one to three field elements to one, as circomlib's `Poseidon(n)` does.

    Raises:
        NotInFieldError: an input is not an integer of 0 .. MODULUS - 1.
    """
    for index, value in enumerate(inputs):
        require_field_element(value, f"Poseidon input {index}")
    rounds, matrix = _parameters(len(inputs))
    state = [0, *inputs]
    last_full = len(rounds) - FULL_ROUNDS // 2
    for index, constants in enumerate(rounds):
        state = list(map(add, state, constants))
        full = index < FULL_ROUNDS // 2 or index >= last_full
        for place in range(len(state) if full else 1):
            square = state[place] * state[place] % MODULUS
            state[place] = square * square % MODULUS * state[place] % MODULUS
        state = [sum(map(mul, row, state)) % MODULUS for row in matrix]
    return state[0]


@cache
def _parameters(input_count: int) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
    """Return the constants of each round, and the mixing matrix by rows."""
    width = input_count + 1
    partial_rounds = PARTIAL_ROUNDS[input_count]
    bits = _grain_bits(width, partial_rounds)

    def take() -> int:
        value = 0
        for _ in range(_FIELD_BITS):
            value = value << 1 | next(bits)
        return value

    constants: list[int] = []
    while len(constants) < width * (FULL_ROUNDS + partial_rounds):
        candidate = take()
        if candidate < MODULUS:
            constants.append(candidate)
    # A Cauchy matrix, 1 / (x_i + y_j). The script draws again on a collision; for these widths none occurs.
    points = [take() % MODULUS for _ in range(2 * width)]
    matrix = tuple(tuple(pow(x + y, -1, MODULUS) for y in points[width:]) for x in points[:width])
    rounds = tuple(tuple(constants[at : at + width]) for at in range(0, len(constants), width))
    return rounds, matrix


def _grain_bits(width: int, partial_rounds: int) -> Iterator[int]:
    """Yield the output bits of the Grain LFSR seeded with the parameters of this instance."""
    seed = ""
    for value, size in (
        (1, 2),  # a prime field
        (0, 4),  # S-box x^alpha
        (_FIELD_BITS, 12),
        (width, 12),
        (FULL_ROUNDS, 10),
        (partial_rounds, 10),
        ((1 << 30) - 1, 30),
    ):
        seed += format(value, f"0{size}b")
    # Bit i of `state` is bit i of the register, the oldest first. The youngest bit that a new one depends on
    # is 18 behind it, so up to 18 bits can be made at once; 16 here, eight pairs.
    state = sum(int(bit) << index for index, bit in enumerate(seed))
    # Bits come in pairs: the first says whether the second is used.
    used = [[byte >> bit + 1 & 1 for bit in range(0, 8, 2) if byte >> bit & 1] for byte in range(256)]
    discarded = 160 // 16
    while True:
        new = (state >> 62 ^ state >> 51 ^ state >> 38 ^ state >> 23 ^ state >> 13 ^ state) & 0xFFFF
        state = state >> 16 | new << 64
        if discarded:
            discarded -= 1
        else:
            yield from used[new & 0xFF]
            yield from used[new >> 8]
