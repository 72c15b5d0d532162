"""The referee at work, with real proofs, on both kinds of books."""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from mastermind.errors import (
    InsufficientCreditError,
    InvalidInputError,
    LimitReachedError,
    MalformedEvidenceError,
    NotThePlayerError,
    OutOfTurnError,
    ProofRejectedError,
    RefereeError,
    ReplayError,
    UnknownGameError,
    WrongStateError,
)
from mastermind.game.circuits import authorise_inputs
from mastermind.game.secret_files import PlayerKey
from mastermind.referee.contract import SETTLE_SLOTS
from mastermind.referee.ledger import HOUSE, player_account, pot_account
from mastermind.referee.referee import Referee, Terms
from mastermind.referee.requests import (
    AcceptGame,
    ClaimReward,
    Consent,
    ForfeitWin,
    InitGame,
    MakeGuess,
    Request,
    SubmitGameProof,
    agreement,
)
from mastermind.referee.storage import RefereeRecord, Storage
from mastermind.zk.evidence import Proof, VerifyingKey, canonical_json
from mastermind.zk.verify import NativeVerifier
from tests.referee.world import REWARD, START, SUPPLY, WELCOME, FakeClock, PlayedGame, World, body, on_sqlite, send


def balance(referee: Referee, account: str) -> int | None:
    return referee.storage.look(lambda view: view.balance(account))


def credits(referee: Referee, key: PlayerKey) -> int:
    held = balance(referee, player_account(key.id))
    assert held is not None
    return held


def snapshot(referee: Referee, game: int) -> Any:
    """Everything about a game that could change."""
    return referee.storage.look(
        lambda view: (view.game(game), view.events(game), view.balance(pot_account(game)), view.sums())
    )


def refused(referee: Referee, played: PlayedGame, request: Request, kind: type[RefereeError], refusal: str) -> None:
    """The request is refused by this class and reason, and nothing has changed."""
    before = snapshot(referee, played.game)
    with pytest.raises(kind) as caught:
        send(referee, played, request)
    assert caught.value.refusal == refusal
    assert snapshot(referee, played.game) == before


def test_a_whole_game_moves_the_credits_and_says_what_happened(referee: Referee, solved_game: PlayedGame) -> None:
    played = solved_game
    master, breaker = played.master, played.breaker
    send(referee, played, played.requests[0])
    assert credits(referee, master) == WELCOME - REWARD
    assert balance(referee, pot_account(played.game)) == REWARD
    send(referee, played, played.requests[1])
    assert credits(referee, breaker) == WELCOME - REWARD
    assert balance(referee, pot_account(played.game)) == 2 * REWARD
    answers = send(referee, played, *played.requests[2:])
    last = json.loads(answers[-1])
    assert (last["keys"], last["contract"]["is_solved"], last["contract"]["may_claim"]) == (
        "development",
        True,
        "breaker",
    )
    refused(referee, played, played.claim(master), NotThePlayerError, "not_the_claimant")
    send(referee, played, played.claim(breaker))
    assert (credits(referee, breaker), credits(referee, master)) == (WELCOME + REWARD, WELCOME - REWARD)
    assert balance(referee, pot_account(played.game)) == 0
    assert balance(referee, HOUSE) == SUPPLY - 2 * WELCOME
    # REF-6: paid once, whoever asks again, with whatever consent.
    refused(referee, played, played.claim(breaker), WrongStateError, "closed")
    refused(referee, played, played.forfeit("master"), WrongStateError, "closed")


def test_sending_the_same_request_again_gives_the_same_answer(referee: Referee, solved_game: PlayedGame) -> None:
    played = solved_game
    requests = [*played.requests, played.claim(played.breaker)]
    first = send(referee, played, *requests)
    after = snapshot(referee, played.game)
    assert send(referee, played, *requests) == first
    assert snapshot(referee, played.game) == after


@on_sqlite
def test_a_key_in_a_request_is_ignored(referee: Referee, solved_game: PlayedGame, world: World) -> None:
    played = solved_game
    fields = {**played.requests[0].to_json(), "verification_key": world.keys.keys["open_game"].to_json()}
    answer = referee.act("init_game", None, canonical_json(fields))
    assert send(referee, played, played.requests[0]) == [answer]


