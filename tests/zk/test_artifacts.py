"""Built circuits on disk: nothing damaged, stale, half-made or mixed up counts as built; refusals name the file."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from mastermind.errors import (
    CompileError,
    InvalidArtifactError,
    Phase1TooSmallError,
    ProofSelfCheckError,
    ToolFailedError,
    WrongKeySetError,
)
from mastermind.game.circuits import certify_game, give_clue, make_guess, open_game
from mastermind.rules import Rules
from mastermind.zk import artifacts, binfile, setup
from mastermind.zk.artifacts import MANIFEST, VERIFYING_KEY, ArtifactStore, BuiltCircuit, KeySet
from mastermind.zk.binfile import SectionedFile
from mastermind.zk.circuit import CircuitSpec
from mastermind.zk.compile import CompiledCircuit
from mastermind.zk.phase1 import Phase1, open_phase1, read_power
from mastermind.zk.prove import NativeProver, self_test
from mastermind.zk.r1cs import R1cs
from mastermind.zk.render import render
from mastermind.zk.setup import make_keys
from mastermind.zk.tools import Toolchain
from mastermind.zk.zkey import ZkeyHeader
from tests.zk.tiny import TEMPLATE, copied, fresh_store, product, product_inputs, sign_again

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tiny(products: tuple[ArtifactStore, KeySet]) -> BuiltCircuit:
    return products[1]["product"]


@pytest.fixture(scope="module")
def sibling(products: tuple[ArtifactStore, KeySet]) -> BuiltCircuit:
    return products[1]["sibling"]


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(bytes(content))


def cut(path: Path, size_bytes: int) -> None:
    path.write_bytes(path.read_bytes()[:size_bytes])


def files_below(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    start = time.monotonic()
    yield
    assert time.monotonic() - start < seconds


# ART-1: phase-1 files.


@pytest.fixture
def ptau(phase1: Phase1, tmp_path: Path) -> Path:
    """A copy of a good phase-1 file, to be damaged."""
    path = tmp_path / "copy.ptau"
    shutil.copy(phase1.path, path)
    assert read_power(path) == phase1.power
    return path


def section_header(path: Path, section: int) -> int:
    """Where the (type, size) of a section lies."""
    return SectionedFile.open(path, b"ptau").sections[section][0] - 12


def cut_in_section_header(path: Path) -> None:
    cut(path, section_header(path, 4) + 5)


def huge_section(path: Path) -> None:
    content = bytearray(path.read_bytes())
    struct.pack_into("<Q", content, section_header(path, 3) + 4, 1 << 40)
    path.write_bytes(bytes(content))


def huge_section_count(path: Path) -> None:
    content = bytearray(path.read_bytes())
    struct.pack_into("<I", content, 8, 4_000_000_000)
    path.write_bytes(bytes(content))


def cut_in_last_section(path: Path) -> None:
    cut(path, path.stat().st_size - 1)


def not_prepared(path: Path) -> None:
    file = SectionedFile.open(path, b"ptau")
    kept = [(number, file.read(number)) for number in file.sections if number < 12]
    path.write_bytes(binfile.build(b"ptau", 1, kept))


def lower_power(path: Path) -> None:
    content = bytearray(path.read_bytes())
    at = SectionedFile.open(path, b"ptau").sections[1][0] + 36
    struct.pack_into("<I", content, at, 10)
    path.write_bytes(bytes(content))


def web_page(path: Path) -> None:
    path.write_bytes(b"<html><body>404 Not Found</body></html>")


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    "damage",
    [
        cut_in_section_header,
        huge_section,
        huge_section_count,
        cut_in_last_section,
        not_prepared,
        lower_power,
        web_page,
        empty,
        Path.unlink,
    ],
)
def test_art_1_a_damaged_phase_1_is_refused_at_once(ptau: Path, damage: Callable[[Path], None]) -> None:
    damage(ptau)
    # Even somebody who accepts private files gets no further.
    with at_most(5), pytest.raises(InvalidArtifactError) as refusal:
        open_phase1(ptau, accept_private=True)
    assert refusal.value.path == ptau
    assert ptau.name in str(refusal.value)


def test_public_phase_1_files_are_accepted_and_used(shared_ptau: Path, fresh: ArtifactStore, tmp_path: Path) -> None:
    public = open_phase1(shared_ptau / "powersOfTau28_hez_final_11.ptau")
    assert (public.origin, public.power) == ("hermez", 11)
    assert open_phase1(shared_ptau / "powersOfTau28_hez_final_08.ptau").power == 8

    # The keys that were made with it stay in use when nothing has changed.
    spec = product(tmp_path / "src")
    made = fresh.build_key_set("products", [spec], self_test, phase1=public)["product"]
    assert made.manifest["setup"]["phase1"] == {"origin": "hermez", "power": 11, "blake2b": public.digest}
    assert made.status == "development", "one contributor makes no ceremony, whatever the phase 1"
    assert fresh.build_key_set("products", [spec], self_test)["product"] == made
    assert fresh.build_key_set("products", [spec], self_test, phase1=public)["product"] == made


def test_a_public_phase_1_with_one_bit_changed_is_private(shared_ptau: Path, tmp_path: Path) -> None:
    path = tmp_path / "powersOfTau28_hez_final_08.ptau"
    shutil.copy(shared_ptau / path.name, path)
    assert open_phase1(path).origin == "hermez"
    flip(path, path.stat().st_size - 1)
    with pytest.raises(InvalidArtifactError) as refusal:
        open_phase1(path)
    assert refusal.value.path == path


def test_a_private_phase_1_is_accepted_only_on_request(ptau: Path) -> None:
    with pytest.raises(InvalidArtifactError) as refusal:
        open_phase1(ptau)
    assert refusal.value.path == ptau
    assert open_phase1(ptau, accept_private=True).origin == "private"


def test_a_damaged_development_phase_1_is_made_again(fresh: ArtifactStore, tmp_path: Path) -> None:
    path = fresh.home / "phase1" / "development_11.ptau"
    flip(path, path.stat().st_size - 1)
    damaged = hashlib.blake2b(path.read_bytes()).hexdigest()
    made = fresh.build_key_set("products", [product(tmp_path / "src")], self_test)["product"]
    assert made.manifest["setup"]["phase1"]["blake2b"] != damaged
    assert made.manifest["setup"]["phase1"]["blake2b"] == hashlib.blake2b(path.read_bytes()).hexdigest()


# The manifest ties all files together.


def artifact_files(circuit: BuiltCircuit) -> list[str]:
    return sorted([*circuit.manifest["files"], MANIFEST])


def test_the_manifest_lists_every_file(tiny: BuiltCircuit) -> None:
    expected = {"product.r1cs", "product.wasm", "product.zkey", "product.sym", VERIFYING_KEY, "source/product.circom"}
    assert set(files_below(tiny.folder)) == {*expected, MANIFEST}
    assert set(tiny.manifest["files"]) == expected


@pytest.mark.parametrize("place", ["first", "middle", "last"])
@pytest.mark.parametrize(
    "name",
    ["product.r1cs", "product.wasm", "product.zkey", "product.sym", VERIFYING_KEY, "source/product.circom"],
)
def test_a_changed_bit_in_any_file_is_refused_by_its_name(
    tiny: BuiltCircuit, tmp_path: Path, name: str, place: str
) -> None:
    folder = copied(tiny, tmp_path / "artifact").folder
    assert BuiltCircuit.load(folder, tiny.spec) == tiny
    size = (folder / name).stat().st_size
    flip(folder / name, {"first": 0, "middle": size // 2, "last": size - 1}[place])
    with pytest.raises(InvalidArtifactError) as refusal:
        BuiltCircuit.load(folder, tiny.spec)
    assert refusal.value.path == folder / name
    # The message has the expected and the found digest.
    assert tiny.manifest["files"][name][:16] in str(refusal.value)
    assert hashlib.sha256((folder / name).read_bytes()).hexdigest()[:16] in str(refusal.value)


@pytest.mark.parametrize("name", ["product.zkey", "product.wasm", VERIFYING_KEY, MANIFEST])
def test_a_missing_file_is_refused_by_its_name(tiny: BuiltCircuit, tmp_path: Path, name: str) -> None:
    folder = copied(tiny, tmp_path / "artifact").folder
    (folder / name).unlink()
    with pytest.raises(InvalidArtifactError) as refusal:
        BuiltCircuit.load(folder, tiny.spec)
    assert refusal.value.path == folder / name


def test_a_changed_manifest_is_refused(products: tuple[ArtifactStore, KeySet], tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(products[0].home, home, symlinks=True)
    store, spec = ArtifactStore(home), products[1]["product"].spec
    circuit = store.load_key_set("products", [spec])["product"]
    path = circuit.folder / MANIFEST
    text = path.read_text("utf-8")
    assert text.count('"status": "development"') == 1
    path.write_text(text.replace('"status": "development"', '"status": "ceremony"'), "utf-8")
    with pytest.raises(InvalidArtifactError) as refusal:
        store.load_key_set("products", [spec])
    assert refusal.value.path == path
    path.write_text(text, "utf-8")
    assert store.load_key_set("products", [spec])["product"] == circuit


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"public": 1},
        {"sources": None},
        {"setup": {}},
        {"setup": {"status": "trusted"}},
        {"files": {"../product.zkey": "0"}},
        {"files": {"/etc/hostname": "0"}},
        {"files": {}},
        {"files": 7},
    ],
    ids=str,
)
def test_a_manifest_that_is_none_is_refused(tiny: BuiltCircuit, tmp_path: Path, change: dict[str, Any]) -> None:
    folder = copied(tiny, tmp_path / "artifact").folder
    manifest = json.loads((folder / MANIFEST).read_bytes())
    if isinstance(change.get("files"), dict) and change["files"]:
        change = {"files": {**manifest["files"], **change["files"]}}
    (folder / MANIFEST).write_text(json.dumps({**manifest, **change}), "utf-8")
    with pytest.raises(InvalidArtifactError) as refusal:
        BuiltCircuit.load(folder, tiny.spec)
    assert refusal.value.path == folder / MANIFEST


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "{}", '{"files": {}, "files": {}}', "<html>"])
def test_a_manifest_that_is_no_json_object_is_refused(tiny: BuiltCircuit, tmp_path: Path, content: str) -> None:
    folder = copied(tiny, tmp_path / "artifact").folder
    (folder / MANIFEST).write_text(content, "utf-8")
    with pytest.raises(InvalidArtifactError) as refusal:
        BuiltCircuit.load(folder, tiny.spec)
    assert refusal.value.path == folder / MANIFEST


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 1}', '{"format": 1, "circuits": []}'])
def test_a_damaged_record_counts_as_not_built(
    products: tuple[ArtifactStore, KeySet], tmp_path: Path, content: str
) -> None:
    home = tmp_path / "home"
    shutil.copytree(products[0].home, home, symlinks=True)
    store, spec = ArtifactStore(home), products[1]["product"].spec
    assert store.load_key_set("products", [spec])
    for record in (*(home / "key_sets").iterdir(), *(home / "recipes").iterdir()):
        record.write_text(content, "utf-8")
    with pytest.raises(WrongKeySetError):
        store.load_key_set("products", [spec])


# ART-3, ART-4, ART-8: files of something else, first as they are found, then below the manifest.


def swapped_wasm(circuit: BuiltCircuit, sibling: BuiltCircuit) -> Path:
    assert sibling.wasm.stat().st_size == circuit.wasm.stat().st_size
    shutil.copy(sibling.wasm, circuit.wasm)
    return circuit.wasm


def swapped_zkey(circuit: BuiltCircuit, sibling: BuiltCircuit) -> Path:
    assert sibling.zkey.stat().st_size == circuit.zkey.stat().st_size
    shutil.copy(sibling.zkey, circuit.zkey)
    return circuit.zkey


def half_zkey(circuit: BuiltCircuit, _: BuiltCircuit) -> Path:
    cut(circuit.zkey, circuit.zkey.stat().st_size // 2)
    return circuit.zkey


def empty_zkey(circuit: BuiltCircuit, _: BuiltCircuit) -> Path:
    empty(circuit.zkey)
    return circuit.zkey


def half_wasm(circuit: BuiltCircuit, _: BuiltCircuit) -> Path:
    cut(circuit.wasm, circuit.wasm.stat().st_size // 2)
    return circuit.wasm


def html_zkey(circuit: BuiltCircuit, _: BuiltCircuit) -> Path:
    web_page(circuit.zkey)
    return circuit.zkey


def html_wasm(circuit: BuiltCircuit, _: BuiltCircuit) -> Path:
    web_page(circuit.wasm)
    return circuit.wasm


Damage = Callable[[BuiltCircuit, BuiltCircuit], Path]
DAMAGES = {
    "art-3 wasm of a sibling": swapped_wasm,
    "art-3 zkey of a sibling": swapped_zkey,
    "art-4 half a zkey": half_zkey,
    "art-4 empty zkey": empty_zkey,
    "art-4 half a wasm": half_wasm,
    "art-8 web page as zkey": html_zkey,
    "art-8 web page as wasm": html_wasm,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_art_3_4_8_a_file_of_something_else_is_refused_before_proving(
    tiny: BuiltCircuit, sibling: BuiltCircuit, tmp_path: Path, damage: Damage
) -> None:
    bad = copied(tiny, tmp_path / "artifact")
    path = damage(bad, sibling)
    with pytest.raises(InvalidArtifactError) as refusal:
        BuiltCircuit.load(bad.folder, bad.spec)
    assert refusal.value.path == path


@pytest.mark.parametrize("damage", [half_zkey, empty_zkey, html_zkey, swapped_zkey])
def test_art_4_8_below_the_manifest_a_bad_zkey_is_refused_by_its_header(
    tiny: BuiltCircuit, sibling: BuiltCircuit, tmp_path: Path, damage: Damage
) -> None:
    bad = copied(tiny, tmp_path / "artifact")
    path = damage(bad, sibling)
    bad = sign_again(bad)
    with pytest.raises(InvalidArtifactError) as refusal:
        BuiltCircuit.load(bad.folder, bad.spec)
    assert refusal.value.path == (path if damage is not swapped_zkey else bad.folder)


@pytest.mark.parametrize("damage", [half_zkey, empty_zkey, html_zkey])
def test_art_4_8_a_zkey_that_changes_after_loading_is_refused_by_name(
    tiny: BuiltCircuit, sibling: BuiltCircuit, tmp_path: Path, damage: Damage
) -> None:
    bad = replace(copied(tiny, tmp_path / "artifact"), digest=tmp_path.name)
    path = damage(bad, sibling)
    with pytest.raises(InvalidArtifactError) as refusal:
        NativeProver().prove(bad, product_inputs(3))
    assert refusal.value.path == path


@pytest.mark.parametrize("damage", [half_wasm, html_wasm])
def test_art_4_8_below_the_manifest_a_bad_wasm_is_refused_by_name(
    tiny: BuiltCircuit, sibling: BuiltCircuit, tmp_path: Path, damage: Damage
) -> None:
    bad = copied(tiny, tmp_path / "artifact")
    path = damage(bad, sibling)
    bad = sign_again(bad)
    with pytest.raises(InvalidArtifactError) as refusal:
        NativeProver().prove(BuiltCircuit.load(bad.folder, bad.spec), product_inputs(3))
    assert path.name in str(refusal.value)


def test_a_zkey_names_what_was_expected_and_found(tmp_path: Path) -> None:
    path = tmp_path / "some.zkey"
    web_page(path)
    with pytest.raises(InvalidArtifactError) as refusal:
        ZkeyHeader.read(path)
    assert "zkey" in str(refusal.value)
    assert "<html>" in str(refusal.value)


def test_an_artifact_of_another_circuit_is_refused(tiny: BuiltCircuit, sibling: BuiltCircuit) -> None:
    with pytest.raises(InvalidArtifactError) as refusal:
        BuiltCircuit.load(sibling.folder, tiny.spec)
    assert refusal.value.path == sibling.folder


# ART-6: builds that fail or are killed.


def nothing_counts(store: ArtifactStore, name: str, specs: list[CircuitSpec]) -> None:
    assert store.key_set_names() == []
    for folder in ("artifacts", "recipes", "tmp"):
        assert not (store.home / folder).is_dir() or list((store.home / folder).iterdir()) == [], folder
    with pytest.raises(WrongKeySetError):
        store.load_key_set(name, specs)


def test_art_6_a_build_that_does_not_prove_leaves_nothing(fresh: ArtifactStore, tmp_path: Path) -> None:
    spec = product(tmp_path / "src")

    def refuse(_: BuiltCircuit) -> NoReturn:
        raise ProofSelfCheckError("the new proof does not verify")

    with pytest.raises(ProofSelfCheckError):
        fresh.build_key_set("products", [spec], refuse)
    nothing_counts(fresh, "products", [spec])
    assert fresh.build_key_set("products", [spec], self_test)["product"].spec == spec
    assert fresh.load_key_set("products", [spec])


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(0o755)


def test_art_6_a_setup_that_fails_half_way_leaves_nothing_and_keeps_what_was_in_use(
    fresh: ArtifactStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = product(tmp_path / "src")
    node = shutil.which("node")
    # Phase 2 leaves a stub of a zkey and fails, as snarkjs does on a full disk; all else is the real Node.
    write_program(
        tmp_path / "bin" / "node",
        f"""#!/bin/sh
