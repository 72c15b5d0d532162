"""A ceremony of three people for circuits of their own, each with a copy of the project and a home of their own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mastermind.cli import main
from mastermind.cli.output import BAD_INPUT, REJECTED
from mastermind.zk.artifacts import ArtifactStore
from mastermind.zk.contributions import TRANSCRIPT
from mastermind.zk.phase1 import Phase1
from mastermind.zk.tools import Toolchain
from tests.cli.test_cli import Done
from tests.zk.tiny import fresh_store

PROJECT = """
[tool.mastermind.zk.circuits.square]
source = "circuits/square.circom.j2"
parameters = { shift = 2 }
sample = "sample.json"

[tool.mastermind.zk.circuits.plain]
source = "circuits/plain.circom"
protocol = "plonk"
"""
SQUARE = """pragma circom 2.2.0;

template Square(SHIFT) {
    signal input x;
    signal output y <== (x + SHIFT) * x;
}

component main = Square({{ shift }});
"""
BEACON = ("--beacon", "0badcafe" * 4, "--source", "a draw of tomorrow")
PEOPLE = ("Ada", "Zoe", "Bo")


class Person:
    """Gives commands in their own copy of the project."""

    def __init__(self, root: Path, home: Path, patch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.home = home
        self._patch = patch

    def __call__(self, *words: object) -> Done:
        self._patch.chdir(self.root)
        environment = {"MASTERMIND_HOME": str(self.home)}
        result = CliRunner(env=environment).invoke(main, list(map(str, words)))
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Done(result.exit_code, result.stdout, result.stderr)

    def good(self, *words: object) -> Done:
        done = self(*words)
        assert done.exit_code == 0, done.err
        return done


def copy_of_the_project(root: Path) -> None:
    (root / "circuits").mkdir(parents=True)
    (root / "pyproject.toml").write_text(PROJECT, "utf-8")
    (root / "circuits" / "square.circom.j2").write_text(SQUARE, "utf-8")
    (root / "circuits" / "twice.circom.j2").write_text(SQUARE.replace("shift }}", "by }}"), "utf-8")
    (root / "circuits" / "plain.circom").write_text(SQUARE.replace("{{ shift }}", "1"), "utf-8")
    (root / "sample.json").write_text('{"x": 3}', "utf-8")
    (root / "sample.json").chmod(0o600)


@pytest.fixture(scope="module")
def held(
    store: ArtifactStore, toolchain: Toolchain, shared_ptau: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder where three people have held a ceremony for two circuits. Copy before tampering."""
    folder = tmp_path_factory.mktemp("held")
    with pytest.MonkeyPatch.context() as patch:
        people = {}
        for name in PEOPLE:
            fresh_store(folder / name / "home", store.home, phase1=False)
            copy_of_the_project(folder / name / "project")
            people[name] = Person(folder / name / "project", folder / name / "home", patch)
        ptau = shared_ptau / "powersOfTau28_hez_final_08.ptau"
        begin = ("ceremony", "start", "square", "--ptau", ptau)
        people["Ada"].good(*begin, "--out", folder / "0")
        for number, name in enumerate(PEOPLE):
            words = ("ceremony", "contribute", folder / str(number), "--name", name, "--out", folder / str(number + 1))
            people[name].good(*words)
        people["Bo"].good("ceremony", "beacon", folder / "3", *BEACON, "--out", folder / "final")
    return folder