def test_two_requests_at_once_have_one_effect(referee: Referee, solved_game: PlayedGame) -> None:
    """REF-8: a double click is one move, at every point of a game."""
    played = solved_game
    with ThreadPoolExecutor(6) as pool:
        for request in [*played.requests, played.claim(played.breaker)]:
            together = threading.Barrier(6)

            def act(request: Request = request, together: threading.Barrier = together) -> list[str]:
                together.wait()
                return send(referee, played, request)

            answers = [future.result() for future in [pool.submit(act) for _ in range(6)]]
            assert answers == [answers[0]] * 6
    assert len(referee.storage.look(lambda view: view.events(played.game))) == len(played.requests) + 1


@on_sqlite
def test_the_proof_made_anew_is_another_request_for_a_turn_that_is_over(
    referee: Referee, solved_game: PlayedGame, world: World
) -> None:
    """REP-1: two proofs of one statement; the second has no turn left, and the first keeps its answer."""
    played = solved_game
    answers = send(referee, played, *played.requests[:3])
    guess = played.requests[2]
    assert isinstance(guess, MakeGuess)
    again = world.table.make_guess(
        replace(played.transcript, steps=played.transcript.steps[:2]), played.breaker, played.kept.answered[0]
    ).steps[-1]
    assert again.step == guess.step.step
    assert again.proof != guess.step.proof
    refused(referee, played, MakeGuess(again), OutOfTurnError, "out_of_turn")
    assert send(referee, played, guess) == [answers[2]]


@on_sqlite
def test_steps_of_another_game_of_the_same_players_and_secret(
    referee: Referee, solved_game: PlayedGame, other_game: PlayedGame
) -> None:
    """REP-2, and REP-4: an opening names its author."""
    played = solved_game
    send(referee, played, *played.requests[:3])
    send(referee, other_game, *other_game.requests[:3])
    clue = other_game.requests[3]
    before = snapshot(referee, played.game)
    with pytest.raises(ReplayError) as caught:
        referee.act(clue.method, played.game, body(clue))
    assert caught.value.refusal == "wrong_game"
    assert snapshot(referee, played.game) == before
    send(referee, other_game, clue)


@on_sqlite
def test_an_opening_cannot_be_sent_by_somebody_else(referee: Referee, solved_game: PlayedGame, world: World) -> None:
    """REP-4: without the author's consent it opens nothing, and the author's own still does."""
    played = solved_game
    opening = played.requests[0]
    assert isinstance(opening, InitGame)
    thief = PlayerKey.new()
    stolen = replace(opening, consent=played.consent(thief, "init_game", REWARD))
    refused(referee, played, stolen, ProofRejectedError, "proof_rejected")
    send(referee, played, opening)
    # Once opened, it opens nothing a second time, with whatever consent.
    again = replace(opening, consent=played.consent(played.master, "init_game", REWARD))
    refused(referee, played, again, ReplayError, "already_open")


@on_sqlite
@pytest.mark.parametrize("part", ["action", "referee", "game", "amount", "player", "nonce"])
def test_a_consent_to_anything_else_pays_nothing(
    referee: Referee, solved_game: PlayedGame, world: World, part: str
) -> None:
    played = solved_game
    send(referee, played, *played.requests)
    good = played.claim(played.breaker)
    consents: dict[str, ClaimReward] = {
        "action": replace(good, consent=played.consent(played.breaker, "accept_game", 2 * REWARD)),
        "game": replace(good, consent=played.consent(played.breaker, "claim_reward", 2 * REWARD, game=17)),
        "amount": replace(good, consent=played.consent(played.breaker, "claim_reward", REWARD)),
        "player": replace(good, consent=played.consent(played.master, "claim_reward", 2 * REWARD)),
        "nonce": replace(good, consent=replace(good.consent, nonce=good.consent.nonce - 1)),
    }
    if part == "referee":
        other = replace(played, world=World(world.table.key_set))
        consents["referee"] = replace(good, consent=other.consent(played.breaker, "claim_reward", 2 * REWARD))
    refused(referee, played, consents[part], ProofRejectedError, "proof_rejected")
    send(referee, played, good)


