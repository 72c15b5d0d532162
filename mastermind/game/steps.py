"""The step machine: what a game is after each step (PROTOCOL section 5).

Pure: no files, no clock, no proofs. A step is its public signals; `apply` checks all that can be checked from public
data alone - whose turn it is, whose game, the histories - for every verifier alike. That the signals are proved is
for the transcript to check. `apply` is total: any state and any step give a new state or a named refusal.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, NoReturn

from mastermind.errors import InvalidInputError, RefusedStepError
from mastermind.field import MODULUS
from mastermind.game.message import Agreement
from mastermind.packing import pack_clues, pack_code, pack_guesses, unpack_clue, unpack_code
from mastermind.poseidon import poseidon
from mastermind.rules import Clue, Code, Rules

StepKind = Literal["open_game", "join_game", "make_guess", "give_clue"]

#: The circuit that proves each step, and how many public signals it has.
CIRCUITS: dict[StepKind, str] = {
    "open_game": "open_game",
    "join_game": "authorise",
    "make_guess": "make_guess",
    "give_clue": "give_clue",
}
SIGNAL_COUNTS: dict[StepKind, int] = {"open_game": 2, "join_game": 2, "make_guess": 6, "give_clue": 5}


class Refusal(StrEnum):
    """Why a step is refused."""

    MALFORMED = "the public signals are not those of such a step"
    IMPOSSIBLE_STATE = "no game is ever in this state"
    ALREADY_OPEN = "the game is already open"
    NOT_OPEN = "the game is not open"
    ALREADY_JOINED = "somebody has already joined"
    NOT_JOINED = "nobody has joined yet"
    WRONG_MESSAGE = "the breaker agreed to something else"
    WRONG_GAME = "the step belongs to another game"
    WRONG_PLAYER = "the step is another player's"
    GAME_OVER = "the game is over"
    OUT_OF_TURN = "it is the other player's turn"
    WRONG_TURN_COUNT = "the step is for another turn"
    ILLEGAL_GUESS = "the guess is not a legal code"
    WRONG_GUESS_HISTORY = "the guess history is not the one of this game"
    WRONG_CLUE_HISTORY = "the clue history is not the one of this game"
    WRONG_SOLUTION = "the clue is about another secret"
    WRONG_GUESS = "the clue answers another guess"
    IMPOSSIBLE_CLUE = "no guess can have this clue"
    # Said by a player's own side, about moves it will not make:
    ANSWERED_OTHERWISE = "another guess has been answered in this turn"
    NOT_OVER = "the game is not over"


@dataclass(frozen=True)
class Step:
    """One step of a game, as everybody sees it.

    Attributes:
        kind: which step.
        public_signals: of its proof, in the circuit's order.
        nonce: the join nonce, for `join_game` only.
    """

    kind: StepKind
    public_signals: tuple[int, ...]
    nonce: int | None = None


@dataclass(frozen=True)
class GameState:
    """A game after some steps.

    Attributes:
        turn_count: 0 before the game opens, then 1; odd: the breaker moves; even: the master does.
        guesses, clues: as played; one guess more than clues while the master is to answer.
    """

    rules: Rules
    master_id: int | None = None
    solution_hash: int | None = None
    breaker_id: int | None = None
    game_id: int | None = None
    turn_count: int = 0
    guesses: tuple[Code, ...] = ()
    clues: tuple[Clue, ...] = ()

    @property
    def turns(self) -> list[tuple[Code, Clue]]:
        """The guesses that have been answered, with their clues."""
        return list(zip(self.guesses, self.clues, strict=False))

    @property
    def solved(self) -> bool:
        """Whether the last clue is all hits."""
        return bool(self.clues) and self.clues[-1].hits == self.rules.pegs

    @property
    def over(self) -> bool:
        """Whether no further step is possible."""
        return self.solved or self.turn_count > 2 * self.rules.attempts

    @property
    def winner(self) -> Literal["breaker", "master"] | None:
        """Who has won. A solution on the last allowed guess is the breaker's win."""
        if self.solved:
            return "breaker"
        return "master" if self.over else None

    @property
    def next_step(self) -> StepKind | None:
        """What happens next, or None when the game is over."""
        if self.over:
            return None
        if self.turn_count == 0:
            return "open_game"
        if self.game_id is None:
            return "join_game"
        return "make_guess" if self.turn_count % 2 else "give_clue"


def apply(state: GameState, step: Step) -> GameState:
    """Return the state after `step`.

    Raises:
        RefusedStepError: the step does not fit; `refusal` is a `Refusal`.
    """
    if len(step.public_signals) != SIGNAL_COUNTS.get(step.kind, -1):
        _refuse(Refusal.MALFORMED)
    if not all(map(_is_element, (*step.public_signals, *([] if step.nonce is None else [step.nonce])))):
        _refuse(Refusal.MALFORMED)
    if (step.nonce is None) == (step.kind == "join_game"):
        _refuse(Refusal.MALFORMED)
    if not _is_possible(state):
        _refuse(Refusal.IMPOSSIBLE_STATE)
    match step.kind:
        case "open_game":
            return _open_game(state, step)
        case "join_game":
            return _join_game(state, step)
        case "make_guess":
            return _make_guess(state, step)
        case "give_clue":
            return _give_clue(state, step)


