"""Whole games: with real proofs under the named rules, and random ones under random rules against `rules` itself."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mastermind.errors import RefusedStepError
from mastermind.field import MODULUS
from mastermind.game.circuits import (
    MINIMUM_SALT,
    authorise_inputs,
    certify_game_inputs,
    give_clue_inputs,
    make_guess_inputs,
    open_game_inputs,
    specs,
)
from mastermind.game.steps import GameState, Refusal, Step, apply, game_id, join_message
from mastermind.poseidon import poseidon
from mastermind.rules import NAMED_RULES, Clue, Code, Rules
from mastermind.zk import binfile
from mastermind.zk.artifacts import ArtifactStore, KeySet
from mastermind.zk.circuit import CircuitSpec
from mastermind.zk.r1cs import R1cs
from mastermind.zk.testing.circuits import Build, Circuits
from mastermind.zk.tools import Toolchain
from mastermind.zk.verify import NativeVerifier
from mastermind.zk.witness import WitnessCalculator
from tests.game.games import Played

NATIVE = NativeVerifier()

# Real proofs under the named rules


@pytest.mark.parametrize(
    ("name", "rules", "turns", "winner"),
    [
        ("short_game", "hit-and-blow", 2, "breaker"),
        ("late_game", "hit-and-blow", 7, "breaker"),
        ("lost_game", "hit-and-blow", 7, "master"),
        ("classic_game", "classic", 4, "breaker"),
        pytest.param("deluxe_game", "deluxe", 12, "breaker", marks=pytest.mark.thorough),
    ],
)
def test_a_whole_game_with_real_proofs(
    name: str, rules: str, turns: int, winner: str, request: pytest.FixtureRequest
) -> None:
    game: Played = request.getfixturevalue(name)
    table, secret = game.table, game.kept.secret
    state = game.transcript.verify(table.keys, NATIVE)
    assert state.rules == Rules.parse(rules)
    assert len(game.transcript.steps) == 2 + 2 * turns
    assert state.clues == tuple(state.rules.score(secret, guess) for guess in state.guesses)
    assert state.winner == winner
    assert game.kept.answered == state.guesses
    assert table.certify(game.transcript, game.master, game.kept).verify(table.keys, NATIVE) == state
    opened = table.reveal(game.transcript, game.master, game.kept)
    assert opened.verify(game.transcript, table.keys, NATIVE) == secret
    with pytest.raises(RefusedStepError) as caught:
        table.make_guess(game.transcript, game.breaker, secret)
    assert caught.value.refusal == Refusal.GAME_OVER


@pytest.mark.parametrize(
    ("guess", "secret", "clue"),
    [
        ((4, 1, 1, 1), (1, 1, 2, 3), Clue(1, 1)),
        ((0, 0, 0, 0), (1, 1, 2, 3), Clue(0, 0)),
        ((2, 1, 3, 1), (1, 1, 2, 3), Clue(1, 3)),
    ],
)
def test_clu_1_and_clu_2_repeated_colours_are_proved_once(
    guess: Code, secret: Code, clue: Clue, classic_game: Played
) -> None:
    state = classic_game.transcript.state()
    assert classic_game.kept.secret == secret
    assert state.clues[state.guesses.index(guess)] == clue


# Random games under random rules: witnesses and constraints, no proofs

#: Few codes, so that solutions are found; repeats and none; a number of colours that is no power of two.
SMALL_RULES = ("2x3r3", "3x4u2", pytest.param("4x6r2", marks=pytest.mark.thorough))


@dataclass(frozen=True)
class Circuit:
    """A circuit whose witnesses are judged by the constraints alone."""

    spec: CircuitSpec
    calculator: WitnessCalculator
    r1cs: R1cs

    def public(self, inputs: Mapping[str, object]) -> tuple[int, ...]:
        """The public signals of the statement that these inputs make; its witness satisfies every constraint."""
        witness = binfile.split_elements(self.calculator.calculate(self.spec.check_inputs(inputs)))
        assert self.r1cs.unsatisfied(witness) is None
        return tuple(witness[1 : self.r1cs.public_count + 1])


@dataclass(frozen=True)
class Proving:
    """The circuits of some rules, and how many games are played with them."""

    rules: Rules
    circuits: Mapping[str, Circuit]
    games: int

    def public(self, name: str, inputs: Mapping[str, object]) -> tuple[int, ...]:
        return self.circuits[name].public(inputs)


@pytest.fixture(scope="module", params=[*SMALL_RULES, *NAMED_RULES])
def proving(
    request: pytest.FixtureRequest,
    toolchain: Toolchain,
    store: ArtifactStore,
    build_key_set: Callable[[Rules], KeySet],
) -> Proving:
    rules = Rules.parse(request.param)
    if request.param in NAMED_RULES:
        built = build_key_set(rules).circuits.values()
        circuits = [
            Circuit(one.spec, WitnessCalculator(one.wasm.read_bytes(), one.spec.name), R1cs.read(one.r1cs))
            for one in built
        ]
        return Proving(rules, {circuit.spec.name: circuit for circuit in circuits}, games=2)
    under_test = Circuits(toolchain, store.home)
    under_test.compile(specs(rules), [Build.SHIPPING])
    compiled = [under_test.load(spec).shipping for spec in specs(rules)]
    return Proving(rules, {one.spec.name: Circuit(one.spec, one.calculator, one.r1cs) for one in compiled}, games=8)


def all_codes(rules: Rules) -> list[Code]:
    codes = itertools.product(range(rules.colours), repeat=rules.pegs)
    return [code for code in codes if rules.repeats or len(set(code)) == rules.pegs]


def crossed_out(secret: Code, guess: Code) -> Clue:
    """Score as people do at the board."""
    left = [(s, g) for s, g in zip(secret, guess, strict=True) if s != g]
    common = Counter(s for s, _ in left) & Counter(g for _, g in left)
    return Clue(len(secret) - len(left), common.total())


def packed(parts: Sequence[int], bits: int) -> int:
    return sum(part << bits * index for index, part in enumerate(parts))


@dataclass(frozen=True)
class Deal:
    """What is drawn for one game."""

    secret: Code
    guesses: tuple[Code, ...]
    salt: int
    master: int
    breaker: int
    nonce: int


@st.composite
def deals(draw: st.DrawFn, rules: Rules) -> Deal:
    codes = st.sampled_from(all_codes(rules))
    secret = draw(codes)
    # The solution is drawn often enough to be found on the last attempt too.
    guesses = draw(st.lists(st.one_of(codes, codes, st.just(secret)), min_size=1, max_size=rules.attempts))
    if secret in guesses:
        guesses = guesses[: guesses.index(secret) + 1]
    element = st.integers(0, MODULUS - 1)
    salt = draw(st.integers(MINIMUM_SALT, MODULUS - 1))
    return Deal(secret, tuple(guesses), salt, draw(element), draw(element), draw(element))


def test_random_games_agree_with_the_rules(proving: Proving) -> None:
    @settings(max_examples=proving.games, deadline=None, derandomize=True, database=None)
    @given(deals(proving.rules))
    def play_one(deal: Deal) -> None:
        play_with_witnesses(proving, deal)

    play_one()


def play_with_witnesses(proving: Proving, deal: Deal) -> None:
    """Play a game; every public signal must be what this computes from the rules."""
    rules = proving.rules
    bits, code_bits = rules.peg_bits, rules.peg_bits * rules.pegs
    commitment = poseidon(packed(deal.secret, bits), deal.salt, deal.master)
    master_id, breaker_id = poseidon(deal.master), poseidon(deal.breaker)
    state = GameState(rules)

    public = proving.public("open_game", open_game_inputs(rules, deal.secret, deal.salt, deal.master))
    assert public == (commitment, master_id)
    state = apply(state, Step("open_game", public))

    game = game_id(rules, commitment, breaker_id, deal.nonce)
    public = proving.public("authorise", authorise_inputs(deal.breaker, join_message(game, deal.nonce)))
    assert public[0] == breaker_id
    state = apply(state, Step("join_game", public, deal.nonce))

    standing = all_codes(rules)
    clues: list[Clue] = []
    for turn, guess in enumerate(deal.guesses):
        guesses = deal.guesses[: turn + 1]
        history = packed([packed(code, bits) for code in guesses], code_bits)
        inputs = make_guess_inputs(rules, game_id=game, guesses=guesses, clues=clues, key=deal.breaker)
        public = proving.public("make_guess", inputs)
        clue_history = packed([hits + 8 * blows for hits, blows in clues], 6)
        assert public == (game, breaker_id, 2 * turn + 1, packed(guess, bits), history, clue_history)
        state = apply(state, Step("make_guess", public))

        clue = crossed_out(deal.secret, guess)
        assert clue == rules.score(deal.secret, guess)
        inputs = give_clue_inputs(
            rules,
            game_id=game,
            turn_count=2 * turn + 2,
            guess=guess,
            secret=deal.secret,
            salt=deal.salt,
            key=deal.master,
        )
        public = proving.public("give_clue", inputs)
        assert public == (game, commitment, 2 * turn + 2, packed(guess, bits), clue.hits + 8 * clue.blows)
        state = apply(state, Step("give_clue", public))
        clues.append(clue)

        # CLU-7: true clues never rule out the true code.
        standing = [code for code in standing if rules.score(code, guess) == clue]
        assert deal.secret in standing

        inputs = certify_game_inputs(
            rules, game_id=game, guesses=guesses, secret=deal.secret, salt=deal.salt, key=deal.master
        )
        public = proving.public("certify_game", inputs)
        clue_history = packed([hits + 8 * blows for hits, blows in clues], 6)
        solved = int(guess == deal.secret)
        assert public == (game, commitment, master_id, 2 * turn + 3, history, clue_history, solved)

    assert (state.guesses, state.clues) == (deal.guesses, tuple(clues))
    assert state.solved == (deal.guesses[-1] == deal.secret)
    if state.solved:
        assert state.winner == "breaker"
    else:
        assert state.winner == ("master" if len(deal.guesses) == rules.attempts else None)


@pytest.mark.parametrize("solved", [True, False])
def test_the_last_attempt_decides(proving: Proving, solved: bool) -> None:
    """All attempts but one wrong, the last one right or wrong, for each of the rules."""
    rules = proving.rules
    secret, wrong = all_codes(rules)[0], all_codes(rules)[-1]
    guesses = [*[wrong] * (rules.attempts - 1), secret if solved else wrong]
    inputs = certify_game_inputs(rules, game_id=5, guesses=guesses, secret=secret, salt=MINIMUM_SALT, key=7)
    public = proving.public("certify_game", inputs)
    assert public[3] == 2 * rules.attempts + 1
    assert public[6] == solved
    state = GameState(
        rules,
        master_id=public[2],
        solution_hash=public[1],
        breaker_id=1,
        game_id=5,
        turn_count=public[3],
        guesses=tuple(guesses),
        clues=tuple(rules.score(secret, guess) for guess in guesses),
    )
    assert state.over
    assert state.winner == ("breaker" if solved else "master")
