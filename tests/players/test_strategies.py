"""The four strengths: legal, never losing the true code, as strong as they say, the same for the same turns."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from mastermind.errors import InvalidClueError
from mastermind.players.codes import all_codes
from mastermind.players.expert import Expert
from mastermind.players.strategies import Casual, Club, Strategy, Strong, Turn, as_code, require_standing
from mastermind.players.symmetry import representatives
from mastermind.rules import Clue, Code, Rules

CLASSIC = Rules.parse("classic")

STRENGTHS: dict[str, Callable[[Rules, int], Strategy]] = {
    "casual": lambda rules, seed: Casual(rules, random.Random(seed)),
    "club": lambda rules, seed: Club(rules, random.Random(seed)),
    "strong": lambda rules, seed: Strong(rules),
    "expert": lambda rules, seed: Expert(rules),
}


def play(
    rules: Rules, strategy: Strategy, secret: Code, known: dict[tuple[Turn, ...], Code] | None = None
) -> list[Turn]:
    """Play one secret to the end. `known` remembers guesses, for strategies that always guess alike."""
    turns: list[Turn] = []
    while not turns or turns[-1][1].hits < rules.pegs:
        key = tuple(turns)
        guess = known[key] if known is not None and key in known else strategy.guess(turns)
        if known is not None:
            known[key] = guess
        turns.append((guess, rules.score(secret, guess)))
    return turns


def totals(rules: Rules, strategy: Strategy) -> tuple[int, int]:
    """All guesses over all codes, and the longest game."""
    known: dict[tuple[Turn, ...], Code] = {}
    lengths = [len(play(rules, strategy, as_code(code), known)) for code in all_codes(rules)]
    return sum(lengths), max(lengths)


def test_strong_needs_5828_guesses_for_all_codes_and_never_more_than_six() -> None:
    assert totals(CLASSIC, Strong(CLASSIC)) == (5828, 6)


def test_expert_needs_the_published_optimum_of_5625_guesses_and_never_more_than_six() -> None:
    assert totals(CLASSIC, Expert(CLASSIC)) == (5625, 6)


def test_a_move_that_looks_at_too_much_is_cut_short_and_still_solves(monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget is counted in clues, so the guesses stay the same from run to run."""
    rules = Rules.parse("5x6u8")
    secret = (4, 1, 5, 0, 2)
    unbounded = [play(rules, Expert(rules), secret) for _ in range(2)]
    monkeypatch.setattr("mastermind.players.expert._MAX_WORK", 0)
    cut = [play(rules, Expert(rules), secret) for _ in range(2)]
    assert unbounded[0] == unbounded[1]
    assert cut[0] == cut[1]
    assert cut[0][-1][1].hits == rules.pegs


def test_club_needs_at_most_4_75_on_average_over_fixed_seeds() -> None:
    total = sum(totals(CLASSIC, Club(CLASSIC, random.Random(seed)))[0] for seed in (1, 2, 3))
    assert total / (3 * 1296) <= 4.75


@pytest.mark.parametrize("strength", ["club", "strong", "expert"])
@pytest.mark.parametrize("spelling", ["3x6r8", "3x8u8", "4x8u7", "5x6u8"])
def test_clu_7_the_true_code_always_stands(strength: str, spelling: str) -> None:
    rules = Rules.parse(spelling)
    for seed in range(4):
        secret = as_code(random.Random(seed).choice(all_codes(rules)))
        turns = play(rules, STRENGTHS[strength](rules, seed), secret)
        for count in range(len(turns)):
            codes = require_standing(rules, turns[:count])
            assert secret in {as_code(code) for code in codes}
            if strength != "expert":
                assert turns[count][0] in {as_code(code) for code in codes}


@pytest.mark.parametrize("strength", STRENGTHS)
def test_the_same_seed_plays_the_same_game(strength: str) -> None:
    rules = Rules.parse("4x6u10")
    games = [play(rules, STRENGTHS[strength](rules, 9), (4, 1, 5, 0)) for _ in range(2)]
    assert games[0] == games[1]


def test_casual_never_tries_a_code_twice() -> None:
    rules = Rules.parse("2x3r9")
    for seed in range(5):
        guesses = [guess for guess, _ in play(rules, STRENGTHS["casual"](rules, seed), (2, 2))]
        assert len(set(guesses)) == len(guesses) <= 9


@pytest.mark.parametrize("strength", ["club", "strong", "expert"])
def test_clu_8_contradicting_clues_are_named_with_their_turn(strength: str) -> None:
    turns = [((0, 0, 1, 1), Clue(1, 1)), ((2, 2, 3, 3), Clue(0, 2)), ((4, 4, 5, 5), Clue(0, 1))]
    strategy = STRENGTHS[strength](CLASSIC, 1)
    assert strategy.guess(turns[:2])
    with pytest.raises(InvalidClueError, match="turn 3"):
        strategy.guess(turns)


@pytest.mark.parametrize("guesses", [[], [(0, 0, 1)], [(0, 1, 2), (3, 0, 0)]])
@pytest.mark.parametrize("spelling", ["3x6r4", "3x6u4"])
def test_every_code_is_a_renaming_of_a_representative(spelling: str, guesses: list[Code]) -> None:
    """Brute force over all renamings of fresh colours and, before the first guess, of places."""
    import itertools

    rules = Rules.parse(spelling)
    guesses = [guess for guess in guesses if rules.repeats or len(set(guess)) == len(guess)]
    codes = all_codes(rules)
    chosen = {as_code(codes[index]) for index in representatives(rules, codes, guesses)}
    fresh = sorted(set(range(rules.colours)) - {peg for guess in guesses for peg in guess})
    reached = set()
    for order in itertools.permutations(fresh):
        renamed = dict(zip(fresh, order, strict=True))
        for code in chosen:
            pegs = tuple(renamed.get(peg, peg) for peg in code)
            reached |= set(itertools.permutations(pegs)) if not guesses else {pegs}
    assert reached == {as_code(code) for code in codes}
    assert len(chosen) < len(codes)
