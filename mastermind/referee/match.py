"""A duel for a stake: two games that the referee ties together (PROTOCOL section 7).

Each player is the master of one game and the breaker of the other. What a game is, `mastermind.game.steps` says, and in
which order the two go on, `mastermind.game.duel`; here is what ties them: one stake of each player, one pot, one clock.
Pure, and total in the same way as `mastermind.referee.contract`.

The *host* opens the match with the opening of the game that the *guest* will break; the guest joins that game and
opens the other one; the host joins that, and the rounds begin. The host guesses first. A match is named by the solution
hash of the host's code, which the referee takes once, for a game or for a match.

Why the pot goes to the right player, once:

- Both codes are fixed before the first guess: a guess needs the game id, a game id needs the solution hash, and
  nobody guesses before both games are joined.
- No proof of another game fits. Whoever joins agrees, at this referee and for this match, to the very game id (and the
  guest to the very code) with which the match goes on, so that nobody can bring in an older opening or joining step of
  theirs; and every later step is bound to its game id.
- From the joining on exactly one player is to move, and has PER_TURN_SLOTS for it. Either there is a move, of which
  there are at most four a round, or the time passes and the pot is the other player's: every match ends.
- The answer that decides the duel pays out in the same transition, so no open match is ever decided. `_pay` alone takes
  from the pot, it takes all of it, and every method that can reach it refuses a pot that is empty. A draw gives
  each player the stake back: the pot is exactly twice that.
- Opening the codes after the end moves no credits; whoever does not like to has lost nothing by it, or won.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mastermind.errors import InvalidInputError, MalformedEvidenceError
from mastermind.game import duel
from mastermind.game.duel import Player, other
from mastermind.game.reveal import opening_signals
from mastermind.game.steps import GameState, Step, StepKind
from mastermind.packing import unpack_code
from mastermind.referee.contract import (
    PER_TURN_SLOTS,
    SETTLE_SLOTS,
    Contract,
    Outcome,
    Refusal,
    apply_step,
    pack_parts,
    refuse,
    require_amount,
    require_claimant,
    require_credit,
    require_forfeit,
    require_held,
    require_reward,
)
from mastermind.referee.ledger import Transfer, player_account, pot_account
from mastermind.rules import Code, Rules

#: Who opens a match and guesses first, and who joins it.
HOST: Player = 0
GUEST: Player = 1

#: What the two players are called.
PLAYER_NAMES = ("host", "guest")

#: Who is paid when the duel has come to its end.
_WINNERS: dict[duel.Outcome, tuple[Player, ...]] = {
    duel.Outcome.FIRST_WINS: (HOST,),
    duel.Outcome.SECOND_WINS: (GUEST,),
    duel.Outcome.BOTH_BROKE: (HOST, GUEST),
    duel.Outcome.NOBODY_BROKE: (HOST, GUEST),
}


@dataclass(frozen=True)
class Match:
    """One duel at the referee.

    Attributes:
        referee_id: the player id of the referee's key.
        reward: what each player stakes, in credits.
        pot: what is held: the reward, twice the reward once accepted, 0 when paid.
        boards: the two public games; in `boards[p]` player p breaks.
        last_played_slot: of the newest move, or of the acceptance; 0 before that.
        paid: who has been paid: one player, or both for a draw.
        codes: what each player has opened after the end.
    """

    referee_id: int
    reward: int
    pot: int
    boards: tuple[GameState, GameState]
    last_played_slot: int = 0
    paid: tuple[Player, ...] = ()
    codes: tuple[Code | None, Code | None] = (None, None)

    @property
    def solution_hash(self) -> int:
        """Of the host's code: the name of the match at the referee."""
        name = self.boards[GUEST].solution_hash
        assert name is not None
        return name

    @property
    def rules(self) -> Rules:
        """Of both games."""
        return self.boards[GUEST].rules

    @property
    def players(self) -> tuple[int, int | None]:
        """The player ids of host and guest; the second once there is one."""
        host = self.boards[GUEST].master_id
        assert host is not None
        return host, self.boards[GUEST].breaker_id

    @property
    def accepted(self) -> bool:
        """Whether a guest has joined and staked."""
        return self.boards[GUEST].game_id is not None

    @property
    def closed(self) -> bool:
        """Whether the pot has been paid."""
        return self.pot == 0

    @property
    def outcome(self) -> duel.Outcome:
        """How the duel stands; it goes on for ever when the pot was paid for another reason."""
        return duel.outcome(self.boards)

    @property
    def next_move(self) -> tuple[Player, StepKind] | None:
        """Who moves and how, or None when nobody does."""
        if not self.accepted or self.closed:
            return None
        if self.boards[HOST].game_id is None:
            return HOST, "join_game"
        return duel.next_move(self.boards)

    @property
    def packed(self) -> int:
        """The state in one number: the pot, the slot, and four numbers of each player."""
        return pack_parts(
            ("pot", self.pot, 64),
            ("last played slot", self.last_played_slot, 32),
            *(
                part
                for player, board in enumerate(self.boards)
                for part in (
                    ("turn count", board.turn_count, 8),
                    ("is solved", int(board.solved), 1),
                    ("is paid", int(player in self.paid), 1),
                    ("is opened", int(self.codes[player] is not None), 1),
                )
            ),
        )

    def player_id(self, player: Player) -> int:
        """The player id of one of the two."""
        found = self.players[player]
        assert found is not None
        return found


