"""`phase1.mjs`: the development powers of tau are what snarkjs would have made, and a failed run leaves no file."""

from __future__ import annotations

import json
import signal
import subprocess
from importlib import resources
from pathlib import Path

import pytest

from mastermind.errors import InvalidArtifactError, Phase1TooSmallError, ToolFailedError
from mastermind.zk import binfile
from mastermind.zk.artifacts import ArtifactStore
from mastermind.zk.binfile import SectionedFile
from mastermind.zk.phase1 import MAX_POWER, development_phase1, read_power
from mastermind.zk.tools import Toolchain, run
from tests.zk.tiny import fresh_store

POWER = 3
SCRIPT = str(resources.files("mastermind.zk") / "phase1.mjs")


def argv(toolchain: Toolchain, out: Path, power: object = POWER) -> list[str]:
    return [
        str(toolchain.node),
        SCRIPT,
        "--modules",
        str(toolchain.modules),
        "--power",
        str(power),
        "--out",
        str(out),
    ]


@pytest.fixture(scope="module")
def made(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A small file, and what the script printed."""
    path = tmp_path_factory.mktemp("phase1") / "made.ptau"
    return path, run(argv(toolchain, path), timeout_s=60).stdout


def sections(path: Path) -> list[tuple[int, bytes]]:
    file = SectionedFile.open(path, b"ptau")
    return [(number, file.read(number)) for number in file.sections]


def test_it_says_what_it_does_in_json_lines(made: tuple[Path, str]) -> None:
    path, printed = made
    events = [json.loads(line) for line in printed.splitlines()]
    assert [event["event"] for event in events] == ["progress"] * (len(events) - 1) + ["done"]
    points = sum(
        len(content) // (128 if number in {3, 6, 13} else 64)
        for number, content in sections(path)
        if number not in {1, 7}
    )
    assert events[-1] == {"event": "done", "power": POWER, "points": points}
    done = [event["done"] for event in events[:-1]]
    assert done == sorted(done)
    assert done[-1] == points
    assert {event["total"] for event in events[:-1]} == {points}


def test_it_prints_nothing_secret(made: tuple[Path, str]) -> None:
    # Progress and sizes only: no number is longer than a count of points.
    _, printed = made
    for line in printed.splitlines():
        for value in json.loads(line).values():
            assert isinstance(value, str) or value < 1 << 20


def test_the_file_is_one_that_we_take(made: tuple[Path, str]) -> None:
    assert read_power(made[0]) == POWER


def test_snarkjs_verifies_the_file(made: tuple[Path, str], toolchain: Toolchain) -> None:
    shown = run([*toolchain.snarkjs, "powersoftau", "verify", made[0]], timeout_s=120).stdout
    assert "Powers of Tau Ok!" in shown
    assert "DEVELOPMENT ONLY: one party knows tau" in shown


def test_snarkjs_prepares_the_same_bytes(made: tuple[Path, str], toolchain: Toolchain, tmp_path: Path) -> None:
    """The Lagrange sections, computed from tau itself, are what snarkjs gets from the powers by its FFTs."""
    raw, prepared = tmp_path / "raw.ptau", tmp_path / "prepared.ptau"
    kept = [(number, content) for number, content in sections(made[0]) if number < 12]
    assert len(kept) == 7
    raw.write_bytes(binfile.build(b"ptau", 1, kept))
    with pytest.raises(InvalidArtifactError):
        read_power(raw)
    run([*toolchain.snarkjs, "powersoftau", "prepare", "phase2", raw, prepared], timeout_s=120)
    assert sections(prepared) == sections(made[0])
    assert prepared.read_bytes() == made[0].read_bytes()


def test_two_runs_differ(made: tuple[Path, str], toolchain: Toolchain, tmp_path: Path) -> None:
    again = tmp_path / "again.ptau"
    run(argv(toolchain, again), timeout_s=60)
    first, second = dict(sections(made[0])), dict(sections(again))
    assert first[1] == second[1]
    # [tau]_1 is the second point; alpha and beta the first of their sections.
    assert first[2][:64] == second[2][:64], "both start at the generator"
    assert first[2][64:128] != second[2][64:128]
    for number in (4, 5):
        assert first[number][:64] != second[number][:64]


@pytest.mark.parametrize("power", [0, -1, 23, 1.5, "", "x", "1e1", "0x3"])
def test_a_bad_power_is_refused_and_leaves_no_file(toolchain: Toolchain, tmp_path: Path, power: object) -> None:
    with pytest.raises(ToolFailedError) as failure:
        run(argv(toolchain, tmp_path / "out.ptau", power), timeout_s=60)
    assert failure.value.exit_code == 1
    assert failure.value.stderr_tail.startswith("phase1: ")
    assert failure.value.stderr_tail.count("\n") == 0
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_kept(toolchain: Toolchain, tmp_path: Path) -> None:
    out = tmp_path / "out.ptau"
    out.write_bytes(b"precious")
    with pytest.raises(ToolFailedError) as failure:
        run(argv(toolchain, out), timeout_s=60)
    assert failure.value.exit_code == 1
    assert out.read_bytes() == b"precious"


def test_another_snarkjs_is_refused_and_leaves_no_file(toolchain: Toolchain, tmp_path: Path) -> None:
    package = tmp_path / "modules" / "snarkjs"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"version": "0.7.5"}', "utf-8")
    words = argv(toolchain, tmp_path / "out.ptau")
    words[words.index("--modules") + 1] = str(package.parent)
    with pytest.raises(ToolFailedError) as failure:
        run(words, timeout_s=60)
    assert "0.7.5" in failure.value.stderr_tail
    assert not (tmp_path / "out.ptau").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_and_leaves_no_file(toolchain: Toolchain, tmp_path: Path, number: signal.Signals) -> None:
    out = tmp_path / "out.ptau"
    words = argv(toolchain, out, 14)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        # The first line of progress: the file is there, and far from complete.
        assert json.loads(process.stdout.readline())["event"] == "progress"
        assert out.is_file()
        process.send_signal(number)
        assert process.wait(20) == 1
        assert f"stopped by {number.name}" in process.stderr.read()
    assert not out.exists()


def test_it_ends_when_nobody_reads_its_progress(toolchain: Toolchain, tmp_path: Path) -> None:
    out = tmp_path / "out.ptau"
    with subprocess.Popen(argv(toolchain, out, 14), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(30) == 1
    assert not out.exists()


def test_the_development_file_is_made_once_and_kept(store: ArtifactStore, toolchain: Toolchain, tmp_path: Path) -> None:
    home = fresh_store(tmp_path / "home", store.home, phase1=False).home
    first = development_phase1(3, toolchain, home)
    assert (first.origin, first.power) == ("development", 11)
    changed = first.path.stat().st_mtime_ns
    assert development_phase1(11, toolchain, home) == first
    assert first.path.stat().st_mtime_ns == changed
    # A record that says nothing is no record.
    first.path.with_suffix(".json").write_text("{", "utf-8")
    assert development_phase1(3, toolchain, home).digest != first.digest


def test_a_power_beyond_any_file_is_refused(toolchain: Toolchain, tmp_path: Path) -> None:
    with pytest.raises(Phase1TooSmallError):
        development_phase1(MAX_POWER + 1, toolchain, tmp_path)