@pytest.fixture
def zoe(held: Path, store: ArtifactStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    """Somebody with a copy of the project that may be changed, and what Zoe has compiled."""
    home = fresh_store(tmp_path / "home", store.home, phase1=False).home
    shutil.copytree(held / "Zoe" / "home" / "compiled", home / "compiled")
    copy_of_the_project(tmp_path / "project")
    return Person(tmp_path / "project", home, monkeypatch)


@pytest.fixture
def final(held: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(held / "final", tmp_path / "final"))


def transcript(folder: Path) -> Any:
    return json.loads((folder / TRANSCRIPT).read_bytes())


def test_everybody_verifies_it_from_their_own_sources_and_uses_the_keys(zoe: Person, final: Path) -> None:
    told = transcript(final)
    assert [made["name"] for made in told["contributions"]] == [*PEOPLE, ""]
    assert (told["circuits"]["square"]["source"], told["circuits"]["square"]["parameters"]) == (
        "circuits/square.circom.j2",
        {},
    )
    # Nothing of the sources travels, and no secret.
    assert {path.name for path in final.iterdir()} == {TRANSCRIPT, "phase1.ptau", "square.zkey"}

    shutil.move(final / "phase1.ptau", final.parent / "public.ptau")
    ptau = ("--ptau", final.parent / "public.ptau")
    published = ("--published", told["contributions"][1]["digest"])
    verified = zoe.good("ceremony", "verify", final, *ptau, *published)
    assert "accepted: 3 contributions to square, a beacon has ended it; phase 1 hermez, ceremony keys" in verified.out
    assert "square: circuits/square.circom.j2" in verified.out
    assert zoe("zk", "prove", "square", "--inputs", "sample.json", "--out", "proof").exit_code == BAD_INPUT

    finished = zoe.good("ceremony", "finish", final, *ptau, "--json").json
    assert (finished["keys"], finished["circuits"][0]["status"]) == ("ceremony", "ceremony")
    zoe.good("zk", "prove", "square", "--inputs", "sample.json", "--out", "proof")
    shown = zoe.good("zk", "verify", "square", "proof", "--verifier", "all", "--json").json
    assert (shown["accepted"], shown["keys"], shown["public"]) == (True, "ceremony", {"y": "15"})
    assert zoe.good("zk", "info", "square", "--json").json["status"] == "ceremony"
    assert "contract Verifier" in zoe.good("zk", "export", "square", "solidity").out
    assert ("square", "ceremony") in [
        (row["name"], row["status"]) for row in zoe.good("zk", "list", "--json").json["circuits"]
    ]


def test_a_setup_leaves_the_keys_of_a_ceremony_in_use(zoe: Person, final: Path) -> None:
    zoe.good("ceremony", "finish", final)
    ptau = ("--ptau", final / "phase1.ptau")
    for words in ((), ptau):
        assert zoe.good("zk", "setup", "square", *words, "--json").json["status"] == "ceremony"
    assert zoe.good("zk", "setup", "square", *ptau, "--force", "--json").json["status"] == "development"
    # And they come back from the folder.
    zoe.good("ceremony", "finish", final)
    assert zoe.good("zk", "setup", "square", "--json").json["status"] == "ceremony"


@pytest.mark.parametrize("name", ["square.zkey", TRANSCRIPT, "manifest.json"])
def test_a_setup_does_not_replace_damaged_keys_of_a_ceremony(zoe: Person, final: Path, name: str) -> None:
    zoe.good("ceremony", "finish", final)
    (damaged,) = (zoe.home / "artifacts").glob(f"*/{name}")
    damaged.write_bytes(b"damaged")
    done = zoe("zk", "setup", "square")
    assert (done.exit_code, done.out) == (BAD_INPUT, "")
    assert "square has damaged keys of a ceremony" in done.err
    assert zoe.good("zk", "setup", "square", "--force", "--json").json["status"] == "development"


def test_no_manifest_makes_keys_those_of_a_ceremony(zoe: Person) -> None:
    zoe.good("zk", "setup", "square")
    (manifest,) = (zoe.home / "artifacts").glob("*/manifest.json")
    content = json.loads(manifest.read_bytes())
    content["setup"]["status"] = "ceremony"
    manifest.write_text(json.dumps(content), "utf-8")
    assert zoe.good("zk", "info", "square", "--json").json["status"].startswith("damaged: ")
    rows = {row["name"]: row["status"] for row in zoe.good("zk", "list", "--json").json["circuits"]}
    assert rows["square"].startswith("damaged: ")


def drop_the_second(final: Path, held: Path) -> None:
    content = transcript(final)
    del content["contributions"][1]
    (final / TRANSCRIPT).write_text(json.dumps(content), "utf-8")


def rename_the_second(final: Path, held: Path) -> None:
    content = transcript(final)
    content["contributions"][1]["name"] = "Eve"
    (final / TRANSCRIPT).write_text(json.dumps(content), "utf-8")


def earlier_key(final: Path, held: Path) -> None:
    shutil.copyfile(held / "1" / "square.zkey", final / "square.zkey")


@pytest.mark.parametrize(
    ("tamper", "named"),
    [
        (drop_the_second, "contribution 2 (Bo)"),
        (rename_the_second, "contribution 2 (Eve)"),
        (earlier_key, "square: contribution 2 (Zoe)"),
    ],
)
def test_a_contribution_that_was_dropped_or_changed_is_named(
    zoe: Person, final: Path, held: Path, tamper: Callable[[Path, Path], None], named: str
) -> None:
    tamper(final, held)
    for command in ("verify", "finish"):
        done = zoe("ceremony", command, final)
        assert (done.exit_code, done.out) == (REJECTED, "")
        assert named in done.err
    assert zoe.good("zk", "info", "square", "--json").json["status"] == "no keys"


@pytest.mark.parametrize(
    ("change", "exit_code"),
    [
        ({"source": "circuits/twice.circom.j2"}, REJECTED),
        ({"parameters": {"shift": 3}}, REJECTED),
        ({"source": "../square.circom.j2"}, BAD_INPUT),
        ({"source": "/square.circom.j2"}, BAD_INPUT),
        ({"parameters": {"shift": [2]}}, BAD_INPUT),
        ({"parameters": None}, BAD_INPUT),
        ({"note": "x"}, BAD_INPUT),
    ],
    ids=str,
)
def test_the_digests_cover_where_the_source_is(
    zoe: Person, final: Path, change: dict[str, object], exit_code: int
) -> None:
    zoe.good("ceremony", "report", final)
    content = transcript(final)
    content["circuits"]["square"].update(change)
    (final / TRANSCRIPT).write_text(json.dumps(content), "utf-8")
    assert zoe("ceremony", "report", final).exit_code == exit_code


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("circuits/square.circom.j2", "(x + SHIFT)", "(x - SHIFT)"),
        ("pyproject.toml", "shift = 2", "shift = 3"),
    ],
    ids=["source", "parameter"],
)
def test_whoever_has_other_sources_is_told_which(zoe: Person, final: Path, path: str, old: str, new: str) -> None:
    text = (zoe.root / path).read_text("utf-8")
    (zoe.root / path).write_text(text.replace(old, new), "utf-8")
    for words in (("verify", final), ("contribute", final, "--name", "Eve", "--out", "out"), ("finish", final)):
        done = zoe("ceremony", *words)
        assert (done.exit_code, done.out) == (REJECTED, "")
        assert "other sources than those here: circuits/square.circom differs" in done.err
    (zoe.root / path).write_text(text, "utf-8")
    zoe.good("ceremony", "verify", final)


