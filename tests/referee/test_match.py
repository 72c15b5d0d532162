"""The rules of a match: every ending and pattern, every method and caller in every state, and random matches."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mastermind.errors import InsufficientCreditError, MalformedEvidenceError, RefereeError
from mastermind.game.duel import Outcome as Result
from mastermind.game.duel import Player, other
from mastermind.game.reveal import opening_signals
from mastermind.packing import pack_code
from mastermind.referee.contract import PER_TURN_SLOTS, SETTLE_SLOTS, Outcome
from mastermind.referee.ledger import HOUSE, Transfer, player_account, post, pot_account
from mastermind.referee.log import match_json, read_match
from mastermind.referee.match import (
    GUEST,
    HOST,
    Match,
    claim_match,
    forfeit_match,
    join_match,
    may_claim,
    open_code,
    open_match,
    play_step,
    settle_match,
    start_match,
)
from mastermind.rules import Code
from tests.referee.moves import (
    BREAKER,
    MASTER,
    REFEREE,
    SMALL,
    SOLUTION,
    STRANGER,
    WRONG,
    clue_step,
    guess_step,
    join_step,
    open_step,
)

REWARD, START = 50, 1_000
IDS = (MASTER, BREAKER)
HASHES = (SOLUTION, 888)
CODES: tuple[Code, Code] = ((0, 1), (1, 0))
CALLERS = (MASTER, BREAKER, REFEREE, STRANGER)
POT = pot_account(SOLUTION)


def opened() -> Match:
    return open_match(SMALL, REFEREE, REWARD, open_step(), credit=REWARD).contract


def joined(match: Match) -> Match:
    return join_match(match, REWARD, open_step(BREAKER, HASHES[GUEST]), join_step(), START, credit=REWARD).contract


def started(match: Match) -> Match:
    return start_match(match, MASTER, join_step(MASTER, HASHES[GUEST]), START).contract


def moved(match: Match, right: bool, slot: int = START) -> Outcome[Match]:
    """The move that is due; a guess is right or wrong, an answer is true."""
    assert match.next_move is not None
    player, kind = match.next_move
    if kind == "give_clue":
        return play_step(match, clue_step(match.boards[other(player)], CODES[player]), slot)
    guess = CODES[other(player)] if right else WRONG
    return play_step(match, guess_step(match.boards[player], guess, IDS[player]), slot)


def refusal(act: Callable[[], object]) -> str | None:
    try:
        act()
    except RefereeError as error:
        return error.refusal
    return None


@pytest.mark.parametrize(("host", "guest"), list(itertools.product([0, 1, None], repeat=2)))
def test_every_pattern_of_who_breaks_when_pays_the_pot_once(host: int | None, guest: int | None) -> None:
    """The round in which each breaks the other's code; None: never. Nobody is paid before its foot."""
    match = started(joined(opened()))
    deciding = min((turn for turn in (host, guest) if turn is not None), default=SMALL.attempts - 1)
    moves: list[Outcome[Match]] = []
    while (move := match.next_move) is not None:
        breaks = (host, guest)[move[0]] == len(match.boards[move[0]].guesses)
        moves.append(moved(match, breaks))
        match = moves[-1].contract
    assert len(moves) == 4 * (deciding + 1)
    assert all(outcome.transfers == () and not outcome.contract.closed for outcome in moves[:-1])
    if host == guest:
        paid = [(MASTER, REWARD), (BREAKER, REWARD)]
        assert match.outcome is (Result.NOBODY_BROKE if host is None else Result.BOTH_BROKE)
    elif guest is None or (host is not None and host < guest):
        paid = [(MASTER, 2 * REWARD)]
        assert match.outcome is Result.FIRST_WINS
    else:
        paid = [(BREAKER, 2 * REWARD)]
        assert match.outcome is Result.SECOND_WINS
    assert moves[-1].transfers == tuple(Transfer(POT, player_account(player), amount) for player, amount in paid)
    assert [IDS[player] for player in match.paid] == [player for player, _ in paid]
    assert (match.pot, match.closed) == (0, True)


