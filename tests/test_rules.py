"""Rules, scoring and the clues that can exist, against brute force and hand-checked cases."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from mastermind.errors import InvalidClueError, InvalidCodeError, InvalidRulesError, counted
from mastermind.rules import NAMED_RULES, Clue, Code, Rules

HAND_CHECKED = [
    # secret, guess, hits, blows
    ((1, 2, 3, 4), (1, 1, 2, 2), 1, 1),
    ((1, 1, 2, 3), (4, 1, 1, 1), 1, 1),
    ((0, 0, 0, 0), (0, 0, 0, 0), 4, 0),
    ((0, 0, 1, 1), (1, 1, 0, 0), 0, 4),
    ((0, 0, 1, 1), (0, 1, 0, 1), 2, 2),
    ((0, 1, 2, 3), (4, 5, 4, 5), 0, 0),
    ((5, 5, 5, 0), (0, 5, 5, 5), 2, 2),
    ((5, 0, 5, 0), (5, 5, 5, 5), 2, 0),
    ((2, 2, 1, 1), (2, 1, 2, 2), 1, 2),
    ((3, 1, 3, 1), (1, 3, 1, 2), 0, 3),
]


def all_codes(rules: Rules) -> Iterator[Code]:
    if rules.repeats:
        return itertools.product(range(rules.colours), repeat=rules.pegs)
    return itertools.permutations(range(rules.colours), rules.pegs)


def brute_force_score(secret: Code, guess: Code) -> Clue:
    """Score by crossing pegs out, as people do at the board."""
    left = [(s, g) for s, g in zip(secret, guess, strict=True) if s != g]
    secrets, blows = [s for s, _ in left], 0
    for _, peg in left:
        if peg in secrets:
            secrets.remove(peg)
            blows += 1
    return Clue(len(secret) - len(left), blows)


@pytest.mark.parametrize(("secret", "guess", "hits", "blows"), HAND_CHECKED)
def test_clu_1_and_clu_2_a_colour_is_never_counted_twice(secret: Code, guess: Code, hits: int, blows: int) -> None:
    assert Rules.parse("classic").score(secret, guess) == (hits, blows)


@pytest.mark.parametrize("spelling", ["4x6r1", "4x6u1", "3x4r1"])
def test_the_score_agrees_with_crossing_pegs_out(spelling: str) -> None:
    rules = Rules.parse(spelling)
    codes = list(all_codes(rules))
    for secret in codes[:: max(1, len(codes) // 60)]:
        for guess in codes:
            assert rules.score(secret, guess) == brute_force_score(secret, guess)


@pytest.mark.parametrize(
    "spelling",
    ["1x2r1", "1x3u1", "2x2r1", "2x3r1", "2x3u1", "3x2r1", "3x3u1", "3x4u1", "4x2r1", "4x3r1", "4x5u1", "4x8u1"],
)
def test_clu_5_exactly_the_clues_that_exist_are_accepted(spelling: str) -> None:
    rules = Rules.parse(spelling)
    codes = list(all_codes(rules))
    # Renaming colours and moving places changes no clue, so one secret of each shape is enough.
    secrets = codes if rules.repeats else codes[:1]
    exist = {brute_force_score(secret, guess) for secret in secrets for guess in codes}
    for clue in itertools.starmap(Clue, itertools.product(range(rules.pegs + 2), repeat=2)):
        if clue in exist:
            assert rules.require_clue(clue) == clue
        else:
            with pytest.raises(InvalidClueError):
                rules.require_clue(clue)


def test_clu_5_four_pegs_have_fourteen_clues() -> None:
    rules = Rules.parse("classic")
    accepted = 0
    for hits, blows in itertools.product(range(5), repeat=2):
        try:
            rules.require_clue(Clue(hits, blows))
        except InvalidClueError:
            continue
        accepted += 1
    assert accepted == 14


@pytest.mark.parametrize(("name", "codes"), [("hit-and-blow", 1680), ("classic", 1296), ("deluxe", 32768)])
def test_named_rules_have_the_known_number_of_codes(name: str, codes: int) -> None:
    rules = NAMED_RULES[name]
    assert rules.code_count == codes == sum(1 for _ in all_codes(rules))


def test_rules_are_read_back_from_their_spelling() -> None:
    for rules in [*NAMED_RULES.values(), Rules(3, 6, True, 12), Rules(7, 64, False, 6)]:
        assert Rules.parse(rules.spelling) == rules == Rules.parse(rules.name)
    assert Rules.parse("4x8u7").name == "hit-and-blow"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "chess",
        "4x6",
        "4x6q10",
        "0x6r10",
        "4x6r0",
        "04x6r10",
        "4x6r10 ",
        "4 x6r10",
        "8x8r4",
        "4x65r4",
        "4x1r4",
        "٤x6r10",
    ],
)
def test_inp_other_spellings_are_refused(text: str) -> None:
    with pytest.raises(InvalidRulesError):
        Rules.parse(text)


def test_rules_without_repeats_need_enough_colours() -> None:
    assert Rules(4, 4, False, 1).code_count == 24
    with pytest.raises(InvalidRulesError):
        Rules(5, 4, False, 1)


def test_a_history_must_fit_the_field() -> None:
    assert Rules(4, 6, True, 21).attempts == 21  # 252 bits
    with pytest.raises(InvalidRulesError):
        Rules(4, 6, True, 22)
    assert Rules(1, 2, True, 42).attempts == 42  # clues: 252 bits
    with pytest.raises(InvalidRulesError):
        Rules(1, 2, True, 43)


@pytest.mark.parametrize("values", [(4.0, 6, True, 10), (4, True, True, 10), (4, 6, 1, 10), (4, 6, True, "10")])
def test_rules_of_the_wrong_type_are_refused(values: tuple[object, ...]) -> None:
    with pytest.raises(InvalidRulesError):
        Rules(*values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "pegs", [(0, 1, 2), (0, 1, 2, 3, 4), (0, 1, 2, 8), (0, 1, 2, -1), (0, 1, 2, 2), (0, 1, 2, True), (0, 1, 2, "3")]
)
def test_illegal_codes_are_refused(pegs: tuple[int, ...]) -> None:
    rules = Rules.parse("hit-and-blow")
    assert rules.require_code((0, 1, 2, 3)) == (0, 1, 2, 3)
    with pytest.raises(InvalidCodeError):
        rules.require_code(pegs)


def test_random_codes_are_legal_and_differ() -> None:
    for name in NAMED_RULES:
        rules = Rules.parse(name)
        drawn = {rules.require_code(rules.random_code()) for _ in range(50)}
        assert len(drawn) > 20


def test_one_thing_is_not_several() -> None:
    words = [counted(count, thing) for thing in ("blow", "guess") for count in (0, 1, 2_000)]
    assert words == ["0 blows", "1 blow", "2,000 blows", "0 guesses", "1 guess", "2,000 guesses"]
    with pytest.raises(InvalidClueError, match="3 hits and 1 blow under"):
        NAMED_RULES["classic"].require_clue(Clue(3, 1))