def test_whoever_has_no_sources_is_told_so(zoe: Person, final: Path) -> None:
    shutil.rmtree(zoe.root / "circuits")
    (zoe.root / "pyproject.toml").unlink()
    done = zoe("ceremony", "verify", final)
    assert done.exit_code == BAD_INPUT
    assert "circuits/square.circom.j2, is not here" in done.err
    assert "source   square: circuits/square.circom.j2" in zoe.good("ceremony", "report", final).out


@pytest.mark.parametrize("place", ["received", "around", "beside", "below", "linked"])
def test_a_source_is_taken_from_the_project_only(zoe: Person, final: Path, place: str) -> None:
    """A received folder may bring anything, and so may a folder beside or above the project."""
    away = zoe.root.parent / "away"
    shutil.move(zoe.root / "circuits", away)
    if place == "received":
        copy_of_the_project(final)
        zoe.root = final
    elif place == "linked":
        (zoe.root / "circuits").symlink_to(away)
    else:
        found = {"around": zoe.root.parent, "beside": zoe.root.parent / "beside", "below": zoe.root / "below"}[place]
        found.mkdir(exist_ok=True)
        shutil.copytree(away, found / "circuits")
    for words in (("verify", final), ("contribute", final, "--name", "Eve", "--out", final.parent / "out")):
        done = zoe("ceremony", *words)
        assert (done.exit_code, done.out) == (BAD_INPUT, "")
        said = {"received": "is in the folder of the ceremony itself", "linked": "is outside"}.get(place, "is not here")
        assert f"the source of square, circuits/square.circom.j2, {said}" in " ".join(done.err.split())


