"""What each circuit states, written down a second time: from the rules and from Poseidon, never from a circuit.

`*_values` make inputs without checking anything, so that a test can put a wrong value below every check.
`holds` decides whether inputs make a true statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mastermind.errors import InvalidInputError
from mastermind.field import MODULUS
from mastermind.packing import unpack_code, unpack_guesses
from mastermind.poseidon import poseidon
from mastermind.rules import CLUE_BITS, Rules

# Any field elements will do.
KEY = 0x2C70E12B7A0646F92279F427C7B38E7334D8E5389CFF167A1DC30E73F826B683
OTHER_KEY = 0x1D9EFC1DA1D2E2F5F1B0C2D9CBB8A2CF6FC8C84E4B2A8A2E5F54C2C2E41AD2B0
SALT = 0x0B2CA7F8A9A13F6B4C8F0E7E2C7C96B5A0E4AAE0A5B8C3D9E6F1A2B3C4D5E6F7
GAME_ID = 0x15E0B1DAD2C1F9A8B7C6D5E4F3A2B1C0D9E8F7A6B5C4D3E2F1A0B9C8D7E6F5A4
MESSAGE = 0xA1B2C3D4E5F60718293A4B5C6D7E8F90A1B2C3D4E5F60718293A4B5C6D7E8F

RawValues = dict[str, int | list[int]]

#: The public inputs that a circuit binds to the others: all else is recomputed when something is forged.
BOUND = {
    "authorise": ("player_id",),
    "open_game": ("solution_hash", "master_id"),
    "make_guess": ("breaker_id", "guess"),
    "give_clue": ("solution_hash", "guess", "clue"),
    "certify_game": ("solution_hash", "master_id", "turn_count", "guess_history", "clue_history", "is_solved"),
}


def packed(rules: Rules, pegs: Sequence[int]) -> int:
    """Pack any field elements as pegs."""
    return sum(peg << rules.peg_bits * place for place, peg in enumerate(pegs)) % MODULUS


def packed_clue(hits: int, blows: int) -> int:
    return (hits + 8 * blows) % MODULUS


def score(rules: Rules, secret: Sequence[int], guess: Sequence[int]) -> int:
    """The packed score of two legal codes."""
    return packed_clue(*rules.score(secret, guess))


def authorise_values(message: int = MESSAGE) -> RawValues:
    return {"player_id": poseidon(KEY), "message": message, "key": KEY}


def open_game_values(rules: Rules, secret: Sequence[int]) -> RawValues:
    return {
        "solution_hash": poseidon(packed(rules, secret), SALT, KEY),
        "master_id": poseidon(KEY),
        "secret": list(secret),
        "salt": SALT,
        "key": KEY,
    }


def make_guess_values(rules: Rules, guess: Sequence[int]) -> RawValues:
    return {
        "game_id": GAME_ID,
        "breaker_id": poseidon(KEY),
        "turn_count": 3,
        "guess": packed(rules, guess),
        "guess_history": packed(rules, guess) << rules.peg_bits * rules.pegs,
        "clue_history": 1,
        "key": KEY,
    }


def give_clue_values(rules: Rules, secret: Sequence[int], guess: Sequence[int], clue: int | None = None) -> RawValues:
    """The clue is the right one unless it is given; for illegal codes it must be."""
    return {
        "game_id": GAME_ID,
        "solution_hash": poseidon(packed(rules, secret), SALT, KEY),
        "turn_count": 2,
        "guess": packed(rules, guess),
        "clue": score(rules, secret, guess) if clue is None else clue,
        "secret": list(secret),
        "salt": SALT,
        "key": KEY,
    }


def certify_game_values(
    rules: Rules, secret: Sequence[int], guesses: Sequence[Sequence[int]], clues: Sequence[int] | None = None
) -> RawValues:
    """The clues are the right ones unless they are given; for illegal codes they must be."""
    if clues is None:
        clues = [score(rules, secret, guess) for guess in guesses]
    return {
        "game_id": GAME_ID,
        "solution_hash": poseidon(packed(rules, secret), SALT, KEY),
        "master_id": poseidon(KEY),
        "turn_count": 1 + 2 * len(guesses),
        "guess_history": guess_slots(rules, guesses),
        "clue_history": sum(clue << CLUE_BITS * turn for turn, clue in enumerate(clues)) % MODULUS,
        "is_solved": int(clues[-1] == packed_clue(rules.pegs, 0)),
        "secret": list(secret),
        "salt": SALT,
        "key": KEY,
    }


def guess_slots(rules: Rules, guesses: Sequence[Sequence[int]]) -> int:
    """A guess history of any field elements as pegs."""
    slot_bits = rules.peg_bits * rules.pegs
    return sum(packed(rules, guess) << slot_bits * turn for turn, guess in enumerate(guesses)) % MODULUS


def holds(circuit: str, rules: Rules, inputs: Mapping[str, int]) -> bool:
    """Whether inputs, by full signal name, make the statement of a circuit true (PROTOCOL section 3)."""
    value = {name.removeprefix("main."): element for name, element in inputs.items()}
    secret = [value[f"secret[{place}]"] for place in range(rules.pegs)] if "secret[0]" in value else None
    try:
        if secret is not None:
            rules.require_code(secret)
            if value["solution_hash"] != poseidon(packed(rules, secret), value["salt"], value["key"]):
                return False
        identity = {"authorise": "player_id", "make_guess": "breaker_id"}.get(circuit, "master_id")
        if identity in value and value[identity] != poseidon(value["key"]):
            return False
        if circuit == "make_guess":
            unpack_code(rules, value["guess"])
        elif circuit == "give_clue":
            assert secret is not None
            return value["clue"] == score(rules, secret, unpack_code(rules, value["guess"]))
        elif circuit == "certify_game":
            assert secret is not None
            return _game_holds(rules, secret, value)
    except InvalidInputError:
        return False
    return True


def _game_holds(rules: Rules, secret: Sequence[int], value: Mapping[str, int]) -> bool:
    turns, odd = divmod(value["turn_count"] - 1, 2)
    if odd or not 1 <= turns <= rules.attempts:
        return False
    guesses = unpack_guesses(rules, value["guess_history"], turns)
    scores = [score(rules, secret, guess) for guess in guesses]
    solution = packed_clue(rules.pegs, 0)
    return (
        value["clue_history"] == sum(clue << CLUE_BITS * turn for turn, clue in enumerate(scores))
        and solution not in scores[:-1]
        and value["is_solved"] == int(scores[-1] == solution)
    )