def test_a_nonce_is_used_once_by_a_player(referee: Referee, solved_game: PlayedGame, other_game: PlayedGame) -> None:
    world = solved_game.world
    send(referee, solved_game, solved_game.requests[0])
    used = solved_game.requests[0]
    opening = other_game.requests[0]
    assert isinstance(used, InitGame)
    assert isinstance(opening, InitGame)
    message = agreement("init_game", world.referee_key.id, other_game.game, REWARD, used.consent.nonce).message()
    proved = world.table.prover.prove(
        world.table.key_set["authorise"], authorise_inputs(other_game.master.key, message)
    )
    again = replace(opening, consent=Consent(used.consent.nonce, proved.proof))
    refused(referee, other_game, again, ReplayError, "nonce_used")
    send(referee, other_game, opening)


@on_sqlite
@pytest.mark.parametrize("index", range(6))
def test_a_proof_of_anything_else_changes_nothing(
    referee: Referee, solved_game: PlayedGame, other_game: PlayedGame, index: int
) -> None:
    """SIL-4: the right statement at the right time under another proof, for every kind of request."""
    played = solved_game
    send(referee, played, *played.requests[:index])
    good = played.requests[index]
    fields, others = good.to_json(), played.requests[(index + 2) % 6].to_json()
    fields["step"] = {**fields["step"], "proof": others["step"]["proof"]}
    before = snapshot(referee, played.game)
    with pytest.raises(ProofRejectedError) as caught:
        referee.act(good.method, played.game, canonical_json(fields))
    assert caught.value.refusal == "proof_rejected"
    assert snapshot(referee, played.game) == before
    send(referee, played, good)


class _NeverVerifier:
    name = "native"

    def verify(self, key: VerifyingKey, public_signals: Sequence[int], proof: Proof) -> bool:
        return False


@on_sqlite
def test_with_a_verifier_that_says_no_nothing_is_accepted(
    referee: Referee, world: World, solved_game: PlayedGame, database: str, clock: FakeClock
) -> None:
    """SIL-4: no path goes round the verifier."""
    played = solved_game
    refusing = world.referee(database, clock=clock, verifier=_NeverVerifier(), create=False)
    certificate = SubmitGameProof(played.certificate(4))
    for index, request in enumerate(played.requests):
        refused(refusing, played, request, ProofRejectedError, "proof_rejected")
        if index in (2, 3):
            refused(refusing, played, certificate, ProofRejectedError, "proof_rejected")
            refused(refusing, played, played.forfeit("breaker"), ProofRejectedError, "proof_rejected")
        send(referee, played, request)
    refused(refusing, played, played.claim(played.breaker), ProofRejectedError, "proof_rejected")
    clock.slot += SETTLE_SLOTS + 100
    refused(refusing, played, played.settle(played.breaker), ProofRejectedError, "proof_rejected")


