"""`mastermind solve` through the command."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from mastermind.cli.main import main


def solve(*words: str) -> Result:
    return CliRunner().invoke(main, ["solve", *words])


def test_it_counts_the_codes_and_advises() -> None:
    answer = json.loads(solve("--rules", "classic", "--json", "0011:1,1", "2345:0,2").output)
    assert answer["standing"] == 84
    assert len(answer["guess"]) == 4
    assert "84 codes are possible" in solve("--rules", "classic", "0011:1,1", "2345:0,2").output


def test_it_says_when_one_code_is_left() -> None:
    assert "One code is possible: 5 5 5 5" in solve("--rules", "classic", "5555:4,0").output


def test_clu_8_it_names_the_contradiction() -> None:
    result = solve("--rules", "classic", "0011:1,1", "2233:0,2", "4455:0,1")
    assert result.exit_code == 2
    assert "turn 3" in result.output


@pytest.mark.parametrize(
    "turn", ["0011", "0011:1", "0011:1,1,1", "00115:1,1", "0019:1,1", "0011:3,1", "0011:9,0", "x:1,1"]
)
def test_inp_5_mistyped_turns_are_bad_input(turn: str) -> None:
    assert solve("--rules", "classic", "0011:1,1").exit_code == 0
    result = solve("--rules", "classic", turn)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
