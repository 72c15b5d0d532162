"""A seat at a game of the referee: what a player does there, from files that outlive the process.

    folder/
      seat.json         which game at which referee, and in which role
      transcript.json   the steps so far
      secret.json       the master's secret, and what has been answered (mode 0600)
      certificate.json  the master's newest evidence of all of it, for the breaker too when given

A step is in the transcript before it is sent, and an answer is in the secret file before it is made. What is to be
done next follows from these files and from what the referee shows, so a client that is stopped at any point goes on
by being started again. The referee is not believed: steps that come from it are verified, its id and keys are pinned.

The two players may also exchange steps without the referee (`mastermind game` works on the same transcript) and come
back to it, as when one of them falls silent: what it has missed is shown by a certificate as far as there is one, and
the steps after it are sent one by one. A step is proved by its mover, so it does not matter who sends it.
"""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mastermind.errors import (
    InvalidInputError,
    MalformedEvidenceError,
    RefereeError,
    RefusedStepError,
    RejectedEvidenceError,
    UnknownGameError,
    WrongKeySetError,
    WrongStateError,
)
from mastermind.game.certificate import Certificate
from mastermind.game.play import Table
from mastermind.game.secret_files import AskPassphrase, GameSecret, PlayerKey, no_passphrase
from mastermind.game.steps import GameState, apply
from mastermind.game.transcript import (
    ProvedStep,
    Transcript,
    lock_path,
    read_bounded,
    read_element,
    read_fields,
    require_proofs,
    write_json,
)
from mastermind.referee.client import GameView, MatchView, RefereeClient, RefereeInfo, Tell, make_consent
from mastermind.referee.contract import PER_TURN_SLOTS, Role, require_turn_time
from mastermind.referee.requests import (
    AcceptGame,
    ClaimReward,
    Consent,
    GiveClue,
    InitGame,
    MakeGuess,
    Request,
    SubmitGameProof,
)
from mastermind.rules import Code, Rules
from mastermind.zk.artifacts import KeySet
from mastermind.zk.prove import self_test

FORMAT = "mastermind seat 1"
DUEL_FORMAT = "mastermind duel seat 1"
MAX_BYTES = 1 << 12
#: Without news the game is looked at again after this long.
LOOK_AGAIN_S = 20.0

#: Chooses a guess, from the game so far.
Guesser = Callable[[GameState], Code]
#: Is told the game whenever it has changed.
Shown = Callable[[GameView], None]


@dataclass(frozen=True)
class Seat:
    """Which game a player has a seat at.

    Attributes:
        url: of the referee.
        game: the solution hash.
        reward: the stake of each player, in credits.
    """

    role: Role
    url: str
    referee_id: int
    game: int
    reward: int

    @classmethod
    def read(cls, folder: Path) -> Seat:
        """Read the seat of a folder. Raises MalformedEvidenceError."""
        names = {"role", "url", "referee_id", "game", "reward"}
        fields = read_seat_fields(folder, FORMAT, names)
        if fields["role"] not in ("master", "breaker") or not isinstance(fields["url"], str):
            raise MalformedEvidenceError("it is not the file of a seat", field="role")
        return cls(
            fields["role"],
            fields["url"],
            read_element(fields, "referee_id"),
            read_element(fields, "game"),
            read_element(fields, "reward"),
        )

    def write(self, folder: Path) -> None:
        """Take the seat: write its file."""
        fields: dict[str, Any] = {"format": FORMAT, "role": self.role, "url": self.url}
        fields |= {name: str(getattr(self, name)) for name in ("referee_id", "game", "reward")}
        write_json(folder / "seat.json", fields)


