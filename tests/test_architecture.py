"""Imports go one way, and only the command line prints or exits. Read from the source, not from what runs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from mastermind.cli.output import default_home
from mastermind.field import random_field_element
from mastermind.game.circuits import authorise_inputs
from mastermind.zk.artifacts import KeySet
from mastermind.zk.evidence import public_json
from mastermind.zk.prove import NativeProver

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "mastermind"

#: The parts from the bottom up; a part may import those of lower rank, and itself.
RANKS = (
    {"errors", "field", "rules", "packing", "poseidon", "locks", "sources"},
    {"zk"},
    {"game"},
    {"players", "referee"},
    {"cli"},
    {"__main__"},
)
#: Within the lowest rank: errors know nothing, and each of these only what is named.
DOMAIN = {
    "errors": set[str](),
    "locks": set[str](),
    "sources": set[str](),
    "field": {"errors"},
    "rules": {"errors"},
    "poseidon": {"field", "errors"},
    "packing": {"errors", "rules", "field"},
}
#: Modules that may use the generator that can be predicted, and what for: never where secrets are made.
PREDICTABLE = {
    "cli/demo.py": "a board that repeats",
    "referee/storage.py": "spreads the tries of a busy database",
}


@cache
def modules() -> dict[str, ast.Module]:
    """The syntax tree of each module, by path within the package."""
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text("utf-8"), str(path))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def part_of(path: str) -> str:
    return path.split("/")[0].removesuffix(".py")


def imported(tree: ast.Module) -> Iterator[str]:
    """Every module that is imported anywhere in the tree, also within functions and for types only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_parts(tree: ast.Module) -> set[str]:
    return {name.split(".")[1] for name in imported(tree) if name.startswith("mastermind.")} & set().union(*RANKS)


def rank(part: str) -> int:
    found = [index for index, parts in enumerate(RANKS) if part in parts]
    assert found, f"the architecture has no place for {part}"
    return found[0]


def test_every_part_has_a_place() -> None:
    parts = {part_of(path) for path in modules()} - {"__init__"}
    assert {"zk", "game", "cli", "errors"} <= parts
    assert all(rank(part) >= 0 for part in parts)


@pytest.mark.parametrize("path", modules())
def test_imports_go_one_way(path: str) -> None:
    part = part_of(path)
    for other in own_parts(modules()[path]) - {part}:
        if part in DOMAIN:
            assert other in DOMAIN[part], f"{path} imports {other}"
        else:
            assert rank(other) < rank(part), f"{path} imports {other}"


def test_the_toolkit_knows_no_game() -> None:
    for path, tree in modules().items():
        if part_of(path) == "zk":
            assert not own_parts(tree) & {"rules", "packing", "poseidon", "game"}, path


def test_only_the_command_line_uses_click() -> None:
    users = {part_of(path) for path, tree in modules().items() if "click" in imported(tree)}
    assert users == {"cli"}


PRINTS = {"print", "input"}
EXITS = {"SystemExit", "exit", "quit"}
OF_THE_PROCESS = {"sys.exit", "sys.stdout", "sys.stderr", "sys.argv", "os._exit", "os.abort"}


def exits_or_prints(tree: ast.Module) -> Iterator[int]:
    """The lines that do."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in PRINTS | EXITS:
            yield node.lineno
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and f"{node.value.id}.{node.attr}" in OF_THE_PROCESS
        ):
            yield node.lineno


def test_only_the_command_line_prints_or_exits() -> None:
    found = {path: list(exits_or_prints(tree)) for path, tree in modules().items()}
    assert any(lines for path, lines in found.items() if part_of(path) == "cli"), "the search finds what there is"
    assert {path: lines for path, lines in found.items() if lines and part_of(path) != "cli"} == {}


def test_com_4_nothing_that_makes_secrets_uses_a_predictable_generator() -> None:
    users = {path for path, tree in modules().items() if {"random", "numpy"} & set(imported(tree))}
    assert "cli/demo.py" in users, "the search finds what there is"
    assert {path for path in users if part_of(path) != "players"} <= PREDICTABLE.keys()


def test_modules_say_what_they_own() -> None:
    for path, tree in modules().items():
        if path != "__init__.py":
            assert ast.get_docstring(tree), f"{path} has no docstring"


VERIFY = """
import json, shutil, subprocess, sys
from pathlib import Path

def forbidden(*_, **__):
    raise AssertionError("a program was started")

subprocess.Popen = forbidden
assert shutil.which("node") is None
from mastermind.zk.evidence import VerifyingKey
from mastermind.zk.verify import NativeVerifier, ReferenceVerifier, judge
key, signals, proof = json.loads(sys.stdin.read())
for verifier in (NativeVerifier(), ReferenceVerifier()):
    assert judge(verifier, VerifyingKey.parse(key), signals, proof)
assert not judge(NativeVerifier(), VerifyingKey.parse(key), ["0", *signals[1:]], proof)
assert "mastermind.game" not in sys.modules
assert "click" not in sys.modules
"""


def test_verifying_needs_no_node(hit_and_blow: KeySet, native_prover: NativeProver, tmp_path: Path) -> None:
    circuit = hit_and_blow["authorise"]
    proved = native_prover.prove(circuit, authorise_inputs(random_field_element(), 1))
    evidence = circuit.verifying_key.to_json(), public_json(proved.public_signals), proved.proof.to_json()
    done = subprocess.run(
        [sys.executable, "-c", VERIFY],
        input=json.dumps(evidence),
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_verify_command_needs_no_node(hit_and_blow: KeySet, native_prover: NativeProver, tmp_path: Path) -> None:
    circuit = hit_and_blow["authorise"]
    proved = native_prover.prove(circuit, authorise_inputs(random_field_element(), 1))
    for name, content in (
        ("proof.json", proved.proof.to_json()),
        ("public.json", public_json(proved.public_signals)),
        ("verification_key.json", circuit.verifying_key.to_json()),
    ):
        (tmp_path / name).write_text(json.dumps(content), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mastermind", "verify", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        env={"PATH": str(tmp_path), "HOME": str(tmp_path), "MASTERMIND_HOME": str(default_home())},
        check=False,
    )
    assert done.returncode == 0, done.stderr
