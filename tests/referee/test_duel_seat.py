"""A player at a match: silence, steps that come too late, and a referee that is not honest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
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
from mastermind.rules import Code, Rules
from tests.referee.serving import BadLine, serving
from tests.referee.world import CODES, REWARD, WELCOME, WRONG, FakeClock, PlayedMatch, World

NONE = None, None


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
        self.client = stack.enter_context(RefereeClient(self.url, patience_s=0))

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
        assert DuelSeat.read(self.folder / "guest") == guest.seat
        assert guest.seat == replace(seat, player=GUEST)
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
    assert (ended.view.contract.paid, ended.codes) == ((GUEST,), NONE)
    assert host.play(leave).codes == NONE
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
    assert ended.codes == NONE
    assert ended.view.contract.codes == NONE


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


def test_a_referee_that_is_not_honest(evening: Evening) -> None:
    """It gets no code by calling an open match closed, and no move for steps without proof or of another match."""
    host, guest = evening.begin()
    with pytest.raises(Stopped):
        host.play(leave)

    def told(player: Duellist, **lies: Callable[..., Any]) -> Duellist:
        return replace(player, client=LyingClient(player.client, **lies))  # type: ignore[arg-type]

    view = evening.client.match(host.seat.match)
    closed = replace(view, contract=replace(view.contract, pot=0, paid=(HOST,)))
    assert closed.contract.outcome is Outcome.ONGOING
    sent: list[object] = []
    assert told(host, match=lambda _: closed, send_to_match=lambda *new: sent.append(new)).play(leave).codes == NONE
    assert sent == []

    honest = host.client.duel(host.seat.match).duel
    swapped = Duel(honest.second, honest.first)
    with pytest.raises(RejectedEvidenceError) as caught:
        told(host, duel=lambda _: DuelRecord(swapped, NONE)).play(leave)
    assert caught.value.reason == "other steps"
    forged = replace(honest.first.steps[1], proof=honest.second.steps[1].proof)  # new to the guest
    unproved = Duel(replace(honest.first, steps=(honest.first.steps[0], forged)), honest.second)
    with pytest.raises(RejectedEvidenceError) as caught:
        told(guest, duel=lambda _: DuelRecord(unproved, NONE)).play(leave)
    assert caught.value.reason == "invalid proof"
    with pytest.raises(WrongKeySetError):
        replace(host, seat=replace(host.seat, referee_id=5)).play(leave)
    with pytest.raises(Stopped):
        told(host, duel=lambda _: DuelRecord(honest, NONE)).play(leave)


@pytest.mark.parametrize("lie", ["other rules", "another player's opening"])
def test_one_false_answer_does_not_stand_in_the_way_of_true_ones(
    evening: Evening, won_match: PlayedMatch, lie: str
) -> None:
    """Told to a host who has seen nothing of the guest's game yet."""
    host, _ = evening.begin()
    honest = host.client.duel(host.seat.match).duel
    assert len(honest.first.steps) == 1
    false = {
        "other rules": replace(honest.first, rules=Rules.parse("classic"), steps=()),
        "another player's opening": replace(honest.first, steps=won_match.duel.first.steps[:1]),
    }[lie]
    liar = LyingClient(host.client, duel=lambda _: DuelRecord(Duel(false, honest.second), NONE))
    with pytest.raises(RejectedEvidenceError):
        replace(host, client=liar)._catch_up()  # type: ignore[arg-type]
    assert host._catch_up() == (honest, None)


def test_a_stake_is_taken_back_while_nobody_has_joined(evening: Evening) -> None:
    table, info = evening.world.table, evening.client.info()
    take_host_seat(evening.folder / "host", table, evening.keys[HOST], evening.url, info, REWARD, CODES[HOST])
    host = evening.sit(HOST)
    host._arrive()
    assert evening.client.credits(evening.keys[HOST].id) == WELCOME - REWARD
    assert host.claim().contract.closed
    assert evening.client.credits(evening.keys[HOST].id) == WELCOME
    assert host.play(leave).codes == NONE
    with pytest.raises(InvalidInputError):
        take_host_seat(evening.folder / "host", table, evening.keys[HOST], evening.url, info, REWARD, CODES[HOST])


def test_a_duel_over_a_line_that_fails_all_the_time(evening: Evening, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both go on by themselves, to the opened codes."""
    monkeypatch.setattr("mastermind.referee.client.MAX_PAUSE_S", 0.01)
    players = [
        replace(
            player,
            client=evening.stack.enter_context(RefereeClient(evening.url, transport=BadLine(), patience_s=0)),
        )
        for player in evening.begin()
    ]
    with ThreadPoolExecutor() as pool:
        games = [
            pool.submit(player.play, lambda _, guess=guess: guess)  # type: ignore[misc]
            for player, guess in zip(players, (CODES[GUEST], WRONG), strict=True)
        ]
        for game in games:
            ended = game.result(60)
            assert (ended.view.contract.paid, ended.codes) == ((HOST,), CODES)