def read_seat_fields(folder: Path, file_format: str, names: set[str]) -> dict[str, Any]:
    """The fields of a seat's file. Raises MalformedEvidenceError, and for a seat of the other kind says what to use."""
    path = folder / "seat.json"
    data = read_bounded(path, MAX_BYTES)
    try:
        return read_fields(data, file_format, names, MAX_BYTES)
    except MalformedEvidenceError as error:
        for other, what, group in ((FORMAT, "game", "play"), (DUEL_FORMAT, "duel", "play duel")):
            if error.field == "format" and other.encode() in data:
                said = f"{folder} is of a {what}; use `mastermind {group} host`, `join` or `claim` for it"
                raise MalformedEvidenceError(said, field="format") from error
        raise MalformedEvidenceError(f"{path}: {error}", field=error.field) from error


def take_master_seat(
    folder: Path, table: Table, key: PlayerKey, url: str, info: RefereeInfo, reward: int, secret: Code
) -> Seat:
    """Prepare a game as its master: the secret, the opening step and the seat. Nothing is sent yet.

    Raises:
        InvalidInputError: the folder exists.
    """
    transcript, kept = table.open_game(key, secret)
    seat = Seat("master", url, info.referee_id, transcript.steps[0].step.public_signals[0], reward)
    with new_folder(folder) as new:
        kept.write_new(new / "secret.json", key)
        transcript.write_new(new / "transcript.json")
        seat.write(new)
    return seat


def take_breaker_seat(
    folder: Path, table: Table, key: PlayerKey, client: RefereeClient, info: RefereeInfo, view: GameView
) -> Seat:
    """Prepare to join an open game as its breaker: verify its opening and make the joining step.

    Raises:
        InvalidInputError: the folder exists.
        RejectedEvidenceError: the opening is not proved.
        RefusedStepError: somebody has joined already.
    """
    game = view.contract.solution_hash
    transcript = table.join_game(client.transcript(game), key)
    if transcript.state().solution_hash != game:
        raise RejectedEvidenceError("the referee shows another game's steps", reason="other steps")
    seat = Seat("breaker", client.url, info.referee_id, game, view.contract.reward)
    with new_folder(folder) as new:
        transcript.write_new(new / "transcript.json")
        seat.write(new)
    return seat


def key_set_for(info: RefereeInfo, rules: Rules, load: Callable[[str], KeySet]) -> KeySet:
    """The key set that the referee uses for some rules, if it is one of ours; `load` finds it by its id.

    Raises:
        WrongKeySetError: the referee does not take such games, or its keys are not here.
        InvalidInputError: its turns are too short for proofs made on this machine.
    """
    if rules.spelling not in info.key_sets:
        taken = ", ".join(Rules.parse(spelling).name for spelling in info.key_sets)
        raise WrongKeySetError(f"this referee takes no games of {rules.name}; it takes {taken or 'none'}")
    key_set = load(info.key_sets[rules.spelling][0])
    require_turn_time(info.slot_seconds, proof_seconds(key_set))
    return key_set


def proof_seconds(key_set: KeySet) -> float:
    """What the slowest proof takes here, in seconds, once its files are loaded and the machine has time for it."""
    self_test(key_set["certify_game"])
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        self_test(key_set["certify_game"])
        taken.append(time.perf_counter() - start)
    return min(taken)


@dataclass(frozen=True)
class _Certified:
    """What the newest certificate at the referee shows, and the steps that the referee has after it."""

    state: GameState
    later: list[ProvedStep]

    def continue_from(self, ours: Transcript) -> Transcript:
        """The referee's steps, the first ones of which are ours: the certificate stands for those.

        Raises:
            RejectedEvidenceError: the certificate is of other steps than ours, or of more.
        """
        until = replace(ours, steps=ours.steps[: self.state.turn_count + 1])
        if until.state() != self.state:
            raise RejectedEvidenceError("the referee shows other steps than were played", reason="other steps")
        return replace(until, steps=(*until.steps, *self.later))