#: What the referee holds a pot for.
Staked = Contract | Match


def read_player(value: object, field: str) -> Player:
    """Read a player of a match. Raises MalformedEvidenceError."""
    for player in (HOST, GUEST):
        if value == player and type(value) is int:
            return player
    raise MalformedEvidenceError(f"{field} is neither 0, the host, nor 1, the guest", field=field)


def may_claim(match: Match, slot: int) -> Player | None:
    """Who may claim the pot of an open match: the host before it is accepted, then whoever waits for a late move."""
    if not match.accepted:
        return HOST
    move = match.next_move
    if move is not None and slot > match.last_played_slot + PER_TURN_SLOTS:
        return other(move[0])
    return None


def open_match(rules: Rules, referee_id: int, reward: int, step: Step, *, credit: int) -> Outcome[Match]:
    """The host sets a code and stakes the reward. `credit` is what the host has.

    Raises:
        ProofRejectedError: an illegal reward, or a step that opens no game.
        InsufficientCreditError: the host cannot pay.
    """
    require_reward(reward)
    empty = GameState(rules)
    match = Match(referee_id, reward, reward, (empty, apply_step(empty, step, "open_game")))
    require_credit(credit, reward)
    return Outcome(match, (_stake(match, HOST),))


def join_match(match: Match, reward: int, opening: Step, step: Step, slot: int, *, credit: int) -> Outcome[Match]:
    """A guest sets a code by `opening`, joins the host's game by `step`, and stakes the same `reward`.

    Raises:
        WrongStateError: accepted already, reimbursed, or the host's own match.
        NotThePlayerError: the two steps are not of one player.
        ProofRejectedError: another amount, or a step that does not fit.
        InsufficientCreditError: the guest cannot pay.
    """
    if match.accepted:
        refuse(Refusal.ALREADY_ACCEPTED)
    if match.closed:
        refuse(Refusal.CLOSED)
    require_amount(match.reward, reward)
    opened = apply_step(match.boards[HOST], opening, "open_game")
    joined = apply_step(match.boards[GUEST], step, "join_game")
    if joined.breaker_id != opened.master_id:
        refuse(Refusal.WRONG_PLAYER)
    if joined.breaker_id == joined.master_id:
        refuse(Refusal.SAME_PLAYER)
    require_credit(credit, reward)
    accepted = replace(match, pot=2 * reward, boards=(opened, joined), last_played_slot=slot)
    return Outcome(accepted, (_stake(accepted, GUEST),))


def start_match(match: Match, player_id: int, step: Step, slot: int) -> Outcome[Match]:
    """The host joins the guest's game. Raises as `play_step`."""
    if player_id != match.player_id(HOST):
        refuse(Refusal.WRONG_PLAYER)
    return _move(match, step, slot, ("join_game",))


def play_step(match: Match, step: Step, slot: int) -> Outcome[Match]:
    """A guess or an answer. The answer that decides the duel pays out.

    Raises:
        WrongStateError: not accepted, paid already, or too late.
        OutOfTurnError: the other player's turn, or another turn.
        ReplayError: a step of another game.
        NotThePlayerError: somebody else's step.
        ProofRejectedError: a step that does not fit otherwise.
    """
    return _move(match, step, slot, ("make_guess", "give_clue"))


