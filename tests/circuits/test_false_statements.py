"""Statements that are false: one thing wrong, below every other check, and the constraint that refuses it by name.

A case takes a true witness, changes one value, and lets a dishonest prover adapt all that may follow from it. The
constraints that are then still violated must belong to the guard that the case names.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from mastermind.errors import WitnessError
from mastermind.field import MODULUS
from mastermind.rules import Rules
from mastermind.zk.testing.circuits import Circuits
from tests.circuits.test_true_statements import circuit_of, free_inputs
from tests.support.statements import (
    RawValues,
    authorise_values,
    certify_game_values,
    give_clue_values,
    make_guess_values,
    open_game_values,
    packed_clue,
)

UNIQUE, REPEATS = Rules.parse("hit-and-blow"), Rules.parse("classic")

#: circuit, rules, inputs of the true twin
TRUE: dict[str, tuple[str, Rules, RawValues]] = {
    "authorise": ("authorise", UNIQUE, authorise_values()),
    "open unique": ("open_game", UNIQUE, open_game_values(UNIQUE, (7, 4, 6, 0))),
    "open repeats": ("open_game", REPEATS, open_game_values(REPEATS, (5, 4, 5, 0))),
    "guess unique": ("make_guess", UNIQUE, make_guess_values(UNIQUE, (7, 4, 6, 0))),
    "guess repeats": ("make_guess", REPEATS, make_guess_values(REPEATS, (5, 4, 5, 0))),
    "clue unique": ("give_clue", UNIQUE, give_clue_values(UNIQUE, (7, 4, 6, 0), (0, 4, 5, 7))),
    "clue repeats": ("give_clue", REPEATS, give_clue_values(REPEATS, (1, 1, 2, 3), (4, 1, 1, 1))),
    "no hits": ("give_clue", REPEATS, give_clue_values(REPEATS, (1, 2, 3, 4), (5, 5, 0, 0))),
    "game": ("certify_game", UNIQUE, certify_game_values(UNIQUE, (7, 4, 6, 0), [(0, 4, 5, 7), (1, 2, 3, 5)])),
    "solved": ("certify_game", UNIQUE, certify_game_values(UNIQUE, (7, 4, 6, 0), [(0, 4, 5, 7), (7, 4, 6, 0)])),
}


def test_the_true_twins_are_accepted(circuits: Circuits) -> None:
    for circuit, rules, values in TRUE.values():
        circuit_of(circuits, rules, circuit).accepts(values)


#: (true twin, changed signals): the program refuses the inputs, and the constraints refuse the public signal alone.
WRONG_PUBLIC: list[tuple[str, str, int]] = [
    ("authorise", "player_id", 1),
    ("open unique", "solution_hash", 1),
    ("open unique", "master_id", 1),
    ("open repeats", "solution_hash", 1),
    ("guess unique", "breaker_id", 1),
    ("clue unique", "solution_hash", 1),
    ("clue unique", "clue", 1),  # a hit more
    ("clue unique", "clue", -1),  # a hit less
    ("clue unique", "clue", 8),  # a blow more
    ("clue unique", "clue", -8),  # a blow less
    ("clue unique", "clue", packed_clue(2, 1) - packed_clue(1, 2)),  # hits and blows exchanged
    ("clue repeats", "clue", 1),
    ("clue repeats", "clue", -1),
    ("clue repeats", "clue", 8),
    ("clue repeats", "clue", -8),
    ("clue repeats", "clue", packed_clue(1, 5) - packed_clue(1, 1)),  # CLU-2: each repeat counted again
    ("no hits", "clue", 4),  # CIR-1: any claim where the true count is zero
    ("no hits", "clue", 32),
    ("game", "clue_history", 1),
    ("game", "clue_history", 8 << 6),
    ("game", "clue_history", 1 << 12),  # an unplayed slot
    ("game", "guess_history", 1 << 24),  # an unplayed slot
    ("game", "turn_count", 2),  # a turn more
    ("game", "turn_count", -2),  # a turn less
    ("game", "turn_count", 1),
    ("game", "is_solved", 1),
    ("solved", "is_solved", -1),
    ("game", "master_id", 1),
    ("game", "solution_hash", 1),
]


@pytest.mark.parametrize(("twin", "signal", "change"), WRONG_PUBLIC)
def test_a_wrong_public_signal_is_refused(circuits: Circuits, twin: str, signal: str, change: int) -> None:
    name, rules, values = TRUE[twin]
    true = values[signal]
    assert isinstance(true, int)
    wrong = (true + change) % MODULUS
    circuit = circuit_of(circuits, rules, name)
    with pytest.raises(WitnessError):
        circuit.witness({**values, signal: wrong})
    circuit.rejects({**values, signal: wrong})
    for system in (circuit.shipping, circuit.open):
        honest = system.calculate(values)
        assert not honest.patched({f"main.{signal}": wrong}).accepted
        assert not honest.forged({f"main.{signal}": wrong}).accepted


#: (true twin, changed signals, the template whose constraint has to refuse)
GUARDED: list[tuple[str, Mapping[str, int], str]] = [
    ("open unique", {"main.secret[1]": 8}, "LegalCode"),
    ("open unique", {"main.secret[1]": MODULUS - 1}, "LegalCode"),
    ("open unique", {"main.secret[1]": 1 << 252}, "LegalCode"),
    ("open unique", {"main.secret[1]": 7}, "LegalCode"),  # the colour of peg 0
    ("open repeats", {"main.secret[2]": 6}, "LegalPeg"),
    ("open repeats", {"main.secret[2]": MODULUS - 1}, "LegalPeg"),
    ("open repeats", {"main.secret[2]": 1 << 252}, "LegalPeg"),
    ("guess unique", {"main.unpack.pegs[0]": 8, "main.unpack.pegs[1]": 3}, "LegalCode"),
    ("guess unique", {"main.unpack.pegs[0]": 4, "main.unpack.pegs[1]": 4}, "LegalCode"),
    # The same packed guess by other digits: 5 + 8 * 4 = 13 + 8 * 3.
    ("guess repeats", {"main.unpack.pegs[0]": 13, "main.unpack.pegs[1]": 3}, "LegalPeg"),
    ("clue unique", {"main.secret[0]": 8}, "LegalCode"),
    ("clue unique", {"main.unpack.pegs[0]": 8, "main.unpack.pegs[1]": 3}, "LegalCode"),
    ("clue repeats", {"main.secret[0]": 6}, "LegalPeg"),
    ("clue repeats", {"main.unpack.pegs[0]": 12, "main.unpack.pegs[1]": 0}, "LegalPeg"),
    ("game", {"main.secret[0]": 8}, "LegalCode"),
]


@pytest.mark.parametrize(("twin", "changes", "guard"), GUARDED)
def test_cir_5_and_cir_6_illegal_pegs_are_refused_by_their_guard(
    circuits: Circuits, twin: str, changes: Mapping[str, int], guard: str
) -> None:
    name, rules, values = TRUE[twin]
    circuit = circuit_of(circuits, rules, name)
    honest = circuit.witness(values)
    keep = [signal for signal in free_inputs(circuit) if signal not in changes]
    forged = circuit.forge(honest, changes, keep=keep)
    if name in {"open_game", "make_guess"}:
        # Nothing else stands in the way: without the guard, this would be a proof.
        circuit.rejects(forged, by=guard)
    else:
        assert guard in {found.template for found in circuit.rejects(forged).guards}


def test_cir_2_the_digits_of_the_clue_are_the_committed_ones(circuits: Circuits) -> None:
    """Another secret for the score than for the hash: there is one array, so the prover can only change both."""
    for twin in ("clue unique", "clue repeats"):
        name, rules, values = TRUE[twin]
        circuit = circuit_of(circuits, rules, name)
        honest = circuit.witness(values)
        for copy in ("main.score.secret[0]", "main.pack.pegs[0]"):
            forged = honest.forged({copy: 2})
            assert not forged.accepted
        # With the secret itself changed the hash follows, and is another one.
        keep = [signal for signal in free_inputs(circuit) if signal != "main.secret[0]"]
        changed = honest.forged({"main.secret[0]": 2}, keep=keep)
        assert changed["main.solution_hash"] != honest["main.solution_hash"]


def test_a_game_does_not_go_on_after_its_solution(circuits: Circuits) -> None:
    """All of a game with a turn after the solution is consistent, and only the rule about it refuses."""
    rules = Rules.parse("2x3u2")
    circuit = circuit_of(circuits, rules, "certify_game")
    secret, guess = (0, 1), (1, 2)
    honest = circuit.witness(certify_game_values(rules, secret, [guess, secret]))
    after = certify_game_values(rules, secret, [secret, guess])
    changes = {
        f"main.guess[{turn}][{place}]": peg
        for turn, code in enumerate([secret, guess])
        for place, peg in enumerate(code)
    }
    changes |= {"main.played[0]": 1, "main.played[1]": 1}
    public = {f"main.{name}": after[name] for name in ("guess_history", "clue_history", "is_solved")}
    assert all(isinstance(value, int) for value in public.values())
    keep = [signal for signal in circuit.open.inputs if signal not in public]
    forged = honest.forged({**changes, **{name: int(str(value)) for name, value in public.items()}}, keep=keep)
    assert [found.signals for found in forged.guards] == [
        frozenset({"main.missed[0]", "main.inverse[0]", "main.played[1]"})
    ]


def test_played_turns_leave_no_gap(circuits: Circuits) -> None:
    rules = Rules.parse("2x3u3")
    circuit = circuit_of(circuits, rules, "certify_game")
    honest = circuit.witness(certify_game_values(rules, (0, 1), [(1, 2), (2, 1)]))
    assert (honest["main.played[1]"], honest["main.played[2]"]) == (1, 0)
    for changes in ({"main.played[1]": 0, "main.played[2]": 1}, {"main.played[1]": 2, "main.played[2]": MODULUS - 1}):
        assert not honest.forged(changes).accepted


@pytest.mark.parametrize("twin", TRUE)
def test_rep_8_every_public_signal_takes_part_in_a_constraint(circuits: Circuits, twin: str) -> None:
    name, rules, _ = TRUE[twin]
    constraints = circuit_of(circuits, rules, name).shipping.r1cs.constraints
    used = {wire for constraint in constraints for part in constraint for wire in part}
    for label, wire in zip(circuit_of(circuits, rules, name).shipping.public, range(1, 100), strict=False):
        assert wire in used, label


def test_cir_7_no_decomposition_is_as_long_as_the_field(circuits: Circuits) -> None:
    for circuit, rules, _ in TRUE.values():
        text = "\n".join(circuit_of(circuits, rules, circuit).rendered.files.values())
        assert "Num2Bits" not in text
