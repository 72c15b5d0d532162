"""`mastermind duel` at a pseudo-terminal and through pipes."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mastermind.game.transcript import Transcript
from mastermind.rules import Rules
from mastermind.zk.artifacts import ArtifactStore, KeySet

COMMAND = [sys.executable, "-m", "mastermind", "duel"]
#: The rules with the fewest guesses that `duel` offers; its circuits are shared with the tests of all rules.
OPTIONS = ["--colours", "6", "--pegs", "3", "--guesses", "8", "--opponent", "strong", "--seed", "3"]
TIMEOUT_S = 120


@pytest.fixture(scope="module")
def environment(store: ArtifactStore, build_key_set: object) -> dict[str, str]:
    assert callable(build_key_set)
    built = build_key_set(Rules.parse("3x6r8"))
    assert isinstance(built, KeySet)
    return {**os.environ, "MASTERMIND_HOME": str(store.home), "TERM": "xterm"}


def through_pipes(environment: dict[str, str], lines: list[str], *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *OPTIONS, *options],
        input="\n".join([*lines, ""]),
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )


def test_a_duel_through_pipes_is_saved_and_can_be_checked(environment: dict[str, str], tmp_path: Path) -> None:
    save = tmp_path / "duel"
    completed = through_pipes(environment, ["CMB", *["000"] * 8], "--save", str(save))
    assert completed.returncode == 0, completed.stderr
    assert "\x1b" not in completed.stdout  # no colours where nobody sees them; the letters differ
    assert "Your code was C M B" in completed.stdout
    for name in ("your-guesses", "computers-guesses"):
        assert Transcript.read(save / f"{name}.json").steps
        verified = subprocess.run(
            [sys.executable, "-m", "mastermind", "game", "verify", str(save / f"{name}.json")],
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert verified.returncode == 0, verified.stderr


def test_inp_5_mistyped_lines_use_no_turn(environment: dict[str, str]) -> None:
    completed = through_pipes(environment, ["CMBR", "cmb", "red,blue", "12a", "00", "", "777", *["000"] * 8], "--json")
    assert completed.returncode == 0, completed.stderr
    *answers, view = map(json.loads, completed.stdout.splitlines())
    assert view["own_code"] == [5, 4, 3]
    assert view["keys"] == "development"
    assert all(guess == [0, 0, 0] for guess in view["boards"][0]["guesses"])
    assert "Traceback" not in completed.stderr
    # A line for each answer, with the newest clue, and one for the end, with the computer's code.
    assert len(answers) == sum(len(board["clues"]) for board in view["boards"])
    for number, answer in enumerate(answers):
        assert [len(board["clues"]) for board in answer["boards"]] == [number // 2 + 1, (number + 1) // 2]
        assert (answer["other_code"], answer["keys"]) == (None, "development")
    assert answers[-1]["boards"] == view["boards"]
    assert view["other_code"] is not None


def test_inp_5_the_end_of_the_input_ends_the_duel(environment: dict[str, str]) -> None:
    """At the first prompt and at a later one: a sentence, and no turn is used."""
    for lines in ([], ["CMB", "000"]):
        completed = through_pipes(environment, lines)
        assert completed.returncode == 2
        assert "the input has ended" in completed.stderr
        assert "Traceback" not in completed.stderr


class Screen:
    """The other end of a pseudo-terminal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.text = ""

    def wait_for(self, pattern: str) -> None:
        """Read until `pattern` occurs in what has come since the last wait."""
        deadline = time.monotonic() + TIMEOUT_S
        while not re.search(pattern, self.text, re.DOTALL):
            assert time.monotonic() < deadline, self.text
            if select.select([self._descriptor], [], [], 0.2)[0]:
                try:
                    self.text += os.read(self._descriptor, 4096).decode("utf-8", "replace")
                except OSError as error:  # the program has ended
                    raise AssertionError(self.text) from error

    def type(self, keys: str) -> None:
        self.text = ""
        for key in keys:
            os.write(self._descriptor, key.encode())


@contextmanager
def terminal(environment: dict[str, str]) -> Iterator[tuple[Screen, subprocess.Popen[bytes]]]:
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*COMMAND, *OPTIONS], stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    try:
        yield Screen(ours), process
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_keys_set_pegs_backspace_takes_them_back_and_enter_sends(environment: dict[str, str]) -> None:
    with terminal(environment) as (screen, process):
        screen.wait_for(r"Your code \(Enter alone draws one\)")
        screen.type("cz9r\x7fmb\r")
        screen.wait_for("Your code is .*C.*M.*B")
        screen.wait_for(r"Guess 1 \(216 codes possible\)")
        screen.type("rr\r\x7f\x7f\x7f000\r")  # Enter sends only a whole code
        screen.wait_for("The computer's answer to you: .*R.*R.*R.*accepted")
        screen.wait_for(r"Guess 2 \(\d+ codes possible\)")
        screen.type("\x04")
        assert process.wait(TIMEOUT_S) == 2