def claim_match(match: Match, player_id: int, amount: int, slot: int) -> Outcome[Match]:
    """Whoever waits for a late move claims the pot; before it is accepted, the host takes the stake back.

    Raises:
        WrongStateError: paid already, or nobody may claim yet.
        NotThePlayerError: the pot is somebody else's.
        ProofRejectedError: the pot is another amount.
    """
    return _pay(match, (require_claimant(match, may_claim(match, slot), player_id, amount),))


def forfeit_match(match: Match, player_id: int, winner: Player, amount: int) -> Outcome[Match]:
    """The referee's key gives the pot of `amount` credits to one of the two players.

    Raises:
        NotThePlayerError: not the referee's key.
        WrongStateError: not accepted, or paid already.
        ProofRejectedError: the pot is another amount.
    """
    require_forfeit(match, player_id, amount)
    return _pay(match, (winner,))


def settle_match(match: Match, slot: int) -> Outcome[Match]:
    """Anyone has an abandoned pot paid to whoever may claim it.

    Raises:
        WrongStateError: not accepted, paid already, or SETTLE_SLOTS have not passed since the last turn ran out.
    """
    require_held(match)
    if slot <= match.last_played_slot + PER_TURN_SLOTS + SETTLE_SLOTS:
        refuse(Refusal.TOO_EARLY)
    claimant = may_claim(match, slot)
    assert claimant is not None  # somebody is to move in a match that runs, and is late
    return _pay(match, (claimant,))


def open_code(match: Match, signals: tuple[int, ...]) -> Outcome[Match]:
    """A player opens their code after the end of the duel; `signals` are those of the proof.

    Raises:
        WrongStateError: the duel is not decided, or this code has been opened.
        ReplayError: an opening in another game.
        ProofRejectedError: not an opening.
    """
    if match.outcome is duel.Outcome.ONGOING:
        refuse(Refusal.NOT_OVER)
    for player in (HOST, GUEST):
        board = match.boards[other(player)]
        if signals[:2] == (board.game_id, board.solution_hash):
            break
    else:
        refuse(Refusal.WRONG_GAME)
    try:
        code = unpack_code(match.rules, signals[3])
    except InvalidInputError:
        refuse(Refusal.UNFIT_STEP)
    if signals != opening_signals(board, code):
        refuse(Refusal.UNFIT_STEP)
    if match.codes[player] is not None:
        refuse(Refusal.ALREADY_OPENED)
    return Outcome(replace(match, codes=(code, match.codes[GUEST]) if player == HOST else (match.codes[HOST], code)))


def _move(match: Match, step: Step, slot: int, kinds: tuple[StepKind, ...]) -> Outcome[Match]:
    require_held(match)
    move = match.next_move
    assert move is not None  # a match that is decided has been paid
    player, kind = move
    if kind not in kinds or step.kind != kind:
        refuse(Refusal.OUT_OF_TURN)
    if slot > match.last_played_slot + PER_TURN_SLOTS:
        refuse(Refusal.TOO_LATE)
    breaker = other(player) if kind == "give_clue" else player
    board = apply_step(match.boards[breaker], step, kind)
    if kind == "join_game" and board.breaker_id != match.player_id(player):
        refuse(Refusal.WRONG_PLAYER)
    boards = (board, match.boards[GUEST]) if breaker == HOST else (match.boards[HOST], board)
    moved = replace(match, boards=boards, last_played_slot=slot)
    return Outcome(moved) if moved.outcome is duel.Outcome.ONGOING else _pay(moved, _WINNERS[moved.outcome])


def _stake(match: Match, player: Player) -> Transfer:
    return Transfer(player_account(match.player_id(player)), pot_account(match.solution_hash), match.reward)


def _pay(match: Match, winners: tuple[Player, ...]) -> Outcome[Match]:
    pot, share = pot_account(match.solution_hash), match.pot // len(winners)
    paid = tuple(Transfer(pot, player_account(match.player_id(winner)), share) for winner in winners)
    return Outcome(replace(match, pot=0, paid=winners), paid)
