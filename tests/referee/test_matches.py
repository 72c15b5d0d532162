"""Matches at the referee with real proofs, on both kinds of books, and the audit of their logs."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mastermind.errors import (
    NotThePlayerError,
    OutOfTurnError,
    ProofRejectedError,
    RefereeError,
    RejectedEvidenceError,
    ReplayError,
    UnknownGameError,
    WrongStateError,
)
from mastermind.game.duel import Duel
from mastermind.game.reveal import Reveal
from mastermind.game.secret_files import PlayerKey
from mastermind.game.transcript import Transcript
from mastermind.referee.client import RefereeClient
from mastermind.referee.contract import PER_TURN_SLOTS, SETTLE_SLOTS
from mastermind.referee.ledger import player_account, pot_account
from mastermind.referee.log import GameLog
from mastermind.referee.match import GUEST, HOST, Match
from mastermind.referee.referee import Referee
from mastermind.referee.requests import (
    ForfeitMatch,
    InitGame,
    JoinMatch,
    OpenMatch,
    Request,
    SettleMatch,
    StartMatch,
)
from mastermind.referee.service import create_app
from mastermind.zk.evidence import canonical_json
from mastermind.zk.verify import NativeVerifier
from tests.referee.serving import serving
from tests.referee.world import (
    CODES,
    REWARD,
    RULES,
    START,
    WELCOME,
    FakeClock,
    PlayedMatch,
    World,
    on_sqlite,
    play_match,
    send_to_match,
)


@pytest.fixture
def played(won_match: PlayedMatch) -> PlayedMatch:
    return won_match


@pytest.fixture(scope="module")
def drawn(world: World) -> PlayedMatch:
    """Both codes are broken in the first round."""
    return play_match(world, (CODES[GUEST], CODES[HOST]))


def refused(referee: Referee, played: PlayedMatch, request: Request, kind: type[RefereeError], refusal: str) -> None:
    """The request is refused by this class and reason, and nothing has changed."""

    def snapshot() -> Any:
        return referee.storage.look(lambda view: (view.game(played.name), view.events(played.name), view.sums()))

    before = snapshot()
    with pytest.raises(kind) as caught:
        send_to_match(referee, played, request)
    assert caught.value.refusal == refusal
    assert snapshot() == before


def credits(referee: Referee, played: PlayedMatch) -> list[int | None]:
    """Of host, guest and pot."""
    accounts = [*(player_account(seat.key.id) for seat in played.seats), pot_account(played.name)]
    return referee.storage.look(lambda view: [view.balance(account) for account in accounts])


def test_a_whole_match_is_paid_with_the_last_answer(referee: Referee, played: PlayedMatch) -> None:
    send_to_match(referee, played, played.requests[0])
    assert credits(referee, played) == [WELCOME - REWARD, None, REWARD]
    send_to_match(referee, played, played.requests[1])
    assert credits(referee, played) == [WELCOME - REWARD, WELCOME - REWARD, 2 * REWARD]
    answers = send_to_match(referee, played, *played.requests[2:])
    assert credits(referee, played) == [WELCOME + REWARD, WELCOME - REWARD, 0]
    last = json.loads(answers[-1])
    assert (last["match"], last["keys"]) == (str(played.name), "development")
    assert (last["contract"]["outcome"], last["contract"]["paid"]) == ("first_wins", [HOST])
    # REF-6: paid once, whoever asks again; and the same requests again have the same answers.
    refused(referee, played, played.claim(HOST, 0), WrongStateError, "closed")
    before = credits(referee, played)
    assert send_to_match(referee, played, *played.requests[2:]) == answers
    assert credits(referee, played) == before
    # Both codes are opened: by their owners, once.
    openings = [played.opening(player) for player in (HOST, GUEST)]
    contract = json.loads(send_to_match(referee, played, *openings)[-1])["contract"]
    assert contract["codes"] == [list(code) for code in CODES]
    refused(referee, played, played.opening(HOST), WrongStateError, "already_opened")
    shown = referee.duel_json(played.name)
    duel = Duel(*(Transcript.parse(canonical_json(game)) for game in shown["games"]))
    assert duel == played.duel
    for player, opening in enumerate(shown["openings"]):
        board = duel.boards[1 - player]
        keys = played.world.keys
        assert Reveal.parse(canonical_json(opening)).verify_against(board, keys, NativeVerifier()) == CODES[player]
    log = GameLog.parse(canonical_json(referee.log_json(played.name, "matches")))
    audited = log.audit(played.world.keys, NativeVerifier())
    assert isinstance(audited, Match)
    assert audited.codes == CODES


def test_a_draw_returns_both_stakes(referee: Referee, drawn: PlayedMatch) -> None:
    send_to_match(referee, drawn, *drawn.requests)
    assert credits(referee, drawn) == [WELCOME, WELCOME, 0]
    assert referee.storage.look(lambda view: view.games_of(drawn.seats[HOST].key.id)) == 0


def test_silence_and_abandonment(referee: Referee, played: PlayedMatch, clock: FakeClock) -> None:
    """REF-1: the guest does not answer; the host may claim after the turn, not before."""
    send_to_match(referee, played, *played.requests[:4])
    claim = played.claim(HOST)
    clock.slot = START + PER_TURN_SLOTS
    refused(referee, played, claim, WrongStateError, "nothing_to_claim")
    clock.slot += 1
    refused(referee, played, played.requests[4], WrongStateError, "too_late")
    refused(referee, played, played.claim(GUEST), NotThePlayerError, "not_the_claimant")
    stranger = PlayerKey.new()
    settle = SettleMatch(stranger.id, played.consent(stranger, "settle_match", 0))
    refused(referee, played, settle, WrongStateError, "too_early")
    clock.slot += SETTLE_SLOTS
    send_to_match(referee, played, settle)
    assert credits(referee, played) == [WELCOME + REWARD, WELCOME - REWARD, 0]
    refused(referee, played, claim, WrongStateError, "closed")
    refused(referee, played, played.opening(HOST), WrongStateError, "not_over")


@on_sqlite
def test_a_stake_is_taken_back_and_the_name_is_used_up(referee: Referee, played: PlayedMatch) -> None:
    send_to_match(referee, played, played.requests[0], played.claim(HOST, REWARD))
    assert credits(referee, played) == [WELCOME, None, 0]
    refused(referee, played, played.requests[1], WrongStateError, "closed")
    opening = played.requests[0]
    assert isinstance(opening, OpenMatch)
    again = replace(opening, consent=played.consent(HOST, "open_match", REWARD))
    refused(referee, played, again, ReplayError, "already_open")


@on_sqlite
def test_a_match_is_no_game_and_a_game_no_match(referee: Referee, played: PlayedMatch) -> None:
    """One name is taken once, and no consent for one kind is one for the other."""
    opening = played.requests[0]
    assert isinstance(opening, OpenMatch)
    as_game = InitGame(opening.rules, opening.key_set_id, opening.reward, opening.step, opening.consent)
    refused(referee, played, as_game, ProofRejectedError, "proof_rejected")
    send_to_match(referee, played, opening)
    agreed = replace(as_game, consent=played.consent(HOST, "init_game", REWARD))
    refused(referee, played, agreed, ReplayError, "already_open")
    for method, request in (("accept_game", played.requests[1]), ("settle", None)):
        content = b"{}" if request is None else canonical_json({**request.to_json()})
        with pytest.raises((UnknownGameError, ValueError)):
            referee.act(method, played.name, content)
    with pytest.raises(UnknownGameError):
        referee.game_json(played.name)
    assert referee.games_json("open", 10, None)["games"] == []
    assert [found["match"] for found in referee.games_json("open", 10, None, "matches")["matches"]] == [
        str(played.name)
    ]
    assert referee.player_json(played.seats[HOST].key.id)["games"] == 1


@on_sqlite
def test_agreements_are_about_this_very_match(referee: Referee, played: PlayedMatch, world: World) -> None:
    """Every one with one thing else: the untouched request is accepted afterwards."""
    _, join, start, *_ = played.requests
    assert isinstance(join, JoinMatch)
    assert isinstance(start, StartMatch)
    send_to_match(referee, played, played.requests[0])
    # Another opening of the guest's own, perhaps of a code that has been opened since.
    older = world.table.open_game(played.seats[GUEST].key, CODES[GUEST])[0].steps[0]
    refused(referee, played, replace(join, opening=older), ProofRejectedError, "proof_rejected")
    rejoined = world.table.join_game(
        Transcript(RULES, world.keys.id, played.duel.games[GUEST].steps[:1]), played.seats[GUEST].key
    ).steps[1]
    refused(referee, played, replace(join, step=rejoined), ProofRejectedError, "proof_rejected")
    refused(referee, played, replace(join, reward=REWARD + 1), ProofRejectedError, "proof_rejected")
    action = JoinMatch.action(join.opening.step, join.step.step)
    elsewhere = replace(join, consent=played.consent(GUEST, action, REWARD, name=5))
    refused(referee, played, elsewhere, ProofRejectedError, "proof_rejected")
    of_another = replace(join, consent=played.consent(HOST, action, REWARD))
    refused(referee, played, of_another, ProofRejectedError, "proof_rejected")
    send_to_match(referee, played, join)
    # An older joining step of the host's own: the guest may have it from another match with the same code.
    older = world.table.join_game(
        Transcript(RULES, world.keys.id, played.duel.games[HOST].steps[:1]), played.seats[HOST].key
    ).steps[1]
    refused(referee, played, replace(start, step=older), ProofRejectedError, "proof_rejected")
    refused(referee, played, played.requests[3], OutOfTurnError, "out_of_turn")
    send_to_match(referee, played, start)
    key = world.referee_key
    forfeit = ForfeitMatch(key.id, GUEST, 2 * REWARD, played.consent(key, ForfeitMatch.action(HOST), 2 * REWARD))
    refused(referee, played, forfeit, ProofRejectedError, "proof_rejected")
    send_to_match(referee, played, replace(forfeit, winner=HOST))
    assert credits(referee, played) == [WELCOME + REWARD, WELCOME - REWARD, 0]


def test_over_http(world: World, played: PlayedMatch, tmp_path: Path) -> None:
    referee = world.referee(f"sqlite:///{tmp_path / 'books.db'}", clock=FakeClock(START))
    with serving(create_app(referee)) as http, RefereeClient(str(http.base_url), patience_s=0) as client:
        for number, request in enumerate(played.requests):
            view = client.send_to_match(played.name, request)
            assert (view.events, view.keys) == (number + 1, "development")
            assert client.match(played.name).contract == view.contract
        assert client.matches("playing") == []
        assert [found.contract for found in client.matches("closed")] == [view.contract]
        seen = [found.events for found in client.watch_match(played.name, silence_s=1)]
        assert seen == list(range(1, len(played.requests) + 1))
        assert client.duel(played.name).duel == played.duel
        assert client.log(played.name, "matches").audit(world.keys, NativeVerifier()) == view.contract
        with pytest.raises(UnknownGameError):
            client.game(played.name)
        with pytest.raises(UnknownGameError):
            client.match(5)
    world.close()


@pytest.fixture(scope="module")
def honest(world: World, won_match: PlayedMatch, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The log of a whole match, both codes opened."""
    referee = world.referee(f"sqlite:///{tmp_path_factory.mktemp('log') / 'books.db'}", clock=FakeClock(START))
    send_to_match(referee, won_match, *won_match.requests, won_match.opening(HOST), won_match.opening(GUEST))
    log = referee.log_json(won_match.name, "matches")
    world.close()
    return log