def test_a_source_is_not_taken_from_a_ceremony_in_the_project(zoe: Person, final: Path) -> None:
    for path in final.iterdir():
        shutil.move(path, zoe.root / "circuits")
    done = zoe("ceremony", "verify", zoe.root / "circuits")
    assert done.exit_code == BAD_INPUT
    assert "in the folder of the ceremony itself" in done.err


def test_whoever_takes_part_sees_which_file_was_compiled(zoe: Person, final: Path) -> None:
    path = zoe.root.resolve() / "circuits" / "square.circom.j2"
    assert f"square: circuits/square.circom.j2 (here {path})" in zoe.good("ceremony", "verify", final).out
    assert zoe.good("ceremony", "verify", final, "--json").json["sources"] == {"square": str(path)}


def test_several_circuits_by_name_and_path_have_one_ceremony(
    zoe: Person, held: Path, store: ArtifactStore, phase1: Phase1, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is given with --param at the start, the others need not know."""
    (zoe.root / "circuits" / "square.circom.j2").write_text(SQUARE.replace("shift }}", "shift + by }}"), "utf-8")
    shutil.copytree(store.home / "phase1", zoe.home / "phase1")
    begin = ("ceremony", "start", "square", "circuits/twice.circom.j2", "--param", "by=7", "--development-phase1")
    begun = zoe.good(*begin, "--out", tmp_path / "0")
    assert "twice: circuits/twice.circom.j2, by = 7" in begun.out
    # From elsewhere in the project too.
    zoe.root = zoe.root / "circuits"
    words = ("--name", "Ada", "--out", tmp_path / "1", "--json")
    made = zoe.good("ceremony", "contribute", tmp_path / "0", *words).json["transcript"]
    assert made["contributions"][0]["circuits"].keys() == {"square", "twice"}
    zoe.good("ceremony", "beacon", tmp_path / "1", *BEACON, "--out", tmp_path / "2")
    zoe.good("ceremony", "finish", tmp_path / "2")
    for circuit in ("square", "twice.circom.j2"):
        assert zoe.good("zk", "info", circuit, "--param", "by=7", "--json").json["status"] == "development"
        assert zoe.good("zk", "info", circuit, "--param", "by=8", "--json").json["status"] == "no keys"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("plain", "--development-phase1"), "plain is proved by plonk and needs no ceremony"),
        (("square",), "give a public phase-1 file"),
        (("sqaure", "--development-phase1"), "no circuit 'sqaure'"),
        (("square", "circuits/square.circom.j2", "--development-phase1"), "two circuits"),
        (("square", "--rules", "classic", "--development-phase1"), "have a ceremony each"),
        (("square", "--circuit", "authorise", "--development-phase1"), "have a ceremony each"),
        (("--param", "by=7", "--development-phase1"), "circuits of your own"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_ceremony_that_cannot_be_is_not_started(zoe: Person, words: tuple[str, ...], said: str) -> None:
    done = zoe("ceremony", "start", *words, "--out", "out")
    assert (done.exit_code, done.out) == (BAD_INPUT, "")
    assert said in done.err
    assert not (zoe.root / "out").exists()
