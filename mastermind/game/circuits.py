"""The circuits of Mastermind for given rules, and the inputs of their statements.

This module alone fixes the order of the public signals (PROTOCOL section 3) and feeds the templates their parameters.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from mastermind.errors import InvalidClueError, InvalidCodeError, NotInFieldError, counted
from mastermind.field import random_field_element, require_field_element
from mastermind.packing import pack_clue, pack_clues, pack_code, pack_guesses
from mastermind.poseidon import poseidon
from mastermind.rules import CLUE_BITS, Clue, Rules
from mastermind.sources import circuits_dir
from mastermind.zk.circuit import CircuitSpec, Signal

#: A salt below this is refused: it was picked by hand, or by something weak.
MINIMUM_SALT = 1 << 120
#: A message is a SHA-256 digest cut to this many bits (PROTOCOL section 3).
MESSAGE_BITS = 248


def specs(rules: Rules) -> tuple[CircuitSpec, ...]:
    """All circuits of one set of rules, in the order a game needs them."""
    return authorise(), open_game(rules), make_guess(rules), give_clue(rules), certify_game(rules)


def authorise() -> CircuitSpec:
    """A player agrees to a message (`circuits/main/authorise.circom.j2`); the same for all rules."""

    def sample() -> Mapping[str, object]:
        return authorise_inputs(random_field_element(), secrets.randbits(MESSAGE_BITS))

    return CircuitSpec(
        name="authorise",
        sources=circuits_dir(),
        template="main/authorise.circom.j2",
        parameters={},
        public=(Signal("player_id"), Signal("message", bound=1 << MESSAGE_BITS)),
        private=(Signal("key"),),
        sample=sample,
    )


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
            # Beyond the last turn there is the opening of the secret (`mastermind.game.reveal`).
            Signal("turn_count", bound=1 << 8),
            Signal("guess", bound=1 << rules.peg_bits * rules.pegs),
            Signal("clue", bound=1 << CLUE_BITS),
        ),
        private=_solution_signals(rules),
        sample=sample,
    )


def make_guess(rules: Rules) -> CircuitSpec:
    """The breaker guesses (`circuits/main/make_guess.circom.j2`)."""

    def sample() -> Mapping[str, object]:
        guess = rules.random_code()
        return make_guess_inputs(
            rules, game_id=random_field_element(), guesses=[guess], clues=[], key=random_field_element()
        )

    return CircuitSpec(
        name="make_guess",
        sources=circuits_dir(),
        template="main/make_guess.circom.j2",
        parameters=_code_parameters(rules),
        public=(
            Signal("game_id"),
            Signal("breaker_id"),
            Signal("turn_count"),
            Signal("guess", bound=1 << rules.peg_bits * rules.pegs),
            Signal("guess_history"),
            Signal("clue_history"),
        ),
        private=(Signal("key"),),
        sample=sample,
    )


def certify_game(rules: Rules) -> CircuitSpec:
    """The master proves all clues at once (`circuits/main/certify_game.circom.j2`)."""

    def sample() -> Mapping[str, object]:
        guesses = [rules.random_code() for _ in range(1 + secrets.randbelow(rules.attempts))]
        secret = rules.random_code()
        if secret in guesses:
            guesses = guesses[: guesses.index(secret) + 1]
        return certify_game_inputs(
            rules,
            game_id=random_field_element(),
            guesses=guesses,
            secret=secret,
            salt=random_salt(),
            key=random_field_element(),
        )

    return CircuitSpec(
        name="certify_game",
        sources=circuits_dir(),
        template="main/certify_game.circom.j2",
        parameters={**_code_parameters(rules), "attempts": rules.attempts},
        public=(
            Signal("game_id"),
            Signal("solution_hash"),
            Signal("master_id"),
            Signal("turn_count", bound=2 * rules.attempts + 2),
            Signal("guess_history", bound=1 << rules.peg_bits * rules.pegs * rules.attempts),
            Signal("clue_history", bound=1 << CLUE_BITS * rules.attempts),
            Signal("is_solved", bound=2),
        ),
        private=_solution_signals(rules),
        sample=sample,
    )


def authorise_inputs(key: int, message: int) -> dict[str, object]:
    """Inputs for `authorise`. Raises NotInFieldError."""
    return {"player_id": player_id(key), "message": message, "key": key}


def make_guess_inputs(
    rules: Rules, *, game_id: int, guesses: Sequence[Sequence[int]], clues: Sequence[Clue], key: int
) -> dict[str, object]:
    """Inputs for `make_guess`: the last of `guesses` is the new one, `clues` are those of the others.

    Raises:
        InvalidCodeError, InvalidClueError, NotInFieldError: a part is not acceptable.
    """
    if len(guesses) != len(clues) + 1:
        raise InvalidCodeError("a new guess follows an answered one")
    return {
        "game_id": game_id,
        "breaker_id": player_id(key),
        "turn_count": 2 * len(guesses) - 1,
        "guess": pack_code(rules, guesses[-1]),
        "guess_history": pack_guesses(rules, guesses),
        "clue_history": pack_clues(rules, clues),
        "key": key,
    }


def certify_game_inputs(
    rules: Rules, *, game_id: int, guesses: Sequence[Sequence[int]], secret: Sequence[int], salt: int, key: int
) -> dict[str, object]:
    """Inputs for `certify_game` after all of `guesses` have been answered.

    Raises:
        InvalidCodeError, NotInFieldError: a part is not acceptable, or the game went on after it was solved.
    """
    clues = [rules.score(secret, guess) for guess in guesses]
    if not clues or any(clue.hits == rules.pegs for clue in clues[:-1]):
        raise InvalidCodeError("a certificate is about at least one turn, and the game ends with the solution")
    return {
        "game_id": game_id,
        "solution_hash": solution_hash(rules, secret, salt, key),
        "master_id": player_id(key),
        "turn_count": 1 + 2 * len(guesses),
        "guess_history": pack_guesses(rules, guesses),
        "clue_history": pack_clues(rules, clues),
        "is_solved": int(clues[-1].hits == rules.pegs),
        "secret": list(secret),
        "salt": salt,
        "key": key,
    }


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
        raise InvalidClueError(
            f"the clue claims {counted(clue.hits, 'hit')} and {counted(clue.blows, 'blow')}, "
            "which is not this guess's score"
        )
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
