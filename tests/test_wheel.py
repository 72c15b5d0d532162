"""The wheel carries the circuits, installs into a clean environment, and works there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mastermind.game.circuits import specs
from mastermind.rules import Rules
from mastermind.zk.archive import export_key_set
from mastermind.zk.artifacts import KeySet

ROOT = Path(__file__).resolve().parents[1]


def run(argv: list[str | Path], **environment: str) -> str:
    completed = subprocess.run(
        [str(word) for word in argv],
        env={**os.environ, **environment},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of a clean environment with the wheel in it."""
    folder = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT])
    (wheel,) = folder.glob("*.whl")
    run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"])
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", folder / "venv" / "bin" / "python"]
    run([*pip, "install", "--quiet", wheel])
    return folder / "venv" / "bin"


def test_the_installed_wheel_renders_the_same_circuits(installed: Path) -> None:
    rendered = run(
        [
            installed / "python",
            "-c",
            "import json; from mastermind.game.circuits import specs; from mastermind.rules import Rules;"
            "from mastermind.zk.render import own_digests;"
            "print(json.dumps({s.name: own_digests(s) for s in specs(Rules.parse('hit-and-blow'))}))",
        ]
    )
    from mastermind.zk.render import own_digests

    assert json.loads(rendered) == {spec.name: own_digests(spec) for spec in specs(Rules.parse("hit-and-blow"))}


def test_the_installed_wheel_proves_and_verifies_without_node(
    installed: Path, hit_and_blow: KeySet, tmp_path: Path
) -> None:
    export_key_set(hit_and_blow, tmp_path / "keys.zip")
    program = installed / "mastermind"
    alone = {"PATH": str(installed), "MASTERMIND_HOME": str(tmp_path / "home")}
    run([program, "keys", "import", tmp_path / "keys.zip"], **alone)
    run([program, "sample", "give_clue", "--out", tmp_path / "inputs.json"], **alone)
    run([program, "prove", "give_clue", "--inputs", tmp_path / "inputs.json", "--out", tmp_path / "turn"], **alone)
    answer = json.loads(run([program, "verify", tmp_path / "turn", "--json"], **alone))
    assert answer["accepted"] is True
