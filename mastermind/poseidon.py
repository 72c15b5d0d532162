"""The Poseidon hash over the BN254 scalar field, with the parameters of circomlib.

Owns the permutation and its constants; what is hashed, and why, is the callers' business.
The constants are not stored: they follow from the Grain LFSR of the reference script
(Grassi et al., "Poseidon", eprint 2019/458, appendix E, `generate_parameters_grain.sage`), which circomlib's
tables come from too. The tests compare with circomlib's circuit and with published values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from operator import mul

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
    schedule = _schedule(len(inputs))
    state = [0, *inputs]
    for constants, matrix in schedule.first_rounds:
        state = _full_round(state, constants, matrix)
    first, *others = state
    for constant, row, column in schedule.partial_rounds:
        first = (first + constant) % MODULUS
        square = first * first % MODULUS
        first = square * square % MODULUS * first % MODULUS
        mixed = first * schedule.corner + sum(map(mul, row, others))
        # Not reduced before the last round: it grows by a few bits in all.
        others = [value + factor * first for value, factor in zip(others, column, strict=True)]
        first = mixed % MODULUS
    state = [first, *others]
    for constants, matrix in schedule.last_rounds:
        state = _full_round(state, constants, matrix)
    return state[0]


_Row = tuple[int, ...]
_Matrix = tuple[_Row, ...]


def _full_round(state: list[int], constants: _Row, matrix: _Matrix) -> list[int]:
    powers = []
    for value, constant in zip(state, constants, strict=True):
        value = (value + constant) % MODULUS
        square = value * value % MODULUS
        powers.append(square * square % MODULUS * value % MODULUS)
    return _product(matrix, powers)


def _product(matrix: _Matrix, vector: Sequence[int]) -> list[int]:
    return [sum(map(mul, row, vector)) % MODULUS for row in matrix]


@dataclass(frozen=True)
class _Schedule:
    """The rounds, rearranged so that a partial round takes 2 t products and not t^2.

    Attributes:
        first_rounds, last_rounds: the full rounds before and after the partial ones: constants and mixing matrix.
        partial_rounds: the one constant, and the first row and first column of the mixing matrix without the corner;
            the rest of that matrix is the identity.
        corner: the top left entry of all these matrices.
    """

    first_rounds: tuple[tuple[_Row, _Matrix], ...]
    partial_rounds: tuple[tuple[int, _Row, _Row], ...]
    last_rounds: tuple[tuple[_Row, _Matrix], ...]
    corner: int


@cache
def _schedule(input_count: int) -> _Schedule:
    """Derive the schedule (Grassi et al., appendix B): the same function, in fewer products.

    The S-box of a partial round touches the first element alone. So whatever is added to the others can as well be
    added after the mixing, with the next round's constants; and a matrix [1 0; 0 D] can as well be applied before
    the S-box. Every mixing matrix [m r; c D] is [m r/D; c 1] times such a one, which is given to the round before.
    """
    rounds, matrix = _parameters(input_count)
    half, last = FULL_ROUNDS // 2, len(rounds) - FULL_ROUNDS // 2
    constants: list[_Row] = []
    carried = [0] * len(matrix)
    for index, row in enumerate(rounds):
        constants.append(tuple((own + more) % MODULUS for own, more in zip(row, carried, strict=True)))
        carried = _product(matrix, [0, *constants[-1][1:]]) if half <= index < last else [0] * len(matrix)
    partial: list[tuple[int, _Row, _Row]] = []
    dense = matrix
    for index in reversed(range(half, last)):
        block = tuple(row[1:] for row in dense[1:])
        partial.insert(0, (constants[index][0], _divide(dense[0][1:], block), tuple(row[0] for row in dense[1:])))
        # [1 0; 0 block] times the matrix of the round before.
        columns = [_product(block, column[1:]) for column in zip(*matrix, strict=True)]
        dense = (matrix[0], *zip(*columns, strict=True))
    return _Schedule(
        first_rounds=(*((row, matrix) for row in constants[: half - 1]), (constants[half - 1], dense)),
        partial_rounds=tuple(partial),
        last_rounds=tuple((row, matrix) for row in constants[last:]),
        corner=matrix[0][0],
    )


def _divide(row: _Row, matrix: _Matrix) -> _Row:
    """Solve x matrix = row, by elimination on the columns."""
    equations = [[*column, value] for column, value in zip(zip(*matrix, strict=True), row, strict=True)]
    for place in range(len(row)):
        pivot = next(index for index in range(place, len(row)) if equations[index][place])
        equations[place], equations[pivot] = equations[pivot], equations[place]
        inverse = pow(equations[place][place], -1, MODULUS)
        equations[place] = [value * inverse % MODULUS for value in equations[place]]
        for index, equation in enumerate(equations):
            if index != place:
                factor = equation[place]
                equations[index] = [
                    (value - factor * other) % MODULUS for value, other in zip(equation, equations[place], strict=True)
                ]
    return tuple(equation[-1] for equation in equations)


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
