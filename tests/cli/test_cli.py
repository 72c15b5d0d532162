"""The command line: exit codes, JSON, secrets, and no traceback whatever comes in.

What a shell sees is tested through real processes (`mastermind`); long tables run in this one (`invoke`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from mastermind.cli import main
from mastermind.cli.output import default_home
from mastermind.field import COORDINATE_MODULUS, MODULUS
from mastermind.rules import NAMED_RULES, Rules
from mastermind.zk.artifacts import VERIFYING_KEY, KeySet

ROOT = Path(__file__).resolve().parents[2]
CIRCUITS = ("authorise", "open_game", "make_guess", "give_clue", "certify_game")


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    exit_code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def mastermind(
    *words: object,
    cwd: Path = ROOT,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 60,
) -> Done:
    """Run the command in a process of its own, and check that it never shows a traceback."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MASTERMIND_HOME": str(default_home()), **(env or {})}
    done = subprocess.run(
        [sys.executable, "-m", "mastermind", *map(str, words)],
        cwd=cwd,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env=environment,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def invoke(*words: object, stdin: str = "") -> Done:
    """Run the command in this process, and check that it ends on purpose."""
    result = CliRunner(env={"MASTERMIND_HOME": str(default_home())}).invoke(main, [*map(str, words)], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return Done(result.exit_code, result.stdout, result.stderr)


def no_node(tmp_path: Path) -> dict[str, str]:
    """An environment without any program."""
    (tmp_path / "empty").mkdir(exist_ok=True)
    return {"PATH": str(tmp_path / "empty")}


@pytest.fixture(scope="module")
def proved(hit_and_blow: KeySet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of one proof of `give_clue`. Copy before tampering."""
    folder = tmp_path_factory.mktemp("proved")
    assert mastermind("sample", "give_clue", "--out", folder / "inputs.json").exit_code == 0
    done = mastermind("prove", "give_clue", "--inputs", folder / "inputs.json", "--out", folder / "turn", timeout_s=20)
    assert done.exit_code == 0, done.err
    assert done.err == ""
    return folder


@pytest.fixture
def turn(proved: Path, tmp_path: Path) -> Path:
    """A copy of the proof, to be tampered with."""
    shutil.copytree(proved / "turn", tmp_path / "turn")
    return tmp_path / "turn"


def change(path: Path, edit: Any) -> None:
    content = json.loads(path.read_bytes())
    edit(content)
    path.write_text(json.dumps(content), "utf-8")


# Help.


def commands(
    command: click.Command = main, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        for name, sub in command.commands.items():
            yield from commands(sub, (*words, name))


@pytest.mark.parametrize("words", [words for words, _ in commands()], ids=" ".join)
def test_every_command_has_help_with_an_example(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, [*words, "--help"], prog_name="mastermind")
    assert result.exit_code == 0
    # A line of its own, unlike the usage, with the command as one would type it.
    assert re.search(rf"^ +mastermind {' '.join(words)}", result.output, re.MULTILINE)


@pytest.mark.parametrize("words", [(), ("build",), ("verify",)], ids=" ".join)
def test_help_through_a_real_process(words: tuple[str, ...]) -> None:
    done = mastermind(*words, "--help", timeout_s=20)
    assert done.exit_code == 0
    assert done.out.startswith("Usage: ")
    assert done.err == ""


def test_the_installed_command_is_the_same() -> None:
    script = Path(sys.executable).parent / "mastermind"
    shown = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=20, check=True)
    assert shown.stdout == mastermind("--version").out


# SIL-3: exit codes.


def test_sil_3_a_valid_proof_exits_0(proved: Path) -> None:
    done = mastermind("verify", proved / "turn", timeout_s=20)
    assert done.exit_code == 0
    assert "accepted" in done.out
    assert "development keys" in done.out
    assert done.err == ""


def test_sil_3_all_verifiers_agree(proved: Path) -> None:
    done = mastermind("verify", proved / "turn", "--verifier", "all", "--json")
    assert done.exit_code == 0
    assert [(check["verifier"], check["accepted"]) for check in done.json["checks"]] == [
        ("native", True),
        ("reference", True),
        ("snarkjs", True),
    ]


@pytest.mark.parametrize("index", [0, 4])
def test_sil_3_an_altered_public_file_exits_1(turn: Path, index: int) -> None:
    def plus_one(signals: list[str]) -> None:
        signals[index] = str((int(signals[index]) + 1) % MODULUS)

    change(turn / "public.json", plus_one)
    done = mastermind("verify", turn)
    assert done.exit_code == 1
    assert "rejected" in done.out
    assert "accepted" not in done.out


def test_sil_3_one_verifier_that_rejects_is_enough(turn: Path) -> None:
    change(
        turn / "proof.json", lambda proof: proof["pi_a"].__setitem__(1, str(COORDINATE_MODULUS - int(proof["pi_a"][1])))
    )
    done = mastermind("verify", turn, "--verifier", "all", "--json")
    assert done.exit_code == 1
    assert done.json["accepted"] is False
    assert done.json["public"] is None
    assert [check["accepted"] for check in done.json["checks"]] == [False, False, False]


ALTERED: dict[str, tuple[str, Any]] = {
    "signal + r": ("public.json", lambda signals: signals.__setitem__(2, str(int(signals[2]) + MODULUS))),
    "signal missing": ("public.json", lambda signals: signals.pop()),
    "no signals": ("public.json", lambda signals: signals.clear()),
    "proof without pi_b": ("proof.json", lambda proof: proof.pop("pi_b")),
    "protocol": ("proof.json", lambda proof: proof.update(protocol="plonk")),
    "key without delta": (VERIFYING_KEY, lambda key: key.pop("vk_delta_2")),
    "key with a short IC": (VERIFYING_KEY, lambda key: key["IC"].pop()),
}


@pytest.mark.parametrize(("name", "edit"), ALTERED.values(), ids=ALTERED)
def test_vin_7_malformed_evidence_exits_1_with_a_reason(turn: Path, name: str, edit: Any) -> None:
    change(turn / name, edit)
    done = invoke("verify", turn, "--json")
    assert done.exit_code == 1
    assert done.json["accepted"] is False
    assert done.json["reason"]


@pytest.mark.parametrize("name", ["proof.json", "public.json", VERIFYING_KEY])
@pytest.mark.parametrize("content", [None, "", "{", "<html>", '{"a": 1.5}', '{"a": 1, "a": 1}'], ids=str)
def test_sil_3_a_missing_or_unreadable_file_exits_2(turn: Path, name: str, content: str | None) -> None:
    if content is None:
        (turn / name).unlink()
    else:
        (turn / name).write_text(content, "utf-8")
    done = invoke("verify", turn)
    assert done.exit_code == 2
    assert name in done.err
    assert done.out == ""


def test_sil_3_a_missing_file_exits_2_through_a_real_process(turn: Path) -> None:
    (turn / "proof.json").unlink()
    done = mastermind("verify", turn)
    assert done.exit_code == 2
    assert "proof.json" in done.err
    assert mastermind("verify", turn / "nowhere").exit_code == 2


@pytest.mark.parametrize("words", [["build"], ["tools"], ["demo"]], ids=" ".join)
def test_sil_3_a_missing_tool_exits_3(tmp_path: Path, words: list[str]) -> None:
    done = mastermind(*words, "--home", tmp_path / "home", env=no_node(tmp_path))
    assert done.exit_code == 3
    assert "Node 18" in done.err
    assert done.out == ""


def test_sil_3_a_verifier_without_its_tool_exits_3(proved: Path, tmp_path: Path) -> None:
    assert mastermind("verify", proved / "turn", env=no_node(tmp_path)).exit_code == 0
    done = mastermind("verify", proved / "turn", "--verifier", "snarkjs", env=no_node(tmp_path))
    assert done.exit_code == 3
    assert "Node 18" in done.err


def test_output_that_nobody_reads_on_is_no_error(proved: Path) -> None:
    argv = [sys.executable, "-m", "mastermind", "verify", str(proved / "turn"), "--json"]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_an_interrupted_command_is_no_verdict(proved: Path, tmp_path: Path) -> None:
    # A Node that says its version, and then that it is at work, which never ends.
    (tmp_path / "node").write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo v20.0.0 && exit\n: > {tmp_path}/at_work\nexec sleep 600\n', "utf-8"
    )
    (tmp_path / "node").chmod(0o755)
    argv = [sys.executable, "-m", "mastermind", "verify", str(proved / "turn"), "--verifier", "snarkjs"]
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with subprocess.Popen(
        argv, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        end = time.monotonic() + 30
        while not (tmp_path / "at_work").exists() and time.monotonic() < end:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    for text in (CliRunner().invoke(main, ["verify", "--help"]).output, (ROOT / "README.md").read_text("utf-8")):
        assert "130 interrupted" in text
    assert out == ""
    assert "Traceback" not in err


# Keys that are not ours.


@pytest.fixture
def strangers_turn(turn: Path, tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A good proof, and the environment of somebody who has no keys."""
    return turn, {"MASTERMIND_HOME": str(tmp_path / "home")}


def test_an_unknown_key_is_refused_unless_it_is_trusted(strangers_turn: tuple[Path, dict[str, str]]) -> None:
    folder, env = strangers_turn
    done = mastermind("verify", folder, "--json", env=env)
    assert done.exit_code == 1
    assert done.json["accepted"] is False
    assert done.json["checks"] == []
    assert "--trust-key" in done.json["reason"]

    done = mastermind("verify", folder, "--json", "--trust-key", env=env)
    assert done.exit_code == 0
    assert done.json["accepted"] is True
    assert done.json["keys"] == "unknown"
    assert done.json["circuit"] is None
    assert "none of your key sets" in mastermind("verify", folder, "--trust-key", env=env).out


def test_a_key_of_ours_under_another_circuits_proof_is_rejected(turn: Path, hit_and_blow: KeySet) -> None:
    key = hit_and_blow["certify_game"].verifying_key.to_json()
    (turn / VERIFYING_KEY).write_text(json.dumps(key), "utf-8")
    assert mastermind("verify", turn).exit_code == 1


# JSON.


def test_build_with_nothing_to_do_says_what_there_is(hit_and_blow: KeySet) -> None:
    done = mastermind("build", "--json")
    assert done.exit_code == 0
    assert done.err == ""
    (shown,) = done.json
    assert shown["key_set_id"] == hit_and_blow.id
    assert shown["status"] == "development"
    assert [circuit["name"] for circuit in shown["circuits"]] == list(CIRCUITS)
    for circuit in shown["circuits"]:
        assert circuit["key_digest"] == hit_and_blow[circuit["name"]].verifying_key.digest
        assert circuit["setup"]["status"] == "development"


def test_circuits_shows_every_key_set(hit_and_blow: KeySet) -> None:
    shown = {key_set["spelling"]: key_set for key_set in mastermind("circuits", "--json").json if "spelling" in key_set}
    assert shown["4x8u7"]["rules"] == "hit-and-blow"
    assert shown["4x8u7"]["key_set_id"] == hit_and_blow.id
    plain = mastermind("circuits").out
    assert "hit-and-blow (4x8u7)" in plain
    assert "development keys" in plain
    assert "2 contributions" in plain


def test_circuits_without_any_says_how_to_start(tmp_path: Path) -> None:
    assert "mastermind build" in mastermind("circuits", "--home", tmp_path / "home").out
    assert mastermind("circuits", "--home", tmp_path / "home", "--json").json == []


def test_rules_shows_the_named_rules() -> None:
    shown = mastermind("rules", "--json").json
    assert {entry["name"]: Rules.parse(entry["spelling"]) for entry in shown} == NAMED_RULES
    for entry in shown:
        rules = NAMED_RULES[entry["name"]]
        assert entry["codes"] == rules.code_count
        assert (entry["pegs"], entry["colours"], entry["repeats"], entry["attempts"]) == (
            rules.pegs,
            rules.colours,
            rules.repeats,
            rules.attempts,
        )
    plain = mastermind("rules").out
    assert all(name in plain for name in NAMED_RULES)


def test_tools_shows_the_versions() -> None:
    shown = mastermind("tools", "--json").json
    assert shown["circom"].startswith("2.2.3 ")
    assert shown["snarkjs"] == "0.7.6"
    assert shown["home"] == str(default_home())
    assert "2.2.3" in mastermind("tools").out


def test_prove_and_verify_print_json(proved: Path, tmp_path: Path) -> None:
    done = mastermind("prove", "give_clue", "--inputs", proved / "inputs.json", "--out", tmp_path / "out", "--json")
    inputs = json.loads((proved / "inputs.json").read_bytes())
    assert done.json["prover"] == "native"
    assert done.json["keys"] == "development"
    assert done.json["public"] == {name: inputs[name] for name in done.json["public"]}
    for secret in ("salt", "key"):
        assert inputs[secret] not in done.out + done.err
    shown = mastermind("verify", tmp_path / "out", "--json").json
    assert shown["accepted"] is True
    assert shown["circuit"] == "give_clue"
    assert shown["keys"] == "development"
    assert shown["public"] == done.json["public"]


# Samples, inputs, proofs.


@pytest.mark.parametrize("circuit", CIRCUITS)
def test_a_sample_can_be_proved_and_verified(circuit: str, hit_and_blow: KeySet, tmp_path: Path) -> None:
    run = mastermind if circuit == "authorise" else invoke
    assert run("sample", circuit, "--out", tmp_path / "inputs.json", "--json").json["circuit"] == circuit
    words = ["prove", circuit, "--inputs", tmp_path / "inputs.json", "--out", tmp_path / "out"]
    assert run(*words, "--prover", "snarkjs" if circuit == "authorise" else "auto").exit_code == 0
    done = run("verify", tmp_path / "out", "--json")
    assert done.exit_code == 0
    assert done.json["circuit"] == circuit


def test_com_9_a_sample_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        done = mastermind("sample", "give_clue", "--out", tmp_path / "inputs.json")
    finally:
        os.umask(old)
    assert done.exit_code == 0
    assert stat.S_IMODE((tmp_path / "inputs.json").stat().st_mode) == 0o600
    inputs = json.loads((tmp_path / "inputs.json").read_bytes())
    assert inputs["salt"] not in done.out + done.err


def test_a_sample_overwrites_nothing(tmp_path: Path) -> None:
    path = tmp_path / "inputs.json"
    path.write_text("precious", "utf-8")
    done = mastermind("sample", "give_clue", "--out", path)
    assert done.exit_code == 2
    assert str(path) in done.err
    assert path.read_text("utf-8") == "precious"


@pytest.mark.parametrize(("mode", "warned"), [(0o600, False), (0o604, True)])
@pytest.mark.parametrize("stdin", [False, True], ids=["file", "stdin"])
def test_com_9_inputs_that_others_can_read_are_pointed_out(
    proved: Path, tmp_path: Path, mode: int, warned: bool, stdin: bool
) -> None:
    path = tmp_path / "inputs.json"
    shutil.copy(proved / "inputs.json", path)
    path.chmod(mode)
    argv = [sys.executable, "-m", "mastermind", "prove", "give_clue", "--out", str(tmp_path / "out"), "--inputs"]
    with path.open("rb") as file:
        done = subprocess.run(
            [*argv, "-" if stdin else str(path)],
            stdin=file if stdin else subprocess.DEVNULL,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0
    assert ("chmod 600" in done.stderr) is warned


def test_inputs_may_come_through_a_pipe(proved: Path, tmp_path: Path) -> None:
    text = (proved / "inputs.json").read_text("utf-8")
    done = mastermind("prove", "give_clue", "--inputs", "-", "--out", tmp_path / "out", stdin=text)
    assert done.exit_code == 0
    assert done.err == ""


def test_a_false_statement_makes_no_proof_and_shows_no_secret(proved: Path, tmp_path: Path) -> None:
    inputs = json.loads((proved / "inputs.json").read_bytes())
    inputs["clue"] = str((int(inputs["clue"]) + 1) % 64)
    done = mastermind("prove", "give_clue", "--inputs", "-", "--out", tmp_path / "out", stdin=json.dumps(inputs))
    assert done.exit_code == 1
    assert done.out == ""
    assert inputs["salt"] not in done.err
    assert inputs["key"] not in done.err
    assert not (tmp_path / "out").exists()


INPUTS: dict[str, Any] = {
    "inp-1 an unsafe number": lambda inputs: inputs.update(salt=123456789012345678901234567890),
    "inp-1 a fraction": lambda inputs: inputs.update(salt=1.5),
    "inp-1 r": lambda inputs: inputs.update(salt=str(MODULUS)),
    "inp-3 three pegs": lambda inputs: inputs["secret"].pop(),
    "inp-3 five pegs": lambda inputs: inputs["secret"].append("5"),
    "inp-3 an unknown name": lambda inputs: inputs.update(pepper="1"),
    "inp-3 no salt": lambda inputs: inputs.pop("salt"),
    "words": lambda inputs: inputs.update(secret=["red", "blue", "green", "white"]),
}


@pytest.mark.parametrize("edit", INPUTS.values(), ids=INPUTS)
def test_inp_5_bad_inputs_exit_2_and_make_no_proof(proved: Path, tmp_path: Path, edit: Any) -> None:
    inputs = json.loads((proved / "inputs.json").read_bytes())
    salt = inputs["salt"]
    edit(inputs)
    done = invoke("prove", "give_clue", "--inputs", "-", "--out", tmp_path / "out", stdin=json.dumps(inputs))
    assert done.exit_code == 2
    assert done.out == ""
    assert done.err.startswith("mastermind: ")
    assert done.err.count("\n") == 1
    assert salt not in done.err
    assert not (tmp_path / "out").exists()


BAD_WORDS: dict[str, Sequence[str]] = {
    "no such command": ["prov"],
    "no such option": ["build", "--fast"],
    "no circuit": ["prove"],
    "no such circuit": ["prove", "take_guess", "--inputs", "-", "--out", "x"],
    "no inputs": ["prove", "give_clue", "--out", "x"],
    "inputs not there": ["prove", "give_clue", "--inputs", "nowhere.json", "--out", "x"],
    "inputs a folder": ["prove", "give_clue", "--inputs", ".", "--out", "x"],
    "empty inputs": ["prove", "give_clue", "--inputs", "-", "--out", "x"],
    "no such prover": ["prove", "give_clue", "--inputs", "-", "--out", "x", "--prover", "magic"],
    "no such verifier": ["verify", ".", "--verifier", "trust"],
    "nothing to verify": ["verify", "."],
    "no such rules": ["build", "--rules", "9x9r9"],
    "misspelled rules": ["build", "--rules", "4x6"],
    "empty rules": ["build", "--rules", ""],
    "impossible rules": ["build", "--rules", "5x4u10"],
    "rules that are not built": ["prove", "give_clue", "--rules", "2x3r3", "--inputs", "inputs.json", "--out", "x"],
    "phase 1 not there": ["build", "--ptau", "nowhere.ptau"],
    "phase 1 is none": ["build", "--ptau", "inputs.json"],
    "phase 1 is none, whatever it takes": ["build", "--ptau", "inputs.json", "--accept-private-ptau"],
    "seed is no number": ["demo", "--seed", "x"],
    "sample into no folder": ["sample", "give_clue", "--out", "no/where"],
    "sample over a folder": ["sample", "give_clue", "--out", "."],
    "proof over a file": ["prove", "give_clue", "--out", "inputs.json", "--inputs", "inputs.json"],
    "proof below a file": ["prove", "give_clue", "--inputs", "inputs.json", "--out", "inputs.json/out"],
    "home is a file": ["circuits", "--home", "inputs.json"],
}


@pytest.mark.parametrize("words", BAD_WORDS.values(), ids=BAD_WORDS)
def test_bad_words_exit_2_with_a_sentence(
    proved: Path, hit_and_blow: KeySet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Sequence[str]
) -> None:
    shutil.copy(proved / "inputs.json", tmp_path)
    monkeypatch.chdir(tmp_path)
    done = invoke(*words)
    assert done.exit_code == 2
    assert done.err
    assert done.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["inputs.json"]


# A home that is damaged.


def test_art_4_a_damaged_key_is_named_and_vouches_for_nothing(
    hit_and_blow: KeySet, proved: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    for folder in ("key_sets", "known"):
        if (default_home() / folder).is_dir():
            shutil.copytree(default_home() / folder, home / folder)
    for circuit in hit_and_blow.circuits.values():
        shutil.copytree(circuit.folder, home / "artifacts" / circuit.digest)
    env = {"MASTERMIND_HOME": str(home)}
    assert mastermind("verify", proved / "turn", env=env).exit_code == 0

    zkey = home / "artifacts" / hit_and_blow["give_clue"].digest / "give_clue.zkey"
    zkey.write_bytes(zkey.read_bytes()[:-1])
    done = mastermind("prove", "give_clue", "--inputs", proved / "inputs.json", "--out", tmp_path / "out", env=env)
    assert done.exit_code == 2
    assert str(zkey) in done.err
    done = mastermind("verify", proved / "turn", "--json", env=env)
    assert done.exit_code == 1
    assert done.json["checks"] == []
    done = mastermind("circuits", "--json", env=env)
    assert done.exit_code == 0
    assert any("give_clue.zkey" in key_set.get("error", "") for key_set in done.json)


# The demonstration.


@pytest.mark.thorough
def test_the_demo_repeats_its_board_for_a_seed(hit_and_blow: KeySet) -> None:
    first, second = (mastermind("demo", "--seed", "7", "--json") for _ in range(2))
    assert first.exit_code == second.exit_code == 0
    assert first.err == second.err == ""
    board = ("secret", "guesses", "clues", "winner", "rules")
    assert {name: first.json[name] for name in board} == {name: second.json[name] for name in board}
    rules = Rules.parse("hit-and-blow")
    for guess, clue in zip(first.json["guesses"], first.json["clues"], strict=True):
        assert rules.score(first.json["secret"], guess) == (clue["hits"], clue["blows"])
    assert first.json["accepted"] is True
    other = mastermind("demo", "--seed", "8", "--json")
    assert other.json["secret"] != first.json["secret"]


def test_the_demo_shows_every_step_verified(hit_and_blow: KeySet) -> None:
    done = mastermind("demo", "--seed", "7")
    assert done.exit_code == 0
    assert "accepted" in done.out
    assert "Development keys" in done.out
    assert "Certificate" in done.out
