"""Inputs of a prover: exact names, counts, ranges and spellings, checked before any tool sees them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest

from mastermind.errors import InvalidClueError, InvalidSignalsError
from mastermind.field import MODULUS, random_field_element
from mastermind.game.circuits import give_clue, give_clue_inputs, random_salt
from mastermind.rules import Clue, Rules
from mastermind.zk.artifacts import KeySet
from mastermind.zk.circuit import MAX_SAFE_INTEGER, CircuitSpec, Signal, parse_inputs
from mastermind.zk.evidence import Proof, VerifyingKey
from mastermind.zk.prove import NativeProver, SnarkjsProver

RULES = Rules.parse("hit-and-blow")
SPEC = give_clue(RULES)
SECRET = (0, 1, 2, 3)


@pytest.fixture
def inputs() -> dict[str, Any]:
    """Good inputs, as their owner would write them to a file."""
    values = give_clue_inputs(
        RULES,
        game_id=random_field_element(),
        turn_count=2,
        guess=(1, 0, 2, 4),
        secret=SECRET,
        salt=random_salt(),
        key=random_field_element(),
    )
    good = {name: [str(v) for v in value] if isinstance(value, list) else str(value) for name, value in values.items()}
    assert SPEC.check_inputs(parse_inputs(json.dumps(good))) == SPEC.check_inputs(values)
    return good


def refused(given: Mapping[str, object], inputs: Mapping[str, Any]) -> str:
    """Check that `given` is refused without showing any secret, and return the name of the bad signal."""
    with pytest.raises(InvalidSignalsError) as refusal:
        SPEC.check_inputs(given)
    for name in ("salt", "key"):
        assert inputs[name] not in str(refusal.value)
    return refusal.value.signal


# INP-3: exact names and lengths.


def test_inp_3_too_few_pegs_are_refused(inputs: dict[str, Any]) -> None:
    assert refused({**inputs, "secret": inputs["secret"][:3]}, inputs) == "secret"


def test_inp_3_too_many_pegs_are_refused(inputs: dict[str, Any]) -> None:
    assert refused({**inputs, "secret": [*inputs["secret"], "4"]}, inputs) == "secret"


def test_inp_3_an_unknown_input_is_refused(inputs: dict[str, Any]) -> None:
    assert refused({**inputs, "pepper": "1"}, inputs) == "pepper"


@pytest.mark.parametrize("name", [signal.name for signal in (*SPEC.public, *SPEC.private)])
def test_inp_3_a_missing_input_is_refused(inputs: dict[str, Any], name: str) -> None:
    assert refused({key: value for key, value in inputs.items() if key != name}, inputs) == name


def test_an_unknown_name_is_shown_in_part_only(inputs: dict[str, Any]) -> None:
    signal = refused({**inputs, "x" * 5000: "1"}, inputs)
    assert signal == "x" * 40


# Values: an int or its canonical decimal spelling, in range.

BAD_VALUES: dict[str, object] = {
    "true": True,
    "false": False,
    "float": 1.0,
    "NaN": float("nan"),
    "null": None,
    "negative": -1,
    "negative text": "-1",
    "r": MODULUS,
    "r as text": str(MODULUS),
    "r + 1 as text": str(MODULUS + 1),
    "2^256": 1 << 256,
    "empty": "",
    "leading zero": "01",
    "plus": "+1",
    "space": " 1",
    "newline": "1\n",
    "underscore": "1_000",
    "fraction": "1.0",
    "exponent": "1e3",
    "hexadecimal": "0x10",
    "bigint": "1n",
    "Arabic digit": "\u0661",
    "full-width digit": "\uff11",
    "superscript": "\u00b2",
    "huge digits": "9" * 5000,
    "bytes": b"1",
    "list": ["1"],
    "nested list": [["1"]],
    "object": {"0": "1"},
}


@pytest.mark.parametrize("bad", BAD_VALUES.values(), ids=BAD_VALUES)
@pytest.mark.parametrize("name", ["salt", "game_id"])
def test_inp_1_a_value_that_is_no_field_element_is_refused(inputs: dict[str, Any], name: str, bad: object) -> None:
    assert SPEC.check_inputs({**inputs, name: "1"})
    assert refused({**inputs, name: bad}, inputs) == name


@pytest.mark.parametrize("bad", BAD_VALUES.values(), ids=BAD_VALUES)
def test_inp_1_an_element_of_a_list_that_is_no_field_element_is_refused(inputs: dict[str, Any], bad: object) -> None:
    assert refused({**inputs, "secret": [*inputs["secret"][:3], bad]}, inputs) == "secret"


@pytest.mark.parametrize("bad", ["0123", {"0": 0, "1": 1, "2": 2, "3": 3}, 123, None, [[0, 1, 2, 3]]], ids=str)
def test_a_list_must_be_a_list(inputs: dict[str, Any], bad: object) -> None:
    assert refused({**inputs, "secret": bad}, inputs) == "secret"


@pytest.mark.parametrize(("name", "bound"), [("guess", 1 << 12), ("clue", 1 << 6), ("secret", RULES.colours)])
def test_values_beyond_their_bound_are_refused_early(inputs: dict[str, Any], name: str, bound: int) -> None:
    def value(last: int) -> object:
        return [*inputs["secret"][:3], last] if name == "secret" else last

    assert SPEC.check_inputs({**inputs, name: value(bound - 1)})
    assert refused({**inputs, name: value(bound)}, inputs) == name


def test_the_largest_element_is_taken_in_both_spellings(inputs: dict[str, Any]) -> None:
    for value in (MODULUS - 1, str(MODULUS - 1)):
        assert SPEC.check_inputs({**inputs, "game_id": value})["game_id"] == [MODULUS - 1]


def test_the_order_given_does_not_matter(inputs: dict[str, Any]) -> None:
    reordered = dict(reversed(inputs.items()))
    assert list(reordered) != list(inputs)
    assert SPEC.check_inputs(reordered) == SPEC.check_inputs(inputs)
    assert list(SPEC.check_inputs(reordered)) == [signal.name for signal in (*SPEC.public, *SPEC.private)]


# JSON: what another reader would read differently.


@pytest.mark.parametrize("name", ["salt", "secret"])
@pytest.mark.parametrize(
    "digits", ["9007199254740992", "-9007199254740992", "123456789012345678901234567890", "1" * 5000]
)
def test_inp_1_an_unsafe_bare_integer_is_refused_by_name(inputs: dict[str, Any], name: str, digits: str) -> None:
    marked = {**inputs, name: ["1", "2", "3", "MARK"] if name == "secret" else "MARK"}
    text = json.dumps(marked)
    parse_inputs(text.replace('"MARK"', str(MAX_SAFE_INTEGER)))
    with pytest.raises(InvalidSignalsError) as refusal:
        parse_inputs(text.replace('"MARK"', digits))
    assert refusal.value.signal == name
    assert digits not in str(refusal.value)


def test_inp_1_large_integers_are_taken_as_strings(inputs: dict[str, Any]) -> None:
    salt = "123456789012345678901234567890"
    parsed = parse_inputs(json.dumps({**inputs, "salt": salt}))
    assert SPEC.check_inputs(parsed)["salt"] == [int(salt)]


@pytest.mark.parametrize(
    "text",
    [
        '{"salt": 1.5}',
        '{"salt": 1.0}',
        '{"salt": 1e3}',
        '{"salt": NaN}',
        '{"salt": Infinity}',
        '{"salt": -Infinity}',
        '{"secret": [1, 2, 3, 4.0]}',
        "",
        "{",
        "[1]",
        "1",
        "null",
        '"salt"',
        "{'salt': 1}",
        '{"salt": 01}',
        '{"salt": 0x1}',
        '{"salt": 1,}',
        "<html>",
        "[" * 100_000,
        '{"a":' * 100_000,
    ],
    ids=lambda text: text[:30],
)
def test_text_that_is_no_object_of_integers_is_refused(text: str) -> None:
    assert parse_inputs('{"salt": 1, "secret": [1, 2, 3, 4]}') == {"salt": 1, "secret": [1, 2, 3, 4]}
    with pytest.raises(InvalidSignalsError):
        parse_inputs(text)


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(InvalidSignalsError) as refusal:
        parse_inputs('{"salt": "1", "key": "2", "salt": "1"}')
    assert refusal.value.signal == "salt"


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(InvalidSignalsError):
        parse_inputs(b'{"salt": "\xff\xfe"}')


def test_too_large_a_text_is_refused_unread() -> None:
    assert parse_inputs('{"a": 1}'.ljust(1000), max_bytes=1000) == {"a": 1}
    with pytest.raises(InvalidSignalsError):
        parse_inputs('{"a": 1}'.ljust(1001), max_bytes=1000)


# Both provers check before anything else.


class Unreachable:
    """A snarkjs that no bad input may reach."""

    def prove(self, inputs: Mapping[str, Sequence[int]], wasm: Path, zkey: Path) -> NoReturn:
        raise AssertionError("snarkjs was asked to prove")

    def verify(self, key: VerifyingKey, public_signals: Sequence[int], proof: Proof) -> NoReturn:
        raise AssertionError("snarkjs was asked to verify")


@pytest.mark.parametrize("name", ["native", "snarkjs"])
def test_inp_3_a_prover_refuses_before_any_tool(
    hit_and_blow: KeySet, inputs: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(_: object) -> NoReturn:
        raise AssertionError("the circuit was loaded")

    monkeypatch.setattr("mastermind.zk.prove._loaded", unreachable)
    prover = NativeProver() if name == "native" else SnarkjsProver(Unreachable())
    with pytest.raises(InvalidSignalsError) as refusal:
        prover.prove(hit_and_blow["give_clue"], {**inputs, "secret": inputs["secret"][:3]})
    assert refusal.value.signal == "secret"


def test_sil_5_a_wrong_clue_is_refused_in_words_of_the_game() -> None:
    salt = random_salt()

    def claim(clue: Clue) -> Mapping[str, object]:
        guess = (0, 1, 4, 5)
        return give_clue_inputs(RULES, game_id=1, turn_count=2, guess=guess, secret=SECRET, salt=salt, key=7, clue=clue)

    assert claim(Clue(2, 0))["clue"] == 2
    with pytest.raises(InvalidClueError) as refusal:
        claim(Clue(3, 0))
    message = str(refusal.value)
    assert "3 hits" in message
    assert "template" not in message
    assert "line" not in message
    assert str(salt) not in message


# The specification itself.


def test_public_signals_are_labelled_and_ordered_as_in_the_proof() -> None:
    spec = CircuitSpec(
        name="labelled",
        sources=Path(),
        template="labelled.circom.j2",
        parameters={},
        public=(Signal("b", size=2), Signal("a")),
        private=(Signal("c"),),
        sample=dict,
    )
    assert spec.public_labels == ("b[0]", "b[1]", "a")
    assert spec.public_inputs(spec.check_inputs({"a": 1, "b": [2, 3], "c": 4})) == (2, 3, 1)