def test_stakes_are_equal_and_go_into_one_pot() -> None:
    opening = open_match(SMALL, REFEREE, REWARD, open_step(), credit=REWARD)
    assert opening.transfers == (Transfer(player_account(MASTER), POT, REWARD),)
    join = partial(join_match, opening.contract, opening=open_step(BREAKER, 888), step=join_step(), slot=START)
    outcome = join(REWARD, credit=REWARD)
    assert outcome.transfers == (Transfer(player_account(BREAKER), POT, REWARD),)
    assert (outcome.contract.pot, outcome.contract.players) == (2 * REWARD, (MASTER, BREAKER))
    assert refusal(partial(join, REWARD - 1, credit=REWARD)) == "other_amount"
    with pytest.raises(InsufficientCreditError):
        join(REWARD, credit=REWARD - 1)
    with pytest.raises(InsufficientCreditError):
        open_match(SMALL, REFEREE, REWARD, open_step(), credit=REWARD - 1)
    assert refusal(lambda: open_match(SMALL, REFEREE, 0, open_step(), credit=REWARD)) == "illegal_reward"


def test_nobody_brings_in_steps_of_others() -> None:
    match = opened()

    def join(opening: int, joining: int, solution_hash: int = SOLUTION) -> str | None:
        steps = open_step(opening, 888), join_step(joining, solution_hash)
        return refusal(lambda: join_match(match, REWARD, *steps, START, credit=REWARD))

    assert join(BREAKER, BREAKER) is None
    assert join(STRANGER, BREAKER) == "wrong_player"
    assert join(BREAKER, STRANGER) == "wrong_player"
    assert join(MASTER, MASTER) == "same_player"
    assert join(BREAKER, BREAKER, 888) == "unfit_step"
    waiting = joined(match)
    assert refusal(lambda: start_match(waiting, MASTER, join_step(MASTER, 888), START)) is None
    assert refusal(lambda: start_match(waiting, BREAKER, join_step(BREAKER, 888), START)) == "wrong_player"
    assert refusal(lambda: start_match(waiting, MASTER, join_step(STRANGER, 888), START)) == "wrong_player"
    assert refusal(lambda: start_match(waiting, MASTER, join_step(MASTER, SOLUTION), START)) == "unfit_step"
    # A step of one of the two games does not fit the other.
    match = started(waiting)
    assert refusal(lambda: play_step(match, guess_step(match.boards[HOST], WRONG, MASTER), START)) is None
    assert refusal(lambda: play_step(match, guess_step(match.boards[HOST], WRONG, BREAKER), START)) == "wrong_player"
    assert refusal(lambda: play_step(match, guess_step(match.boards[GUEST], WRONG, MASTER), START)) == "wrong_game"
    match = moved(match, right=False).contract
    copied = clue_step(match.boards[HOST], CODES[GUEST], HASHES[HOST])
    assert refusal(lambda: play_step(match, copied, START)) == "wrong_player"


#: Every shape of a match: how many moves have been made since it was started, and whether the host's guesses are right.
STAGES: dict[str, Callable[[], Match]] = {
    "opened": opened,
    "joined": lambda: joined(opened()),
    **{
        f"{count} moves{', right' if right else ''}": partial(lambda count, right: after(count, right), count, right)
        for right in (False, True)
        for count in range(9 if not right else 5)
    },
}
SLOTS = {
    "in turn": START + PER_TURN_SLOTS,
    "late": START + PER_TURN_SLOTS + 1,
    "before settling": START + PER_TURN_SLOTS + SETTLE_SLOTS,
    "settling": START + PER_TURN_SLOTS + SETTLE_SLOTS + 1,
}


def after(count: int, right: bool) -> Match:
    match = started(joined(opened()))
    for _ in range(count):
        assert match.next_move is not None
        match = moved(match, right and match.next_move[0] == HOST).contract
    return match