case "$1" in *phase2.mjs)
    head -c 380 /dev/zero > "$(sed 's/.*"zkey": "\\([^"]*\\)".*/\\1/')"; echo "no space left on device" >&2; exit 1;;
esac
exec {node} "$@"
""",
    )
    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
        with pytest.raises(ToolFailedError) as failure:
            fresh.build_key_set("products", [spec], self_test)
        assert "no space left" in failure.value.stderr_tail
        nothing_counts(fresh, "products", [spec])
    good = fresh.build_key_set("products", [spec], self_test)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
        with pytest.raises(ToolFailedError):
            fresh.build_key_set("products", [spec], self_test, force=True)
    assert fresh.load_key_set("products", [spec])["product"] == good["product"]
    assert list((fresh.home / "tmp").iterdir()) == []


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            if int((entry / "stat").read_text("utf-8").rpartition(")")[2].split()[1]) == pid:
                found.append(int(entry.name))
    return found


#: A process that builds: `SOURCES HOME`.
BUILD = """
import sys
from pathlib import Path
from mastermind.zk.artifacts import ArtifactStore
from mastermind.zk.prove import self_test
from tests.zk.tiny import product
source = Path(sys.argv[1])
specs = [product(source / "a"), product(source / "b", "sibling", offset=2)]
store = ArtifactStore(Path(sys.argv[2]))
print(store.build_key_set("products", specs, self_test, progress=lambda step: print(step, file=sys.stderr)).id)
"""


def test_art_6_killed_builds_leave_nothing_that_counts(tmp_path: Path, store: ArtifactStore, phase1: Phase1) -> None:
    """`kill -9` of a process that builds as each step begins; then one that is left alone."""
    home = fresh_store(tmp_path / "home", store.home)
    argv = [sys.executable, "-c", BUILD, str(tmp_path / "src"), str(home.home)]
    left_over = 0
    for step in ("compiling", "phase 2", "proving and verifying"):
        process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        assert process.stderr is not None
        with process:
            line = next((line for line in process.stderr if step in line), None)
            assert line is not None, f"the build never came to {step}"
            tools = children(process.pid)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
        if step == "compiling":
            # As when the machine loses power. Later, what the build has started goes on writing for a while.
            for pid in tools:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        left_over += len(list((home.home / "tmp").glob("*")))
        assert home.key_set_names() == []
        for folder in (home.home / "artifacts").glob("*"):
            manifest, digest = artifacts.read_manifest(folder)  # whatever is there is whole
            assert folder.name == digest
            assert manifest["circuit"]
    assert left_over > 0, "no build was killed half-way"

    finished = subprocess.run(argv, capture_output=True, text=True, timeout=300, cwd=ROOT, check=False)
    assert finished.returncode == 0, finished.stderr
    assert home.key_set_names() == ["products"]
    assert list((home.home / "tmp").iterdir()) == []


# ART-9: sources that have changed since.


def test_art_9_an_edited_template_is_stale_and_rebuilds_exactly_what_depends_on_it(
    fresh: ArtifactStore, tmp_path: Path
) -> None:
    included = TEMPLATE.replace("template Product", 'include "lib.circom";\ntemplate Product')
    library = tmp_path / "src" / "lib.circom.j2"
    library.parent.mkdir()
    library.write_text("pragma circom 2.2.0;\n", "utf-8")
    apart = product(tmp_path / "src", "apart")
    using = [product(tmp_path / "src", name, offset, included) for name, offset in (("one", 2), ("two", 3))]
    specs = [apart, *using]

    first = fresh.build_key_set("products", specs, self_test)
    assert fresh.build_key_set("products", specs, self_test).artifacts == first.artifacts

    library.write_text(library.read_text("utf-8") + "// Edited.\n", "utf-8")
    for spec in using:
        with pytest.raises(InvalidArtifactError) as refusal:
            fresh.load_key_set("products", [spec])
        assert "lib.circom" in str(refusal.value)
    assert fresh.load_key_set("products", [apart])["apart"] == first["apart"]

    second = fresh.build_key_set("products", specs, self_test)
    assert second["apart"] == first["apart"]
    assert second["one"] != first["one"]
    assert second["two"] != first["two"]
    assert fresh.load_key_set("products", specs).artifacts == second.artifacts


def test_only_the_certificate_depends_on_the_number_of_attempts(toolchain: Toolchain) -> None:
    # The same source is the same recipe, so that rules which differ in attempts share what they can.
    circomlib = toolchain.modules / "circomlib" / "circuits"
    for make, same in ((open_game, True), (make_guess, True), (give_clue, True), (certify_game, False)):
        eight, ten = (render(make(Rules.parse(f"4x6r{attempts}")), circomlib).digests for attempts in (8, 10))
        assert (eight == ten) is same, make


@pytest.mark.parametrize(("name", "value"), [("CIRCOM_VERSION", "2.2.4"), ("OPTIONS", ("--O1", "--inspect"))])
def test_art_9_another_compiler_makes_what_was_built_stale(
    products: tuple[ArtifactStore, KeySet], monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    store, key_set = products
    specs = [circuit.spec for circuit in key_set.circuits.values()]
    assert store.load_key_set("products", specs).id == key_set.id
    monkeypatch.setattr(artifacts, name, value)
    with pytest.raises(InvalidArtifactError):
        store.load_key_set("products", specs)


# SIL-1, SIL-6: circuits that cannot get keys, or prove nothing.


@pytest.fixture
def no_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make phase 2 fail the test when it runs a tool."""

    def run(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a tool was run")

    monkeypatch.setattr(setup, "run", run)


def expect_too_small(circuit: BuiltCircuit, small: Phase1, toolchain: Toolchain, out: Path) -> None:
    power = R1cs.read(circuit.r1cs).domain_power
    assert power > small.power
    with pytest.raises(Phase1TooSmallError) as refusal:
        make_keys(CompiledCircuit(circuit.spec.name, circuit.folder), power, small, toolchain, out)
    assert f"power {power}" in str(refusal.value)
    assert small.path.name in str(refusal.value)
    assert not out.exists()


def test_sil_1_a_public_phase_1_that_is_too_small_is_refused_before_any_tool(
    hit_and_blow: KeySet, shared_ptau: Path, toolchain: Toolchain, tmp_path: Path, no_tools: None
) -> None:
    small = open_phase1(shared_ptau / "powersOfTau28_hez_final_08.ptau")
    circuit = hit_and_blow["open_game"]
    assert circuit.manifest["domain_power"] == 9
    expect_too_small(circuit, small, toolchain, tmp_path / "out")


def test_sil_1_a_phase_1_that_is_too_small_is_refused_before_any_tool(
    hit_and_blow: KeySet, phase1: Phase1, toolchain: Toolchain, tmp_path: Path, no_tools: None
) -> None:
    expect_too_small(hit_and_blow["certify_game"], replace(phase1, power=9), toolchain, tmp_path / "out")


def test_sil_1_the_power_is_worked_out_with_the_public_signals(hit_and_blow: KeySet) -> None:
    # snarkjs wants constraints + public signals + 1 to fit; so do the keys that it made.
    for circuit in hit_and_blow.circuits.values():
        r1cs = R1cs.read(circuit.r1cs)
        assert ZkeyHeader.read(circuit.zkey).domain_size == 1 << r1cs.domain_power
        assert r1cs.domain_power == circuit.manifest["domain_power"]


@pytest.mark.parametrize(
    ("constraint", "public", "reason"),
    [
        ("y === 2 * x;", ("y",), "no constraint"),
        ("y === x * x;", (), "no public signal"),
        ("y === x * x;", ("x", "y"), "public signals differ"),
    ],
)
def test_sil_6_a_circuit_that_states_nothing_is_refused(
    fresh: ArtifactStore, tmp_path: Path, constraint: str, public: tuple[str, ...], reason: str
) -> None:
    template = TEMPLATE.replace("y === x * (x + OFFSET);", constraint)
    spec = product(tmp_path / "src", template=template)
    signals = {signal.name: signal for signal in (*spec.public, *spec.private)}
    spec = replace(
        spec,
        public=tuple(signals[name] for name in public),
        private=tuple(signal for name, signal in signals.items() if name not in public),
    )
    if not public:
        (tmp_path / "src" / spec.template).write_text(template.replace('{ public [{{ public | join(", ") }}] }', ""))
    with pytest.raises(CompileError) as refusal:
        fresh.build_key_set("products", [spec], self_test)
    assert refusal.value.reason == reason
    nothing_counts(fresh, "products", [spec])


# Builds side by side, and builds with nothing to do.


def test_two_builds_at_once_end_with_the_same_keys(fresh: ArtifactStore, tmp_path: Path) -> None:
    argv = [sys.executable, "-c", BUILD]
    for name in ("one", "two"):
        product(tmp_path / name / "a")
    with ThreadPoolExecutor() as pool:
        both = list(
            pool.map(
                lambda name: subprocess.run(
                    [*argv, str(tmp_path / name), str(fresh.home)],
                    capture_output=True,
                    text=True,
                    timeout=120,
                    cwd=ROOT,
                    check=False,
                ),
                ("one", "two"),
            )
        )
    assert [done.returncode for done in both] == [0, 0], [done.stderr for done in both]
    assert both[0].stdout == both[1].stdout
    assert sum(done.stderr.count("compiling") for done in both) == 2, "each circuit is built once"
    assert len(list((fresh.home / "artifacts").iterdir())) == 2
    assert list((fresh.home / "tmp").iterdir()) == []


def test_a_second_build_has_nothing_to_do(
    products: tuple[ArtifactStore, KeySet], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, key_set = products
    before = {path: path.stat().st_mtime_ns for path in (store.home / "key_sets").iterdir()}
    started: list[list[str]] = []
    popen = subprocess.Popen

    def recorded(argv: list[str], *args: Any, **keywords: Any) -> Any:
        started.append(argv)
        return popen(argv, *args, **keywords)

    def refuse(_: BuiltCircuit) -> NoReturn:
        raise AssertionError("something was built")

    monkeypatch.setattr(subprocess, "Popen", recorded)
    again = store.build_key_set("products", [circuit.spec for circuit in key_set.circuits.values()], refuse)
    assert again.artifacts == key_set.artifacts
    assert [words[1:] for words in started] == [["--version"]]
    assert Path(started[0][0]).name == "node"
    assert {path: path.stat().st_mtime_ns for path in (store.home / "key_sets").iterdir()} == before


def test_circuits_that_are_the_same_are_shared_between_key_sets(
    products: tuple[ArtifactStore, KeySet],
) -> None:
    store, key_set = products
    circuit = key_set["product"]
    assert store.build_key_set("other", [circuit.spec], self_test)["product"] == circuit