def game_id(rules: Rules, solution_hash: int, breaker_id: int, nonce: int) -> int:
    """The id of a game: new for every join, whoever plays, and another one under other rules.

    Rules that differ only in the number of attempts share circuits and keys, so no proof tells them apart; the id must,
    or a game could be called lost before its last attempt, or go on after it. The third part is therefore a digest of
    the nonce and the rules (SHA-256, cut to 248 bits).
    """
    text = f"mastermind.game.1 {rules.spelling} {nonce}".encode()
    bound = int.from_bytes(hashlib.sha256(text).digest(), "big") >> 8
    return poseidon(solution_hash, breaker_id, bound)


def join_message(game: int, nonce: int) -> int:
    """The message that a breaker agrees to by joining."""
    return Agreement("join_game", game, nonce).message()


def _open_game(state: GameState, step: Step) -> GameState:
    if state.turn_count != 0:
        _refuse(Refusal.ALREADY_OPEN)
    solution_hash, master_id = step.public_signals
    return replace(state, solution_hash=solution_hash, master_id=master_id, turn_count=1)


def _join_game(state: GameState, step: Step) -> GameState:
    if state.solution_hash is None:
        _refuse(Refusal.NOT_OPEN)
    if state.game_id is not None:
        _refuse(Refusal.ALREADY_JOINED)
    breaker_id, message = step.public_signals
    assert step.nonce is not None
    joined = game_id(state.rules, state.solution_hash, breaker_id, step.nonce)
    if message != join_message(joined, step.nonce):
        _refuse(Refusal.WRONG_MESSAGE)
    return replace(state, breaker_id=breaker_id, game_id=joined)


def _make_guess(state: GameState, step: Step) -> GameState:
    game, breaker_id, turn_count, packed, guess_history, clue_history = step.public_signals
    _require_turn(state, game, "make_guess", turn_count)
    if breaker_id != state.breaker_id:
        _refuse(Refusal.WRONG_PLAYER)
    try:
        guesses = (*state.guesses, unpack_code(state.rules, packed))
    except InvalidInputError:
        _refuse(Refusal.ILLEGAL_GUESS)
    if guess_history != pack_guesses(state.rules, guesses):
        _refuse(Refusal.WRONG_GUESS_HISTORY)
    if clue_history != pack_clues(state.rules, state.clues):
        _refuse(Refusal.WRONG_CLUE_HISTORY)
    return replace(state, guesses=guesses, turn_count=state.turn_count + 1)


def _give_clue(state: GameState, step: Step) -> GameState:
    game, solution_hash, turn_count, packed_guess, packed_clue = step.public_signals
    _require_turn(state, game, "give_clue", turn_count)
    if solution_hash != state.solution_hash:
        _refuse(Refusal.WRONG_SOLUTION)
    if packed_guess != pack_code(state.rules, state.guesses[-1]):
        _refuse(Refusal.WRONG_GUESS)
    try:
        clues = (*state.clues, unpack_clue(state.rules, packed_clue))
    except InvalidInputError:
        _refuse(Refusal.IMPOSSIBLE_CLUE)
    return replace(state, clues=clues, turn_count=state.turn_count + 1)


def _require_turn(state: GameState, game: int, kind: StepKind, turn_count: int) -> None:
    if state.solution_hash is None:
        _refuse(Refusal.NOT_OPEN)
    if state.game_id is None:
        _refuse(Refusal.NOT_JOINED)
    if game != state.game_id:
        _refuse(Refusal.WRONG_GAME)
    if state.over:
        _refuse(Refusal.GAME_OVER)
    if state.next_step != kind:
        _refuse(Refusal.OUT_OF_TURN)
    if turn_count != state.turn_count:
        _refuse(Refusal.WRONG_TURN_COUNT)


def _is_possible(state: GameState) -> bool:
    """Whether the parts of a state fit together: states may come from elsewhere, and `apply` is total."""
    rules, count = state.rules, state.turn_count
    if not _is_element(count) or count > 2 * rules.attempts + 1:
        return False
    opened, joined, nobody = (state.solution_hash, state.master_id), (state.breaker_id, state.game_id), (None, None)
    # Everybody or nobody is there: nobody before the opening, perhaps no breaker before the first guess.
    if not (all(map(_is_element, opened)) if count else opened == nobody):
        return False
    if not ((count and all(map(_is_element, joined))) or (count < 2 and joined == nobody)):
        return False
    if (len(state.guesses), len(state.clues)) != (count // 2, max(0, count - 1) // 2):
        return False
    try:
        pack_guesses(rules, state.guesses)
        pack_clues(rules, state.clues)
    except InvalidInputError:
        return False
    # Nothing follows the solution.
    return all(clue.hits < rules.pegs for clue in state.clues[: len(state.guesses) - 1])


def _is_element(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MODULUS


def _refuse(refusal: Refusal) -> NoReturn:
    raise RefusedStepError(str(refusal), refusal=refusal)
