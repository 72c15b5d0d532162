"""The circuits of Mastermind for given rules, and the inputs of their statements.

This module alone fixes the order of the public signals (PROTOCOL section 3) and feeds the templates their parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mastermind.errors import InvalidClueError, NotInFieldError
from mastermind.field import random_field_element, require_field_element
from mastermind.packing import pack_clue, pack_code
from mastermind.poseidon import poseidon
from mastermind.rules import CLUE_BITS, Clue, Rules
from mastermind.sources import circuits_dir
from mastermind.zk.circuit import CircuitSpec, Signal

#: A salt below this is refused: it was picked by hand, or by something weak.
MINIMUM_SALT = 1 << 120


def specs(rules: Rules) -> tuple[CircuitSpec, ...]:
    """All circuits of one set of rules, in the order a game needs them."""
    return open_game(rules), give_clue(rules)


def open_game(rules: Rules) -> CircuitSpec:
    """The master commits to a secret (`circuits/main/open_game.circom.j2`)."""

    def sample() -> Mapping[str, object]:
        return open_game_inputs(rules, rules.random_code(), random_salt(), random_field_element())

    return CircuitSpec(
        name="open_game",
        sources=circuits_dir(),
        template="main/open_game.circom.j2",
        parameters=_code_parameters(rules),
        public=(Signal("solution_hash"), Signal("master_id")),
        private=_solution_signals(rules),
        sample=sample,
    )


def give_clue(rules: Rules) -> CircuitSpec:
    """The master answers a guess (`circuits/main/give_clue.circom.j2`)."""

    def sample() -> Mapping[str, object]:
        return give_clue_inputs(
            rules,
            game_id=random_field_element(),
            turn_count=2,
            guess=rules.random_code(),
            secret=rules.random_code(),
            salt=random_salt(),
            key=random_field_element(),
        )

    return CircuitSpec(
        name="give_clue",
        sources=circuits_dir(),
        template="main/give_clue.circom.j2",
        parameters=_code_parameters(rules),
        public=(
            Signal("game_id"),
            Signal("solution_hash"),
            Signal("turn_count", bound=2 * rules.attempts + 1),
            Signal("guess", bound=1 << rules.peg_bits * rules.pegs),
            Signal("clue", bound=1 << CLUE_BITS),
        ),
        private=_solution_signals(rules),
        sample=sample,
    )


def open_game_inputs(rules: Rules, secret: Sequence[int], salt: int, key: int) -> dict[str, object]:
    """Inputs for `open_game`, the hashes computed.

    Raises:
        InvalidCodeError, NotInFieldError: the secret, the salt or the key is not acceptable.
    """
    return {
        "solution_hash": solution_hash(rules, secret, salt, key),
        "master_id": player_id(key),
        "secret": list(secret),
        "salt": salt,
        "key": key,
    }


def give_clue_inputs(
    rules: Rules,
    *,
    game_id: int,
    turn_count: int,
    guess: Sequence[int],
    secret: Sequence[int],
    salt: int,
    key: int,
    clue: Clue | None = None,
) -> dict[str, object]:
    """Inputs for `give_clue`; the clue is the right one unless one is claimed.

    Raises:
        InvalidCodeError, NotInFieldError: a code, the salt or the key is not acceptable.
        InvalidClueError: the claimed clue is not the score of this guess.
    """
    score = rules.score(secret, guess)
    if clue is not None and clue != score:
        # In words of the game, to the owner of the secret; the circuit would only say that a row fails.
        raise InvalidClueError(f"the clue claims {clue.hits} hits and {clue.blows} blows, which is not this guess's score")
    return {
        "game_id": game_id,
        "solution_hash": solution_hash(rules, secret, salt, key),
        "turn_count": turn_count,
        "guess": pack_code(rules, guess),
        "clue": pack_clue(rules, score),
        "secret": list(secret),
        "salt": salt,
        "key": key,
    }


def player_id(key: int) -> int:
    """Poseidon(key): the public name of the holder of `key`. Raises NotInFieldError."""
    return poseidon(require_field_element(key, "the key"))


def solution_hash(rules: Rules, secret: Sequence[int], salt: int, key: int) -> int:
    """Poseidon(pack(secret), salt, key): the master's commitment.

    Raises:
        InvalidCodeError: the secret is not a legal code.
        NotInFieldError: salt or key is not a field element, or the salt is below 2^120.
    """
    if require_field_element(salt, "the salt") < MINIMUM_SALT:
        raise NotInFieldError("the salt is below 2^120: draw it at random")
    return poseidon(pack_code(rules, secret), salt, require_field_element(key, "the key"))


def random_salt() -> int:
    """Draw a salt from the system's generator: uniform among the acceptable ones."""
    while True:
        salt = random_field_element()
        if salt >= MINIMUM_SALT:
            return salt


def _code_parameters(rules: Rules) -> dict[str, bool | int | str]:
    """What circuits about codes depend on; not on the number of attempts, so that rules share them."""
    return {"pegs": rules.pegs, "colours": rules.colours, "repeats": rules.repeats, "peg_bits": rules.peg_bits}


def _solution_signals(rules: Rules) -> tuple[Signal, ...]:
    return (Signal("secret", size=rules.pegs, bound=rules.colours), Signal("salt"), Signal("key"))