@pytest.mark.parametrize("when", SLOTS)
@pytest.mark.parametrize("name", STAGES)
def test_every_method_and_caller_in_every_state(name: str, when: str) -> None:
    match, slot = STAGES[name](), SLOTS[when]
    late = slot > START + PER_TURN_SLOTS
    move = match.next_move
    first = "not_accepted" if name == "opened" else "closed" if match.closed else None
    assert (move is None) == (first is not None), "exactly one player is to move in a match that runs"

    claimant = None
    if name == "opened":
        claimant = MASTER
    elif move is not None and late:
        claimant = IDS[other(move[0])]
    for player in CALLERS:
        found = "closed" if match.closed else None
        if found is None and player != claimant:
            found = "nothing_to_claim" if claimant is None else "not_the_claimant"
        assert refusal(partial(claim_match, match, player, match.pot, slot)) == found
        if found is None:
            assert refusal(partial(claim_match, match, player, match.pot - 1, slot)) == "other_amount"
        for winner in (HOST, GUEST):
            found = first if player == REFEREE else "not_the_referee"
            assert refusal(partial(forfeit_match, match, player, winner, match.pot)) == found
            if found is None:
                assert refusal(partial(forfeit_match, match, player, winner, 1)) == "other_amount"
    settling = None if when == "settling" else "too_early"
    assert refusal(partial(settle_match, match, slot)) == (first or settling)

    steps = {
        "join_game": join_step(MASTER, 888),
        "make_guess": guess_step(match.boards[GUEST], WRONG, BREAKER) if len(match.boards[GUEST].guesses) < 2 else None,
        "give_clue": clue_step(match.boards[HOST], CODES[GUEST]) if match.boards[HOST].guesses else None,
    }
    mine = {"make_guess": GUEST, "give_clue": GUEST, "join_game": HOST}
    for kind, step in steps.items():
        if step is not None:
            found = first
            if move is not None:
                found = "out_of_turn" if kind != move[1] else "too_late" if late else None
                if found is None and mine[kind] != move[0]:
                    found = "wrong_game"
            act = partial(start_match, match, MASTER) if kind == "join_game" else partial(play_step, match)
            assert refusal(partial(act, step, slot)) == found, kind

    found = None if name == "opened" else "already_accepted"
    attempt = partial(join_match, match, REWARD, open_step(STRANGER, 999), join_step(STRANGER), slot, credit=REWARD)
    assert refusal(attempt) == found
    assert read_match(match_json(match, slot)) == match


def test_a_closed_match_can_not_be_joined() -> None:
    match = claim_match(opened(), MASTER, REWARD, START).contract
    assert match.paid == (HOST,)
    assert refusal(lambda: joined(match)) == "closed"


def test_silence_counts_against_the_side_to_move() -> None:
    """REF-1 and REF-2: whoever it is, at whichever move; not a slot too early."""
    matches = [joined(opened()), *(after(count, False) for count in range(8))]
    for match in matches:
        assert match.next_move is not None
        silent = match.next_move[0]
        assert may_claim(match, START + PER_TURN_SLOTS) is None
        assert may_claim(match, START + PER_TURN_SLOTS + 1) == other(silent)
        paid = claim_match(match, IDS[other(silent)], 2 * REWARD, START + PER_TURN_SLOTS + 1)
        assert paid.transfers == (Transfer(POT, player_account(IDS[other(silent)]), 2 * REWARD),)
        assert paid.contract.outcome is Result.ONGOING
        assert refusal(partial(open_code, paid.contract, (0,) * 5)) == "not_over"


def test_codes_are_opened_after_the_end_once_each_by_their_owner() -> None:
    match = after(4, True)
    signals = {player: opening_signals(match.boards[other(player)], CODES[player]) for player in (HOST, GUEST)}
    for player in (HOST, GUEST):
        right = signals[player]
        assert refusal(partial(open_code, after(3, True), right)) == "not_over"
        assert refusal(partial(open_code, match, (5, *right[1:]))) == "wrong_game"
        assert refusal(partial(open_code, match, (right[0], 5, *right[2:]))) == "wrong_game"
        # The answer to a guess is no opening, nor is one that is not all hits, nor one of no code.
        assert refusal(partial(open_code, match, (*right[:2], 2, *right[3:]))) == "unfit_step"
        assert refusal(partial(open_code, match, (*right[:4], 1))) == "unfit_step"
        assert refusal(partial(open_code, match, (*right[:3], 7, right[4]))) == "unfit_step"
        outcome = open_code(match, right)
        assert outcome.transfers == ()
        match = outcome.contract
        assert match.codes[player] == CODES[player]
        again = (*right[:3], pack_code(SMALL, WRONG), right[4])
        assert refusal(partial(open_code, match, again)) == "already_opened"
    assert match.codes == CODES
    assert read_match(match_json(match, START)) == match