@on_sqlite
def test_malformed_requests_are_named_and_harmless(referee: Referee, solved_game: PlayedGame) -> None:
    """VIN-1, VIN-2, VIN-5, VIN-7: refused by name, and the honest request afterwards is accepted."""
    played = solved_game
    send(referee, played, *played.requests[:2])
    good = played.requests[2].to_json()
    step, proof = good["step"], good["step"]["proof"]
    signals = step["public"]
    modulus = 21888242871839275222246405745257275088548364400416034343698204186575808495617
    bad: list[tuple[str, Any]] = [
        ("body", None),
        ("step", {}),
        ("step", {"step": None}),
        ("step.public", {"step": {**step, "public": signals[:-1]}}),
        ("step.public", {"step": {**step, "public": [*signals, "0"]}}),
        ("step.public", {"step": {**step, "public": [str(int(signals[0]) + modulus), *signals[1:]]}}),
        ("step.public", {"step": {**step, "public": [2, *signals[1:]]}}),
        ("step.public", {"step": {**step, "public": ["2.0", *signals[1:]]}}),
        ("step.nonce", {"step": {**step, "nonce": "1"}}),
        ("step.step", {"step": {**step, "step": "give_clue"}}),
        ("step.proof", {"step": {**step, "proof": {**proof, "protocol": "plonk"}}}),
        ("step.proof", {"step": {**step, "proof": {**proof, "curve": "bls12381"}}}),
        ("step.proof", {"step": {**step, "proof": {**proof, "pi_a": proof["pi_a"][:2]}}}),
        ("step.proof", {"step": {**step, "proof": {key: proof[key] for key in proof if key != "pi_b"}}}),
        ("step.proof", {"step": {**step, "proof": None}}),
    ]
    before = snapshot(referee, played.game)
    for field, content in bad:
        with pytest.raises(MalformedEvidenceError) as caught:
            referee.act("make_guess", played.game, canonical_json(content))
        assert caught.value.field == field, content
    for raw in (b"", b"[", b"\xff", b'{"step": 1.5}', b'{"step": 1, "step": 2}', b"[" * 10_000, b"1" * (1 << 15)):
        with pytest.raises(MalformedEvidenceError):
            referee.act("make_guess", played.game, raw)
    assert snapshot(referee, played.game) == before
    send(referee, played, played.requests[2])


@on_sqlite
def test_unknown_games(referee: Referee, solved_game: PlayedGame) -> None:
    for request in solved_game.requests[1:]:
        with pytest.raises(UnknownGameError):
            send(referee, solved_game, request)
    for read in (referee.game_json, referee.log_json, referee.transcript_json):
        with pytest.raises(UnknownGameError):
            read(solved_game.game)


def test_credits_are_granted_by_the_house_while_it_has_them(
    world: World, database: str, solved_game: PlayedGame
) -> None:
    """A new player has the welcome besides, once; the sums stay exact."""
    referee = world.referee(database, supply=WELCOME + 50 + 7)
    master = solved_game.master
    assert referee.grant(master.id, 50) == (WELCOME + 50, False)
    assert credits(referee, master) == WELCOME + 50
    assert referee.grant(master.id, 7) == (WELCOME + 57, True)
    with pytest.raises(InsufficientCreditError):
        referee.grant(master.id, 1)
    assert credits(referee, master) == WELCOME + 57
    supply, balances, entries = referee.storage.look(lambda view: view.sums())
    assert supply == balances == entries
    send(referee, solved_game, solved_game.requests[0])
    assert credits(referee, master) == WELCOME + 57 - REWARD


def test_stakes_need_credits(world: World, database: str, solved_game: PlayedGame) -> None:
    """A player has the welcome and no more; when the house is empty, not even that."""
    referee = world.referee(database, terms=Terms(REWARD - 1, allow_development_keys=True))
    refused(referee, solved_game, solved_game.requests[0], InsufficientCreditError, "insufficient_credit")
    assert balance(referee, player_account(solved_game.master.id)) is None
    assert balance(referee, HOUSE) == SUPPLY


def test_an_empty_house_welcomes_nobody(world: World, database: str, solved_game: PlayedGame) -> None:
    referee = world.referee(database, supply=WELCOME + 3)
    send(referee, solved_game, solved_game.requests[0])
    refused(referee, solved_game, solved_game.requests[1], InsufficientCreditError, "insufficient_credit")
    assert balance(referee, HOUSE) == 3


def test_games_per_player(world: World, database: str, solved_game: PlayedGame, other_game: PlayedGame) -> None:
    terms = Terms(WELCOME, games_per_player=1, allow_development_keys=True)
    referee = world.referee(database, terms=terms)
    send(referee, solved_game, *solved_game.requests[:2])
    refused(referee, other_game, other_game.requests[0], LimitReachedError, "too_many_games")
    send(referee, solved_game, *solved_game.requests[2:], solved_game.claim(solved_game.breaker))
    send(referee, other_game, other_game.requests[0])


@on_sqlite
def test_development_keys_need_leave(world: World, database: str, solved_game: PlayedGame) -> None:
    """SET-4: an error, not a warning."""
    referee = world.referee(database, terms=Terms(WELCOME))
    refused(referee, solved_game, solved_game.requests[0], ProofRejectedError, "development_keys")


