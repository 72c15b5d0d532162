"""The documents are right: whoever follows them, and nothing else, comes to a verified proof and a contract."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from mastermind.zk.artifacts import ArtifactStore, KeySet
from mastermind.zk.phase1 import Phase1
from mastermind.zk.tools import Toolchain
from tests.zk.tiny import fresh_store

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
EXAMPLE = ROOT / "tests" / "example"

_FILE = re.compile(r"^`(?P<path>[^`\n]+)`:\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_SNIPPET = re.compile(r"^```(?P<language>sh|python)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


class Reader:
    """Somebody in a folder who does what a document says."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self._environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]),
        }
        self._environment.pop("MASTERMIND_HOME", None)

    def write_files(self, document: str) -> dict[str, str]:
        """Write the files that a document shows, and return them by path."""
        files = {match["path"]: match["text"] for match in _FILE.finditer(document)}
        for path, text in files.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text, "utf-8")
        return files

    def run_snippets(self, document: str, **environment: str) -> list[str]:
        """Run the snippets of a document in order, and return what each printed."""
        said = []
        for match in _SNIPPET.finditer(document):
            shell = match["language"] == "sh"
            argv = ["sh", "-eu", "-c", match["text"]] if shell else [sys.executable, "-W", "error", "-c", match["text"]]
            done = subprocess.run(
                argv,
                cwd=self.folder,
                env={**self._environment, **environment},
                capture_output=True,
                text=True,
                timeout=300,
            )
            assert done.returncode == 0, f"{match['text']}\n{done.stdout}\n{done.stderr}"
            said.append(done.stdout)
        return said


@pytest.fixture
def reader(store: ArtifactStore, toolchain: Toolchain, phase1: Phase1, tmp_path: Path) -> Reader:
    """A reader in an empty folder, whose packages and development phase 1 need not be made again."""
    fresh_store(tmp_path / "project" / "build", store.home)
    programs = tmp_path / "programs"
    programs.mkdir()
    script = programs / "snarkjs"
    script.write_text(f'#!/bin/sh\nexec {" ".join(toolchain.snarkjs)} "$@"\n', "utf-8")
    script.chmod(0o755)
    return Reader(tmp_path / "project", programs)


@pytest.mark.thorough
def test_a_circuit_of_ones_own_from_an_empty_folder_to_a_contract(reader: Reader) -> None:
    document = (DOCS / "add-a-circuit.md").read_text("utf-8")
    files = reader.write_files(document)
    assert files == {
        path.relative_to(EXAMPLE).as_posix(): path.read_text("utf-8") for path in EXAMPLE.rglob("*") if path.is_file()
    }
    # Before the last snippet, which removes the keys, the other document is followed.
    before, last = document.rsplit("```sh", 1)
    said = reader.run_snippets(before)
    assert len(said) == 4
    looked, proved = said[0], said[1]
    assert re.search(r"^ +private inputs +secret, siblings\[2\], bits\[2\]$", looked, re.MULTILINE)
    assert proved.count("accepted") == 1
    assert "secret" not in proved
    contract = (reader.folder / "MembershipVerifier.sol").read_text("utf-8")
    assert "contract MembershipVerifier {" in contract

    other = (DOCS / "verify-without-us.md").read_text("utf-8")
    assert [("OK!" in text) for text in reader.run_snippets(other)] == [True]
    (signature,) = re.findall(r"```solidity\n(.*?)```", other, re.DOTALL)
    assert "".join(signature.split()) in "".join(contract.split())
    assert "removed" in reader.run_snippets(f"```sh{last}")[0]


def test_the_tests_of_a_circuit_pass_as_they_stand(reader: Reader, store: ArtifactStore) -> None:
    document = (DOCS / "test-a-circuit.md").read_text("utf-8")
    files = reader.write_files(document)
    assert files.keys() == {"circuits/age.circom", "test_age.py"}
    said = reader.run_snippets(document[document.index("```sh") :], MASTERMIND_HOME=str(store.home))
    assert f"{len(re.findall(r'^def test_', files['test_age.py'], re.MULTILINE))} passed" in said[-1]


@pytest.mark.thorough  # a minute, most of it waiting
def test_a_referee_is_run_from_its_start_to_its_end(
    store: ArtifactStore, hit_and_blow: KeySet, tmp_path: Path, free_port: int
) -> None:
    document = (DOCS / "run-a-referee.md").read_text("utf-8").replace("8460", str(free_port))
    document = document.replace("referee serve", f"referee serve --port {free_port}")
    try:
        said = Reader(tmp_path, tmp_path).run_snippets(document, MASTERMIND_HOME=str(store.home))
    finally:
        with suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int((tmp_path / "referee.pid").read_text("utf-8")), signal.SIGTERM)
    begun, granted, _, played, audited, _, claimed, looked, _, _ = said
    assert '"status":"ok"' in begun
    assert "has 150 credits" in granted
    assert played.count("wins") + played.count("has won") == 2
    assert "all proved and all by the rules" in played
    assert "accepted" in audited
    assert claimed == "Claimed: 20 credits (development keys)\n"
    assert len(set(re.findall(r"^referee_credits_\w+ (\d+)$", looked, re.MULTILINE))) == 1


def test_links_lead_somewhere() -> None:
    for document in (ROOT / "README.md", *sorted(DOCS.glob("*.md"))):
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text("utf-8")):
            assert (document.parent / target).is_file(), f"{document.name}: {target}"
