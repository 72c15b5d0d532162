"""The step machine alone, without proofs: total, pure, every refusal for its own reason, messages injective."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mastermind.errors import NotInFieldError, RefusedStepError
from mastermind.field import MODULUS
from mastermind.game.message import Agreement
from mastermind.game.steps import SIGNAL_COUNTS, GameState, Refusal, Step, StepKind, apply, game_id, join_message
from mastermind.poseidon import poseidon
from mastermind.rules import Clue, Code, Rules

KINDS: tuple[StepKind, ...] = ("open_game", "join_game", "make_guess", "give_clue")
HASH, MASTER, BREAKER, NONCE = 1001, 1002, 1003, 1004
#: Two attempts at two pegs: small enough to stand at every edge.
SMALL = Rules.parse("2x3r2")
HIT_AND_BLOW = Rules.parse("hit-and-blow")
CLASSIC = Rules.parse("classic")


def game_of(rules: Rules) -> int:
    """The id of the one game that is played here, put together here and not by the code under test."""
    text = f"mastermind.game.1 {rules.pegs}x{rules.colours}{'ur'[rules.repeats]}{rules.attempts} {NONCE}"
    return poseidon(HASH, BREAKER, int(hashlib.sha256(text.encode()).hexdigest()[:62], 16))


def join_of(rules: Rules) -> Step:
    return Step("join_game", (BREAKER, join_message(game_of(rules), NONCE)), NONCE)


GAME = game_of(SMALL)
OPEN = Step("open_game", (HASH, MASTER))
JOIN = join_of(SMALL)


def packed(parts: Sequence[int], bits: int) -> int:
    return sum(part << bits * index for index, part in enumerate(parts))


def guess_step(state: GameState, guess: Sequence[int]) -> Step:
    """The breaker's step that fits a state, its signals put together here and not by the code under test."""
    bits = state.rules.peg_bits
    codes = [packed(code, bits) for code in (*state.guesses, guess)]
    clues = [hits + 8 * blows for hits, blows in state.clues]
    return Step(
        "make_guess",
        (
            game_of(state.rules),
            BREAKER,
            state.turn_count,
            codes[-1],
            packed(codes, bits * state.rules.pegs),
            packed(clues, 6),
        ),
    )


def clue_step(state: GameState, clue: tuple[int, int]) -> Step:
    guess = packed(state.guesses[-1], state.rules.peg_bits)
    return Step("give_clue", (game_of(state.rules), HASH, state.turn_count, guess, clue[0] + 8 * clue[1]))


def states(rules: Rules, secret: Code, guesses: Sequence[Code]) -> list[GameState]:
    """The states of a game, from before its opening to after its last clue."""
    reached = [GameState(rules)]
    reached.append(apply(reached[-1], OPEN))
    reached.append(apply(reached[-1], join_of(rules)))
    for guess in guesses:
        reached.append(apply(reached[-1], guess_step(reached[-1], guess)))
        reached.append(apply(reached[-1], clue_step(reached[-1], rules.score(secret, guess))))
    return reached


EMPTY, OPENED, JOINED, GUESSED, ANSWERED, GUESSED_AGAIN, UNSOLVED = states(SMALL, (0, 1), [(0, 2), (1, 1)])
SOLVED = states(SMALL, (0, 1), [(0, 1)])[-1]
#: One turn played with both sets of rules in which codes have more than two pegs.
UNIQUE = states(HIT_AND_BLOW, (5, 6, 3, 4), [(5, 7, 2, 6)])
REPEATS = states(CLASSIC, (1, 2, 3, 4), [(1, 1, 2, 2)])


def outcome(state: GameState, step: Step) -> GameState | Refusal:
    """The state after a step, or why it is refused; any other exception is a fault."""
    try:
        return apply(state, step)
    except RefusedStepError as error:
        return Refusal(error.refusal)


def refusal(state: GameState, step: Step) -> Refusal | None:
    """Why a step is refused, None when it is accepted."""
    result = outcome(state, step)
    return result if isinstance(result, Refusal) else None


def with_signal(step: Step, index: int, value: Any) -> Step:
    signals = list(step.public_signals)
    signals[index] = value
    return replace(step, public_signals=tuple(signals))


#: The name of a circuit that is no step.
NO_KIND: Any = "certify_game"