@on_sqlite
@pytest.mark.parametrize("player", ["master", "breaker"])
def test_set_6_nobody_stakes_on_keys_that_they_alone_have_made(
    world: World, database: str, solved_game: PlayedGame, player: str
) -> None:
    """Whatever the leave for development keys: among friends, the maker of the keys is one of them."""
    referee = world.referee(database)
    (keys,) = referee.key_sets.values()

    def made_by(*ids: int) -> None:
        referee.key_sets[keys.id] = replace(keys, sole_contributors=frozenset(ids))

    opening, joining = solved_game.requests[:2]
    if player == "breaker":
        send(referee, solved_game, opening)
    made_by(solved_game.master.id if player == "master" else solved_game.breaker.id)
    first = opening if player == "master" else joining
    refused(referee, solved_game, first, ProofRejectedError, "sole_contributor")
    made_by(world.referee_key.id)
    send(referee, solved_game, first)


@on_sqlite
def test_keys_that_are_not_pinned(world: World, database: str, solved_game: PlayedGame, clock: FakeClock) -> None:
    send(world.referee(database), solved_game, *solved_game.requests[:2])
    without = Referee(world.storage(database), {}, NativeVerifier(), Terms(WELCOME, allow_development_keys=True), clock)
    opening = solved_game.requests[0]
    assert isinstance(opening, InitGame)
    refused(without, solved_game, replace(opening, reward=11), ProofRejectedError, "unknown_key_set")
    refused(without, solved_game, solved_game.requests[2], ProofRejectedError, "unknown_key_set")


@on_sqlite
def test_the_referee_forfeits_and_nobody_else(referee: Referee, other_game: PlayedGame) -> None:
    played = other_game
    send(referee, played, *played.requests[:3])
    refused(referee, played, played.forfeit("breaker", key=played.breaker), NotThePlayerError, "not_the_referee")
    # The winner is part of what the referee's key has agreed to.
    turned = replace(played.forfeit("breaker"), winner="master")
    assert isinstance(turned, ForfeitWin)
    refused(referee, played, turned, ProofRejectedError, "proof_rejected")
    send(referee, played, played.forfeit("breaker"))
    assert credits(referee, played.breaker) == WELCOME + REWARD
    refused(referee, played, played.requests[3], WrongStateError, "closed")


@on_sqlite
def test_an_unanswered_guess_at_the_finalize_slot(referee: Referee, other_game: PlayedGame, clock: FakeClock) -> None:
    """REF-1, to the slot: the silent master has lost."""
    played = other_game
    send(referee, played, *played.requests)
    finalize = START + 2 * 7 * 2 + 1
    clock.slot = finalize - 1
    refused(referee, played, played.claim(played.breaker), WrongStateError, "nothing_to_claim")
    clock.slot = finalize
    refused(referee, played, played.claim(played.master), NotThePlayerError, "not_the_claimant")
    send(referee, played, played.claim(played.breaker))


@on_sqlite
def test_a_guess_that_never_comes(referee: Referee, other_game: PlayedGame, clock: FakeClock) -> None:
    """REF-2: the silent breaker has lost."""
    played = other_game
    send(referee, played, *played.requests[:4])
    clock.slot = START + 3
    refused(referee, played, played.requests[4], WrongStateError, "too_late")
    clock.slot = START + 29
    refused(referee, played, played.requests[4], WrongStateError, "finalized")
    send(referee, played, played.claim(played.master))
    assert credits(referee, played.master) == WELCOME + REWARD


@on_sqlite
def test_a_game_that_nobody_joins(referee: Referee, other_game: PlayedGame) -> None:
    """REF-2: the master has the stake back, once, and then nobody can join any more."""
    played = other_game
    send(referee, played, played.requests[0])
    refused(referee, played, played.claim(played.breaker, REWARD), NotThePlayerError, "not_the_claimant")
    send(referee, played, played.claim(played.master, REWARD))
    assert credits(referee, played.master) == WELCOME
    refused(referee, played, played.claim(played.master, REWARD), WrongStateError, "closed")
    refused(referee, played, played.requests[1], WrongStateError, "closed")


