"""The rules of the referee (PROTOCOL section 6): what each method needs and what it does.

Pure: no clock, no storage, no proofs. Time is a slot that the caller gives; steps, certificates and agreements come in
when their proofs have been verified (`mastermind.referee.requests`). Every function is total: it returns the new
contract and the credits that move with it, or raises a named refusal, and then nothing has happened.

A game is named by its solution hash: the game id exists only from the join on, and the referee takes a
solution hash once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Generic, Literal, NoReturn, Protocol, TypeVar

from mastermind.errors import (
    InsufficientCreditError,
    InvalidInputError,
    NotThePlayerError,
    OutOfTurnError,
    ProofRejectedError,
    RefereeError,
    RefusedStepError,
    ReplayError,
    WrongStateError,
)
from mastermind.game import steps
from mastermind.game.steps import GameState, Step, StepKind
from mastermind.referee.ledger import Transfer, player_account, pot_account
from mastermind.rules import Rules

Role = Literal["master", "breaker"]
#: What an outcome is of: a game here, a match in `mastermind.referee.match`.
C = TypeVar("C", covariant=True)
#: What the players are called there.
Who = TypeVar("Who", contravariant=True)
Claimant = TypeVar("Claimant")

#: How many slots after the last move the next one may come.
PER_TURN_SLOTS = 2
#: After the finalize slot the winner has this long to claim; then anyone can have the pot paid out.
SETTLE_SLOTS = 480
#: Seconds in a slot, unless a referee is made with another number.
DEFAULT_SLOT_SECONDS = 180
#: Two stakes fit the 64 bits of the packed state and the signed integers of databases.
MAX_REWARD = (1 << 62) - 1
MAX_SLOT = (1 << 32) - 1
#: A turn must last this many times what the slowest proof takes here: others have slower machines.
PROOF_TIME_MARGIN = 20


class Refusal(StrEnum):
    """Why the referee refuses; the names, in lower case, are the codes of its answers."""

    ILLEGAL_REWARD = "the reward is not a number of credits that can be staked"
    INSUFFICIENT_CREDIT = "the player does not have the credits"
    ALREADY_OPEN = "a game with this solution hash has been opened before"
    NOT_ACCEPTED = "nobody has accepted the game yet"
    ALREADY_ACCEPTED = "somebody has accepted the game already"
    CLOSED = "the game is over: its pot has been paid"
    OTHER_AMOUNT = "the player agrees to another amount than is at stake"
    FINALIZED = "the finalize slot is reached: no more moves"
    SOLVED = "the secret is found: no more moves"
    ATTEMPTS_USED = "the attempts are used up: no more moves"
    OUT_OF_TURN = "it is the other player's turn, or another turn"
    TOO_LATE = "the slots for this turn are over"
    WRONG_GAME = "this belongs to another game"
    STALE = "the certificate shows no more turns than have been played"
    OTHER_HISTORY = "the certificate does not continue what has been played"
    NOTHING_TO_CLAIM = "nobody may claim the pot yet"
    NOT_THE_CLAIMANT = "the pot is somebody else's"
    NOT_THE_REFEREE = "only the referee's key can forfeit a game"
    TOO_EARLY = "the winner still has time to claim"
    WRONG_PLAYER = "this move is somebody else's"
    UNFIT_STEP = "the step does not fit the game"
    SAME_PLAYER = "nobody plays a match against themselves"
    NOT_OVER = "the duel is not decided: codes are opened after its end"
    ALREADY_OPENED = "this code has been opened already"


#: The class of each refusal; the others are of the state of the game.
_ERRORS: dict[Refusal, type[RefereeError]] = {
    Refusal.INSUFFICIENT_CREDIT: InsufficientCreditError,
    Refusal.ALREADY_OPEN: ReplayError,
    Refusal.OUT_OF_TURN: OutOfTurnError,
    Refusal.WRONG_GAME: ReplayError,
    Refusal.STALE: ReplayError,
    Refusal.OTHER_HISTORY: ReplayError,
    Refusal.NOT_THE_CLAIMANT: NotThePlayerError,
    Refusal.NOT_THE_REFEREE: NotThePlayerError,
    Refusal.WRONG_PLAYER: NotThePlayerError,
    Refusal.OTHER_AMOUNT: ProofRejectedError,
    Refusal.ILLEGAL_REWARD: ProofRejectedError,
    Refusal.UNFIT_STEP: ProofRejectedError,
}

#: What the step machine says no to, in the words of the referee; all else is a step that does not fit.
_STEP_REFUSALS = {
    steps.Refusal.OUT_OF_TURN: Refusal.OUT_OF_TURN,
    steps.Refusal.WRONG_TURN_COUNT: Refusal.OUT_OF_TURN,
    steps.Refusal.WRONG_PLAYER: Refusal.WRONG_PLAYER,
    steps.Refusal.WRONG_SOLUTION: Refusal.WRONG_PLAYER,
    steps.Refusal.WRONG_GAME: Refusal.WRONG_GAME,
}


@dataclass(frozen=True)
class Contract:
    """One game at the referee.

    Attributes:
        referee_id: the player id of the referee's key.
        reward: what each player stakes, in credits.
        pot: what is held for the winner: the reward, twice the reward once accepted, 0 when paid.
        game: the public game.
        finalize_slot: from this slot on there are no moves and the game is decided; 0 before it is accepted.
        last_played_slot: of the newest move, or of the acceptance; 0 before that.
    """

    referee_id: int
    reward: int
    pot: int
    game: GameState
    finalize_slot: int = 0
    last_played_slot: int = 0

    @property
    def solution_hash(self) -> int:
        """The name of the game at the referee."""
        assert self.game.solution_hash is not None
        return self.game.solution_hash

    @property
    def rules(self) -> Rules:
        """Of the game."""
        return self.game.rules

    @property
    def players(self) -> tuple[int, int | None]:
        """The player ids of those who have a stake in it; the second once there is one."""
        return self.player_id("master"), self.game.breaker_id

    @property
    def accepted(self) -> bool:
        """Whether a breaker has joined and staked."""
        return self.game.game_id is not None

    @property
    def closed(self) -> bool:
        """Whether the pot has been paid."""
        return self.pot == 0

    @property
    def packed(self) -> int:
        """The state as the reference zkApp packs it."""
        return pack_game_state(
            self.pot, self.finalize_slot, self.last_played_slot, self.game.turn_count, self.game.solved
        )

    def finalized(self, slot: int) -> bool:
        """Whether the finalize slot is reached."""
        return self.accepted and slot >= self.finalize_slot

    def player_id(self, role: Role) -> int:
        """The player id of one of the two players."""
        player = self.game.master_id if role == "master" else self.game.breaker_id
        assert player is not None
        return player


class Pot(Protocol[Who]):
    """What a game and a match have in common where it is paid out."""

    @property
    def referee_id(self) -> int: ...
    @property
    def pot(self) -> int: ...
    @property
    def accepted(self) -> bool: ...
    @property
    def closed(self) -> bool: ...
    def player_id(self, player: Who, /) -> int: ...


@dataclass(frozen=True)
class Outcome(Generic[C]):
    """What a method does: the contract afterwards, and the credits that move with it."""

    contract: C
    transfers: tuple[Transfer, ...] = ()


def pack_game_state(reward: int, finalize_slot: int, last_played_slot: int, turn_count: int, is_solved: bool) -> int:
    """Pack a state, low bits first: reward 64 bits, the two slots 32 each, turn count 8, is solved 1.

    Raises:
        InvalidInputError: a part does not fit its bits.
    """
    return pack_parts(
        ("reward", reward, 64),
        ("finalize slot", finalize_slot, 32),
        ("last played slot", last_played_slot, 32),
        ("turn count", turn_count, 8),
        ("is solved", int(is_solved), 1),
    )


def pack_parts(*parts: tuple[str, int, int]) -> int:
    """Pack values, low bits first; each with its name and its number of bits.

    Raises:
        InvalidInputError: a part does not fit its bits.
    """
    packed = shift = 0
    for name, value, bits in parts:
        if not 0 <= value < 1 << bits:
            raise InvalidInputError(f"the {name} does not fit {bits} bits")
        packed |= value << shift
        shift += bits
    return packed


def may_claim(contract: Contract, slot: int) -> Role | None:
    """Who may claim the pot: exactly one party in every row that is decided, and nobody before.

    An unanswered guess may be the winning one, so at the finalize slot silence counts against the side to move.
    """
    game = contract.game
    attempts_used = game.turn_count > 2 * game.rules.attempts
    masters_turn = game.turn_count % 2 == 0
    table: tuple[tuple[bool, Role], ...] = (
        (not contract.accepted, "master"),
        (game.solved, "breaker"),
        (attempts_used, "master"),
        (contract.finalized(slot) and masters_turn, "breaker"),
        (contract.finalized(slot) and not masters_turn, "master"),
    )
    return next((claimant for holds, claimant in table if holds), None)


def init_game(rules: Rules, referee_id: int, reward: int, step: Step, *, credit: int) -> Outcome[Contract]:
    """The master opens a game and stakes the reward. `credit` is what the master has.

    Raises:
        ProofRejectedError: an illegal reward, or a step that opens no game.
        InsufficientCreditError: the master cannot pay.
    """
    require_reward(reward)
    game = apply_step(GameState(rules), step, "open_game")
    require_credit(credit, reward)
    contract = Contract(referee_id, reward, reward, game)
    return Outcome(contract, (_stake(contract, "master"),))


def accept_game(contract: Contract, reward: int, step: Step, slot: int, *, credit: int) -> Outcome[Contract]:
    """A breaker joins and stakes the same `reward`. `credit` is what the breaker has.

    Raises:
        WrongStateError: accepted already, or reimbursed.
        ProofRejectedError: another amount, or a step that does not join this game.
        InsufficientCreditError: the breaker cannot pay.
    """
    if contract.accepted:
        refuse(Refusal.ALREADY_ACCEPTED)
    if contract.closed:
        refuse(Refusal.CLOSED)
    require_amount(contract.reward, reward)
    game = apply_step(contract.game, step, "join_game")
    require_credit(credit, reward)
    accepted = replace(
        contract,
        game=game,
        pot=2 * reward,
        finalize_slot=slot + 2 * game.rules.attempts * PER_TURN_SLOTS + 1,
        last_played_slot=slot,
    )
    return Outcome(accepted, (_stake(accepted, "breaker"),))


def make_guess(contract: Contract, step: Step, slot: int) -> Outcome[Contract]:
    """The breaker guesses. Raises as `_move`."""
    return _move(contract, step, slot, "make_guess")


def give_clue(contract: Contract, step: Step, slot: int) -> Outcome[Contract]:
    """The master answers. Raises as `_move`."""
    return _move(contract, step, slot, "give_clue")


def submit_game_proof(contract: Contract, shown: GameState, slot: int) -> Outcome[Contract]:
    """Anyone shows by a certificate that the game has gone on: `shown` is the state it proves.

    A game that is over is paid out at once; otherwise the pot waits.

    Raises:
        WrongStateError: not accepted, closed, finalized, or solved.
        ReplayError: of another game, with no more turns, or with other turns than those played.
    """
    _require_running(contract, slot)
    game = contract.game
    if (shown.rules, shown.master_id, shown.breaker_id, shown.solution_hash, shown.game_id) != (
        game.rules,
        game.master_id,
        game.breaker_id,
        game.solution_hash,
        game.game_id,
    ):
        refuse(Refusal.WRONG_GAME)
    if shown.turn_count <= game.turn_count:
        refuse(Refusal.STALE)
    if shown.guesses[: len(game.guesses)] != game.guesses or shown.clues[: len(game.clues)] != game.clues:
        refuse(Refusal.OTHER_HISTORY)
    ahead = replace(contract, game=shown, last_played_slot=slot)
    return Outcome(ahead) if shown.winner is None else _pay(ahead, shown.winner)


def claim_reward(contract: Contract, player_id: int, amount: int, slot: int) -> Outcome[Contract]:
    """The winner claims the pot of `amount` credits.

    Raises:
        WrongStateError: paid already, or nobody may claim yet.
        NotThePlayerError: the pot is somebody else's.
        ProofRejectedError: the pot is another amount.
    """
    return _pay(contract, require_claimant(contract, may_claim(contract, slot), player_id, amount))


def forfeit_win(contract: Contract, player_id: int, winner: Role, amount: int) -> Outcome[Contract]:
    """The referee's key gives the pot of `amount` credits to one of the two players.

    Raises:
        NotThePlayerError: not the referee's key.
        WrongStateError: not accepted, or paid already.
        ProofRejectedError: the pot is another amount.
    """
    require_forfeit(contract, player_id, amount)
    return _pay(contract, winner)


def settle(contract: Contract, slot: int) -> Outcome[Contract]:
    """Anyone has an abandoned pot paid to whoever may claim it: no stake is stuck, whoever stays away.

    Before the game is accepted the master alone has a stake in it, and can claim it at any time.

    Raises:
        WrongStateError: not accepted, paid already, or SETTLE_SLOTS have not passed since the finalize slot.
    """
    require_held(contract)
    if slot < contract.finalize_slot + SETTLE_SLOTS:
        refuse(Refusal.TOO_EARLY)
    claimant = may_claim(contract, slot)
    assert claimant is not None  # after the finalize slot there always is one
    return _pay(contract, claimant)


def require_turn_time(slot_seconds: int, proof_s: float) -> None:
    """Refuse slots so short that an honest player with a slow machine loses by proving.

    `proof_s` is what the slowest proof takes on this machine.

    Raises:
        InvalidInputError: a turn is shorter than PROOF_TIME_MARGIN proofs.
    """
    turn_s = PER_TURN_SLOTS * slot_seconds
    if turn_s < PROOF_TIME_MARGIN * proof_s:
        raise InvalidInputError(
            f"a turn of {turn_s} s is too short: a proof takes {proof_s:.2f} s here, and a turn must last "
            f"{PROOF_TIME_MARGIN} times that"
        )


def _move(contract: Contract, step: Step, slot: int, kind: StepKind) -> Outcome[Contract]:
    """A move of either player.

    Raises:
        WrongStateError: not accepted, closed, finalized, solved, out of attempts, or too late.
        OutOfTurnError: the other player's turn, or another turn.
        ReplayError: a step of another game.
        NotThePlayerError: somebody else's step.
        ProofRejectedError: a step that does not fit otherwise.
    """
    _require_running(contract, slot)
    if contract.game.next_step != kind:
        refuse(Refusal.OUT_OF_TURN)
    if slot > contract.last_played_slot + PER_TURN_SLOTS:
        refuse(Refusal.TOO_LATE)
    return Outcome(replace(contract, game=apply_step(contract.game, step, kind), last_played_slot=slot))


def _require_running(contract: Contract, slot: int) -> None:
    if not contract.accepted:
        refuse(Refusal.NOT_ACCEPTED)
    if contract.game.solved:
        refuse(Refusal.SOLVED)
    if contract.game.over:
        refuse(Refusal.ATTEMPTS_USED)
    if contract.closed:
        refuse(Refusal.CLOSED)
    if contract.finalized(slot):
        refuse(Refusal.FINALIZED)


def require_held(pot: Pot[Who]) -> None:
    """Refuse unless two stakes are held. Raises WrongStateError."""
    if not pot.accepted:
        refuse(Refusal.NOT_ACCEPTED)
    if pot.closed:
        refuse(Refusal.CLOSED)


def require_claimant(pot: Pot[Claimant], claimant: Claimant | None, player_id: int, amount: int) -> Claimant:
    """Refuse a claim of `amount` by anybody but the `claimant` there is. Raises RefereeError."""
    if pot.closed:
        refuse(Refusal.CLOSED)
    if claimant is None:
        refuse(Refusal.NOTHING_TO_CLAIM)
    if player_id != pot.player_id(claimant):
        refuse(Refusal.NOT_THE_CLAIMANT)
    require_amount(pot.pot, amount)
    return claimant


def require_forfeit(pot: Pot[Who], player_id: int, amount: int) -> None:
    """Refuse a forfeit of `amount` by anybody but the referee's key. Raises RefereeError."""
    if player_id != pot.referee_id:
        refuse(Refusal.NOT_THE_REFEREE)
    require_held(pot)
    require_amount(pot.pot, amount)