def test_every_part_of_a_match_is_in_its_packed_state() -> None:
    match = after(4, True)
    board = match.boards[GUEST]
    others = [
        replace(match, pot=1),
        replace(match, last_played_slot=1),
        replace(match, paid=(GUEST,)),
        replace(match, codes=(None, CODES[GUEST])),
        replace(match, boards=(match.boards[HOST], replace(board, turn_count=1, guesses=(), clues=()))),
        replace(match, boards=(board, match.boards[HOST])),
    ]
    assert len({match.packed, *(changed.packed for changed in others)}) == 1 + len(others)


@pytest.mark.parametrize(
    "change", [{"boards": [1]}, {"codes": [[0, 1]]}, {"paid": [True]}, {"paid": [2]}, {"pot": None}]
)
def test_what_is_no_match(change: dict[str, object]) -> None:
    with pytest.raises(MalformedEvidenceError):
        read_match({**match_json(after(4, True), START), **change})


SUPPLY, CREDIT = 1_000, 100
PLAYERS = st.sampled_from([MASTER, BREAKER, STRANGER])
SMALL_CODES = st.tuples(*[st.integers(0, SMALL.colours - 1)] * SMALL.pegs)


class MatchMachine(RuleBasedStateMachine):
    """One match at a time, from whatever anybody sends at whatever slot."""

    def __init__(self) -> None:
        super().__init__()
        self.balances = {HOUSE: SUPPLY}
        self.match: Match | None = None
        self.slot = 1
        self.codes: tuple[Code, Code] = CODES

    @initialize(codes=st.tuples(SMALL_CODES, SMALL_CODES), rights=st.lists(st.booleans(), max_size=4))
    def begin(self, codes: tuple[Code, Code], rights: list[bool]) -> None:
        self.codes = codes
        for player in (MASTER, BREAKER, STRANGER):
            self.balances |= post(self.balances, Transfer(HOUSE, player_account(player), CREDIT))
        self._take(lambda: open_match(SMALL, REFEREE, REWARD, open_step(), credit=CREDIT))
        self.moves_that_are_due(rights)

    @rule(slots=st.sampled_from([*[1] * 6, PER_TURN_SLOTS + 1, SETTLE_SLOTS]))
    def time_passes(self, slots: int) -> None:
        self.slot += slots

    @rule(player=PLAYERS, reward=st.sampled_from([REWARD, REWARD, REWARD + 1]))
    def join(self, player: int, reward: int) -> None:
        credit, steps = self.balances[player_account(player)], (open_step(player, 888), join_step(player))
        self._take(lambda: join_match(self.now, reward, *steps, self.slot, credit=credit))

    @rule(player=PLAYERS)
    def start(self, player: int) -> None:
        self._take(lambda: start_match(self.now, player, join_step(player, 888), self.slot))

    @rule(guess=SMALL_CODES, board=st.sampled_from([0, 1]), player=PLAYERS, right=st.booleans())
    def guess(self, guess: Code, board: Player, player: int, right: bool) -> None:
        if len(self.now.boards[board].guesses) < SMALL.attempts:
            step = guess_step(self.now.boards[board], self.codes[other(board)] if right else guess, player)
            self._take(lambda: play_step(self.now, step, self.slot))

    @rule(rights=st.lists(st.booleans(), min_size=1, max_size=4))
    def moves_that_are_due(self, rights: list[bool]) -> None:
        """By whoever has to make them, so that matches get far."""
        for right in rights:
            move = self.now.next_move
            if move is None:
                self._take(
                    lambda: join_match(self.now, REWARD, open_step(BREAKER, 888), join_step(), self.slot, credit=CREDIT)
                )
            elif move[1] == "join_game":
                self._take(lambda: start_match(self.now, MASTER, join_step(MASTER, 888), self.slot))
            elif move[1] == "give_clue":
                self.answer(other(move[0]), HASHES[move[0]])
            else:
                self.guess(WRONG, move[0], self.now.player_id(move[0]), right)

    @rule(board=st.sampled_from([0, 1]), solution_hash=st.sampled_from([*HASHES, 5]))
    def answer(self, board: Player, solution_hash: int) -> None:
        step = clue_step(self.now.boards[board], self.codes[other(board)], solution_hash)
        self._take(lambda: play_step(self.now, step, self.slot))

    @rule(player=PLAYERS)
    def claim(self, player: int) -> None:
        self._take(lambda: claim_match(self.now, player, self.now.pot, self.slot))

    @rule(player=st.sampled_from(CALLERS), winner=st.sampled_from([0, 1]))
    def forfeit(self, player: int, winner: Player) -> None:
        if self.slot % 5 == 0:
            self._take(lambda: forfeit_match(self.now, player, winner, self.now.pot))

    @rule()
    def settle(self) -> None:
        self._take(lambda: settle_match(self.now, self.slot))

    @rule(owner=st.sampled_from([0, 1]), right=st.booleans())
    def open_a_code(self, owner: Player, right: bool) -> None:
        if self.now.boards[other(owner)].game_id is not None:
            signals = opening_signals(self.now.boards[other(owner)], self.codes[owner])
            self._take(lambda: open_code(self.now, signals if right else (*signals[:4], 0)))

    @property
    def now(self) -> Match:
        assert self.match is not None
        return self.match

    @invariant()
    def credits_are_conserved(self) -> None:
        assert sum(self.balances.values()) == SUPPLY
        assert min(self.balances.values()) >= 0

    @invariant()
    def the_pot_is_what_the_match_says(self) -> None:
        assert self.balances.get(POT, 0) == (0 if self.match is None else self.match.pot)

    @invariant()
    def an_open_match_has_one_mover_and_at_most_one_claimant(self) -> None:
        if self.match is None or self.match.closed:
            return
        claimants = [
            player
            for player in CALLERS
            if refusal(partial(claim_match, self.match, player, self.match.pot, self.slot)) is None
        ]
        assert len(claimants) == (may_claim(self.match, self.slot) is not None)
        assert (self.match.next_move is not None) == self.match.accepted
        if self.match.accepted:
            assert bool(claimants) == (self.slot > self.match.last_played_slot + PER_TURN_SLOTS)
            assert self.match.outcome is Result.ONGOING

    @invariant()
    def a_closed_match_has_one_ending(self) -> None:
        if self.match is None or not self.match.closed:
            return
        gains = {player: self.balances[player_account(player)] - CREDIT for player in (MASTER, BREAKER, STRANGER)}
        ids = [self.match.player_id(player) for player in self.match.paid]
        if len(ids) == 2 or not self.match.accepted:
            assert set(gains.values()) == {0}
        else:
            loser = next(player for player in self.match.players if player != ids[0])
            assert {player: gain for player, gain in gains.items() if gain} == {ids[0]: REWARD, loser: -REWARD}
        for code, owner in zip(self.match.codes, self.codes, strict=True):
            assert code in (None, owner)

    def _take(self, act: Callable[[], Outcome[Match]]) -> None:
        before = self.match
        try:
            outcome = act()
        except RefereeError:
            return
        for transfer in outcome.transfers:
            self.balances |= post(self.balances, transfer)
        if before is not None and before.closed:
            assert outcome.transfers == ()
            assert outcome.contract.paid == before.paid
        self.match = outcome.contract


TestMatchMachine = MatchMachine.TestCase
TestMatchMachine.settings = settings(max_examples=100, stateful_step_count=30, deadline=None, derandomize=True)
