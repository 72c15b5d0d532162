"""The rules of the referee: every state, method and caller at small size, clocks, and the packed state."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mastermind.errors import (
    InsufficientCreditError,
    InvalidInputError,
    NotThePlayerError,
    OutOfTurnError,
    ProofRejectedError,
    RefereeError,
    ReplayError,
    WrongStateError,
)
from mastermind.game.steps import Step
from mastermind.referee import contract as rules_of
from mastermind.referee.contract import (
    MAX_REWARD,
    PER_TURN_SLOTS,
    SETTLE_SLOTS,
    Contract,
    Outcome,
    Role,
    accept_game,
    claim_reward,
    forfeit_win,
    give_clue,
    init_game,
    make_guess,
    may_claim,
    pack_game_state,
    require_turn_time,
    settle,
    submit_game_proof,
)
from mastermind.referee.ledger import Transfer, player_account, pot_account
from tests.referee.moves import (
    BREAKER,
    MASTER,
    REFEREE,
    SECRET,
    SMALL,
    SOLUTION,
    STRANGER,
    WRONG,
    clue_step,
    guess_step,
    join_step,
    open_step,
    shown,
)

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "mina_packing.json").read_text("utf-8"))
REWARD, START = 50, 1_000
FINALIZE = START + 2 * SMALL.attempts * PER_TURN_SLOTS + 1
CALLERS = {"master": MASTER, "breaker": BREAKER, "referee": REFEREE, "stranger": STRANGER}

#: Every shape that a game of two attempts can have, by the moves since it was accepted.
STAGES: dict[str, tuple[str, ...]] = {
    "opened": (),
    "accepted": (),
    "guessed": ("wrong",),
    "answered": ("wrong", "clue"),
    "solved": ("right", "clue"),
    "guessed last": ("wrong", "clue", "wrong"),
    "guessed last, right": ("wrong", "clue", "right"),
    "used up": ("wrong", "clue", "wrong", "clue"),
    "solved last": ("wrong", "clue", "right", "clue"),
}
#: Slots that matter, counted from the last move: the turn's last slot and the one after, the finalize slot, settling.
SLOTS: dict[str, Callable[[int], int]] = {
    "in turn": lambda last: last + PER_TURN_SLOTS,
    "late": lambda last: last + PER_TURN_SLOTS + 1,
    "before the end": lambda _: FINALIZE - 1,
    "at the end": lambda _: FINALIZE,
    "before settling": lambda _: FINALIZE + SETTLE_SLOTS - 1,
    "settling": lambda _: FINALIZE + SETTLE_SLOTS,
}


def stage(name: str, *, paid: bool = False) -> Contract:
    contract = init_game(SMALL, REFEREE, REWARD, open_step(), credit=REWARD).contract
    if name != "opened":
        contract = accept_game(contract, REWARD, join_step(), START, credit=REWARD).contract
    for move in STAGES[name]:
        if move == "clue":
            contract = give_clue(contract, clue_step(contract.game), START).contract
        else:
            step = guess_step(contract.game, SECRET if move == "right" else WRONG)
            contract = make_guess(contract, step, START).contract
    return replace(contract, pot=0) if paid else contract


def refusal(act: Callable[[], Outcome[Contract]]) -> str | None:
    try:
        act()
    except RefereeError as error:
        return error.refusal
    return None


def running(name: str, paid: bool, slot: int) -> str | None:
    """What a move or a certificate meets first."""
    if name == "opened":
        return "not_accepted"
    if name.startswith("solved"):
        return "solved"
    if name == "used up":
        return "attempts_used"
    if paid:
        return "closed"
    return "finalized" if slot >= FINALIZE else None


def expected_move(name: str, paid: bool, slot: int, kind: str, caller: str) -> str | None:
    on_move = {"accepted": "make_guess", "answered": "make_guess"}.get(name, "give_clue")
    found = running(name, paid, slot)
    if found is None and kind != on_move:
        found = "out_of_turn"
    if found is None and slot > START + PER_TURN_SLOTS:
        found = "too_late"
    if found is None and caller != {"make_guess": "breaker", "give_clue": "master"}[kind]:
        found = "wrong_player"
    return found


def expected_claimant(name: str, slot: int) -> str | None:
    if name in ("opened", "used up"):
        return "master"
    if name.startswith("solved"):
        return "breaker"
    if slot < FINALIZE:
        return None
    return "breaker" if name.startswith("guessed") else "master"


@pytest.mark.parametrize("paid", [False, True])
@pytest.mark.parametrize("when", SLOTS)
@pytest.mark.parametrize("name", STAGES)
def test_every_method_and_caller_in_every_state(name: str, when: str, paid: bool) -> None:
    contract, slot = stage(name, paid=paid), SLOTS[when](START)
    for caller, player in CALLERS.items():
        mine = {"make_guess": guess_step(contract.game, WRONG, player)} if len(contract.game.guesses) < 2 else {}
        # Whoever is not the master cannot prove a clue about the master's solution hash, only about another.
        mine["give_clue"] = clue_step(contract.game, solution_hash=SOLUTION if caller == "master" else player)
        for kind, step in mine.items():
            act = make_guess if kind == "make_guess" else give_clue
            found = expected_move(name, paid, slot, kind, caller)
            assert refusal(partial(act, contract, step, slot)) == found, (caller, kind)

        found = None
        if name != "opened":
            found = "already_accepted"
        elif paid:
            found = "closed"
        step = join_step(player)
        assert refusal(partial(accept_game, contract, REWARD, step, slot, credit=REWARD)) == found

        claimant = expected_claimant(name, slot)
        found = "closed" if paid else "nothing_to_claim" if claimant is None else None
        if found is None and caller != claimant:
            found = "not_the_claimant"
        assert refusal(partial(claim_reward, contract, player, contract.pot, slot)) == found

        winners: tuple[Role, Role] = ("master", "breaker")
        for winner in winners:
            found = "closed" if paid else None
            if name == "opened":
                found = "not_accepted"
            if caller != "referee":
                found = "not_the_referee"
            assert refusal(partial(forfeit_win, contract, player, winner, contract.pot)) == found

    found = running(name, paid, slot)
    certified = shown(contract, [WRONG, WRONG if name == "guessed last" else SECRET])
    assert refusal(partial(submit_game_proof, contract, certified, slot)) == found
    found = "not_accepted" if name == "opened" else "closed" if paid else None
    if found is None and slot < FINALIZE + SETTLE_SLOTS:
        found = "too_early"
    assert refusal(partial(settle, contract, slot)) == found


@pytest.mark.parametrize(("name", "when"), list(itertools.product(STAGES, SLOTS)))
def test_at_most_one_party_may_claim_and_once_final_exactly_one(name: str, when: str) -> None:
    contract, slot = stage(name), SLOTS[when](START)
    paid = [who for who, player in CALLERS.items() if not refusal(partial(_claim, contract, player, slot))]
    assert paid == [claimant for claimant in [expected_claimant(name, slot)] if claimant]
    assert (may_claim(contract, slot) is not None) or slot < FINALIZE


def _claim(contract: Contract, player: int, slot: int) -> Outcome[Contract]:
    outcome = claim_reward(contract, player, contract.pot, slot)
    assert outcome.contract.closed
    assert outcome.transfers == (Transfer(pot_account(SOLUTION), player_account(player), contract.pot),)
    return outcome


def test_the_stakes_and_slots_of_acceptance() -> None:
    opened = init_game(SMALL, REFEREE, REWARD, open_step(), credit=REWARD)
    assert opened.transfers == (Transfer(player_account(MASTER), pot_account(SOLUTION), REWARD),)
    assert opened.contract.game.turn_count == 1
    assert opened.contract.packed == REWARD | 1 << 128
    accepted = accept_game(opened.contract, REWARD, join_step(), START, credit=REWARD)
    assert accepted.transfers == (Transfer(player_account(BREAKER), pot_account(SOLUTION), REWARD),)
    assert accepted.contract.pot == 2 * REWARD
    assert (accepted.contract.finalize_slot, accepted.contract.last_played_slot) == (START + 9, START)


def test_the_clock_of_a_turn_to_the_slot() -> None:
    contract = stage("accepted")
    step = guess_step(contract.game, WRONG)
    assert make_guess(contract, step, START + 1).contract.last_played_slot == START + 1
    assert make_guess(contract, step, START + 2).contract.last_played_slot == START + 2
    with pytest.raises(WrongStateError) as caught:
        make_guess(contract, step, START + 3)
    assert caught.value.refusal == "too_late"


@pytest.mark.parametrize(("name", "winner"), [("guessed last, right", BREAKER), ("answered", MASTER)])
def test_the_clock_of_a_claim_to_the_slot(name: str, winner: int) -> None:
    contract = stage(name)
    with pytest.raises(WrongStateError) as caught:
        claim_reward(contract, winner, 2 * REWARD, FINALIZE - 1)
    assert caught.value.refusal == "nothing_to_claim"
    assert claim_reward(contract, winner, 2 * REWARD, FINALIZE).transfers
    assert claim_reward(contract, winner, 2 * REWARD, FINALIZE + 1).transfers


@pytest.mark.parametrize("reward", [0, -1, MAX_REWARD + 1, True])
def test_rewards_that_cannot_be_staked(reward: int) -> None:
    with pytest.raises(ProofRejectedError) as caught:
        init_game(SMALL, REFEREE, reward, open_step(), credit=MAX_REWARD + 1)
    assert caught.value.refusal == "illegal_reward"
    assert init_game(SMALL, REFEREE, MAX_REWARD, open_step(), credit=MAX_REWARD).contract.pot == MAX_REWARD


def test_both_stakes_need_the_credits() -> None:
    with pytest.raises(InsufficientCreditError):
        init_game(SMALL, REFEREE, REWARD, open_step(), credit=REWARD - 1)
    with pytest.raises(InsufficientCreditError):
        accept_game(stage("opened"), REWARD, join_step(), START, credit=REWARD - 1)


def test_amounts_are_what_was_agreed_to() -> None:
    for act in (
        partial(accept_game, stage("opened"), REWARD + 1, join_step(), START, credit=MAX_REWARD),
        partial(claim_reward, stage("solved"), BREAKER, REWARD, START),
        partial(forfeit_win, stage("accepted"), REFEREE, "master", REWARD),
    ):
        with pytest.raises(ProofRejectedError) as caught:
            act()
        assert caught.value.refusal == "other_amount"


def test_a_certificate_jumps_ahead_and_pays_when_the_game_is_over() -> None:
    contract = stage("accepted")
    ahead = submit_game_proof(contract, shown(contract, [WRONG]), START + 5)
    assert ahead.transfers == ()
    assert (ahead.contract.game.turn_count, ahead.contract.last_played_slot) == (3, START + 5)
    solved = submit_game_proof(ahead.contract, shown(contract, [WRONG, SECRET]), START + 6)
    assert solved.transfers == (Transfer(pot_account(SOLUTION), player_account(BREAKER), 2 * REWARD),)
    lost = submit_game_proof(contract, shown(contract, [WRONG, WRONG]), START + 6)
    assert lost.transfers == (Transfer(pot_account(SOLUTION), player_account(MASTER), 2 * REWARD),)
    assert solved.contract.closed
    assert lost.contract.closed


def test_a_certificate_over_an_unanswered_guess_must_hold_that_guess() -> None:
    contract = stage("guessed")
    assert submit_game_proof(contract, shown(contract, [WRONG]), START).contract.game.turn_count == 3
    with pytest.raises(ReplayError) as caught:
        submit_game_proof(contract, shown(contract, [(1, 1)]), START)
    assert caught.value.refusal == "other_history"


def test_a_certificate_of_an_earlier_state_is_stale() -> None:
    contract = stage("answered")
    with pytest.raises(ReplayError) as caught:
        submit_game_proof(contract, shown(contract, [WRONG]), START)
    assert caught.value.refusal == "stale"


@pytest.mark.parametrize("part", ["master_id", "breaker_id", "solution_hash", "game_id", "rules"])
def test_a_certificate_of_another_game(part: str) -> None:
    contract = stage("accepted")
    other: Any = replace(SMALL, attempts=3) if part == "rules" else 4_242
    with pytest.raises(ReplayError) as caught:
        submit_game_proof(contract, replace(shown(contract, [WRONG]), **{part: other}), START)
    assert caught.value.refusal == "wrong_game"


def test_step_refusals_have_their_classes() -> None:
    contract = stage("accepted")
    good = guess_step(contract.game, WRONG)
    cases: list[tuple[int, int, type[RefereeError], str]] = [
        (0, 9, ReplayError, "wrong_game"),
        (1, STRANGER, NotThePlayerError, "wrong_player"),
        (2, 3, OutOfTurnError, "out_of_turn"),
        (3, 1 << 12, ProofRejectedError, "unfit_step"),
        (4, 0, ProofRejectedError, "unfit_step"),
        (5, 1, ProofRejectedError, "unfit_step"),
    ]
    for index, value, error, code in cases:
        signals = list(good.public_signals)
        signals[index] = value
        with pytest.raises(error) as caught:
            make_guess(contract, Step("make_guess", tuple(signals)), START)
        assert caught.value.refusal == code
    with pytest.raises(ProofRejectedError):
        make_guess(contract, Step("give_clue", good.public_signals), START)
    assert make_guess(contract, good, START).contract.game.turn_count == 2


@pytest.mark.parametrize("state", VECTORS["states"])
def test_states_pack_to_the_digit_of_the_reference(state: dict[str, Any]) -> None:
    packed = pack_game_state(
        int(state["rewardAmount"]),
        state["finalizeSlot"],
        state["lastPlayedSlot"],
        state["turnCount"],
        state["isSolved"],
    )
    assert str(packed) == state["packed"]


@pytest.mark.parametrize("place", range(4))
def test_parts_that_do_not_fit_their_bits(place: int) -> None:
    largest = [(1 << 64) - 1, (1 << 32) - 1, (1 << 32) - 1, 255]
    assert pack_game_state(largest[0], largest[1], largest[2], largest[3], True) == (1 << 137) - 1
    largest[place] += 1
    with pytest.raises(InvalidInputError):
        pack_game_state(largest[0], largest[1], largest[2], largest[3], True)


def test_slots_shorter_than_proofs_are_refused_with_both_numbers() -> None:
    require_turn_time(50, 5.0)
    with pytest.raises(InvalidInputError, match=r"turn of 2 s .* proof takes 5\.00 s"):
        require_turn_time(1, 5.0)


def test_every_refusal_is_reached_here() -> None:
    source = "".join(path.read_text("utf-8") for path in (Path(__file__), Path(__file__).with_name("test_match.py")))
    missing = [
        name for name in rules_of.Refusal.__members__ if f'"{name.lower()}"' not in source and name != "ALREADY_OPEN"
    ]
    # A known solution hash is for the books to notice, and no credits have a class of their own.
    assert missing == ["INSUFFICIENT_CREDIT"]
