"""A player at a match: silence, steps that come too late, and a referee that is not honest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mastermind.errors import InvalidInputError, RejectedEvidenceError, WrongKeySetError, WrongStateError
from mastermind.game.duel import Duel, Outcome, Player
from mastermind.game.secret_files import GameSecret, PlayerKey
from mastermind.game.steps import GameState
from mastermind.referee.client import DuelRecord, MatchView, RefereeClient
from mastermind.referee.contract import PER_TURN_SLOTS
from mastermind.referee.duel_seat import Duellist, DuelSeat, seated_at_duel, take_guest_seat, take_host_seat
from mastermind.referee.match import GUEST, HOST, PLAYER_NAMES
from mastermind.referee.service import create_app
from mastermind.rules import Code
from tests.referee.serving import serving
from tests.referee.world import CODES, REWARD, WELCOME, WRONG, FakeClock, World


class Stopped(Exception):
    """A player who leaves when asked for a guess."""


def leave(_: GameState) -> Code:
    raise Stopped


class Evening:
    """A referee that is served, and two players with their folders."""

    def __init__(self, world: World, folder: Path, stack: ExitStack) -> None:
        self.world, self.folder, self.stack = world, folder, stack
        self.clock = FakeClock()
        self.keys = PlayerKey.new(), PlayerKey.new()
        referee = world.referee(f"sqlite:///{folder / 'books.db'}", clock=self.clock)
        self.url = str(stack.enter_context(serving(create_app(referee))).base_url)
        self.client = stack.enter_context(RefereeClient(self.url, tries=1))

    def sit(self, player: Player) -> Duellist:
        folder = self.folder / PLAYER_NAMES[player]
        return self.stack.enter_context(seated_at_duel(folder, self.keys[player], lambda *_: self.world.table))

    def begin(self) -> tuple[Duellist, Duellist]:
        """Both seats taken; the match is open, and the guest has joined it: the host is to begin."""
        table, info = self.world.table, self.client.info()
        seat = take_host_seat(self.folder / "host", table, self.keys[HOST], self.url, info, REWARD, CODES[HOST])
        host = self.sit(HOST)
        view = host._arrive()
        take_guest_seat(self.folder / "guest", table, self.keys[GUEST], self.client, info, view, CODES[GUEST])
        guest = self.sit(GUEST)
        assert guest._arrive().contract.accepted
        assert seat.match == guest.seat.match
        return host, guest

    def turn_passes(self) -> None:
        self.clock.slot += PER_TURN_SLOTS + 1


@pytest.fixture
def evening(world: World, tmp_path: Path) -> Iterator[Evening]:
    with ExitStack() as stack:
        yield Evening(world, tmp_path, stack)
    world.close()


def test_the_other_player_is_silent(evening: Evening) -> None:
    """REF-2: whoever waits has the pot, by itself; neither code is opened, then or later."""
    host, guest = evening.begin()
    with pytest.raises(Stopped):
        host.play(leave)
    evening.turn_passes()
    ended = guest.play(leave)
    assert (ended.view.contract.paid, ended.codes) == ((GUEST,), (None, None))
    assert host.play(leave).codes == (None, None)
    assert [evening.client.credits(key.id) for key in evening.keys] == [WELCOME - REWARD, WELCOME + REWARD]
    assert not list(evening.folder.rglob("*-code.json"))


def test_a_step_that_comes_too_late_is_refused_and_opens_nothing(evening: Evening) -> None:
    """The last answer is made, and not sent in time: for the host the duel is decided, for the referee it is not."""
    host, guest = evening.begin()
    with pytest.raises(Stopped):
        host.play(leave)
    view = host._act(evening.client.match(host.seat.match), lambda _: WRONG)
    for player, guess in ((guest, WRONG), (guest, CODES[HOST])):
        assert view is not None
        view = player._act(view, lambda _, guess=guess: guess)  # type: ignore[misc]
    duel, _ = host._catch_up()
    answered = host.own.answer(duel).games[GUEST]
    answered.append_to(evening.folder / "host" / "their-guesses.json")
    evening.turn_passes()
    with pytest.raises(WrongStateError) as caught:
        host.play(leave)
    assert caught.value.refusal == "too_late"
    assert guest.play(leave).view.contract.paid == (GUEST,)
    ended = host.play(leave)
    assert ended.codes == (None, None)
    assert ended.view.contract.codes == (None, None)


def test_an_answer_is_in_the_secret_file_before_it_is_sent(evening: Evening, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guest is stopped between making and sending it; the same one is sent afterwards."""
    host, guest = evening.begin()
    with pytest.raises(Stopped):
        host.play(leave)
    host._act(evening.client.match(host.seat.match), lambda _: WRONG)

    def unplugged(*_: object) -> MatchView:
        raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr(Duellist, "_send", unplugged)
        with pytest.raises(Stopped):
            guest.play(leave)
    assert GameSecret.read(evening.folder / "guest" / "secret.json").answered == (WRONG,)
    again = evening.sit(GUEST)
    with pytest.raises(Stopped):
        again.play(leave)  # asked for a guess: the answer has been accepted
    assert len(evening.client.match(host.seat.match).contract.boards[HOST].clues) == 1


