"""Games of random moves, callers and clocks: credits are conserved and there is exactly one claimant."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mastermind.errors import RefereeError
from mastermind.game.steps import game_id
from mastermind.referee import contract as referee
from mastermind.referee.contract import SETTLE_SLOTS, Contract, Outcome, may_claim
from mastermind.referee.ledger import HOUSE, Transfer, player_account, post, pot_account
from mastermind.rules import Code
from tests.referee.moves import (
    BREAKER,
    MASTER,
    NONCE,
    REFEREE,
    SMALL,
    SOLUTION,
    STRANGER,
    clue_step,
    guess_step,
    join_step,
    open_step,
    shown,
)

PLAYERS = st.sampled_from([MASTER, BREAKER, REFEREE, STRANGER])
CODES = st.tuples(*[st.integers(0, SMALL.colours - 1)] * SMALL.pegs)
SUPPLY, START_CREDIT = 1_000, 100


class RefereeMachine(RuleBasedStateMachine):
    """One game at a time, from whatever anybody sends at whatever slot."""

    def __init__(self) -> None:
        super().__init__()
        self.balances = {HOUSE: SUPPLY}
        self.contract: Contract | None = None
        self.slot = 0
        self.payouts = 0
        self.secret: Code = (0, 1)

    @initialize(secret=CODES)
    def grant(self, secret: Code) -> None:
        self.secret = secret
        for player in (MASTER, BREAKER, STRANGER):
            self.balances |= post(self.balances, Transfer(HOUSE, player_account(player), START_CREDIT))

    @rule(slots=st.sampled_from([1, 2, 3, 9, SETTLE_SLOTS]))
    def time_passes(self, slots: int) -> None:
        self.slot += slots

    @rule(reward=st.integers(-1, START_CREDIT + 1))
    def init_game(self, reward: int) -> None:
        if self.contract is None:
            credit = self.balances[player_account(MASTER)]
            self._take(lambda: referee.init_game(SMALL, REFEREE, reward, open_step(), credit=credit))

    @rule(player=st.sampled_from([BREAKER, STRANGER]), reward=st.integers(1, START_CREDIT), same=st.booleans())
    def accept_game(self, player: int, reward: int, same: bool) -> None:
        contract = self.contract
        if contract is not None:
            credit, stake = self.balances[player_account(player)], contract.reward if same else reward
            step = join_step(player)
            self._take(lambda: referee.accept_game(contract, stake, step, self.slot, credit=credit))

    @rule(guess=CODES, player=PLAYERS)
    def make_guess(self, guess: Code, player: int) -> None:
        contract = self.contract
        if contract is not None and len(contract.game.guesses) < SMALL.attempts:
            step = guess_step(contract.game, guess, player)
            self._take(lambda: referee.make_guess(contract, step, self.slot))

    @rule(player=PLAYERS)
    def give_clue(self, player: int) -> None:
        contract = self.contract
        if contract is not None:
            step = clue_step(contract.game, self.secret, SOLUTION if player == MASTER else player)
            self._take(lambda: referee.give_clue(contract, step, self.slot))

    @rule(more=st.lists(CODES, max_size=SMALL.attempts))
    def submit_game_proof(self, more: list[Code]) -> None:
        contract = self.contract
        if contract is None:
            return
        guesses = [*contract.game.guesses, *more][: SMALL.attempts]
        if self.secret in guesses:
            guesses = guesses[: guesses.index(self.secret) + 1]
        if guesses:
            self._take(lambda: referee.submit_game_proof(contract, shown(contract, guesses, self.secret), self.slot))

    @rule(player=PLAYERS)
    def claim_reward(self, player: int) -> None:
        contract = self.contract
        if contract is not None:
            self._take(lambda: referee.claim_reward(contract, player, contract.pot, self.slot))

    @rule(player=PLAYERS, winner=st.sampled_from(["master", "breaker"]))
    def forfeit_win(self, player: int, winner: referee.Role) -> None:
        contract = self.contract
        if contract is not None and self.slot % 5 == 0:
            self._take(lambda: referee.forfeit_win(contract, player, winner, contract.pot))

    @rule()
    def settle(self) -> None:
        contract = self.contract
        if contract is not None:
            self._take(lambda: referee.settle(contract, self.slot))

    @invariant()
    def credits_are_conserved(self) -> None:
        assert sum(self.balances.values()) == SUPPLY
        assert min(self.balances.values()) >= 0

    @invariant()
    def the_pot_is_what_the_contract_says(self) -> None:
        held = self.balances.get(pot_account(SOLUTION), 0)
        assert held == (0 if self.contract is None else self.contract.pot)

    @invariant()
    def exactly_one_party_may_claim_in_the_end(self) -> None:
        contract = self.contract
        if contract is None or contract.closed:
            return
        claimants = []
        for player in {MASTER, REFEREE, STRANGER, BREAKER}:
            try:
                referee.claim_reward(contract, player, contract.pot, self.slot)
                claimants.append(player)
            except RefereeError:
                pass
        # One player may have joined as the breaker who is a stranger elsewhere, never two at once.
        assert len(claimants) == (may_claim(contract, self.slot) is not None)
        if contract.finalized(self.slot):
            assert len(claimants) == 1

    @invariant()
    def the_game_is_one_game(self) -> None:
        contract = self.contract
        if contract is not None and contract.accepted:
            breaker = contract.player_id("breaker")
            assert contract.game.game_id == game_id(SMALL, SOLUTION, breaker, NONCE)
            assert self.payouts <= 1

    def _take(self, act: Callable[[], Outcome[Contract]]) -> None:
        before = self.contract
        try:
            outcome = act()
        except RefereeError:
            return
        assert before is None or outcome.contract.game.turn_count >= before.game.turn_count
        for transfer in outcome.transfers:
            self.balances |= post(self.balances, transfer)
            self.payouts += transfer.source == pot_account(SOLUTION)
        self.contract = outcome.contract


TestRefereeMachine = RefereeMachine.TestCase
TestRefereeMachine.settings = settings(max_examples=100, stateful_step_count=30, deadline=None, derandomize=True)