class Case(NamedTuple):
    """A refused step and its accepted twin: one value differs, in the step or in the state."""

    refusal: Refusal
    state: GameState
    step: Step
    twin_state: GameState
    twin_step: Step


def changed(refused_as: Refusal, state: GameState, step: Step, index: int, value: object) -> Case:
    return Case(refused_as, state, with_signal(step, index, value), state, step)


FIRST_GUESS, SECOND_GUESS = guess_step(JOINED, (0, 2)), guess_step(ANSWERED, (1, 1))
FIRST_CLUE = clue_step(GUESSED, (1, 0))
UNIQUE_GUESS = guess_step(UNIQUE[2], (5, 7, 2, 6))

CASES = {
    "signal as bool": changed(Refusal.MALFORMED, EMPTY, Step("open_game", (1, MASTER)), 0, True),
    "signal as text": changed(Refusal.MALFORMED, EMPTY, OPEN, 0, str(HASH)),
    "signal as fraction": changed(Refusal.MALFORMED, EMPTY, OPEN, 0, float(HASH)),
    "signal of nothing": changed(Refusal.MALFORMED, EMPTY, OPEN, 1, None),
    "signal negative": changed(Refusal.MALFORMED, EMPTY, OPEN, 1, -1),
    "vin 1 signal + r": changed(Refusal.MALFORMED, GUESSED, FIRST_CLUE, 4, FIRST_CLUE.public_signals[4] + MODULUS),
    "signal r": changed(Refusal.MALFORMED, EMPTY, Step("open_game", (MODULUS - 1, MASTER)), 0, MODULUS),
    "vin 2 a signal less": Case(
        Refusal.MALFORMED,
        GUESSED,
        replace(FIRST_CLUE, public_signals=FIRST_CLUE.public_signals[:-1]),
        GUESSED,
        FIRST_CLUE,
    ),
    "a signal more": Case(
        Refusal.MALFORMED, EMPTY, replace(OPEN, public_signals=(*OPEN.public_signals, 0)), EMPTY, OPEN
    ),
    "another kind of step": Case(
        Refusal.MALFORMED, GUESSED, replace(FIRST_CLUE, kind="make_guess"), GUESSED, FIRST_CLUE
    ),
    "no kind of step": Case(Refusal.MALFORMED, EMPTY, replace(OPEN, kind=NO_KIND), EMPTY, OPEN),
    "join without nonce": Case(Refusal.MALFORMED, OPENED, replace(JOIN, nonce=None), OPENED, JOIN),
    "nonce of another step": Case(Refusal.MALFORMED, EMPTY, replace(OPEN, nonce=NONCE), EMPTY, OPEN),
    "nonce + r": Case(Refusal.MALFORMED, OPENED, replace(JOIN, nonce=NONCE + MODULUS), OPENED, JOIN),
    "opened twice": Case(Refusal.ALREADY_OPEN, OPENED, OPEN, EMPTY, OPEN),
    "join before the opening": Case(Refusal.NOT_OPEN, EMPTY, JOIN, OPENED, JOIN),
    "guess before the opening": Case(Refusal.NOT_OPEN, EMPTY, FIRST_GUESS, JOINED, FIRST_GUESS),
    "joined twice": Case(Refusal.ALREADY_JOINED, JOINED, JOIN, OPENED, JOIN),
    "guess before the join": Case(Refusal.NOT_JOINED, OPENED, FIRST_GUESS, JOINED, FIRST_GUESS),
    "join by another": changed(Refusal.WRONG_MESSAGE, OPENED, JOIN, 0, BREAKER + 1),
    "join to another message": changed(Refusal.WRONG_MESSAGE, OPENED, JOIN, 1, JOIN.public_signals[1] + 1),
    "join with another nonce": Case(Refusal.WRONG_MESSAGE, OPENED, replace(JOIN, nonce=NONCE + 1), OPENED, JOIN),
    "join of another opening": Case(Refusal.WRONG_MESSAGE, replace(OPENED, solution_hash=HASH + 1), JOIN, OPENED, JOIN),
    "rep 2 guess of another game": changed(Refusal.WRONG_GAME, JOINED, FIRST_GUESS, 0, GAME + 1),
    "rep 2 clue of another game": changed(Refusal.WRONG_GAME, GUESSED, FIRST_CLUE, 0, GAME + 1),
    "guess of another player": changed(Refusal.WRONG_PLAYER, JOINED, FIRST_GUESS, 1, BREAKER + 1),
    "guess after the solution": Case(
        Refusal.GAME_OVER, replace(ANSWERED, clues=(Clue(2, 0),)), SECOND_GUESS, ANSWERED, SECOND_GUESS
    ),
    "guess twice": Case(Refusal.OUT_OF_TURN, GUESSED, FIRST_GUESS, JOINED, FIRST_GUESS),
    "rep 1 answered twice": Case(Refusal.OUT_OF_TURN, ANSWERED, FIRST_CLUE, GUESSED, FIRST_CLUE),
    "rep 6 guess of an earlier turn": changed(Refusal.WRONG_TURN_COUNT, ANSWERED, SECOND_GUESS, 2, 1),
    "guess of a later turn": changed(Refusal.WRONG_TURN_COUNT, ANSWERED, SECOND_GUESS, 2, 5),
    "rep 6 clue of an earlier turn": changed(
        Refusal.WRONG_TURN_COUNT, GUESSED_AGAIN, clue_step(GUESSED_AGAIN, (1, 0)), 2, 2
    ),
    "colour beyond the last": changed(Refusal.ILLEGAL_GUESS, JOINED, FIRST_GUESS, 3, packed((0, 3), 3)),
    "colour twice": changed(Refusal.ILLEGAL_GUESS, UNIQUE[2], UNIQUE_GUESS, 3, packed((5, 7, 2, 5), 3)),
    "guess of a peg more": changed(Refusal.ILLEGAL_GUESS, JOINED, FIRST_GUESS, 3, packed((0, 2, 1), 3)),
    "other guess history": changed(
        Refusal.WRONG_GUESS_HISTORY, ANSWERED, SECOND_GUESS, 4, SECOND_GUESS.public_signals[4] + 1
    ),
    "guess in another turn's slot": changed(
        Refusal.WRONG_GUESS_HISTORY, JOINED, FIRST_GUESS, 4, FIRST_GUESS.public_signals[4] << 6
    ),
    "other clue history": changed(
        Refusal.WRONG_CLUE_HISTORY, ANSWERED, SECOND_GUESS, 5, SECOND_GUESS.public_signals[5] + 1
    ),
    "rep 4 clue about another secret": changed(Refusal.WRONG_SOLUTION, GUESSED, FIRST_CLUE, 1, HASH + 1),
    "clue to another guess": changed(Refusal.WRONG_GUESS, GUESSED, FIRST_CLUE, 3, packed((1, 2), 3)),
    "clu 5 one hit and one blow of two": changed(Refusal.IMPOSSIBLE_CLUE, GUESSED, FIRST_CLUE, 4, 1 + 8),
    "clu 5 three hits of two": changed(Refusal.IMPOSSIBLE_CLUE, GUESSED, FIRST_CLUE, 4, 3),
    "clue of more than six bits": changed(Refusal.IMPOSSIBLE_CLUE, GUESSED, FIRST_CLUE, 4, 1 + 64),
    "a guess missing": Case(
        Refusal.IMPOSSIBLE_STATE, replace(ANSWERED, guesses=()), SECOND_GUESS, ANSWERED, SECOND_GUESS
    ),
    "a clue missing": Case(Refusal.IMPOSSIBLE_STATE, replace(ANSWERED, clues=()), SECOND_GUESS, ANSWERED, SECOND_GUESS),
    "no guess to answer": Case(Refusal.IMPOSSIBLE_STATE, replace(GUESSED, guesses=()), FIRST_CLUE, GUESSED, FIRST_CLUE),
    "illegal guess in the state": Case(
        Refusal.IMPOSSIBLE_STATE, replace(GUESSED, guesses=((0, 3),)), FIRST_CLUE, GUESSED, FIRST_CLUE
    ),
    "impossible clue in the state": Case(
        Refusal.IMPOSSIBLE_STATE, replace(ANSWERED, clues=(Clue(1, 1),)), SECOND_GUESS, ANSWERED, SECOND_GUESS
    ),
    "turn count of another turn": Case(
        Refusal.IMPOSSIBLE_STATE, replace(JOINED, turn_count=3), FIRST_GUESS, JOINED, FIRST_GUESS
    ),
    "turn count as bool": Case(
        Refusal.IMPOSSIBLE_STATE, replace(JOINED, turn_count=True), FIRST_GUESS, JOINED, FIRST_GUESS
    ),
    "opened by nobody": Case(Refusal.IMPOSSIBLE_STATE, replace(OPENED, master_id=None), JOIN, OPENED, JOIN),
    "joined by nobody": Case(
        Refusal.IMPOSSIBLE_STATE, replace(JOINED, breaker_id=None), FIRST_GUESS, JOINED, FIRST_GUESS
    ),
    "joined before the opening": Case(Refusal.IMPOSSIBLE_STATE, replace(EMPTY, game_id=GAME), OPEN, EMPTY, OPEN),
}