def _event(number: int, change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    return lambda log: change(log["events"][number])


def _swap_guesses(log: dict[str, Any]) -> None:
    requests = [log["events"][number] for number in (3, 5)]
    requests[0]["request"], requests[1]["request"] = requests[1]["request"], requests[0]["request"]


def _late(log: dict[str, Any]) -> None:
    for event in log["events"][4:]:
        event["slot"] += PER_TURN_SLOTS + 1


TAMPERED: dict[str, tuple[Callable[[dict[str, Any]], None], int, str]] = {
    "a packed state": (_event(4, lambda event: event.update(packed="1")), 4, "other_state"),
    "the order of guesses": (_swap_guesses, 3, "wrong_game"),
    "an answer after its slots": (
        _late,
        4,
        "too_late",
    ),
    "another stake": (_event(1, lambda event: event["request"].update(reward=11)), 1, "proof_rejected"),
    "an opened code": (_event(7, lambda event: event["request"]["public"].__setitem__(3, "9")), 7, "proof_rejected"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_log_that_differs_in_one_value_is_rejected(honest: dict[str, Any], world: World, name: str) -> None:
    change, step, reason = TAMPERED[name]
    log = copy.deepcopy(honest)
    change(log)
    with pytest.raises(RejectedEvidenceError) as caught:
        GameLog.parse(canonical_json(log)).audit(world.keys, NativeVerifier())
    assert (caught.value.step, caught.value.reason) == (step, reason)
    assert GameLog.parse(canonical_json(honest)).to_json() == honest
