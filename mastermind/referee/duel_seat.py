"""A seat at a match of the referee: what a player does in a duel there, from files that outlive the process.

    folder/
      seat.json           which match at which referee, and as which player
      secret.json         the own code, and what has been answered (mode 0600)
      your-guesses.json   the game in which this player breaks the other's code
      their-guesses.json  the game in which the other breaks this player's code
      your-code.json      after the end: the own code, opened
      their-code.json     after the end: the other's code, opened and checked

As with `mastermind.referee.seats`: a step is in its file before it is sent, an answer in the secret file before it is
made, and a client that is stopped at any point goes on by being started again. The referee is not believed: its steps
are verified, their order is checked, and the code is opened only when the proved games are over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mastermind.errors import (
    MalformedEvidenceError,
    RefereeError,
    RejectedEvidenceError,
    UnknownGameError,
    WrongKeySetError,
)
from mastermind.game.duel import Duel, Outcome, Player, Seat, next_move, other, outcome
from mastermind.game.play import Table
from mastermind.game.reveal import Reveal, opening_signals
from mastermind.game.secret_files import AskPassphrase, GameSecret, PlayerKey, no_passphrase
from mastermind.game.steps import StepKind
from mastermind.game.transcript import Transcript, read_element, write_json
from mastermind.referee.client import MatchView, RefereeClient, RefereeInfo, Tell, make_consent
from mastermind.referee.match import GUEST, HOST, read_player
from mastermind.referee.requests import (
    ClaimMatch,
    Consent,
    JoinMatch,
    OpenCode,
    OpenMatch,
    PlayStep,
    Request,
    StartMatch,
)
from mastermind.referee.seats import (
    DUEL_FORMAT,
    LOOK_AGAIN_S,
    Guesser,
    has_part,
    leave_refused,
    merge,
    new_folder,
    read_seat_fields,
    turn_left_s,
)
from mastermind.rules import Code, Rules

_SECRET, _YOURS, _THEIRS = "secret.json", "your-guesses.json", "their-guesses.json"
#: How long the other's code is waited for after the end; it can be fetched later, too.
OPENING_S = 30.0

#: Is told the match whenever it has changed.
Shown = Callable[[MatchView], None]


@dataclass(frozen=True)
class DuelSeat:
    """Which match a player has a seat at.

    Attributes:
        url: of the referee.
        match: the solution hash of the host's code.
        reward: the stake of each player, in credits.
    """

    player: Player
    url: str
    referee_id: int
    match: int
    reward: int

    @classmethod
    def read(cls, folder: Path) -> DuelSeat:
        """Read the seat of a folder. Raises MalformedEvidenceError."""
        names = {"player", "url", "referee_id", "match", "reward"}
        fields = read_seat_fields(folder, DUEL_FORMAT, names)
        if not isinstance(fields["url"], str):
            raise MalformedEvidenceError("url is not text", field="url")
        return cls(
            read_player(fields["player"], "player"),
            fields["url"],
            read_element(fields, "referee_id"),
            read_element(fields, "match"),
            read_element(fields, "reward"),
        )

    def write(self, folder: Path) -> None:
        """Take the seat: write its file."""
        fields: dict[str, Any] = {"format": DUEL_FORMAT, "player": self.player, "url": self.url}
        fields |= {name: str(getattr(self, name)) for name in ("referee_id", "match", "reward")}
        write_json(folder / "seat.json", fields)


def take_host_seat(
    folder: Path, table: Table, key: PlayerKey, url: str, info: RefereeInfo, reward: int, secret: Code
) -> DuelSeat:
    """Prepare a match as its host: the code, its opening, and the seat. Nothing is sent yet.

    Raises:
        InvalidInputError: the folder exists.
    """
    opening, kept = table.open_game(key, secret)
    seat = DuelSeat(HOST, url, info.referee_id, opening.steps[0].step.public_signals[0], reward)
    with new_folder(folder) as new:
        kept.write_new(new / _SECRET, key)
        opening.write_new(new / _THEIRS)
        seat.write(new)
    return seat


def take_guest_seat(
    folder: Path,
    table: Table,
    key: PlayerKey,
    client: RefereeClient,
    info: RefereeInfo,
    view: MatchView,
    secret: Code,
) -> DuelSeat:
    """Prepare to join an open match as its guest: verify the host's opening, join that game, and set a code.

    Raises:
        InvalidInputError: the folder exists.
        RejectedEvidenceError: the opening is not proved.
        RefusedStepError: somebody has joined already.
    """
    match = view.contract.solution_hash
    joined = table.join_game(client.duel(match).duel.games[GUEST], key)
    if joined.state().solution_hash != match:
        raise RejectedEvidenceError("the referee shows another match's steps", reason="other steps")
    opening, kept = table.open_game(key, secret)
    seat = DuelSeat(GUEST, client.url, info.referee_id, match, view.contract.reward)
    with new_folder(folder) as new:
        kept.write_new(new / _SECRET, key)
        opening.write_new(new / _THEIRS)
        joined.write_new(new / _YOURS)
        seat.write(new)
    return seat


@dataclass(frozen=True)
class Ending:
    """How a match has ended.

    Attributes:
        codes: the opened codes, checked; None where one has not been opened (yet).
    """

    view: MatchView
    codes: tuple[Code | None, Code | None]


@dataclass(frozen=True)
class Duellist:
    """A player in a seat.

    Attributes:
        folder: of the seat's files.
        own: the player's key and code at the table.
        show: told the match whenever it has changed.
    """

    seat: DuelSeat
    folder: Path
    own: Seat
    client: RefereeClient
    show: Shown = lambda _: None

    def play(self, guess: Guesser) -> Ending:
        """Play until the match is paid out and open the code. `guess` is asked when this player is to guess.

        Raises:
            RefereeError: the referee refuses something, as when a turn has passed.
            RejectedEvidenceError: the referee shows something that is not proved.
            RefereeUnreachableError: no answer for minutes; start again later.
        """
        self.client.be_patient()
        view = self._arrive()
        self.show(view)
        while not view.contract.closed:
            self.client.be_patient(turn_s=turn_left_s(view, self.client.slot_seconds))
            acted = self._act(view, guess) or self._wait(view)
            if acted.events != view.events:
                self.show(acted)
            view = acted
        return self._end(view)

    def claim(self) -> MatchView:
        """Claim the pot while the other is late, or take back the stake of a match that nobody has joined.

        Raises RefereeError.
        """
        amount = self.client.match(self.seat.match).contract.pot
        consent = self._consent(ClaimMatch.method, amount)
        return self._send(ClaimMatch(self.own.key.id, amount, consent))

    def _arrive(self) -> MatchView:
        """The match at the referee, opened or joined if that has not happened yet."""
        seat, table = self.seat, self.own.table
        if self.client.info().referee_id != seat.referee_id:
            raise WrongKeySetError("another referee answers at this address than the one of this seat")
        opening = self._transcript(_THEIRS).steps[0]
        try:
            view = self.client.match(seat.match)
        except UnknownGameError:
            if seat.player != HOST:
                raise
            consent = self._consent(OpenMatch.method, seat.reward)
            return self._take(OpenMatch(table.rules, table.key_set.id, seat.reward, opening, consent))
        if seat.player == GUEST and view.contract.players[GUEST] != self.own.key.id:
            joining = self._transcript(_YOURS).steps[1]
            consent = self._consent(JoinMatch.action(opening.step, joining.step), seat.reward)
            return self._take(JoinMatch(seat.reward, opening, joining, consent))
        return view

    def _take(self, request: Request) -> MatchView:
        """Take the seat. Raises RefereeError."""
        try:
            return self._send(request)
        except RefereeError as error:
            if not has_part(self.own.key, lambda: self.client.match(self.seat.match)):
                leave_refused(self.folder, error)
            raise

    def _act(self, view: MatchView, guess: Guesser) -> MatchView | None:
        """Do what is ours to do, or return None when there is nothing."""
        if not view.contract.accepted:
            return None
        if view.may_claim == self.seat.player:
            return self.claim()
        duel, ahead = self._catch_up()
        if ahead is not None:
            return self._send_newest(ahead)
        move = _next_move(duel)
        if move is None or move[0] != self.seat.player:
            return None
        match move[1]:
            case "join_game":
                name, ours = _YOURS, self.own.table.join_game(duel.games[HOST], self.own.key)
            case "make_guess":
                code = guess(duel.boards[self.seat.player])
                name, ours = _YOURS, self.own.guess(duel, code).games[self.seat.player]
            case _:
                name, ours = _THEIRS, self.own.answer(duel).games[other(self.seat.player)]
        ours.append_to(self.folder / name)
        return self._send_newest(ours)

    def _send_newest(self, transcript: Transcript) -> MatchView:
        proved = transcript.steps[-1]
        if proved.step.kind != "join_game":
            return self._send(PlayStep(proved))
        return self._send(StartMatch(self.own.key.id, proved, self._consent(StartMatch.action(proved.step), 0)))

    def _wait(self, view: MatchView) -> MatchView:
        """Wait for news, or for the slot in which the other's turn is over."""
        silence_s = LOOK_AGAIN_S
        if view.contract.accepted:
            slot_seconds = self.client.slot_seconds
            silence_s = min(silence_s, max(slot_seconds, turn_left_s(view, slot_seconds)))
        return self._news(view, silence_s)

    def _news(self, view: MatchView, silence_s: float) -> MatchView:
        for _ in self.client.watch_match(self.seat.match, after=view.events - 1, silence_s=silence_s):
            break
        return self.client.match(self.seat.match)

    def _catch_up(self) -> tuple[Duel, Transcript | None]:
        """Both games with what the referee has and we had not, and the one of which we have a step more, if any.

        Raises:
            RejectedEvidenceError: the steps are not those of our games, not proved, or not in order.
        """
        shown = self.client.duel(self.seat.match).duel
        me, table = self.seat.player, self.own.table
        paths = (self.folder / _YOURS, self.folder / _THEIRS)
        if not paths[0].exists():
            Transcript(table.rules, table.key_set.id).write_new(paths[0])
        kept = [Transcript.read(path) for path in paths]
        (yours, guesses_known), (theirs, answers_known) = (
            merge(ours, shown.games[player], table) for ours, player in zip(kept, (me, other(me)), strict=True)
        )
        duel = Duel(yours, theirs) if me == HOST else Duel(theirs, yours)
        # All of it before any of it is kept: one false answer must not stand in the way of true ones.
        if duel.boards[HOST].game_id is not None:
            duel.check()
        elif duel.boards[HOST].master_id not in (None, duel.boards[GUEST].breaker_id):
            raise RejectedEvidenceError("the referee shows the code of somebody who has not joined", reason="players")
        for path, before, now in zip(paths, kept, (yours, theirs), strict=True):
            if len(now.steps) > len(before.steps):
                now.append_to(path)
        ahead = next(
            (game for game, known in ((yours, guesses_known), (theirs, answers_known)) if known < len(game.steps)), None
        )
        return duel, ahead

    def _end(self, view: MatchView) -> Ending:
        """Open the own code and fetch the other's, if the duel was played to its end."""
        me, match = self.seat.player, view.contract
        if not match.accepted:
            return Ending(view, (None, None))
        duel, ahead = self._catch_up()
        if ahead is None and duel.boards != match.boards:
            raise RejectedEvidenceError("the referee shows other games than were played", reason="other steps")
        if ahead is not None or outcome(duel.boards) is Outcome.ONGOING:
            return Ending(view, (None, None))
        if match.codes[me] is None:
            opening = self.own.open_code(duel)
            write_json(self.folder / "your-code.json", opening.to_json())
            signals = opening_signals(duel.boards[other(me)], opening.secret)
            view = self._send(OpenCode(signals, opening.proof))
        end_s = time.monotonic() + OPENING_S
        while view.contract.codes[other(me)] is None and (left_s := end_s - time.monotonic()) > 0:
            view = self._news(view, left_s)
        code, theirs = self._own_code(), self._checked(self.client.duel(self.seat.match).codes[other(me)], duel)
        return Ending(view, (code, theirs) if me == HOST else (theirs, code))

    def _checked(self, opening: Reveal | None, duel: Duel) -> Code | None:
        """The other's code, kept in its file once its opening has been verified. Raises RejectedEvidenceError."""
        if opening is None:
            return None
        table = self.own.table
        code = opening.verify_against(duel.boards[self.seat.player], table.keys, table.verifier)
        write_json(self.folder / "their-code.json", opening.to_json())
        return code

    def _own_code(self) -> Code:
        assert self.own.kept is not None
        return self.own.kept.secret

    def _send(self, request: Request) -> MatchView:
        return self.client.send_to_match(self.seat.match, request)

    def _consent(self, action: str, amount: int) -> Consent:
        return make_consent(
            self.own.table.key_set,
            self.own.table.prover,
            self.own.key,
            action,
            referee_id=self.seat.referee_id,
            game=self.seat.match,
            amount=amount,
        )

    def _transcript(self, name: str) -> Transcript:
        return Transcript.read(self.folder / name)


@contextmanager
def seated_at_duel(
    folder: Path,
    key: PlayerKey,
    make_table: Callable[[Rules, str], Table],
    *,
    ask: AskPassphrase = no_passphrase,
    show: Shown = lambda _: None,
    tell: Tell = lambda _: None,
) -> Iterator[Duellist]:
    """Sit down in the seat of a folder; `make_table` gives the table for some rules and key set id.

    Raises:
        MalformedEvidenceError: the folder has no readable seat.
    """
    seat, path = DuelSeat.read(folder), folder / _SECRET
    opening = Transcript.read(folder / _THEIRS)
    table = make_table(opening.rules, opening.key_set_id)

    def record(kept: GameSecret) -> None:
        kept.replace(path, key, ask)

    own = Seat(table, seat.player, key, GameSecret.read(path, ask), record)
    with RefereeClient(seat.url, tell=tell) as client:
        yield Duellist(seat, folder, own, client, show)


def _next_move(duel: Duel) -> tuple[Player, StepKind] | None:
    """Who moves and how; first of all the host joins the guest's game."""
    return next_move(duel.boards) if duel.boards[HOST].game_id is not None else (HOST, "join_game")