@pytest.mark.parametrize("name", CASES)
def test_each_refusal_has_an_accepted_twin(name: str) -> None:
    case = CASES[name]
    assert refusal(case.twin_state, case.twin_step) is None
    assert refusal(case.state, case.step) == case.refusal
    # One thing wrong: either the state or the step, and of a step one part.
    # Compared as text: True is not 1 here.
    assert (repr(case.state) == repr(case.twin_state)) != (repr(case.step) == repr(case.twin_step))
    pairs = zip(case.step.public_signals, case.twin_step.public_signals, strict=False)
    assert sum(one != other for one, other in pairs) <= 1


def test_every_refusal_is_reached() -> None:
    # The two that remain are said by a player's own side, and tested where it is.
    assert {case.refusal for case in CASES.values()} | {Refusal.ANSWERED_OTHERWISE, Refusal.NOT_OVER} == set(Refusal)


@pytest.mark.parametrize(
    ("kind", "index"), [(kind, index) for kind in KINDS for index in range(SIGNAL_COUNTS[kind])], ids=str
)
def test_rep_8_each_public_signal_counts(kind: StepKind, index: int) -> None:
    """Plus one, each signal of each step is refused - but for what an opening is free to say and a clue to claim."""
    state, step = {
        "open_game": (EMPTY, OPEN),
        "join_game": (OPENED, JOIN),
        "make_guess": (ANSWERED, SECOND_GUESS),
        "give_clue": (GUESSED, FIRST_CLUE),
    }[kind]
    after = apply(state, step)
    other = with_signal(step, index, step.public_signals[index] + 1)
    if kind == "open_game" or (kind, index) == ("give_clue", 4):
        assert apply(state, other) != after
    else:
        assert refusal(state, other) is not None