@on_sqlite
def test_a_game_that_both_have_left(referee: Referee, other_game: PlayedGame, clock: FakeClock) -> None:
    """REF-5, REF-9: after the overall deadline anyone has the pot paid, once, and all sums are as before."""
    played, stranger = other_game, PlayerKey.new()
    send(referee, played, *played.requests[:2])
    clock.slot = START + 29 + SETTLE_SLOTS - 1
    refused(referee, played, played.settle(stranger), WrongStateError, "too_early")
    clock.slot += 1
    send(referee, played, played.settle(stranger))
    assert credits(referee, played.master) == WELCOME + REWARD
    refused(referee, played, played.settle(stranger), WrongStateError, "closed")


def test_a_certificate_stands_for_the_steps_before_it(
    referee: Referee, solved_game: PlayedGame, other_game: PlayedGame
) -> None:
    """REP-6, and what was played elsewhere."""
    played = solved_game
    send(referee, played, *played.requests[:3])
    refused(referee, played, SubmitGameProof(other_game.certificate(4)), ReplayError, "wrong_game")
    send(referee, played, played.requests[3])
    refused(referee, played, SubmitGameProof(played.certificate(4)), ReplayError, "stale")
    send(referee, played, SubmitGameProof(played.certificate()))
    assert credits(referee, played.breaker) == WELCOME + REWARD
    with pytest.raises(WrongStateError) as caught:
        referee.transcript_json(played.game)
    assert caught.value.refusal == "steps_missing"


@on_sqlite
def test_a_game_whose_clock_goes_back(referee: Referee, solved_game: PlayedGame, clock: FakeClock) -> None:
    """Clocks of several machines differ: a game's slots never go back."""
    played = solved_game
    send(referee, played, *played.requests[:2])
    clock.slot = START - 5
    answers = send(referee, played, *played.requests[2:])
    assert [json.loads(answer)["slot"] for answer in answers] == [START] * 4


@on_sqlite
def test_a_move_in_the_last_slot_of_a_turn(referee: Referee, solved_game: PlayedGame, clock: FakeClock) -> None:
    played = solved_game
    send(referee, played, *played.requests[:2])
    for request in played.requests[2:]:
        clock.slot += 2
        send(referee, played, request)


def test_books_are_made_once(world: World, database: str) -> None:
    world.referee(database)
    with pytest.raises(InvalidInputError, match="already has"):
        world.referee(database)
    assert world.storage(database).record() == RefereeRecord(world.referee_key.id, 180, SUPPLY)


@pytest.mark.parametrize("url", ["nonsense", "mysql://x/y", "oracle://x"])
def test_urls_of_no_books(url: str) -> None:
    with pytest.raises(InvalidInputError):
        Storage(url)


def test_a_url_that_is_none_shows_nothing_of_its_password() -> None:
    Storage("postgresql://u:p%40ss%3Aw0rd@h/db").close()
    with pytest.raises(InvalidInputError) as refusal:
        Storage("postgresql://u:p@ss:w0rd@h/db")
    assert "w0rd" not in "".join(traceback.format_exception(refusal.value)).replace(
        '"postgresql://u:p@ss:w0rd@h/db"', ""
    )


def test_accepting_twice(referee: Referee, solved_game: PlayedGame, world: World) -> None:
    """Two breakers at once: one has joined, the other keeps the credits."""
    played = solved_game
    send(referee, played, played.requests[0])
    opened = replace(played.transcript, steps=played.transcript.steps[:1])
    rivals = [PlayerKey.new() for _ in range(2)]
    requests = []
    for rival in rivals:
        joined = world.table.join_game(opened, rival)
        requests.append(AcceptGame(REWARD, joined.steps[1], played.consent(rival, "accept_game", REWARD)))
    together = threading.Barrier(2)

    def act(request: Request) -> str:
        together.wait()
        try:
            send(referee, played, request)
        except WrongStateError as error:
            return error.refusal
        return "accepted"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(act, requests)) == ["accepted", "already_accepted"]
    assert sorted(balance(referee, player_account(rival.id)) or 0 for rival in rivals) == [0, WELCOME - REWARD]
