"""Every public failure case is a test here, or a line that says why it cannot occur (`tests/known_faults.md`)."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
#: The cases themselves, which lie beside the checkout on machines that have them.
CASES = TESTS.parents[1] / "shared" / "cases" / "known-faults.md"

ROWS = re.findall(r"^\| ([A-Z]{3}-\d+) \| (.+) \|$", (TESTS / "known_faults.md").read_text("utf-8"), re.MULTILINE)


@cache
def names_in(file: str) -> set[str]:
    tree = ast.parse((TESTS / file).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@pytest.mark.parametrize(("name", "answer"), ROWS, ids=[name for name, _ in ROWS])
def test_what_a_row_names_is_there(name: str, answer: str) -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", answer)
    assert named or answer.startswith("Does not apply: "), f"{name} names no test and gives no reason"
    for file, test in named:
        assert test in names_in(file), f"{name} names {file}::{test}, which is not there"


def test_each_case_has_one_row() -> None:
    names = [name for name, _ in ROWS]
    assert len(names) == len(set(names)) == 72
    if CASES.exists():
        assert sorted(names) == sorted(re.findall(r"^\| ([A-Z]{3}-\d+) \|", CASES.read_text("utf-8"), re.MULTILINE))
