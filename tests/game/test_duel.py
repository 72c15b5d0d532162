"""The duel: every ending, the order of moves, what a player may see, and a whole duel with real proofs."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest

from mastermind.errors import InvalidCodeError, NotYourCodeError, RefusedStepError, RejectedEvidenceError
from mastermind.game.duel import (
    Duel,
    Outcome,
    Player,
    Seat,
    begin,
    check_order,
    next_move,
    other,
    outcome,
    view_for,
)
from mastermind.game.play import Table
from mastermind.game.secret_files import PlayerKey
from mastermind.game.steps import GameState
from mastermind.rules import Clue, Code, Rules
from mastermind.zk.artifacts import KeySet
from mastermind.zk.prove import NativeProver
from mastermind.zk.verify import NativeVerifier

SMALL = Rules.parse("2x3r3")
MISS, SOLVED = Clue(0, 0), Clue(2, 0)


def board(clues: list[Clue], *, asked: int = 0, rules: Rules = SMALL) -> GameState:
    """A joined game with these clues and `asked` guesses waiting for one."""
    guesses: tuple[Code, ...] = ((0, 1),) * (len(clues) + asked)
    return GameState(rules, 1, 2, 3, 4, 1 + 2 * len(clues) + asked, guesses, tuple(clues))


def clues_until(broken: int | None, length: int) -> list[Clue]:
    return [SOLVED if turn == broken else MISS for turn in range(length)]


@pytest.mark.parametrize(("first", "second"), list(itertools.product([0, 1, 2, None], repeat=2)))
def test_every_pattern_of_who_breaks_when(first: int | None, second: int | None) -> None:
    """Rounds 0 .. 2 of three; None: never. The earlier round decides, the same round is a draw."""
    deciding = min((turn for turn in (first, second) if turn is not None), default=SMALL.attempts - 1)
    for rounds in range(deciding + 1):
        boards = (board(clues_until(first, rounds)), board(clues_until(second, rounds)))
        assert outcome(boards) is Outcome.ONGOING
        # Half a round decides nothing: the second player still has a guess.
        assert outcome((board(clues_until(first, rounds + 1)), boards[1])) is Outcome.ONGOING
    boards = (board(clues_until(first, deciding + 1)), board(clues_until(second, deciding + 1)))
    if first is None and second is None:
        expected = Outcome.NOBODY_BROKE
    elif first == second:
        expected = Outcome.BOTH_BROKE
    elif second is None or (first is not None and first < second):
        expected = Outcome.FIRST_WINS
    else:
        expected = Outcome.SECOND_WINS
    assert outcome(boards) is expected
    assert next_move(boards) is None


def test_the_order_of_moves_in_a_round() -> None:
    none, asked, answered = board([]), board([], asked=1), board([MISS])
    assert next_move((none, none)) == (0, "make_guess")
    assert next_move((asked, none)) == (1, "give_clue")
    assert next_move((answered, none)) == (1, "make_guess")
    assert next_move((answered, asked)) == (0, "give_clue")
    assert next_move((answered, answered)) == (0, "make_guess")
    assert next_move((replace(none, game_id=None), none)) is None


@pytest.mark.parametrize(
    "boards",
    [
        (board([]), board([], asked=1)),  # the second player first
        (board([], asked=1), board([], asked=1)),  # both at once
        (board([MISS, MISS]), board([])),  # two rounds ahead
        (board([MISS, MISS]), board([SOLVED])),  # after the decision
        (board([SOLVED]), board([MISS], asked=1)),
    ],
)
def test_games_out_of_step_are_refused(boards: tuple[GameState, GameState]) -> None:
    check_order((board([MISS], asked=1), board([MISS])))
    with pytest.raises(RejectedEvidenceError):
        check_order(boards)


@pytest.fixture(scope="module")
def table(hit_and_blow: KeySet) -> Table:
    return Table(Rules.parse("hit-and-blow"), hit_and_blow, NativeProver())


CODES: tuple[Code, Code] = (6, 1, 4, 0), (7, 4, 5, 3)


def seats(table: Table) -> tuple[Seat, Seat]:
    return Seat(table, 0, PlayerKey.new()), Seat(table, 1, PlayerKey.new())


def start(table: Table) -> tuple[tuple[Seat, Seat], Duel]:
    players = seats(table)
    openings = [seat.commit(code) for seat, code in zip(players, CODES, strict=True)]
    return players, begin(players[0], openings[0], players[1], openings[1])


def secrets_of(seat: Seat) -> list[str]:
    assert seat.kept is not None
    code = seat.kept.secret
    separators = ["", " ", ",", ", "]
    return [separator.join(map(str, code)) for separator in separators] + [str(seat.kept.salt), str(seat.key.key)]


def test_a_whole_duel_with_real_proofs_shows_nobody_the_other_code(table: Table) -> None:
    players, duel = start(table)
    wrong: Code = (0, 1, 2, 3)
    guesses: dict[Player, list[Code]] = {0: [wrong, CODES[1]], 1: [wrong, (1, 2, 3, 4)]}
    while (move := next_move(duel.boards)) is not None:
        for seat in players:
            view = json.dumps(view_for(seat.number, duel, seat))
            assert json.loads(view)["other_code"] is None
            tried = [list(guess) for guess in duel.boards[seat.number].guesses]
            if list(CODES[other(seat.number)]) not in tried:
                assert not any(secret in view for secret in secrets_of(players[other(seat.number)])), view
        player, what = move
        seat = players[player]
        idle = players[other(player)]
        with pytest.raises(RefusedStepError):
            idle.guess(duel, wrong) if what == "make_guess" else idle.answer(duel)
        duel = seat.guess(duel, guesses[player].pop(0)) if what == "make_guess" else seat.answer(duel)
    assert duel.verify(table.keys, NativeVerifier()) is Outcome.FIRST_WINS

    openings = [seat.open_code(duel) for seat in players]
    for seat, opening in zip(players, openings, strict=True):
        opened = opening.verify_against(duel.boards[other(seat.number)], table.keys, NativeVerifier())
        assert opened == CODES[seat.number]
        with pytest.raises(RejectedEvidenceError):
            opening.verify_against(duel.boards[seat.number], table.keys, NativeVerifier())
    final = view_for(0, duel, players[0], openings[1])
    assert (final["own_code"], final["other_code"]) == (list(CODES[0]), list(CODES[1]))
    assert final["outcome"] == "first_wins"

    # The same game twice is no duel: nobody breaks their own code.
    with pytest.raises(RejectedEvidenceError):
        Duel(duel.first, duel.first).verify(table.keys, NativeVerifier())


def test_codes_are_not_opened_and_views_not_swapped_before_the_end(table: Table) -> None:
    players, duel = start(table)
    with pytest.raises(RefusedStepError):
        players[0].open_code(duel)
    with pytest.raises(NotYourCodeError):
        view_for(0, duel, players[1])
    assert view_for(0, duel, players[0])["own_code"] == list(CODES[0])


def test_a_seat_never_scores_against_a_code_it_was_not_given(table: Table) -> None:
    seat = seats(table)[0]
    with pytest.raises(NotYourCodeError):
        seat.score((0, 1, 2, 3), 0)  # no code yet
    seat.commit(CODES[0])
    assert seat.score((6, 0, 2, 3), 0) == (1, 1)
    with pytest.raises(NotYourCodeError):
        seat.score((6, 0, 2, 3), 1)
    with pytest.raises(InvalidCodeError):
        seat.score((6, 0, 2, 8), 0)


def test_com_a_seat_shows_no_secret_in_its_repr(table: Table) -> None:
    seat = seats(table)[0]
    seat.commit(CODES[0])
    shown = repr(seat)
    assert not any(secret in shown for secret in secrets_of(seat)[1:])