@pytest.mark.parametrize("rules", ["2x3r1", "2x3r2", "2x3r3"])
def test_a_solution_with_the_last_attempt_is_the_breakers_win(rules: str) -> None:
    small = Rules.parse(rules)
    *_, last_guess, end = states(small, (0, 1), [*[(2, 2)] * (small.attempts - 1), (0, 1)])
    assert (last_guess.over, last_guess.winner, last_guess.next_step) == (False, None, "give_clue")
    assert (end.over, end.solved, end.winner, end.next_step) == (True, True, "breaker", None)
    assert end.turn_count == 2 * small.attempts + 1


@pytest.mark.parametrize("rules", ["2x3r1", "2x3r2", "2x3r3"])
def test_attempts_used_up_are_the_masters_win(rules: str) -> None:
    small = Rules.parse(rules)
    end = states(small, (0, 1), [(2, 2)] * small.attempts)[-1]
    assert (end.over, end.solved, end.winner, end.next_step) == (True, False, "master", None)
    assert refusal(end, guess_step(end, (0, 1))) == Refusal.GAME_OVER


def test_the_players_take_turns() -> None:
    waiting = [state.next_step for state in states(CLASSIC, (1, 2, 3, 4), [(1, 1, 2, 2), (4, 3, 2, 1)])]
    assert waiting == ["open_game", "join_game", "make_guess", "give_clue", "make_guess", "give_clue", "make_guess"]
    assert [state.turn_count for state in (EMPTY, OPENED, JOINED, GUESSED, ANSWERED)] == [0, 1, 1, 2, 3]


@pytest.mark.parametrize("end", [SOLVED, UNSOLVED], ids=["solved", "unsolved"])
def test_nothing_follows_the_end(end: GameState) -> None:
    for step in (OPEN, JOIN, guess_step(end, (0, 2)), clue_step(end, (1, 0))):
        assert refusal(end, step) in {Refusal.ALREADY_OPEN, Refusal.ALREADY_JOINED, Refusal.GAME_OVER}