@dataclass(frozen=True)
class Player:
    """A player in a seat.

    Attributes:
        folder: of the seat's files.
        ask: for the passphrase of the secret file.
        show: told the game whenever it has changed.
    """

    seat: Seat
    folder: Path
    table: Table
    key: PlayerKey
    client: RefereeClient
    ask: AskPassphrase = no_passphrase
    show: Shown = lambda _: None

    def play(self, guess: Guesser) -> GameView:
        """Play until the game is paid out, and return how it ended. `guess` is asked when the breaker is to move.

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
            acted = self._act(view, guess)
            if acted is None:
                acted = self._wait(view)
            if acted.events != view.events:
                self.show(acted)
            view = acted
        return view

    def claim(self) -> GameView:
        """Claim the pot, or take back the stake of a game that nobody has accepted. Raises RefereeError."""
        return self._claim(self.client.game(self.seat.game))

    def _arrive(self) -> GameView:
        """The game at the referee, opened or accepted if that has not happened yet."""
        seat = self.seat
        info = self.client.info()
        if info.referee_id != seat.referee_id:
            raise WrongKeySetError("another referee answers at this address than the one of this seat")
        opening = self._transcript().steps
        try:
            view = self.client.game(seat.game)
        except UnknownGameError:
            if seat.role != "master":
                raise
            consent = self._consent(InitGame.method, seat.reward)
            return self._take(
                InitGame(self.table.rules, self.table.key_set.id, seat.reward, opening[0], consent), opening[1:]
            )
        if seat.role == "breaker" and view.contract.game.game_id is None:
            consent = self._consent(AcceptGame.method, seat.reward)
            return self._take(AcceptGame(seat.reward, opening[1], consent), opening[2:])
        return view

    def _take(self, request: Request, later: Sequence[ProvedStep]) -> GameView:
        """Take the seat; `later` is what has been played elsewhere already. Raises RefereeError."""
        try:
            return self.client.send(self.seat.game, request)
        except RefereeError as error:
            if not later and not has_part(self.key, lambda: self.client.game(self.seat.game)):
                leave_refused(self.folder, error)
            raise

    def _act(self, view: GameView, guess: Guesser) -> GameView | None:
        """Do what is ours to do, or return None when there is nothing."""
        contract = view.contract
        if not contract.accepted:
            return None
        if contract.finalized(view.slot) or contract.game.over:
            # Whatever the referee shows of the game, it is no reason to leave the pot there.
            with suppress(RejectedEvidenceError):
                transcript, _ = self._catch_up()
                if contract.game.over:
                    self._certificate(transcript, view)
            return self._claim(view) if view.may_claim == self.seat.role else None
        shown = self._fetch()
        beyond = self._beyond(shown) if isinstance(shown, _Certified) else None
        if beyond is not None:
            if beyond.next_step != "make_guess" or self.seat.role != "breaker":
                return None
            return self.client.send(self.seat.game, MakeGuess(self.table.guess_step(beyond, self.key, guess(beyond))))
        transcript, known = self._follow(shown)
        state = transcript.state()
        if known < len(transcript.steps):
            too_late = view.slot > contract.last_played_slot + PER_TURN_SLOTS
            behind = too_late or known + 1 < len(transcript.steps)
            certificate = self._certificate(transcript, view) if behind else None
            return self._show(view, _move(transcript, known) if certificate is None else SubmitGameProof(certificate))
        if state.next_step == "give_clue" and self.seat.role == "master":
            path = self.folder / "secret.json"
            kept = GameSecret.read(path, self.ask)
            transcript = self.table.give_clue(
                transcript, self.key, kept, lambda record: record.replace(path, self.key, self.ask)
            )
        elif state.next_step == "make_guess" and self.seat.role == "breaker":
            # The proofs of what the guess will be about, before anybody thinks about it.
            transcript.verify(self.table.keys, self.table.verifier)
            transcript = self.table.make_guess(transcript, self.key, guess(state))
        else:
            return None
        transcript.append_to(self.folder / "transcript.json")
        return self.client.send(self.seat.game, _move(transcript, known))

    def _show(self, view: GameView, missed: Request) -> GameView:
        """Send something that the other player may be sending too."""
        try:
            return self.client.send(self.seat.game, missed)
        except RefereeError:
            now = self.client.game(self.seat.game)
            if now.events == view.events:
                raise
            return now

    def _wait(self, view: GameView) -> GameView:
        """Wait for news, or for the slot in which something changes without any."""
        silence_s = LOOK_AGAIN_S
        if view.contract.accepted and view.slot < view.contract.finalize_slot:
            left_s = (view.contract.finalize_slot - view.slot) * self.client.slot_seconds
            silence_s = min(silence_s, left_s)
        for _ in self.client.watch(self.seat.game, after=view.events - 1, silence_s=silence_s):
            break
        return self.client.game(self.seat.game)

    def _catch_up(self) -> tuple[Transcript, int]:
        """The transcript with the steps that the referee has and we had not, and how many of all it has.

        Raises:
            RejectedEvidenceError: the referee's steps are not the ones of our game, or not proved.
        """
        return self._follow(self._fetch())

    def _fetch(self) -> Transcript | _Certified:
        """What the referee shows of the game: every step, or a certificate in place of the first ones.

        Raises:
            RejectedEvidenceError: the certificate shows nothing, or there is none.
        """
        try:
            return self.client.transcript(self.seat.game)
        except WrongStateError:
            requests = [event.request for event in self.client.log(self.seat.game).events]
        for newest, shown in reversed(list(enumerate(requests))):
            if isinstance(shown, SubmitGameProof):
                return _Certified(
                    shown.certificate.verify(self.table.keys, self.table.verifier),
                    [request.step for request in requests[newest + 1 :] if isinstance(request, (MakeGuess, GiveClue))],
                )
        raise RejectedEvidenceError("the referee shows neither all steps nor a certificate", reason="other steps")

    def _follow(self, shown: Transcript | _Certified) -> tuple[Transcript, int]:
        """Bring our transcript up to what the referee shows. As `_catch_up`."""
        ours = self._transcript()
        merged, known = merge(ours, shown.continue_from(ours) if isinstance(shown, _Certified) else shown, self.table)
        if len(merged.steps) > len(ours.steps):
            merged.append_to(self.folder / "transcript.json")
        return merged, known

    def _beyond(self, shown: _Certified) -> GameState | None:
        """The game as a certificate shows it when that has a clue which has never come as a step; else None.

        A master may answer by a certificate alone. It proves the clue as well as a step would, so the game goes on
        from there; only the transcript does not.

        Raises:
            RejectedEvidenceError: it is not our game that is shown, or something later is not proved.
        """
        state, ours = shown.state, self._transcript().state()
        if ours.turn_count >= state.turn_count:
            return None
        guesses, clues = state.guesses[: len(ours.guesses)], state.clues[: len(ours.clues)]
        if replace(state, turn_count=ours.turn_count, guesses=guesses, clues=clues) != ours:
            raise RejectedEvidenceError("the referee shows other steps than were played", reason="other steps")
        keys = self.table.keys
        require_proofs(
            self.table.verifier, [(f"a later {step.step.kind}", keys.statement(step), None) for step in shown.later]
        )
        for step in shown.later:
            try:
                state = apply(state, step.step)
            except RefusedStepError as error:
                raise RejectedEvidenceError(
                    f"the referee shows a step that is refused: {error}", reason="other steps"
                ) from error
        return state

    def _certificate(self, transcript: Transcript, view: GameView) -> Certificate | None:
        """The certificate in the folder, a new one if we can make one, that shows more turns than `view`."""
        path = self.folder / "certificate.json"
        state = transcript.state()
        answered = replace(transcript, steps=transcript.steps[: 2 + 2 * len(state.clues)])
        kept = Certificate.read(path) if path.exists() else None
        newest = answered.state().turn_count
        if self.seat.role == "master" and state.clues and (kept is None or kept.turn_count < newest):
            secret = GameSecret.read(self.folder / "secret.json", self.ask)
            kept = self.table.certify(answered, self.key, secret)
            write_json(path, kept.to_json())
        return kept if kept is not None and kept.turn_count > view.contract.game.turn_count else None

    def _claim(self, view: GameView) -> GameView:
        amount = view.contract.pot
        consent = self._consent("claim_reward", amount)
        return self.client.send(self.seat.game, ClaimReward(self.key.id, amount, consent))

    def _consent(self, action: str, amount: int) -> Consent:
        return make_consent(
            self.table.key_set,
            self.table.prover,
            self.key,
            action,
            referee_id=self.seat.referee_id,
            game=self.seat.game,
            amount=amount,
        )

    def _transcript(self) -> Transcript:
        return Transcript.read(self.folder / "transcript.json")


def _move(transcript: Transcript, index: int) -> MakeGuess | GiveClue:
    """The request that shows a move to the referee."""
    step = transcript.steps[index]
    return GiveClue(step) if step.step.kind == "give_clue" else MakeGuess(step)


@contextmanager
def seated(
    folder: Path,
    key: PlayerKey,
    make_table: Callable[[Rules, str], Table],
    *,
    ask: AskPassphrase = no_passphrase,
    show: Shown = lambda _: None,
    tell: Tell = lambda _: None,
) -> Iterator[Player]:
    """Sit down in the seat of a folder; `make_table` gives the table for some rules and key set id.

    Raises:
        MalformedEvidenceError: the folder has no readable seat.
    """
    seat = Seat.read(folder)
    transcript = Transcript.read(folder / "transcript.json")
    table = make_table(transcript.rules, transcript.key_set_id)
    with RefereeClient(seat.url, tell=tell) as client:
        yield Player(seat, folder, table, key, client, ask, show)


def turn_left_s(view: GameView | MatchView, slot_seconds: int) -> float:
    """Seconds until the present turn is over; 0 when nobody is to move."""
    left = view.contract.last_played_slot + PER_TURN_SLOTS + 1 - view.slot
    return float(max(0, left) * slot_seconds) if view.contract.accepted else 0.0


def merge(ours: Transcript, theirs: Transcript, table: Table) -> tuple[Transcript, int]:
    """Our transcript with the steps that the referee has and we had not, and how many of all it has.

    Nothing is written.

    Raises:
        RejectedEvidenceError: the referee's steps are not the ones of our game, or not proved.
    """
    common = min(len(ours.steps), len(theirs.steps))
    # A proof can be made into another one of the same step by anybody who has seen it: ours stay.
    if replace(theirs, steps=()) != replace(ours, steps=()) or any(
        one.step != other.step for one, other in zip(ours.steps[:common], theirs.steps, strict=False)
    ):
        raise RejectedEvidenceError("the referee shows other steps than were played", reason="other steps")
    merged = replace(ours, steps=(*ours.steps, *theirs.steps[common:]))
    if len(theirs.steps) > len(ours.steps):
        merged.verify(table.keys, table.verifier, since=common)
    return merged, len(theirs.steps)


def has_part(key: PlayerKey, look: Callable[[], GameView | MatchView]) -> bool:
    """Whether a player has a part in the game or match that `look` asks the referee for. Raises RefereeError."""
    try:
        return key.id in look().contract.players
    except UnknownGameError:
        return False


def leave_refused(folder: Path, error: RefereeError) -> None:
    """Give the folder of a seat that the referee has refused free for another one; `error` says where a secret is.

    A secret is kept under another name: the request had its hash, and a referee that says no may have taken it.
    """
    if (folder / "secret.json").exists():
        kept = next(
            path
            for count in itertools.count(1)
            if not (path := folder.with_name(f"{folder.name}.refused-{count}")).exists()
        )
        folder.rename(kept)
        error.args = (f"{error}; the secret is kept in {kept}",)
        return
    for name in ("transcript.json", "seat.json"):
        for path in (folder / name, lock_path(folder / name)):
            path.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder that is there with all its files, or not at all. Raises InvalidInputError when it exists."""
    if folder.exists():
        raise InvalidInputError(f"{folder} exists; take another folder for another game")
    folder.parent.mkdir(parents=True, exist_ok=True)
    new = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)  # of somebody who was stopped here
    new.mkdir(mode=0o700)
    yield new
    new.rename(folder)
