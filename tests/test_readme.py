"""The README is right: its commands run as they stand, and its tables say what the code says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from mastermind.cli.main import main
from mastermind.rules import NAMED_RULES
from mastermind.zk.artifacts import ArtifactStore, KeySet

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def run(argv: list[str], folder: Path, store: ArtifactStore) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "MASTERMIND_HOME": str(store.home),
    }
    return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def test_the_shell_snippets_run_as_they_stand(tmp_path: Path, store: ArtifactStore, hit_and_blow: KeySet) -> None:
    assert blocks("sh")
    for block in blocks("sh"):
        completed = run(["sh", "-eu", "-c", block], tmp_path, store)
        assert completed.returncode == 0, completed.stderr
        assert "others can read" not in completed.stderr


def test_the_python_snippets_run_as_they_stand(tmp_path: Path, store: ArtifactStore, hit_and_blow: KeySet) -> None:
    assert blocks("python")
    for block in blocks("python"):
        completed = run([sys.executable, "-W", "error", "-c", block], tmp_path, store)
        assert completed.returncode == 0, completed.stderr


def test_the_quick_start_names_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"`?make (\w+)", README):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_command_is_in_the_table() -> None:
    table = README.split("## Commands")[1].split("\n## ")[0]
    for name in main.commands:
        assert f"`{name}" in table, name


def test_the_rules_are_in_the_table() -> None:
    for name, rules in NAMED_RULES.items():
        repeats = "yes" if rules.repeats else "no"
        row = f"| `{name}` | {rules.pegs} | {rules.colours} | {repeats} | {rules.attempts} | {rules.code_count:,} |"
        assert row in README


def test_the_constraint_counts_are_in_the_table(hit_and_blow: KeySet) -> None:
    for name, circuit in hit_and_blow.circuits.items():
        assert f"| `{name}` | {circuit.manifest['constraints']:,} |" in README


def test_the_listed_modules_are_there() -> None:
    tree = README.split("```text")[1].split("```")[0]
    for folder in ("circuits/", "mastermind/", "scripts/", "tests/"):
        assert folder in tree
        assert (ROOT / folder).is_dir()
    package = ROOT / "mastermind"
    for module in sorted(path.stem for path in [*package.glob("*.py"), *(package / "zk").glob("*.py")]):
        if not module.startswith("__") and module not in {"sources", "tools", "progress", "binfile", "r1cs"}:
            assert re.search(rf"\b{module}\b", tree), module