@pytest.mark.parametrize("state", [REPEATS[3], UNIQUE[3]], ids=["repeats", "unique"])
def test_clu_5_exactly_fourteen_clues_are_possible(state: GameState) -> None:
    accepted = {
        packed for packed in range(256) if refusal(state, with_signal(clue_step(state, (0, 0)), 4, packed)) is None
    }
    possible = {hits + 8 * blows for hits in range(5) for blows in range(5 - hits)} - {3 + 8}
    assert accepted == possible
    assert len(accepted) == 14


def test_each_legal_code_can_be_guessed_and_nothing_else() -> None:
    def try_guess(code: int) -> Step:
        return replace(FIRST_GUESS, public_signals=(GAME, BREAKER, 1, code, code, 0))

    accepted = {code for code in range(1 << 9) if refusal(JOINED, try_guess(code)) is None}
    assert accepted == {first + 8 * second for first in range(3) for second in range(3)}


# Any state and any step

FITTING_VALUES = st.one_of(
    st.sampled_from([0, 1, 2, 3, 8, HASH, MASTER, BREAKER, NONCE, GAME]), st.integers(0, MODULUS - 1)
)
ODD_VALUES = st.one_of(
    st.integers(-(2**300), 2**300),
    st.sampled_from([MODULUS - 1, MODULUS, MODULUS + 1, -1]),
    st.booleans(),
    st.none(),
    st.text(max_size=2),
    st.floats(),
)
ANY_VALUES = st.one_of(FITTING_VALUES, FITTING_VALUES, ODD_VALUES)
REACHED = (EMPTY, OPENED, JOINED, GUESSED, ANSWERED, GUESSED_AGAIN, UNSOLVED, SOLVED, *UNIQUE, *REPEATS)


def fitting_step(state: GameState) -> Step:
    """A step that the state waits for; after the end, one more guess."""
    legal = tuple(range(state.rules.pegs))
    match state.next_step:
        case "open_game":
            return OPEN
        case "join_game":
            return JOIN
        case "give_clue":
            return clue_step(state, (0, state.rules.pegs))
        case _:
            return guess_step(state, legal)


@st.composite
def any_pairs(draw: st.DrawFn) -> tuple[GameState, Step]:
    """A state and a step that fit or belong to two games' states, with up to two parts replaced by anything."""
    state = draw(st.sampled_from(REACHED))
    step = fitting_step(draw(st.one_of(st.just(state), st.sampled_from(REACHED))))
    for _ in range(draw(st.integers(0, 2))):
        match draw(st.sampled_from(["signal", "signal", "signal", "signal", "state", "kind", "nonce", "signals"])):
            case "signal" if step.public_signals:
                index = draw(st.integers(0, len(step.public_signals) - 1))
                step = with_signal(step, index, draw(ANY_VALUES))
            case "kind":
                step = replace(step, kind=draw(st.sampled_from([*KINDS, "certify_game", "", None])))
            case "nonce":
                step = replace(step, nonce=draw(ANY_VALUES))
            case "signals":
                step = replace(step, public_signals=tuple(draw(st.lists(ANY_VALUES, max_size=7))))
            case _:
                state = draw(changed_states(state))
    return state, step


@st.composite
def changed_states(draw: st.DrawFn, state: GameState) -> GameState:
    """A state with one part replaced by anything."""
    name = draw(
        st.sampled_from(["master_id", "solution_hash", "breaker_id", "game_id", "turn_count", "guesses", "clues"])
    )
    pegs = st.lists(st.one_of(st.integers(0, 8), ODD_VALUES), max_size=5).map(tuple)
    clues = st.builds(Clue, st.one_of(st.integers(0, 5), ODD_VALUES), st.integers(0, 5))
    parts: dict[str, st.SearchStrategy[Any]] = {
        "turn_count": st.one_of(st.integers(0, 25), ODD_VALUES),
        "guesses": st.lists(pegs, max_size=3).map(tuple),
        "clues": st.lists(clues, max_size=3).map(tuple),
    }
    return replace(state, **{name: draw(parts.get(name, ANY_VALUES))})


