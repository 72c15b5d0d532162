"""The exact number of constraints, by formula and as pinned, and the domains they must fit."""

from __future__ import annotations

import itertools

import pytest

from mastermind.game.circuits import specs
from mastermind.rules import NAMED_RULES, Rules
from mastermind.zk.circuit import CircuitSpec
from mastermind.zk.testing.circuits import Circuits

#: Two Poseidon hashes: of one input, and of three.
PLAYER_ID, SOLUTION_HASH = 213, 261

PINNED = {
    "authorise": {"hit-and-blow": 214, "classic": 214, "deluxe": 214},
    "open_game": {"hit-and-blow": 486, "classic": 486, "deluxe": 489},
    "make_guess": {"hit-and-blow": 227, "classic": 227, "deluxe": 230},
    "give_clue": {"hit-and-blow": 310, "classic": 320, "deluxe": 342},
    "certify_game": {"hit-and-blow": 772, "classic": 995, "deluxe": 1328},
}
#: PROTOCOL section 3.
DOMAINS = {"authorise": 256, "make_guess": 256, "open_game": 512, "give_clue": 512, "certify_game": 2048}

ALL_36 = [
    Rules(pegs, colours, repeats, attempts)
    for colours, pegs, attempts, repeats in itertools.product((6, 8), (3, 4, 5), (8, 10, 12), (False, True))
]


def coefficients(count: int) -> int:
    """Constraints of MonicFromRoots."""
    half = count // 2
    return 0 if count == 1 else coefficients(half) + coefficients(count - half) + count - 1


def legal_code(rules: Rules) -> int:
    if rules.repeats:
        return rules.pegs * (1 if rules.colours == 2 else 1 + -(-rules.colours // 4))
    return coefficients(rules.pegs) + (rules.colours - 1 if rules.colours > rules.pegs else 0)


def score(rules: Rules) -> int:
    pegs = rules.pegs
    return pegs * (3 * pegs + 5) // 2 if rules.repeats else pegs * (pegs + 2) if pegs > 1 else 2


def formula(name: str, rules: Rules) -> int:
    """The number of constraints that the head of the template gives."""
    code = legal_code(rules)
    match name:
        case "authorise":
            return PLAYER_ID + 1
        case "open_game":
            return PLAYER_ID + SOLUTION_HASH + code
        case "make_guess":
            return PLAYER_ID + code + 2
        case "give_clue":
            return SOLUTION_HASH + 2 * code + score(rules) + 1
    turns = rules.attempts * (code + score(rules) + 3) + 2 * (rules.attempts - 1)
    return PLAYER_ID + SOLUTION_HASH + code + turns + 2 + 1 - 2


def by_name(rules: Rules) -> dict[str, CircuitSpec]:
    return {spec.name: spec for spec in specs(rules)}


@pytest.mark.parametrize("rules_name", NAMED_RULES)
@pytest.mark.parametrize("circuit", PINNED)
def test_cir_10_the_pinned_number_of_constraints(circuits: Circuits, circuit: str, rules_name: str) -> None:
    rules = NAMED_RULES[rules_name]
    assert (
        circuits.load(by_name(rules)[circuit]).constraint_count
        == PINNED[circuit][rules_name]
        == formula(circuit, rules)
    )


@pytest.mark.parametrize(
    "spelling",
    [
        "3x3u2",
        *(pytest.param(spelling, marks=pytest.mark.thorough) for spelling in ("2x3r2", "7x9u2", "2x2r3", "5x17r2")),
    ],
)
@pytest.mark.parametrize("circuit", ["open_game", "give_clue", "certify_game"])
def test_the_formula_holds_for_other_rules(circuits: Circuits, circuit: str, spelling: str) -> None:
    rules = Rules.parse(spelling)
    assert circuits.load(by_name(rules)[circuit]).constraint_count == formula(circuit, rules)


@pytest.mark.parametrize("circuit", DOMAINS)
def test_every_combination_fits_its_domain(circuit: str) -> None:
    for rules in [*ALL_36, *NAMED_RULES.values()]:
        public = len(by_name(rules)[circuit].public)
        assert formula(circuit, rules) + public + 1 <= DOMAINS[circuit], rules.spelling
    for name in ("hit-and-blow", "classic"):
        assert formula("certify_game", NAMED_RULES[name]) + 7 + 1 <= 1024


def test_cir_10_compiling_twice_gives_the_same_constraints(circuits: Circuits, tmp_path: object) -> None:
    import tempfile
    from pathlib import Path

    from mastermind.zk.compile import compile_circuit

    spec = by_name(Rules.parse("2x3r2"))["give_clue"]
    shipped = circuits.load(spec).shipping
    with tempfile.TemporaryDirectory(prefix="another folder ") as folder:
        again = compile_circuit(spec, circuits.render(spec), circuits.toolchain, Path(folder))
        assert again.r1cs.read_bytes() == shipped.compiled.r1cs.read_bytes()
