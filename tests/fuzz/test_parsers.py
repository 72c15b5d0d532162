"""No parser crashes, hangs, or accepts a second spelling; by changes of our own, and by changes guided by coverage."""

from __future__ import annotations

import json
import os
import platform
import random
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mastermind.field import MODULUS
from mastermind.game.play import Table
from mastermind.referee.requests import METHODS, MakeGuess
from mastermind.zk import binfile
from mastermind.zk.artifacts import VERIFYING_KEY, BuiltCircuit, KeySet
from mastermind.zk.binfile import SectionedFile
from mastermind.zk.evidence import canonical_json, public_json
from mastermind.zk.phase1 import Phase1
from mastermind.zk.prove import NativeProver
from mastermind.zk.r1cs import encode_witness
from mastermind.zk.witness import WitnessCalculator
from tests.fuzz.parsers import FOLDER, PARSERS, feed
from tests.game.games import play
from tests.referee.world import RULES, World

ROOT = Path(__file__).resolve().parents[2]
#: How long each parser is fuzzed, if not for a moment only.
SECONDS = int(os.environ.get("FUZZ_SECONDS", "0"))
MOMENT_S = 1
TIMEOUT_S = 120

Samples = dict[str, bytes]
#: Of the changes that are made to a sample.
SEEDS = st.integers(0, 2**64 - 1)


@pytest.fixture(scope="session")
def samples(
    hit_and_blow: KeySet, products: tuple[object, KeySet], phase1: Phase1, native_prover: NativeProver
) -> Samples:
    """One good input for each parser."""
    tiny: BuiltCircuit = products[1]["product"]
    shutil.copytree(tiny.folder, FOLDER, dirs_exist_ok=True)
    table = Table(RULES, hit_and_blow, native_prover)
    game = play(table, (1, 0, 4, 7), [(5, 7, 2, 6), (1, 0, 4, 7)])
    step = game.transcript.steps[-1]
    values = tiny.spec.check_inputs(tiny.spec.sample())
    witness = WitnessCalculator(tiny.wasm.read_bytes(), "product").calculate(values)
    world = World(hit_and_blow)
    played = world.play([(0, 4, 5, 7)], clues=0)
    log = {
        "format": "mastermind referee log 1",
        "referee_id": str(world.referee_key.id),
        "slot_seconds": 180,
        "rules": RULES.spelling,
        "key_set_id": hit_and_blow.id,
        "game": str(played.game),
        "events": [
            {"event": index, "slot": index, "method": request.method, "request": request.to_json(), "packed": "7"}
            for index, request in enumerate(played.requests)
        ],
    }
    guess = next(request for request in played.requests if isinstance(request, MakeGuess))
    return {
        "proof": canonical_json(step.proof.to_json()),
        "public_signals": canonical_json(public_json(step.step.public_signals)),
        "verifying_key": (tiny.folder / VERIFYING_KEY).read_bytes(),
        "manifest": (tiny.folder / "manifest.json").read_bytes(),
        "transcript": canonical_json(game.transcript.to_json()),
        "certificate": canonical_json(table.certify(game.transcript, game.master, game.kept).to_json()),
        "reveal": canonical_json(table.reveal(game.transcript, game.master, game.kept).to_json()),
        "referee_log": canonical_json(log),
        "referee_request": bytes([METHODS.index(guess.method)]) + canonical_json(guess.to_json()),
        "inputs": b'{"secret": [1, 2, "3"], "salt": "12345678901234567890", "n": 7}',
        "r1cs": tiny.r1cs.read_bytes(),
        "symbols": tiny.sym.read_bytes(),
        "witness": encode_witness(witness),
        "zkey": tiny.zkey.read_bytes(),
        "ptau": phase1.path.read_bytes()[:4096],
    }


@pytest.mark.parametrize("name", [name for name in PARSERS if name != "ptau"])
def test_the_good_sample_is_accepted(samples: Samples, name: str) -> None:
    assert feed(name, samples[name])


def test_a_good_phase_1_is_accepted(samples: Samples, phase1: Phase1) -> None:
    """Too large to be changed in a thousand ways: its parser gets the beginning only."""
    assert feed("ptau", phase1.path.read_bytes())
    assert not feed("ptau", samples["ptau"])


@pytest.mark.parametrize("wire", ["+1", "01", " 1", "1_0", "-0", "-2", "1.0", "\u0661", ""])
def test_a_wire_has_one_spelling(wire: str) -> None:
    assert feed("symbols", b"1,1,0,main.y\n")
    assert not feed("symbols", f"1,{wire},0,main.y\n".encode())


def test_a_signal_has_one_wire() -> None:
    assert feed("symbols", b"1,1,0,main.y\n2,2,0,main.x\n")
    assert not feed("symbols", b"1,1,0,main.y\n2,2,0,main.y\n")