@settings(max_examples=500, deadline=None, derandomize=True, database=None)
@given(any_pairs())
def test_apply_is_total_and_pure(pair: tuple[GameState, Step]) -> None:
    state, step = pair
    # Compared as text: NaN is not itself.
    before = repr(pair)
    after = outcome(state, step)
    assert outcome(state, step) == after
    if isinstance(after, GameState):
        assert after.turn_count == state.turn_count + (step.kind != "join_game")
        assert after.rules == state.rules
        # What has been accepted is a possible state again, and its views agree.
        assert refusal(after, OPEN) == Refusal.ALREADY_OPEN
        assert (after.next_step is None) == after.over == (after.winner is not None)
        assert (after.winner == "breaker") == after.solved
    assert repr(pair) == before


# What a player agrees to

ACTIONS = ("join_game", "join_gam", "claim_reward", "j")
AMOUNTS = st.integers(0, 2**64 - 1)
ELEMENTS = st.integers(0, MODULUS - 1)


def test_the_message_is_the_documented_encoding() -> None:
    encoded = b"\x16mastermind.authorise.1\x09join_game"
    encoded += (7).to_bytes(32, "big") + (5).to_bytes(32, "big") + (6).to_bytes(32, "big") + (8).to_bytes(8, "big")
    message = Agreement("join_game", game=5, nonce=6, referee=7, amount=8).message()
    assert message == int(hashlib.sha256(encoded).hexdigest()[:62], 16)
    # Pinned: a contract has to compute the same.
    assert message == PINNED_MESSAGE


PINNED_MESSAGE = 299649337172534236209938771969344567405301264248260933967425830020361940605


def test_joining_names_no_referee_and_no_amount() -> None:
    assert join_message(5, 6) == Agreement("join_game", 5, 6, referee=0, amount=0).message()


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(
    st.builds(Agreement, st.sampled_from(ACTIONS), ELEMENTS, ELEMENTS, ELEMENTS, AMOUNTS),
    st.sampled_from(["action", "game", "nonce", "referee", "amount"]),
    st.data(),
)
def test_agreements_that_differ_in_one_part_have_different_messages(
    one: Agreement, part: str, data: st.DataObject
) -> None:
    parts: dict[str, st.SearchStrategy[Any]] = {"action": st.sampled_from(ACTIONS), "amount": AMOUNTS}
    value = data.draw(parts.get(part, ELEMENTS).filter(lambda value: value != getattr(one, part)))
    other = replace(one, **{part: value})
    assert one.message() != other.message()
    assert 0 <= one.message() < 1 << 248


def test_no_part_can_pass_for_another() -> None:
    """The same numbers in other places, and an action cut elsewhere."""
    agreements = [
        Agreement("join_game", 1, 2, 3, 4),
        Agreement("join_game", 2, 1, 3, 4),
        Agreement("join_game", 3, 2, 1, 4),
        Agreement("join_game", 1, 3, 2, 4),
        Agreement("join_game", 4, 2, 3, 1),
        Agreement("join_game\x00", 1, 2, 3, 4),
        Agreement("", 1, 2, 3, 4),
    ]
    assert len({agreement.message() for agreement in agreements}) == len(agreements)


@pytest.mark.parametrize("part", ["game", "nonce", "referee", "amount"])
@pytest.mark.parametrize("value", [-1, MODULUS, True, None, 1.0])
def test_a_part_out_of_range_has_no_message(part: str, value: Any) -> None:
    good = Agreement("join_game", 1, 2, 3, 4)
    good.message()
    with pytest.raises(NotInFieldError):
        replace(good, **{part: value}).message()


def test_an_amount_has_64_bits() -> None:
    good = Agreement("join_game", 1, 2, 3, 2**64 - 1)
    good.message()
    with pytest.raises(NotInFieldError):
        replace(good, amount=2**64).message()


def test_rep_2_a_game_id_is_of_one_join() -> None:
    ids = {
        game_id(HIT_AND_BLOW, HASH, BREAKER, NONCE),
        game_id(HIT_AND_BLOW, HASH, BREAKER, NONCE + 1),
        game_id(HIT_AND_BLOW, HASH, BREAKER + 1, NONCE),
    }
    ids |= {game_id(HIT_AND_BLOW, HASH + 1, BREAKER, NONCE), game_id(HIT_AND_BLOW, BREAKER, HASH, NONCE)}
    assert len(ids) == 5
