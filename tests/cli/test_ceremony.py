"""The ceremony commands: the page that tells how to run one is right, and one that does not hold exits with 1."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mastermind.cli.main import main
from mastermind.zk import ceremony as work
from mastermind.zk.artifacts import ArtifactStore, KeySet
from mastermind.zk.contributions import TRANSCRIPT
from mastermind.zk.phase1 import Phase1, development_phase1
from mastermind.zk.tools import Toolchain
from tests.zk.tiny import fresh_store

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "run-a-ceremony.md").read_text("utf-8")


@pytest.fixture(scope="module")
def phase1(store: ArtifactStore, toolchain: Toolchain) -> Phase1:
    """The development phase 1 of the shared home."""
    return development_phase1(1, toolchain, store.home)


@pytest.fixture(scope="module")
def followed(
    store: ArtifactStore, hit_and_blow: KeySet, phase1: Phase1, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder in which somebody has followed the page, whose build in `trial` need not be done again."""
    folder = tmp_path_factory.mktemp("followed")
    home = fresh_store(folder / "trial", store.home).home
    shutil.copytree(store.home / "recipes", home / "recipes")
    for circuit in hit_and_blow.circuits.values():
        shutil.copytree(circuit.folder, home / "artifacts" / circuit.digest)
    ArtifactStore(home).use(hit_and_blow)
    snippets = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(snippets) == 7
    for path, text in re.findall(r"^`([^`\n]+)`:\n\n```circom\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        (folder / path).write_text(text, "utf-8")
    argv = ["sh", "-eu", "-c", "".join(snippets)]
    done = subprocess.run(
        argv,
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "MASTERMIND_HOME": str(folder / "home"),
        },
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    # What somebody plays with is elsewhere, and stays as it is.
    assert not (folder / "home").exists()
    (folder / "said").write_text(done.stdout, "utf-8")
    return folder


def invoke(folder: Path, *words: object) -> Result:
    """Run a command; it never ends in a traceback."""
    home = {"MASTERMIND_HOME": str(folder / "trial")}
    result = CliRunner().invoke(main, ["ceremony", *map(str, words)], env=home)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result


def transcript(folder: Path) -> Any:
    return json.loads((folder / TRANSCRIPT).read_bytes())


def test_the_page_runs_as_it_stands(followed: Path, hit_and_blow: KeySet) -> None:
    made = transcript(followed / "final")["contributions"]
    assert [entry["name"] for entry in made] == ["Ada", "Zoe", "Bo", ""]
    said = (followed / "said").read_text("utf-8")
    assert "accepted: 3 contributions to authorise, a beacon has ended it" in said
    for entry in made:
        assert entry["digest"] in said
    shown = CliRunner().invoke(main, ["keys", "show", "--json", "--home", str(followed / "trial")])
    keys = json.loads(shown.stdout)
    assert keys["ceremonies"] == [transcript(followed / "final")]
    assert f"mastermind keys use --rules {hit_and_blow.name} {hit_and_blow.id}" in said
    digests = {circuit["name"]: circuit["key_digest"] for circuit in keys["circuits"]}
    before = {name: circuit.verifying_key.digest for name, circuit in hit_and_blow.circuits.items()}
    assert [name for name in before if digests[name] != before[name]] == ["authorise"]


def test_what_is_verified_is_what_is_reported(followed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another ceremony, put in place of the first one after that has been read."""
    read = work.read_transcript
    monkeypatch.setattr(work, "verify", lambda *_: replace(read(followed / "final"), contributions=()))
    done = invoke(followed, "verify", followed / "final")
    assert done.exit_code == 1
    assert "changed while it was verified" in done.output


def test_a_trial_is_called_one(followed: Path) -> None:
    """A phase 1 of one machine: three people and a beacon make development keys of it, and all outputs say so."""
    said = (followed / "said").read_text("utf-8")
    assert said.count("phase 1 development, development keys") == 9
    assert said.count("The keys are development keys: their phase 1 is not the public one") == 4
    assert "square: groth16, development keys" in said
    assert "is now in use (development keys)" in said
    assert json.loads(invoke(followed, "report", followed / "final", "--json").stdout)["status"] == "development"


def test_a_published_digest_has_to_be_there(followed: Path) -> None:
    final = followed / "final"
    ours, theirs = transcript(final)["contributions"][1]["digest"], "ab" * 32
    result = invoke(followed, "verify", final, "--json", "--published", ours)
    assert (result.exit_code, json.loads(result.stdout)["accepted"]) == (0, True)
    result = invoke(followed, "verify", final, "--published", ours, "--published", theirs)
    assert (result.exit_code, result.stdout) == (1, "")


def test_a_ceremony_that_does_not_hold_exits_1(followed: Path, tmp_path: Path) -> None:
    final = Path(shutil.copytree(followed / "final", tmp_path / "final"))
    content = (final / TRANSCRIPT).read_text("utf-8")
    for words in (("report",), ("verify",), ("finish",)):
        (final / TRANSCRIPT).write_text(content.replace('"Zoe"', '"Eve"'), "utf-8")
        result = invoke(followed, *words, final)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "contribution 2 (Eve)" in result.stderr
    (final / TRANSCRIPT).write_text(content, "utf-8")
    shutil.copyfile(followed / "round-1" / "authorise.zkey", final / "authorise.zkey")
    result = invoke(followed, "verify", final)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "authorise: contribution 2 (Zoe)" in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("start", "--out", "new"),
        ("start", "--out", "new", "--ptau", "phase1.ptau", "--development-phase1"),
        ("start", "--out", "new", "--ptau", "phase1.ptau"),
        ("start", "--out", "round-1", "--development-phase1"),
        ("contribute", "round-1", "--name", "Eve", "--out", "round-1"),
        ("contribute", "round-1", "--name", "Eve", "--out", "round-2"),
        ("contribute", "round-1", "--name", "E\nve", "--out", "new"),
        ("contribute", "round-1", "--name", "Eve", "--player-id", "x", "--out", "new"),
        ("beacon", "round-3", "--beacon", "xyz", "--source", "x", "--out", "new"),
        ("verify", "trial"),
        ("verify", "final", "--published", "abc"),
        ("verify", "final", "--published", f"0x{'ab' * 32}"),
        ("verify", "nowhere"),
    ],
    ids=" ".join,
)
def test_bad_input_exits_2_and_leaves_nothing(
    followed: Path, phase1: Phase1, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(followed)
    shutil.copyfile(phase1.path, followed / "phase1.ptau")
    before = sorted(followed.rglob("*"))
    assert invoke(followed, *words).exit_code == 2
    assert sorted(followed.rglob("*")) == before