def require_reward(reward: int) -> None:
    """Refuse what is no stake. Raises ProofRejectedError."""
    if isinstance(reward, bool) or not 1 <= reward <= MAX_REWARD:
        refuse(Refusal.ILLEGAL_REWARD)


def require_amount(held: int, amount: int) -> None:
    """Refuse an agreement to another amount than is held. Raises ProofRejectedError."""
    if amount != held:
        refuse(Refusal.OTHER_AMOUNT)


def require_credit(credit: int, reward: int) -> None:
    """Refuse a stake that a player with `credit` cannot pay. Raises InsufficientCreditError."""
    if credit < reward:
        refuse(Refusal.INSUFFICIENT_CREDIT)


def _stake(contract: Contract, role: Role) -> Transfer:
    return Transfer(player_account(contract.player_id(role)), pot_account(contract.solution_hash), contract.reward)


def _pay(contract: Contract, winner: Role) -> Outcome[Contract]:
    paid = Transfer(pot_account(contract.solution_hash), player_account(contract.player_id(winner)), contract.pot)
    return Outcome(replace(contract, pot=0), (paid,))


def apply_step(game: GameState, step: Step, kind: StepKind) -> GameState:
    """The step machine's answer, its refusals in the words of the referee. Raises RefereeError."""
    if step.kind != kind:
        refuse(Refusal.UNFIT_STEP)
    try:
        return steps.apply(game, step)
    except RefusedStepError as error:
        refusal = _STEP_REFUSALS.get(steps.Refusal(error.refusal), Refusal.UNFIT_STEP)
        message = f"{refusal}: {error}" if refusal is Refusal.UNFIT_STEP else str(error)
        raise refusal_class(refusal)(message, refusal=refusal.name.lower()) from error


def refusal_class(refusal: Refusal) -> type[RefereeError]:
    """The class of the errors that say this."""
    return _ERRORS.get(refusal, WrongStateError)


def refuse(refusal: Refusal) -> NoReturn:
    """Say no. Raises RefereeError, of the class that goes with the reason."""
    raise refusal_class(refusal)(str(refusal), refusal=refusal.name.lower())