def test_a_wire_comes_once_in_a_linear_combination(samples: Samples) -> None:
    """A second coefficient would silently stand for both."""
    one = struct.pack("<I", 1) + (5).to_bytes(32, "little")
    other = struct.pack("<I", 2) + (5).to_bytes(32, "little")
    header = SectionedFile.open(FOLDER / "product.r1cs", b"r1cs").read(1)

    def system(*terms: bytes) -> bytes:
        row = struct.pack("<I", len(terms)) + b"".join(terms) + bytes(8)
        counted = header[:-4] + struct.pack("<I", 1)
        return binfile.build(b"r1cs", 1, [(1, counted), (2, row)])

    assert feed("r1cs", system(one, other))
    assert not feed("r1cs", system(one, one))


@pytest.mark.parametrize(("version", "order"), [(1, [1, 2]), (2, [2, 1]), (2, [1, 2, 3])])
def test_a_witness_has_one_version_and_two_sections(samples: Samples, version: int, order: list[int]) -> None:
    path = FOLDER / "good.wtns"
    path.write_bytes(samples["witness"])
    file = SectionedFile.open(path, b"wtns")
    parts = {1: file.read(1), 2: file.read(2), 3: b""}
    assert feed("witness", binfile.build(b"wtns", 2, [(number, parts[number]) for number in (1, 2)]))
    assert not feed("witness", binfile.build(b"wtns", version, [(number, parts[number]) for number in order]))


def test_a_format_is_a_number_and_no_truth_value(samples: Samples) -> None:
    assert feed("manifest", samples["manifest"])
    assert b'"format": 1' in samples["manifest"]
    assert not feed("manifest", samples["manifest"].replace(b'"format": 1', b'"format": true'))


NUMBERS = [b"0", b"00", b"-0", b"+1", b"1e3", b"1.0", b"0x10", b" 1", b"1_0", "\u0661".encode(), b"4294967296"]
NUMBERS += [str(number).encode() for number in (MODULUS - 1, MODULUS, MODULUS + 1, 2**64, 2**256, -1)]
PIECES = [b"", b"\x00", b"\xff\xff\xff\xff", b'"', b"{", b"[" * 100, b"null", b"true", b",", b"NaN", *NUMBERS]


def changed(good: bytes, seed: int) -> bytes:
    """Bytes of a good input with a few places changed: cut out, doubled, put in, or a number for another."""
    chance = random.Random(seed)
    data = good
    for _ in range(chance.randint(1, 3)):
        at = chance.randint(0, len(data))
        end = min(len(data), at + chance.randint(0, 40))
        numbers = list(re.finditer(rb"\d+", data))
        match chance.choice(["piece", "bytes", "flip", "double", "number"]):
            case "piece":
                data = data[:at] + chance.choice(PIECES) + data[end:]
            case "bytes":
                data = data[:at] + chance.randbytes(chance.randint(0, 8)) + data[end:]
            case "flip" if at < len(data):
                data = data[:at] + bytes([data[at] ^ chance.randint(1, 255)]) + data[at + 1 :]
            case "double":
                data = data[:end] + data[at:end] + data[end:]
            case "number" if numbers:
                found = chance.choice(numbers)
                data = data[: found.start()] + chance.choice(NUMBERS) + data[found.end() :]
    return data


@pytest.mark.parametrize("name", PARSERS)
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=SEEDS)
def test_changed_bytes_break_no_parser(samples: Samples, name: str, seed: int) -> None:
    feed(name, changed(samples[name], seed))


ODD: list[Any] = [None, True, False, 0, -1, 7, 2**70, 1.5, "", "0", "00", "x", str(MODULUS), [], {}, [[]], "1" * 5000]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where there is something in a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in items for found in places(item, (*path, key)))]


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy


JSON_PARSERS = [name for name in PARSERS if name not in ("r1cs", "symbols", "witness", "zkey", "ptau")]


@pytest.mark.parametrize("name", JSON_PARSERS)
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=SEEDS)
def test_changed_values_break_no_parser(samples: Samples, name: str, seed: int) -> None:
    chance = random.Random(seed)
    good = samples[name]
    start = 1 if name == "referee_request" else 0
    value = json.loads(good[start:])
    bad = put(value, chance.choice(places(value)), chance.choice(ODD))
    feed(name, good[:start] + json.dumps(bad).encode())


#: In every run of the tests; `make fuzz` takes all parsers.
GUIDED = ("proof", "transcript", "r1cs", "witness")


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="atheris has programs for Linux on x86-64 only"
)
@pytest.mark.parametrize("name", PARSERS if SECONDS else GUIDED)
def test_guided_by_coverage(samples: Samples, name: str, tmp_path: Path) -> None:
    """A few seconds here; `make fuzz` goes on for longer. Slow inputs and large ones are faults too."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "good").write_bytes(samples[name])
    completed = subprocess.run(
        [
            sys.executable, "-m", "tests.fuzz.guided", name, str(corpus),
            f"-max_total_time={SECONDS or MOMENT_S}", "-timeout=10", "-rss_limit_mb=1024", "-seed=1",
            f"-artifact_prefix={tmp_path}/",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS + TIMEOUT_S,
        check=False,
    )  # fmt: skip
    assert completed.returncode == 0, completed.stdout + completed.stderr
