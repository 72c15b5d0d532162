"""Keys that let anyone prove anything, and what a key says about who made it.

A key whose phase 2 was skipped has delta = gamma. Under it A = alpha, B = beta, C = -(IC_0 + sum x_i IC_i) verifies for
any x, so these tests forge a false clue for such a key, show that libraries accept it, and that every door is shut.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import groth16py
import pytest
from click.testing import CliRunner
from py_ecc import optimized_bn128 as bn128

from mastermind.cli import main
from mastermind.errors import InsecureKeyError, InvalidArtifactError, SetupError, ToolFailedError
from mastermind.field import random_field_element
from mastermind.packing import pack_clue, pack_code
from mastermind.rules import Clue, Rules
from mastermind.zk import binfile
from mastermind.zk.artifacts import VERIFYING_KEY, ArtifactStore, BuiltCircuit, KeySet
from mastermind.zk.binfile import SectionedFile
from mastermind.zk.compile import CompiledCircuit
from mastermind.zk.curve import G1_GENERATOR, G2_GENERATOR, G1Point, G2Point
from mastermind.zk.evidence import Proof, VerifyingKey, public_json
from mastermind.zk.pairing import to_py_ecc_g1
from mastermind.zk.phase1 import Phase1
from mastermind.zk.prove import NativeProver, self_test
from mastermind.zk.setup import CONTRIBUTOR, make_keys
from mastermind.zk.tools import Completed, Toolchain, run
from mastermind.zk.verify import NativeVerifier
from mastermind.zk.zkey import ZkeyHeader
from tests.zk.tiny import copied, product, product_inputs, sign_again

RULES = Rules.parse("hit-and-blow")


@dataclass(frozen=True)
class Initial:
    """What `snarkjs groth16 setup` leaves: a key that nobody has contributed to."""

    zkey: Path
    key: dict[str, Any]


def snarkjs(toolchain: Toolchain, *words: object) -> Completed:
    return run([*toolchain.snarkjs, *map(str, words)], timeout_s=120)


def make_initial(circuit: BuiltCircuit, phase1: Phase1, toolchain: Toolchain, folder: Path) -> Initial:
    zkey, key = folder / "initial.zkey", folder / "initial.json"
    snarkjs(toolchain, "groth16", "setup", circuit.r1cs, phase1.path, zkey)
    snarkjs(toolchain, "zkey", "export", "verificationkey", zkey, key)
    return Initial(zkey, json.loads(key.read_bytes()))


@pytest.fixture(scope="module")
def give_clue(hit_and_blow: KeySet) -> BuiltCircuit:
    return hit_and_blow["give_clue"]


@pytest.fixture(scope="module")
def initial(
    give_clue: BuiltCircuit, phase1: Phase1, toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory
) -> Initial:
    """The initial key of the real `give_clue`."""
    return make_initial(give_clue, phase1, toolchain, tmp_path_factory.mktemp("initial"))


@pytest.fixture(scope="module")
def tiny_initial(
    products: tuple[ArtifactStore, KeySet],
    phase1: Phase1,
    toolchain: Toolchain,
    tmp_path_factory: pytest.TempPathFactory,
) -> Initial:
    return make_initial(products[1]["product"], phase1, toolchain, tmp_path_factory.mktemp("tiny_initial"))


@pytest.fixture(scope="module")
def tiny(products: tuple[ArtifactStore, KeySet]) -> BuiltCircuit:
    return products[1]["product"]


@pytest.fixture(scope="module")
def false_clue() -> tuple[int, ...]:
    """A statement that is false whatever the secret: four hits for a guess that is no solution of this hash."""
    guess = pack_code(RULES, (0, 1, 2, 3))
    return random_field_element(), random_field_element(), 2, guess, pack_clue(RULES, Clue(4, 0))


def forge(key: dict[str, Any], public_signals: tuple[int, ...]) -> Proof:
    """The proof that anyone can write for a key with delta = gamma; uses the verifying key only."""
    points = [to_py_ecc_g1(G1Point(int(x), int(y))) for x, y, _ in key["IC"]]
    terms = [bn128.multiply(point, signal) for point, signal in zip(points[1:], public_signals, strict=True)]
    c = bn128.normalize(bn128.neg(reduce(bn128.add, terms, points[0])))
    return Proof.parse(
        {
            "pi_a": key["vk_alpha_1"],
            "pi_b": key["vk_beta_2"],
            "pi_c": [str(int(c[0])), str(int(c[1])), "1"],
            "protocol": "groth16",
            "curve": "bn128",
        }
    )


# SET-1: the attack, and every door.


def test_set_1_the_attack_is_real(
    initial: Initial, false_clue: tuple[int, ...], toolchain: Toolchain, tmp_path: Path
) -> None:
    forged = forge(initial.key, false_clue)
    library = groth16py.Verifier(groth16py.VerifyingKey.from_snarkjs(json.dumps(initial.key)))
    assert library.verify(forged.to_bytes(), list(false_clue))

    files = []
    for name, content in (("key", initial.key), ("public", public_json(false_clue)), ("proof", forged.to_json())):
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(json.dumps(content), "utf-8")
    assert "OK!" in snarkjs(toolchain, "groth16", "verify", *files).stdout


def test_set_1_the_forgery_fails_under_a_key_with_a_contribution(
    give_clue: BuiltCircuit, false_clue: tuple[int, ...]
) -> None:
    forged = forge(give_clue.verifying_key.to_json(), false_clue)
    assert NativeVerifier().verify(give_clue.verifying_key, false_clue, forged) is False


def test_set_1_the_verifying_key_is_refused(initial: Initial, give_clue: BuiltCircuit, tmp_path: Path) -> None:
    assert VerifyingKey.parse(json.loads((give_clue.folder / VERIFYING_KEY).read_bytes()))
    with pytest.raises(InsecureKeyError) as refusal:
        VerifyingKey.parse(initial.key)
    assert refusal.value.field == "vk_delta_2"
    path = tmp_path / VERIFYING_KEY
    path.write_text(json.dumps(initial.key), "utf-8")
    with pytest.raises(InsecureKeyError):
        VerifyingKey.read(path)


def g2_json(point: G2Point) -> list[list[str]]:
    return [[*map(str, point.x)], [*map(str, point.y)], ["1", "0"]]


def test_set_1_delta_equal_to_gamma_is_refused_wherever_gamma_is(give_clue: BuiltCircuit) -> None:
    key = give_clue.verifying_key.to_json()
    assert VerifyingKey.parse({**key, "vk_gamma_2": key["vk_beta_2"]})
    with pytest.raises(InsecureKeyError) as refusal:
        VerifyingKey.parse({**key, "vk_gamma_2": key["vk_beta_2"], "vk_delta_2": key["vk_beta_2"]})
    assert refusal.value.field == "vk_delta_2"


def test_set_1_delta_that_is_the_generator_is_refused(give_clue: BuiltCircuit) -> None:
    key = {**give_clue.verifying_key.to_json(), "vk_gamma_2": g2_json(give_clue.verifying_key.beta)}
    assert VerifyingKey.parse(key)
    with pytest.raises(InsecureKeyError) as refusal:
        VerifyingKey.parse({**key, "vk_delta_2": g2_json(G2_GENERATOR)})
    assert refusal.value.field == "vk_delta_2"


def test_set_1_the_proving_key_is_refused(initial: Initial, give_clue: BuiltCircuit) -> None:
    assert ZkeyHeader.read(give_clue.zkey).matches(give_clue.verifying_key)
    with pytest.raises(InsecureKeyError) as refusal:
        ZkeyHeader.read(initial.zkey)
    assert refusal.value.field == "vk_delta_2"


@pytest.mark.parametrize("options", [(), ("--trust-key",), ("--verifier", "all", "--trust-key")], ids=str)
def test_set_1_the_verify_command_refuses_the_key(
    initial: Initial, false_clue: tuple[int, ...], tmp_path: Path, options: tuple[str, ...]
) -> None:
    forged = forge(initial.key, false_clue)
    for name, content in (
        ("proof.json", forged.to_json()),
        ("public.json", public_json(false_clue)),
        (VERIFYING_KEY, initial.key),
    ):
        (tmp_path / name).write_text(json.dumps(content), "utf-8")
    result = CliRunner().invoke(main, ["verify", str(tmp_path), "--json", *options])
    answer = json.loads(result.stdout)
    assert result.exit_code == 1
    assert answer["accepted"] is False
    assert "0 contributions" in answer["reason"]
    assert answer["checks"] == [], "no verifier may have been asked"


@pytest.mark.parametrize("replaced", ["both keys", "verifying key", "proving key"])
def test_set_1_an_artifact_with_the_initial_key_is_refused(
    tiny: BuiltCircuit, tiny_initial: Initial, tmp_path: Path, replaced: str
) -> None:
    bad = copied(tiny, tmp_path / "artifact")
    assert BuiltCircuit.load(bad.folder, bad.spec) == tiny
    if replaced != "verifying key":
        bad.zkey.write_bytes(tiny_initial.zkey.read_bytes())
    if replaced != "proving key":
        (bad.folder / VERIFYING_KEY).write_text(json.dumps(tiny_initial.key), "utf-8")
    bad = sign_again(bad)
    with pytest.raises(InsecureKeyError):
        BuiltCircuit.load(bad.folder, bad.spec)


def test_set_1_a_key_set_with_the_initial_key_is_refused_and_built_again(
    fresh: ArtifactStore, tiny_initial: Initial, tmp_path: Path
) -> None:
    spec = product(tmp_path / "src")
    good = fresh.build_key_set("products", [spec], self_test)["product"]
    bad = copied(good, tmp_path / "artifact")
    bad.zkey.write_bytes(tiny_initial.zkey.read_bytes())
    (bad.folder / VERIFYING_KEY).write_text(json.dumps(tiny_initial.key), "utf-8")
    bad = sign_again(bad)
    bad.folder.rename(fresh.home / "artifacts" / bad.digest)
    for record in (*(fresh.home / "key_sets").glob("*.json"), *(fresh.home / "recipes").glob("*.json")):
        record.write_text(record.read_text("utf-8").replace(good.digest, bad.digest), "utf-8")
    with pytest.raises(InsecureKeyError):
        fresh.load_key_set("products", [spec])
    again = fresh.build_key_set("products", [spec], self_test)["product"]
    assert again.digest not in (good.digest, bad.digest)
    assert fresh.load_key_set("products", [spec])["product"] == again


def unblinded(zkey: Path, *, at: Sequence[int] = (148, 468)) -> None:
    """Take beta and delta (`at` these places) and the points of B out of what a zkey has in G1."""
    file = SectionedFile.open(zkey, b"zkey")
    sections = {number: file.read(number) for number in file.sections}
    for place in at:
        sections[2] = sections[2][:place] + bytes(64) + sections[2][place + 64 :]
    sections[6] = bytes(len(sections[6]))
    zkey.write_bytes(binfile.build(b"zkey", file.version, list(sections.items())))


def test_a_key_whose_proofs_would_hide_nothing_is_refused(tiny: BuiltCircuit, tmp_path: Path) -> None:
    """Its verifying key is the honest one and its proofs verify, but one witness has one A."""
    bad = copied(tiny, tmp_path / "artifact")
    unblinded(bad.zkey)
    bad = sign_again(bad)
    first, second = (NativeProver().prove(bad, product_inputs(3)).proof for _ in range(2))
    assert first.a == second.a
    with pytest.raises(InvalidArtifactError, match="beta or delta"):
        BuiltCircuit.load(bad.folder, bad.spec)


@pytest.mark.parametrize("at", [148, 468], ids=["beta", "delta"])
def test_both_points_of_g1_are_looked_at(tiny: BuiltCircuit, tmp_path: Path, at: int) -> None:
    zkey = tmp_path / "product.zkey"
    shutil.copy(tiny.zkey, zkey)
    unblinded(zkey, at=[at])
    with pytest.raises(InvalidArtifactError, match="beta or delta"):
        ZkeyHeader.read(zkey)


# SET-5: contributions are counted.


def test_set_5_snarkjs_finds_nothing_wrong_with_a_key_that_has_no_contribution(
    tiny: BuiltCircuit, tiny_initial: Initial, phase1: Phase1, toolchain: Toolchain
) -> None:
    assert "ZKey Ok!" in snarkjs(toolchain, "zkey", "verify", tiny.r1cs, phase1.path, tiny_initial.zkey).stdout
    with pytest.raises(InsecureKeyError):
        ZkeyHeader.read(tiny_initial.zkey)


def with_contributions(zkey: Path, content: bytes, target: Path) -> Path:
    """A copy of a zkey with another section of contributions."""
    file = SectionedFile.open(zkey, b"zkey")
    sections = [(number, content if number == 10 else file.read(number)) for number in file.sections]
    target.write_bytes(binfile.build(b"zkey", file.version, sections))
    return target


def test_set_5_zero_contributions_are_refused_even_if_delta_has_moved(tiny: BuiltCircuit, tmp_path: Path) -> None:
    listed = SectionedFile.open(tiny.zkey, b"zkey").read(10)
    same = with_contributions(tiny.zkey, listed, tmp_path / "same.zkey")
    assert ZkeyHeader.read(same) == ZkeyHeader.read(tiny.zkey)
    none = with_contributions(tiny.zkey, listed[:64] + struct.pack("<I", 0), tmp_path / "none.zkey")
    with pytest.raises(InsecureKeyError) as refusal:
        ZkeyHeader.read(none)
    assert refusal.value.field == "contributions"


@pytest.mark.parametrize(
    "damage",
    [
        lambda listed: listed[:64] + struct.pack("<I", 3) + listed[68:],
        lambda listed: listed[:64] + struct.pack("<I", 1) + listed[68:],
        lambda listed: listed[:64] + struct.pack("<I", 4_000_000_000) + listed[68:],
        lambda listed: listed[:-1],
        lambda listed: listed + b"\0",
        lambda listed: listed[:70],
        lambda _: b"",
    ],
    ids=["one too many", "one too few", "4e9", "cut", "longer", "cut early", "empty"],
)
def test_a_damaged_list_of_contributions_is_refused(tiny: BuiltCircuit, tmp_path: Path, damage: Any) -> None:
    listed = SectionedFile.open(tiny.zkey, b"zkey").read(10)
    with pytest.raises(InvalidArtifactError) as refusal:
        ZkeyHeader.read(with_contributions(tiny.zkey, damage(listed), tmp_path / "bad.zkey"))
    assert refusal.value.path == tmp_path / "bad.zkey"


def test_set_5_a_beacon_alone_is_no_contribution(tiny_initial: Initial, toolchain: Toolchain, tmp_path: Path) -> None:
    """Delta has moved, by a factor that everybody can compute."""
    zkey = tmp_path / "beacon.zkey"
    snarkjs(toolchain, "zkey", "beacon", tiny_initial.zkey, zkey, "0badcafe", "10")
    with pytest.raises(InsecureKeyError) as refusal:
        ZkeyHeader.read(zkey)
    assert refusal.value.field == "contributions"


def test_a_beacon_that_nothing_checks_is_refused(
    tiny: BuiltCircuit, phase1: Phase1, toolchain: Toolchain, tmp_path: Path
) -> None:
    """A person's contribution that carries a beacon's value: snarkjs shows the value and never computes it."""
    listed = SectionedFile.open(tiny.zkey, b"zkey").read(10)
    kind = listed.rindex(struct.pack("<II", 1, 2 + 2 + 32))  # a beacon, and the bytes of its exponent and its value
    assert kind > 68 + 384
    person = listed[:kind] + struct.pack("<I", 0) + listed[kind + 4 :]
    zkey = with_contributions(tiny.zkey, person, tmp_path / "person.zkey")
    assert "ZKey Ok!" in snarkjs(toolchain, "zkey", "verify", tiny.r1cs, phase1.path, zkey).stdout
    with pytest.raises(InvalidArtifactError):
        ZkeyHeader.read(zkey)


def test_a_verifying_key_with_other_points_of_its_signals_is_refused(tiny: BuiltCircuit, tmp_path: Path) -> None:
    """Whoever chooses those points proves what they like; alpha, beta, gamma and delta do not show it."""
    header, key = ZkeyHeader.read(tiny.zkey), tiny.verifying_key
    assert header.matches(key)
    assert not header.matches(replace(key, ic=(key.ic[1], key.ic[0])))
    bad = copied(tiny, tmp_path / "artifact")
    other = replace(key, ic=(key.ic[0], G1_GENERATOR)).to_json()
    (bad.folder / VERIFYING_KEY).write_text(json.dumps(other), "utf-8")
    bad = sign_again(bad)
    with pytest.raises(InvalidArtifactError) as refusal:
        BuiltCircuit.load(bad.folder, bad.spec)
    assert refusal.value.path == bad.folder


# SET-6: one contributor, said so.


def test_set_6_two_setups_differ_and_say_who_made_them(fresh: ArtifactStore, tmp_path: Path) -> None:
    spec = product(tmp_path / "src")
    first = fresh.build_key_set("products", [spec], self_test)
    second = fresh.build_key_set("products", [spec], self_test, force=True)
    assert first["product"].manifest["recipe"] == second["product"].manifest["recipe"]
    assert first["product"].r1cs.read_bytes() == second["product"].r1cs.read_bytes()
    assert first["product"].verifying_key.delta != second["product"].verifying_key.delta
    assert first.id != second.id
    beacons = set()
    for key_set in (first, second):
        setup = key_set["product"].manifest["setup"]
        people = [made for made in setup["contributions"] if made["beacon"] is None]
        assert [made["name"] for made in people] == [CONTRIBUTOR]
        assert len(setup["contributions"]) == 2
        assert key_set.status == key_set["product"].status == "development"
        beacons.add(setup["contributions"][1]["beacon"])
    assert len(beacons) == 2


# The contribution hash that people compare is the one that snarkjs shows.


def shown_hashes(output: str) -> list[str]:
    """The hashes of contributions in the order printed, in hex."""
    found = re.findall(r"(?:Contribution Hash|contribution #\d+ [^\n]*?): *\n((?:\s+(?:[0-9a-f]{8}\s+){4}){4})", output)
    return ["".join(block.split()) for block in found]


def test_contribution_digests_are_those_that_snarkjs_shows(
    tiny: BuiltCircuit, tiny_initial: Initial, phase1: Phase1, toolchain: Toolchain, tmp_path: Path
) -> None:
    files = [tiny_initial.zkey, *(tmp_path / f"{name}.zkey" for name in ("ada", "zoe", "beacon"))]
    shown = []
    for name, before, after in (("Ada", *files[0:2]), ("Zoë", *files[1:3])):
        output = snarkjs(toolchain, "zkey", "contribute", before, after, f"--name={name}", "-e=not secret").stdout
        shown += shown_hashes(output)
    shown += shown_hashes(snarkjs(toolchain, "zkey", "beacon", files[2], files[3], "0badcafe", "10", "-n=end").stdout)
    read = ZkeyHeader.read(files[3]).contributions
    assert [made.digest for made in read] == shown
    assert [made.name for made in read] == ["Ada", "Zoë", "end"]
    assert [made.beacon for made in read] == [None, None, "0badcafe"]
    assert [made.beacon_iterations_power for made in read] == [None, None, 10]
    verified = snarkjs(toolchain, "zkey", "verify", tiny.r1cs, phase1.path, files[3]).stdout
    assert shown_hashes(verified) == shown[::-1]


def test_snarkjs_verifies_the_keys_that_the_build_made(
    tiny: BuiltCircuit, phase1: Phase1, toolchain: Toolchain
) -> None:
    verified = snarkjs(toolchain, "zkey", "verify", tiny.r1cs, phase1.path, tiny.zkey).stdout
    assert "ZKey Ok!" in verified
    recorded = [made["digest"] for made in tiny.manifest["setup"]["contributions"]]
    assert shown_hashes(verified) == recorded[::-1]


# What make_keys does when phase 2 goes wrong. The tool is scripted: it does what each case says and claims success.

FAKE_SNARKJS = """
const { copyFileSync, readFileSync } = require("node:fs");
module.exports = { zKey: {
    newZKey: async () => %(setup)s,
    contribute: async () => %(contribution)s,
    beacon: async (before, after) => { copyFileSync(%(zkey)s, after); return %(beacon)s; },
    exportVerificationKey: async () => JSON.parse(readFileSync(%(key)s)),
    verifyFromInit: async () => %(verified)s,
} };
"""


def scripted_keys(
    circuit: BuiltCircuit, toolchain: Toolchain, phase1: Phase1, folder: Path, zkey: Path, key: Path, **answers: str
) -> None:
    """Run `make_keys` into `folder`/out with a snarkjs that delivers the given files."""
    package = folder / "node_modules" / "snarkjs"
    package.mkdir(parents=True)
    script = {"setup": "null", "contribution": "null", "beacon": "null", "verified": "true", **answers}
    paths = {"zkey": json.dumps(str(zkey)), "key": json.dumps(str(key))}
    (package / "index.js").write_text(FAKE_SNARKJS % {**script, **paths}, "utf-8")
    out = folder / "out"
    out.mkdir()
    scripted = replace(toolchain, modules=package.parent)
    make_keys(CompiledCircuit(circuit.spec.name, circuit.folder), 3, phase1, scripted, out)


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ({"verified": "false"}, SetupError),
        ({"verified": "undefined"}, SetupError),
        ({"setup": "-1"}, ToolFailedError),
        ({"contribution": "false"}, ToolFailedError),
        ({"beacon": "false"}, ToolFailedError),
        ({"contribution": "Promise.reject(new Error('a\\nb'))"}, ToolFailedError),
    ],
    ids=str,
)
def test_sil_1_a_failed_step_of_phase_2_is_an_error_and_leaves_no_file(
    tiny: BuiltCircuit,
    toolchain: Toolchain,
    phase1: Phase1,
    tmp_path: Path,
    answers: dict[str, str],
    error: type[Exception],
) -> None:
    with pytest.raises(error):
        scripted_keys(tiny, toolchain, phase1, tmp_path, tiny.zkey, tiny.folder / VERIFYING_KEY, **answers)
    assert list((tmp_path / "out").iterdir()) == []


def test_set_1_a_phase_2_that_contributes_nothing_is_refused(
    tiny: BuiltCircuit, tiny_initial: Initial, toolchain: Toolchain, phase1: Phase1, tmp_path: Path
) -> None:
    key = tmp_path / "key.json"
    key.write_text(json.dumps(tiny_initial.key), "utf-8")
    with pytest.raises(InsecureKeyError):
        scripted_keys(tiny, toolchain, phase1, tmp_path, tiny_initial.zkey, key)


def test_set_6_a_key_with_other_contributions_than_asked_is_refused(
    tiny: BuiltCircuit, toolchain: Toolchain, phase1: Phase1, tmp_path: Path
) -> None:
    # A sound key, but an old one: its beacon is not the one that was drawn for this run.
    with pytest.raises(SetupError):
        scripted_keys(tiny, toolchain, phase1, tmp_path, tiny.zkey, tiny.folder / VERIFYING_KEY)
