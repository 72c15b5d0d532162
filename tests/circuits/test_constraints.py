"""No signal is left a choice, and every constraint is needed: the search of the toolkit, on the circuits that ship."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import pytest

from mastermind.rules import Code, Rules
from mastermind.zk.testing.circuits import Circuits, CircuitUnderTest
from mastermind.zk.testing.mutants import surviving_mutants
from mastermind.zk.testing.undetermined import Verdict
from mastermind.zk.testing.witness import Guard, Witness
from tests.circuits.test_true_statements import circuit_of, free_inputs
from tests.support.roots import near_code
from tests.support.statements import (
    BOUND,
    RawValues,
    authorise_values,
    certify_game_values,
    give_clue_values,
    holds,
    make_guess_values,
    open_game_values,
)

CIRCUITS = ("authorise", "open_game", "make_guess", "give_clue", "certify_game")
HIT_AND_BLOW = Rules.parse("hit-and-blow")


@dataclass(frozen=True)
class Question:
    """What is asked about the choices that a circuit leaves.

    Attributes:
        derived: public inputs that its equations determine from the other inputs.
        free: signals that may have many values, and why; the heads of the templates say the same.
        legal: rely on `LegalCode` having made its pegs colours. Its one identity of polynomials is beyond the rules of
            the propagation; that it refuses all else is shown exhaustively at a small size.
    """

    derived: tuple[str, ...]
    free: dict[str, str] = field(default_factory=dict)
    legal: bool = False


PASSED = {
    "Score.passed": "any order in which a largest matching is aligned will do; hits and blows do not depend on it"
}
QUESTIONS = {
    "authorise": Question(("player_id",)),
    "open_game": Question(("solution_hash", "master_id")),
    "make_guess": Question(("breaker_id",), legal=True),
    "give_clue": Question(("solution_hash", "clue"), legal=True),
    "certify_game": Question(
        ("solution_hash", "master_id", "clue_history", "is_solved"),
        {"CertifyGame.guess": "an unplayed slot holds any legal code, and contributes nothing"},
    ),
}


def true_cases(circuit: str, rules: Rules, codes: tuple[Code, Code, Code]) -> list[RawValues]:
    """True statements that between them take every way through a circuit: hits, blows, misses, a solution.

    Args:
        circuit: its name.
        rules: those of the codes.
        codes: the second shares a hit with the first, the third has blows with both.
    """
    one, two, three = codes
    match circuit:
        case "authorise":
            return [authorise_values()]
        case "open_game":
            return [open_game_values(rules, code) for code in (one, two)]
        case "make_guess":
            return [make_guess_values(rules, code) for code in codes]
        case "give_clue":
            return [give_clue_values(rules, *pair) for pair in ((one, two), (two, three), (one, one))]
    # What nobody has played shows nothing: every turn is played in some game, with a hit, a blow and the solution.
    last = rules.attempts - 1
    games = [
        (one, [two, three] * rules.attempts),
        (one, [three, two] * rules.attempts),
        (two, [*([three, one] * rules.attempts)[:last], two]),
        (three, [one]),
    ]
    return [certify_game_values(rules, secret, guesses[: rules.attempts]) for secret, guesses in games]


@pytest.mark.parametrize("circuit", CIRCUITS)
def test_no_signal_has_another_value(circuits: Circuits, circuit: str) -> None:
    """Proved for all inputs: what is computed is unique. Nobody can say it of what is behind a hash."""
    question = QUESTIONS[circuit]
    (case, *_) = true_cases(circuit, HIT_AND_BLOW, ((7, 4, 6, 0), (7, 6, 1, 2), (0, 3, 4, 7)))
    under_test = circuit_of(circuits, HIT_AND_BLOW, circuit)
    found = under_test.undetermined(
        [case],
        derived=question.derived,
        free=question.free,
        assuming={"LegalCode.pegs": range(HIT_AND_BLOW.colours)} if question.legal else {},
    )
    assert not found.counterexamples, str(found)
    hashed = {f"main.{label}" for signal in under_test.spec.private for label in signal.labels}
    assert set(found.having(Verdict.UNKNOWN)) == hashed
    assert {signal.rpartition(".")[2].partition("[")[0] for signal in found.having(Verdict.IDLE)} <= {"inverse"}


def test_the_order_of_a_guess_is_the_only_choice_with_repeats(circuits: Circuits) -> None:
    rules = Rules.parse("classic")
    case = give_clue_values(rules, (1, 1, 2, 3), (4, 1, 1, 1))
    circuit, derived = circuit_of(circuits, rules, "give_clue"), QUESTIONS["give_clue"].derived
    found = circuit.undetermined([case], derived=derived, free=PASSED)
    assert not found.counterexamples, str(found)
    assert set(found.having(Verdict.UNKNOWN)) <= set(circuit.open.inputs)


#: Constraints without which nothing false is accepted, by a signal of each, and the reason.
REDUNDANT = {
    "main.context": "binds its factors to the proof; nothing depends on it",
    "main.gameContext": "binds its factors to the proof; nothing depends on it",
    "main.historyContext": "binds its factors to the proof; nothing depends on it",
    "main.inverse[{last}]": "the last turn has none after it: its inverse is zero and in no other constraint",
}


#: Multiples of these, added to the polynomial of a legal code or of half of one, need one broken constraint each.
CHANGES = [(1,), (0, 1), (0, 0, 1), (0, 0, 0, 1), (-1, 1), (0, -1, 1)]


def near_codes(circuit: CircuitUnderTest, honest: Witness) -> Iterable[Witness]:
    """Forgeries with pegs that are no colours, but almost give the polynomial of a legal code."""
    places = {"open_game": ["main.secret"], "make_guess": ["main.unpack.pegs"], "authorise": []}.get(
        circuit.spec.name, ["main.secret", "main.unpack.pegs"]
    )
    if circuit.spec.name == "certify_game":
        places = ["main.secret", *(f"main.guess[{turn}]" for turn in range(HIT_AND_BLOW.attempts))]
    keep = free_inputs(circuit)
    for place in places:
        a, b, c, d = honest.array(place)
        codes = [near_code((a, b, c, d), change) for change in CHANGES]
        for change in CHANGES[:2]:
            codes += [(*near_code((a, b), change), c, d), (a, b, *near_code((c, d), change))]
        for pegs in codes:
            forged = circuit.forge(honest, {f"{place}[{i}]": peg for i, peg in enumerate(pegs)}, keep=keep)
            # Half a code can become another legal one.
            if not forged.accepted:
                yield forged


def continued_games(circuit: CircuitUnderTest, rules: Rules, codes: tuple[Code, Code, Code]) -> Iterable[Witness]:
    """Games that go on after their solution, one for each turn that can be the solution."""
    secret, *others = codes
    for turn in range(rules.attempts - 1 if circuit.spec.name == "certify_game" else 0):
        guesses = (others * rules.attempts)[: rules.attempts]
        guesses[turn] = secret
        yield circuit.open.calculate(certify_game_values(rules, secret, guesses))


def survivors(
    circuits: Circuits,
    circuit: str,
    rules: Rules,
    codes: tuple[Code, Code, Code],
    *,
    false: Iterable[Witness] = (),
    except_in: Collection[str] = (),
) -> list[Guard]:
    """The mutants that nothing notices and that no reason explains; constraints within some templates are left."""
    under_test = circuit_of(circuits, rules, circuit)

    def is_true(witness: Witness) -> bool:
        return holds(circuit, rules, witness.inputs)

    explained = {signal.format(last=rules.attempts - 1) for signal in REDUNDANT}
    return surviving_mutants(
        under_test,
        true_cases(circuit, rules, codes),
        [*false, *continued_games(under_test, rules, codes)],
        derived=BOUND[circuit],
        holds=is_true,
        values={rules.colours},
        where=lambda guard: guard.enclosing.isdisjoint(except_in) and not guard.signals & explained,
    )


@pytest.mark.parametrize(
    ("circuit", "spelling"),
    [*((name, "2x3u2") for name in CIRCUITS), pytest.param("give_clue", "2x3r2", marks=pytest.mark.thorough)],
)
def test_without_any_constraint_something_false_is_accepted(circuits: Circuits, circuit: str, spelling: str) -> None:
    codes = ((0, 1), (0, 2), (2, 0))
    assert survivors(circuits, circuit, Rules.parse(spelling), codes, except_in={"Poseidon"}) == []


@pytest.mark.full_size
@pytest.mark.parametrize("circuit", CIRCUITS)
def test_without_any_constraint_of_hit_and_blow_something_false_is_accepted(circuits: Circuits, circuit: str) -> None:
    # With another number for the 6, all other roots of the identity that LegalCode checks are among its points.
    codes = ((6, 0, 1, 2), (6, 3, 4, 5), (0, 6, 3, 1))
    under_test = circuit_of(circuits, HIT_AND_BLOW, circuit)
    honest = under_test.witness(true_cases(circuit, HIT_AND_BLOW, codes)[0])
    false = near_codes(under_test, honest)
    # The same template for the same rules checks the codes of give_clue: its inside is shown there. What connects it to
    # each turn is shown here, and its inside too at the small size.
    except_in = {"LegalCode"} if circuit == "certify_game" else set[str]()
    assert survivors(circuits, circuit, HIT_AND_BLOW, codes, false=false, except_in=except_in) == []
