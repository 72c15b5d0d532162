"""The duel: both players set a code and both break one (PROTOCOL section 7).

A duel is two games under the same rules: in each, one player is the master and the other the breaker. A round is one
guess by each, player 0 first, every guess answered by a proved clue before anybody guesses again. The duel ends at the
foot of the round in which somebody breaks a code: one did, that player wins; both did, or the guesses run out: a draw.

Nobody needs to hold both codes: each player answers for their own (`Seat`), and `view_for` is all that a player may
know. Pure apart from the proofs that a `Table` makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from mastermind.errors import NotYourCodeError, RefusedStepError, RejectedEvidenceError
from mastermind.game.play import Table
from mastermind.game.reveal import Reveal
from mastermind.game.secret_files import GameSecret, PlayerKey
from mastermind.game.steps import GameState, Refusal
from mastermind.game.transcript import Transcript, VerifyingKeys
from mastermind.rules import Clue
from mastermind.zk.verify import Verifier

#: The two players, in the order in which they guess.
Player = Literal[0, 1]


class Outcome(StrEnum):
    """How a duel stands."""

    ONGOING = "the duel goes on"
    FIRST_WINS = "the first player wins"
    SECOND_WINS = "the second player wins"
    BOTH_BROKE = "a draw: both codes were broken in the same round"
    NOBODY_BROKE = "a draw: the guesses ran out"


def other(player: Player) -> Player:
    """The opponent."""
    return 1 if player == 0 else 0


def outcome(boards: Sequence[GameState]) -> Outcome:
    """How a duel stands; `boards[p]` is the game in which player p breaks."""
    first, second = boards
    if len(first.clues) != len(second.clues):
        return Outcome.ONGOING  # not at the foot of a round
    match first.solved, second.solved:
        case True, True:
            return Outcome.BOTH_BROKE
        case True, False:
            return Outcome.FIRST_WINS
        case False, True:
            return Outcome.SECOND_WINS
    return Outcome.NOBODY_BROKE if first.over else Outcome.ONGOING


def next_move(boards: Sequence[GameState]) -> tuple[Player, Literal["make_guess", "give_clue"]] | None:
    """Who moves and how, or None when the duel is over or not both games have been joined."""
    if any(board.game_id is None for board in boards) or outcome(boards) is not Outcome.ONGOING:
        return None
    for breaker in (0, 1):
        player: Player = 1 if breaker else 0
        if len(boards[player].guesses) > len(boards[player].clues):
            return other(player), "give_clue"
    return (0, "make_guess") if len(boards[0].guesses) == len(boards[1].guesses) else (1, "make_guess")


def check_order(boards: Sequence[GameState]) -> None:
    """Refuse two games that no order of rounds leads to. Raises RejectedEvidenceError."""
    first, second = boards
    if first.rules != second.rules:
        raise RejectedEvidenceError("the two games have different rules", reason="other rules")
    ahead = len(first.guesses) - len(second.guesses)
    unanswered = [len(board.guesses) - len(board.clues) for board in boards]
    if ahead not in (0, 1) or sum(unanswered) > 1 or (ahead == 0 and unanswered[0]):
        raise RejectedEvidenceError("the two games are not in step", reason="out of step")
    # Once a round has decided, nobody guesses again.
    for rounds in range(min(len(first.clues), len(second.clues))):
        if any(board.clues[rounds].hits == board.rules.pegs for board in boards) and (
            len(first.guesses) > rounds + 1 or len(second.guesses) > rounds + 1
        ):
            raise RejectedEvidenceError("a game goes on after the duel was decided", reason="out of step")


@dataclass
class Seat:
    """One player at a duel: their own key and code, and nothing of the other's.

    Attributes:
        number: 0 or 1; player 0 guesses first.
        key: the player's own.
        kept: the player's own code, salt and record of answers.
        record: called with that record before there is a clue; must have stored it when it returns.
    """

    table: Table
    number: Player
    key: PlayerKey = field(repr=False)
    kept: GameSecret | None = field(default=None, repr=False)
    record: Callable[[GameSecret], None] = field(default=lambda _: None, repr=False)

    def commit(self, code: Sequence[int]) -> Transcript:
        """Set the own code: the opening of the game that the opponent breaks. Raises InvalidCodeError."""
        transcript, self.kept = self.table.open_game(self.key, code)
        return transcript

    def score(self, guess: Sequence[int], code_of: Player) -> Clue:
        """Score a guess against a player's code.

        Raises:
            NotYourCodeError: it is the opponent's code, which this seat was never given, or none has been set. There
                is no answer in that case, not even (0, 0).
        """
        if code_of != self.number or self.kept is None:
            raise NotYourCodeError("this player was never given that code")
        return self.table.rules.score(self.kept.secret, guess)

    def guess(self, duel: Duel, guess: Sequence[int]) -> Duel:
        """Make a guess. Raises as `Table.make_guess`, and RefusedStepError out of turn."""
        self._require(duel, "make_guess")
        games = list(duel.games)
        games[self.number] = self.table.make_guess(games[self.number], self.key, guess)
        return Duel(games[0], games[1])

    def answer(self, duel: Duel) -> Duel:
        """Answer the opponent's guess. Raises as `Table.give_clue`, and RefusedStepError out of turn."""
        self._require(duel, "give_clue")
        if self.kept is None:
            raise NotYourCodeError("no code has been set")
        games = list(duel.games)
        asking = other(self.number)
        games[asking] = self.table.give_clue(games[asking], self.key, self.kept, self._keep)
        return Duel(games[0], games[1])

    def open_code(self, duel: Duel) -> Reveal:
        """Open the own code after the end. Raises RefusedStepError before it."""
        if outcome(duel.boards) is Outcome.ONGOING:
            raise RefusedStepError("codes are opened after the end of the duel", refusal=Refusal.NOT_OVER)
        if self.kept is None:
            raise NotYourCodeError("no code has been set")
        return self.table.open_secret(duel.games[other(self.number)], self.key, self.kept)

    def _keep(self, kept: GameSecret) -> None:
        self.record(kept)
        self.kept = kept

    def _require(self, duel: Duel, move: str) -> None:
        if next_move(duel.boards) != (self.number, move):
            raise RefusedStepError("it is not this player's move", refusal=Refusal.OUT_OF_TURN)