class LyingClient:
    """A client whose referee shows something else."""

    def __init__(self, honest: RefereeClient, **lies: Callable[..., Any]) -> None:
        self._honest, self._lies = honest, lies

    def __getattr__(self, name: str) -> Any:
        return self._lies.get(name) or getattr(self._honest, name)


def test_a_referee_that_calls_an_open_match_closed_gets_no_code(evening: Evening) -> None:
    host, _ = evening.begin()
    with pytest.raises(Stopped):
        host.play(leave)
    view = evening.client.match(host.seat.match)
    closed = replace(view, contract=replace(view.contract, pot=0, paid=(HOST,)))
    assert closed.contract.outcome is Outcome.ONGOING
    sent: list[object] = []
    lies = {"match": lambda _: closed, "send_to_match": lambda *request: sent.append(request)}
    ended = replace(host, client=LyingClient(host.client, **lies)).play(leave)  # type: ignore[arg-type]
    assert (ended.codes, sent) == ((None, None), [])


@pytest.mark.parametrize("lie", ["swapped games", "unproved step", "another referee"])
def test_a_referee_that_shows_other_steps(evening: Evening, lie: str) -> None:
    host, _ = evening.begin()
    with pytest.raises(Stopped):
        host.play(leave)
    honest = host.client.duel(host.seat.match).duel
    swapped = Duel(honest.second, honest.first)
    proof = honest.first.steps[0].proof
    steps = *honest.second.steps[:1], replace(honest.second.steps[1], proof=proof)
    forged = Duel(honest.first, replace(honest.second, steps=steps))
    lies: dict[str, Callable[..., Any]] = {
        "swapped games": lambda _: DuelRecord(swapped, (None, None)),
        "unproved step": lambda _: DuelRecord(forged, (None, None)),
    }
    client = LyingClient(host.client, duel=lies.get(lie, host.client.duel))
    if lie == "another referee":
        host = replace(host, seat=replace(host.seat, referee_id=5))
        with pytest.raises(WrongKeySetError):
            host.play(leave)
    else:
        with pytest.raises(RejectedEvidenceError):
            replace(host, client=client).play(leave)  # type: ignore[arg-type]


def test_a_folder_is_taken_once_and_read_back(evening: Evening) -> None:
    host, guest = evening.begin()
    assert DuelSeat.read(evening.folder / "host") == host.seat
    assert DuelSeat.read(evening.folder / "guest") == guest.seat
    with pytest.raises(InvalidInputError):
        take_host_seat(
            evening.folder / "host",
            evening.world.table,
            evening.keys[HOST],
            evening.url,
            evening.client.info(),
            1,
            WRONG,
        )
