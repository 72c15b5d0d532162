"""`mastermind zk`: exit codes, JSON, private values, and every command on one small circuit.

The example project of the documentation goes through real processes in `tests/test_docs.py`.
"""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mastermind.cli import main
from mastermind.cli.output import BAD_INPUT, INTERRUPTED, REJECTED
from mastermind.field import MODULUS
from mastermind.zk.artifacts import ArtifactStore
from mastermind.zk.phase1 import Phase1
from mastermind.zk.r1cs import read_witness
from tests.cli.test_cli import Done, change
from tests.zk.tiny import fresh_store

PROJECT = """
[tool.mastermind.zk.circuits.square]
source = "square.circom.j2"
parameters = { N = 2 }
"""
SQUARE = """pragma circom 2.2.0;

template Square(N) {
    signal input k;
    signal input x[N];
    signal output y <== x[0] * x[1] + k;
}

component main { public [k] } = Square({{ N }});
"""
#: A private value that cannot be mistaken for another.
SECRET = 123456789123456789
INPUTS = {"k": 2, "x": ["3", str(SECRET)]}
OUTPUT = (3 * SECRET + 2) % MODULUS


class Shell:
    """Runs commands in a project's folder, in this process, and checks that each ends on purpose."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root = root
        self._home = home

    def __call__(self, *words: object, stdin: str = "") -> Done:
        result = CliRunner(env={"MASTERMIND_HOME": str(self._home)}).invoke(main, ["zk", *map(str, words)], input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Done(result.exit_code, result.stdout, result.stderr)

    def good(self, *words: object, stdin: str = "") -> Done:
        done = self(*words, stdin=stdin)
        assert done.exit_code == 0, done.err
        return done


@pytest.fixture(scope="module")
def made(store: ArtifactStore, phase1: Phase1, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a project, a home where its circuit has been set up, and a proof. Copy before changing."""
    folder = tmp_path_factory.mktemp("zk")
    fresh_store(folder / "home", store.home)
    root = folder / "project"
    root.mkdir()
    (root / "pyproject.toml").write_text(PROJECT, "utf-8")
    (root / "square.circom.j2").write_text(SQUARE, "utf-8")
    (root / "inputs.json").touch(mode=0o600)
    (root / "inputs.json").write_text(json.dumps(INPUTS), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        shell = Shell(root, folder / "home")
        assert shell.good("setup", "square", "--json").json["status"] == "development"
        shell.good("prove", "square", "--inputs", "inputs.json", "--out", "proof")
    return folder


@pytest.fixture
def zk(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Commands in a copy of the project."""
    root = tmp_path / "project"
    shutil.copytree(made / "project", root)
    monkeypatch.chdir(root)
    return Shell(root, made / "home")


def test_list_says_which_circuits_have_keys(zk: Shell) -> None:
    rows = zk.good("list", "--json").json["circuits"]
    assert rows == [{"name": "square", "source": "square.circom.j2", "protocol": "groth16", "status": "development"}]
    (zk.root / "square.circom.j2").write_text(SQUARE + "\n", "utf-8")
    assert "no keys" in zk.good("list").out
    (zk.root / "pyproject.toml").unlink()
    assert zk.good("list", "--json").json["circuits"] == []


def test_render_fills_in_the_parameters(zk: Shell) -> None:
    assert "Square(2);" in zk.good("render", "square").out
    assert "Square(7);" in zk.good("render", "square", "--param", "N=7").out
    zk.good("render", "square", "--out", "rendered")
    assert "Square(2);" in (zk.root / "rendered" / "square.circom").read_text("utf-8")


@pytest.mark.parametrize("word", ["N", "=3", "N N=3"])
def test_a_parameter_is_a_name_and_a_value(zk: Shell, word: str) -> None:
    assert zk("render", "square", "--param", word).exit_code == BAD_INPUT


def test_compile_gives_the_compilers_files(zk: Shell) -> None:
    assert zk.good("compile", "square", "--out", "compiled", "--json").json["constraints"] == 1
    assert {path.name for path in (zk.root / "compiled").iterdir()} == {"square.r1cs", "square.wasm", "square.sym"}


def test_without_a_name_all_circuits_of_the_project_are_done(zk: Shell) -> None:
    with (zk.root / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write('[tool.mastermind.zk.circuits.again]\nsource = "again.circom"\n')
    (zk.root / "again.circom").write_text(SQUARE.replace("{{ N }}", "2"), "utf-8")
    compiled = zk.good("compile", "--out", "compiled", "--json").json["circuits"]
    assert [(row["circuit"], row["constraints"]) for row in compiled] == [("square", 1), ("again", 1)]
    assert len(list((zk.root / "compiled").iterdir())) == 6
    assert len(zk.good("compile").out.splitlines()) == 2
    rows = zk.good("setup", "--json").json["circuits"]
    assert [(row["circuit"], row["status"]) for row in rows] == [("square", "development"), ("again", "development")]
    assert rows == [zk.good("setup", name, "--json").json for name in ("square", "again")]


def test_all_circuits_are_none_without_a_project(zk: Shell) -> None:
    for command in ("compile", "setup"):
        assert "name it" in zk(command, "--param", "N=3").err
    # One that fails ends it, with nothing for machines to read.
    (zk.root / "square.circom.j2").write_text(SQUARE.replace("+ k", "+ unknown"), "utf-8")
    done = zk("setup", "--json")
    assert (done.exit_code, done.out) == (BAD_INPUT, "")
    (zk.root / "pyproject.toml").unlink()
    for command in ("compile", "setup"):
        done = zk(command)
        assert (done.exit_code, done.out) == (BAD_INPUT, "")
        assert "no circuits are described" in done.err


def test_info_names_the_signals_in_order(zk: Shell) -> None:
    shown = zk.good("info", "square", "--json").json
    assert shown["outputs"] == [{"name": "y", "shape": []}]
    assert shown["public_inputs"] == [{"name": "k", "shape": []}]
    assert shown["private_inputs"] == [{"name": "x", "shape": [2]}]
    assert shown["public_signals"] == ["y", "k"]
    assert (shown["constraints"], shown["phase1_power"]) == (1, 2)
    assert zk.good("info", "square", "--json", "--protocol", "fflonk").json["phase1_power"] == 6
    assert "x[2]" in zk.good("info", "square", "--labels").out


# Private values.


def test_the_witness_shows_public_values_only(zk: Shell) -> None:
    done = zk.good("witness", "square", "--inputs", "inputs.json")
    assert done.out.splitlines() == [f"y = {OUTPUT}", "k = 2"]
    assert str(SECRET) not in done.out + done.err
    shown = zk.good("witness", "square", "--inputs", "inputs.json", "--json")
    assert shown.json == {"outputs": {"y": str(OUTPUT)}, "public": {"k": "2"}}
    asked = zk.good("witness", "square", "--inputs", "inputs.json", "--private").out
    assert f"x[1] = {SECRET}" in asked
    assert f"main.x[1] = {SECRET}" in zk.good("witness", "square", "--inputs", "inputs.json", "--all").out


@pytest.mark.parametrize("name", ["witness.json", "witness.wtns"])
def test_a_written_witness_is_its_owners(zk: Shell, name: str) -> None:
    words = ("witness", "square", "--inputs", "inputs.json", "--out", name)
    assert str(SECRET) not in zk.good(*words).out
    path = zk.root / name
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    if path.suffix == ".json":
        assert json.loads(path.read_bytes())["main.x[1]"] == str(SECRET)
    else:
        assert SECRET in read_witness(path)
    # Nothing is written over.
    assert zk(*words).exit_code == BAD_INPUT


def test_a_witness_is_written_as_json_or_wtns(zk: Shell) -> None:
    assert zk("witness", "square", "--inputs", "inputs.json", "--out", "witness.txt").exit_code == BAD_INPUT


def test_inputs_that_others_can_read_are_pointed_out(zk: Shell) -> None:
    assert zk.good("witness", "square", "--inputs", "inputs.json").err == ""
    (zk.root / "inputs.json").chmod(0o644)
    assert "chmod 600" in zk.good("witness", "square", "--inputs", "inputs.json").err
    assert zk.good("witness", "square", "--inputs", "-", stdin=json.dumps(INPUTS)).err == ""


# Exit codes.


@pytest.mark.parametrize(
    "inputs", ['{"k": 2}', '{"k": 2, "x": [1, 2, 3]}', '{"k": 2, "x": [1, 2], "y": 3}', "[]", "{", '{"k": 1.5}']
)
def test_inputs_that_do_not_fit_are_bad_input(zk: Shell, inputs: str) -> None:
    for command in (("witness",), ("prove", "--out", "other")):
        done = zk(*command, "square", "--inputs", "-", stdin=inputs)
        assert done.exit_code == BAD_INPUT
    assert not (zk.root / "other").exists()


def test_a_circuit_without_keys_is_not_proved(zk: Shell) -> None:
    for protocol in ("plonk", "fflonk"):
        words = ("--protocol", protocol, "--inputs", "inputs.json", "--out", "other")
        done = zk("prove", "square", *words)
        assert done.exit_code == BAD_INPUT
        assert "mastermind zk setup" in done.err


@pytest.mark.parametrize("words", [("info", "sqaure"), ("info", "missing.circom"), ("setup", "square", "--ptau", "no")])
def test_what_is_not_there_is_bad_input(zk: Shell, words: tuple[str, ...]) -> None:
    assert zk(*words).exit_code == BAD_INPUT


def test_a_source_that_does_not_compile_is_bad_input(zk: Shell) -> None:
    (zk.root / "square.circom.j2").write_text(SQUARE.replace("x[1] + k", "x[1] + unknown"), "utf-8")
    done = zk("compile", "square")
    assert done.exit_code == BAD_INPUT
    assert "line 6" in done.err


def test_a_warning_says_what_to_write_to_accept_it(zk: Shell) -> None:
    circuit = SQUARE.replace("    signal output", "    signal unused[2];\n    signal idle;\n    signal output")
    (zk.root / "other.circom").write_text(circuit.replace("{{ N }}", "2"), "utf-8")
    done = zk("compile", "other.circom")
    assert done.exit_code == BAD_INPUT
    lines = done.err[done.err.index("\n[tool.") :]
    with (zk.root / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write(lines)
    # The path means what is described now.
    for name in ("other", "other.circom"):
        assert zk.good("compile", name, "--json").json["constraints"] == 1


def test_a_parameter_that_the_circuit_does_not_have_is_bad_input(zk: Shell) -> None:
    done = zk("info", "square", "--param", "M=3")
    assert done.exit_code == BAD_INPUT
    assert "'M'" in done.err


def test_a_phase_1_that_is_too_small_is_bad_input(zk: Shell, phase1: Phase1) -> None:
    circuit = "bits * (bits - 1) === 0;\n    signal powers[4500];\n    powers[0] <== k * k;\n"
    circuit += "    for (var i = 1; i < 4500; i++) { powers[i] <== powers[i - 1] * powers[i - 1] + k; }"
    circuit = SQUARE.replace("    signal output", f"    signal bits <== k;\n    {circuit}\n    signal output")
    (zk.root / "square.circom.j2").write_text(circuit, "utf-8")
    done = zk("setup", "square", "--ptau", phase1.path, "--accept-private-ptau")
    assert done.exit_code == BAD_INPUT
    assert "needs a phase-1 file of power 13" in done.err


@pytest.mark.parametrize("words", [["--help"], ["zk", "--help"], ["zk", "setup", "--help"], ["ceremony", "--help"]])
def test_help_lists_the_exit_codes(words: list[str]) -> None:
    said = " ".join(CliRunner().invoke(main, words).output.split())
    assert f"2 bad input, 3 a tool failed, {INTERRUPTED} interrupted" in said


def test_a_false_statement_is_rejected_by_template_file_and_line(zk: Shell) -> None:
    circuit = SQUARE.replace(
        "pragma circom 2.2.0;", 'pragma circom 2.2.0;\ninclude "circomlib/circuits/bitify.circom";'
    )
    (zk.root / "byte.circom").write_text(
        circuit.replace("{{ N }}", "2").replace("    signal output", "    _ <== Num2Bits(8)(k);\n    signal output"),
        "utf-8",
    )
    done = zk("witness", "byte.circom", "--inputs", "-", stdin='{"k": 256, "x": [1, 1]}')
    assert done.exit_code == REJECTED
    assert "Num2Bits in circomlib/circuits/bitify.circom, line 38" in done.err


def test_a_project_that_is_not_as_it_should_be_is_bad_input(zk: Shell) -> None:
    (zk.root / "pyproject.toml").write_text(PROJECT.replace("source", "sauce"), "utf-8")
    for command in ("list", "info square"):
        done = zk(*command.split())
        assert done.exit_code == BAD_INPUT
        assert "sauce" in done.err


# Proofs.


def test_verify_accepts_the_proof_and_names_the_statement(zk: Shell) -> None:
    shown = zk.good("verify", "square", "proof", "--json").json
    assert (shown["accepted"], shown["keys"]) == (True, "development")
    assert shown["public"] == {"y": str(OUTPUT), "k": "2"}
    # The path of its source means the same circuit.
    assert zk.good("verify", "square.circom.j2", "proof").out.startswith("native     accepted")


def set_signal(value: object) -> Any:
    def edit(public: list[object]) -> None:
        public[0] = value

    return edit


OTHER_SIGNALS = {"+1": str(OUTPUT + 1), "+r": str(OUTPUT + MODULUS), "a number": OUTPUT, "null": None}


@pytest.mark.parametrize("value", OTHER_SIGNALS.values(), ids=OTHER_SIGNALS)
def test_verify_rejects_another_statement(zk: Shell, value: object) -> None:
    change(zk.root / "proof" / "public.json", set_signal(value))
    done = zk("verify", "square", "proof", "--json")
    assert done.exit_code == REJECTED
    assert (done.json["accepted"], done.json["public"]) == (False, None)


def test_verify_rejects_a_signal_less(zk: Shell) -> None:
    change(zk.root / "proof" / "public.json", lambda public: public.pop())
    assert zk("verify", "square", "proof").exit_code == REJECTED


def test_verify_looks_at_its_own_key_or_the_given_one(zk: Shell) -> None:
    own = (zk.root / "proof" / "verification_key.json").read_text("utf-8")
    (zk.root / "own.json").write_text(own, "utf-8")
    (zk.root / "proof" / "verification_key.json").write_text("{}", "utf-8")
    assert zk("verify", "square", "proof").exit_code == 0
    shown = zk.good("verify", "square", "proof", "--key", "own.json", "--json").json
    assert (shown["accepted"], shown["keys"]) == (True, "foreign")

    def other_alpha(key: dict[str, Any]) -> None:
        key["vk_alpha_1"] = ["1", "2", "1"]

    change(zk.root / "own.json", other_alpha)
    assert zk("verify", "square", "proof", "--key", "own.json").exit_code == REJECTED
    assert zk("verify", "square", "proof", "--key", "proof/verification_key.json").exit_code == BAD_INPUT


def test_a_rejection_says_when_the_proof_came_with_another_key(zk: Shell) -> None:
    change(zk.root / "proof" / "public.json", set_signal(str(OUTPUT + 1)))
    rejected = zk("verify", "square", "proof")
    assert (rejected.exit_code, rejected.err) == (REJECTED, "")

    def other_alpha(key: dict[str, Any]) -> None:
        key["vk_alpha_1"] = ["1", "2", "1"]

    change(zk.root / "proof" / "verification_key.json", other_alpha)
    rejected = zk("verify", "square", "proof")
    assert rejected.exit_code == REJECTED
    assert "verification_key.json is not the key in use" in rejected.err


@pytest.mark.parametrize("as_json", [False, True])
def test_a_proof_of_another_protocol_is_called_one(zk: Shell, as_json: bool) -> None:
    change(zk.root / "proof" / "proof.json", lambda proof: proof.update(protocol="plonk"))
    rejected = zk("verify", "square", "proof", *(["--json"] if as_json else []))
    assert rejected.exit_code == REJECTED
    assert "the proof is one of plonk, and square is set up for groth16" in rejected.out


def test_a_prover_that_the_protocol_does_not_have_is_refused(zk: Shell) -> None:
    done = zk("prove", "square", "--protocol", "plonk", "--prover", "native", "--inputs", "inputs.json", "--out", "o")
    assert done.exit_code == BAD_INPUT


# Exports.


def test_export_writes_key_contract_and_arguments(zk: Shell) -> None:
    assert json.loads(zk.good("export", "square", "key").out) == json.loads(
        (zk.root / "proof" / "verification_key.json").read_bytes()
    )
    zk.good("export", "square", "solidity", "--contract", "Square", "--out", "Square.sol")
    assert "contract Square {" in (zk.root / "Square.sol").read_text("utf-8")
    arguments = json.loads(f"[{zk.good('export', 'square', 'calldata', '--proof', 'proof').out}]")
    assert [int(word, 16) for word in arguments[3]] == [OUTPUT, 2]


def test_no_arguments_are_written_for_a_proof_that_is_not_valid(zk: Shell) -> None:
    assert zk("export", "square", "calldata").exit_code == BAD_INPUT
    change(zk.root / "proof" / "public.json", set_signal(str(OUTPUT + 1)))
    done = zk("export", "square", "calldata", "--proof", "proof")
    assert done.exit_code == REJECTED
    assert done.out == ""


def test_clean_removes_what_this_project_has_built(zk: Shell) -> None:
    # A copy elsewhere has the same sources: those keys are the other folder's.
    assert zk.good("clean", "square", "--json").json["circuit"] == "square"
    assert zk.good("verify", "square", "proof").exit_code == 0
    zk.good("setup", "square")
    assert "artifacts" in zk.good("clean", "square").out
    assert zk("verify", "square", "proof").exit_code == BAD_INPUT
    assert "nothing" in zk.good("clean", "square", "--param", "N=5").out