@dataclass(frozen=True)
class Duel:
    """Two transcripts; in `games[p]` player p breaks."""

    first: Transcript
    second: Transcript

    @property
    def games(self) -> tuple[Transcript, Transcript]:
        """Both transcripts, by the player who breaks."""
        return self.first, self.second

    @property
    def boards(self) -> tuple[GameState, GameState]:
        """Both states, without a look at the proofs. Raises RejectedEvidenceError."""
        return self.first.state(), self.second.state()

    def verify(self, keys: VerifyingKeys, verifier: Verifier) -> Outcome:
        """Check both transcripts, that each player is master of one and breaker of the other, and the order of moves.

        Raises:
            RejectedEvidenceError: something does not hold.
        """
        self.first.verify(keys, verifier)
        self.second.verify(keys, verifier)
        self.check()
        return outcome(self.boards)

    def check(self) -> None:
        """Check all but the proofs: who plays which game, and the order of moves. Raises RejectedEvidenceError."""
        first, second = self.boards
        if (first.breaker_id, first.master_id) != (second.master_id, second.breaker_id):
            raise RejectedEvidenceError("the two games are not between the same players", reason="other players")
        check_order((first, second))


def view_for(player: Player, duel: Duel, seat: Seat, opened: Reveal | None = None) -> dict[str, Any]:
    """All that a player may know, ready to be serialised.

    The opponent's code is in it only when the duel is over and the opponent has opened it (`opened`, verified by the
    caller).

    Raises:
        NotYourCodeError: `seat` is the other player's.
    """
    if seat.number != player:
        raise NotYourCodeError("this seat is the other player's")
    boards = duel.boards
    result = outcome(boards)
    move = next_move(boards)
    return {
        "player": player,
        "rules": boards[0].rules.spelling,
        "own_code": None if seat.kept is None else list(seat.kept.secret),
        "other_code": list(opened.secret) if opened is not None and result is not Outcome.ONGOING else None,
        "boards": [
            {
                "breaker": breaker,
                "guesses": [list(guess) for guess in board.guesses],
                "clues": [list(clue) for clue in board.clues],
            }
            for breaker, board in enumerate(boards)
        ],
        "next": None if move is None else {"player": move[0], "move": move[1]},
        "outcome": result.name.lower(),
    }


def begin(first: Seat, opened_by_first: Transcript, second: Seat, opened_by_second: Transcript) -> Duel:
    """Both players join the game that the other has opened; so both codes are fixed before the first guess."""
    return Duel(
        first.table.join_game(opened_by_second, first.key),
        second.table.join_game(opened_by_first, second.key),
    )
