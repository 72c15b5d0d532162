"""Programs outside Python: which versions are taken, and that none outlives its call."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
import wasmtime

from mastermind.errors import InvalidArtifactError, ToolFailedError, ToolNotFoundError, ToolTimeoutError, WitnessError
from mastermind.zk.artifacts import ArtifactStore, BuiltCircuit, KeySet
from mastermind.zk.circom import CIRCOM_VERSION, NativeCompiler, PackagedCompiler, find_compiler
from mastermind.zk.circuit import CircuitSpec, Signal
from mastermind.zk.compile import compile_circuit
from mastermind.zk.prove import NativeProver, SnarkjsProver, self_test
from mastermind.zk.render import render
from mastermind.zk.snarkjs import SnarkjsCli, SnarkjsWorker
from mastermind.zk.tools import MINIMUM_NODE, Toolchain, find_node, run
from mastermind.zk.verify import NativeVerifier, SnarkjsVerifier
from mastermind.zk.witness import WitnessCalculator, _Calculation
from tests.zk.tiny import copied, fresh_store, product, product_inputs, sign_again

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def bin_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is all of PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def program(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    path.chmod(0o755)
    return path


def says(path: Path, line: str, exit_code: int = 0) -> Path:
    return program(path, f"#!/bin/sh\necho '{line}'\nexit {exit_code}\n")


def wait_until(condition: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def alive(pid: int) -> bool:
    """Whether a process is there and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


# Node (TLC-3).


@pytest.mark.parametrize("version", ["v18.0.0", "v20.20.2", "v24.1.0"])
def test_tlc_3_a_new_enough_node_is_taken(bin_dir: Path, version: str) -> None:
    says(bin_dir / "node", version)
    assert find_node() == bin_dir / "node"


@pytest.mark.parametrize("version", ["v16.20.2", "v17.9.1", "v8.17.0", "", "node", "18.0.0"])
def test_tlc_3_an_old_node_is_refused_with_the_needed_version(bin_dir: Path, version: str) -> None:
    says(bin_dir / "node", version)
    with pytest.raises(ToolNotFoundError) as refusal:
        find_node()
    assert str(MINIMUM_NODE) in str(refusal.value)
    assert version in str(refusal.value)


def test_tlc_3_no_node_is_refused_with_the_needed_version(bin_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(ToolNotFoundError) as refusal:
        Toolchain.install(tmp_path / "home")
    assert str(MINIMUM_NODE) in str(refusal.value)


def test_tlc_3_a_node_that_is_no_program_is_refused(bin_dir: Path) -> None:
    (bin_dir / "node").write_bytes(b"\x7fELF")
    (bin_dir / "node").chmod(0o755)
    with pytest.raises(ToolNotFoundError):
        find_node()


def test_tlc_3_the_command_says_so_and_ends_with_3(tmp_path: Path) -> None:
    says(tmp_path / "node", "v16.20.2")
    done = subprocess.run(
        [sys.executable, "-m", "mastermind", "tools", "--home", str(tmp_path / "home")],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        env={**os.environ, "PATH": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 3
    assert f"Node {MINIMUM_NODE} or newer is needed" in done.stderr
    assert "Traceback" not in done.stderr


def test_npm_must_be_there_for_the_first_installation(bin_dir: Path, tmp_path: Path) -> None:
    says(bin_dir / "node", "v20.0.0")
    with pytest.raises(ToolNotFoundError) as refusal:
        Toolchain.install(tmp_path / "home")
    assert "npm" in str(refusal.value)


def test_a_failed_installation_leaves_nothing_that_counts(bin_dir: Path, tmp_path: Path) -> None:
    says(bin_dir / "node", "v20.0.0")
    program(bin_dir / "npm", "#!/bin/sh\n/bin/mkdir node_modules\necho 'no network' >&2\nexit 1\n")
    for _ in range(2):
        with pytest.raises(ToolFailedError) as failure:
            Toolchain.install(tmp_path / "home")
        assert failure.value.stderr_tail == "no network"
        assert [path.name for path in (tmp_path / "home" / "node").iterdir()] == ["install.lock"]
    program(bin_dir / "npm", "#!/bin/sh\n/bin/mkdir -p node_modules/snarkjs\n")
    assert (Toolchain.install(tmp_path / "home").modules / "snarkjs").is_dir()


# The compiler.


@pytest.fixture
def path_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that comes first in PATH."""
    folder = tmp_path / "first"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def compiled_digest(toolchain: Toolchain, spec: CircuitSpec, out: Path) -> str:
    rendered = render(spec, toolchain.modules / "circomlib" / "circuits")
    return hashlib.sha256(compile_circuit(spec, rendered, toolchain, out).r1cs.read_bytes()).hexdigest()


def test_a_native_compiler_of_the_pinned_version_is_used(
    toolchain: Toolchain, path_first: Path, tmp_path: Path
) -> None:
    spec = product(tmp_path / "src")
    packaged = compiled_digest(toolchain, spec, tmp_path / "a")
    log = tmp_path / "log"
    words = f"{toolchain.node} {toolchain.modules / 'circom2' / 'cli.js'}"
    native = program(path_first / "circom", f'#!/bin/sh\necho "$@" >> {log}\nexec {words} "$@"\n')
    assert find_compiler(toolchain) == NativeCompiler(native)
    assert compiled_digest(toolchain, spec, tmp_path / "b") == packaged
    assert "product.circom" in log.read_text("utf-8")


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/sh\necho 'circom compiler 2.1.0'\n",
        "#!/bin/sh\necho 'circom compiler 2.2.30'\n",
        "#!/bin/sh\necho 'something else'\n",
        f"#!/bin/sh\necho 'circom compiler {CIRCOM_VERSION}'\nexit 1\n",
        "#!/nonexistent\n",
        "\x7fELF",
    ],
    ids=["2.1.0", "2.2.30", "no version", "fails", "no interpreter", "no program"],
)
def test_another_or_broken_native_compiler_is_ignored(toolchain: Toolchain, path_first: Path, text: str) -> None:
    program(path_first / "circom", text)
    assert shutil.which("circom") == str(path_first / "circom")
    assert isinstance(find_compiler(toolchain), PackagedCompiler)


#: A program that prints a line, `{line}`.
PRINTS = """(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\\10\\00\\00\\00\\{length:02x}\\00\\00\\00")
  (data (i32.const 16) "{line}")
  (func (export "_start") (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"""
ENDLESS = '(module (memory (export "memory") 1) (func (export "_start") (loop $again (br $again))))'
TRAP = '(module (memory (export "memory") 1) (func (export "_start") unreachable))'


def package(toolchain: Toolchain, home: Path, text: str | bytes) -> Toolchain:
    """Tools whose circom2 is this program."""
    folder = home / "node_modules" / "circom2"
    folder.mkdir(parents=True)
    shutil.copy(toolchain.modules / "circom2" / "package.json", folder)
    wasm = bytes(wasmtime.wat2wasm(text)) if isinstance(text, str) else text
    (folder / "circom.wasm").write_bytes(wasm)
    return replace(toolchain, modules=folder.parent)


def test_a_packaged_compiler_of_another_version_is_refused(toolchain: Toolchain, tmp_path: Path) -> None:
    line = "circom compiler 2.1.0"
    other = package(toolchain, tmp_path, PRINTS.format(line=line, length=len(line)))
    with pytest.raises(ToolNotFoundError) as refusal:
        find_compiler(other)
    assert CIRCOM_VERSION in str(refusal.value)
    assert "2.1.0" in str(refusal.value)


def test_a_packaged_compiler_that_is_none_is_refused(toolchain: Toolchain, tmp_path: Path) -> None:
    with pytest.raises(ToolNotFoundError):
        find_compiler(package(toolchain, tmp_path / "a", b"no program"))
    missing = package(toolchain, tmp_path / "b", TRAP)
    (missing.modules / "circom2" / "circom.wasm").unlink()
    with pytest.raises(ToolNotFoundError):
        find_compiler(missing)
    with pytest.raises(ToolFailedError):
        find_compiler(package(toolchain, tmp_path / "c", TRAP))


def packaged(toolchain: Toolchain) -> PackagedCompiler:
    return PackagedCompiler(toolchain.modules / "circom2", toolchain.version("circom2"))


def test_a_compiler_that_does_not_end_is_stopped(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = packaged(package(toolchain, tmp_path / "home", ENDLESS))
    with pytest.raises(ToolTimeoutError):
        endless.run([], tmp_path, timeout_s=0.2)
    before = threading.active_count()
    interrupt = threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT])
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        endless.run([], tmp_path)
    interrupt.join()
    assert threading.active_count() == before


def test_a_translated_compiler_is_kept_and_made_again_when_it_is_damaged(toolchain: Toolchain, tmp_path: Path) -> None:
    line = f"circom compiler {CIRCOM_VERSION}"
    tools = package(toolchain, tmp_path, PRINTS.format(line=line, length=len(line)))
    compiler = find_compiler(tools)
    (kept,) = tmp_path.glob("*.cwasm")
    whole = kept.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], b"\x7fELF" + bytes(100)):
        kept.write_bytes(damaged)
        assert find_compiler(tools) == compiler
        assert kept.read_bytes() == whole


def test_where_nothing_can_be_kept_it_compiles_all_the_same(toolchain: Toolchain, tmp_path: Path) -> None:
    line = f"circom compiler {CIRCOM_VERSION}"
    tools = package(toolchain, tmp_path / "home", PRINTS.format(line=line, length=len(line)))
    kept = tmp_path / "home" / f"circom2_{tools.version('circom2')}_wasmtime_{version('wasmtime')}.lock"
    kept.mkdir()  # no file of that name can be made, not even by root
    assert find_compiler(tools).name == f"circom2 {tools.version('circom2')}"
    assert not list((tmp_path / "home").glob("*.cwasm"))


def test_the_packaged_compiler_sees_one_folder_only(toolchain: Toolchain, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "outside.circom").write_text("pragma circom 2.2.0;\n", "utf-8")
    (folder / "link.circom").symlink_to(tmp_path / "outside.circom")
    includes = ("../outside.circom", "link.circom", str(tmp_path / "outside.circom"))
    for include in includes:
        text = f'pragma circom 2.2.0; include "{include}"; template T() {{ signal input x; x === 1; }}'
        (folder / "main.circom").write_text(f"{text} component main = T();", "utf-8")
        completed = packaged(toolchain).run(["main.circom", "--r1cs"], folder)
        assert completed.exit_code != 0
        assert "to be included has not been found" in completed.stdout + completed.stderr


DEEP = {
    "main/deep.circom.j2": """pragma circom 2.2.0;
include "../lib/part.circom";
template Deep() { signal input y; signal input x; component part = Part(); part.x <== x; y === part.y; }
component main { public [{{ public | join(", ") }}] } = Deep();
""",
    "lib/part.circom.j2": """pragma circom 2.2.0;
include "circomlib/gates.circom";
template Part() {
    signal input x; signal output y;
    component both = AND(); both.a <== x; both.b <== x + 1; y <== both.out;
}
""",
}


def test_tlc_1_the_compiler_gives_one_result_from_every_working_folder(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, text in DEEP.items():
        (tmp_path / "src" / path).parent.mkdir(parents=True)
        (tmp_path / "src" / path).write_text(text, "utf-8")
    spec = CircuitSpec(
        name="deep",
        sources=tmp_path / "src",
        template="main/deep.circom.j2",
        parameters={},
        public=(Signal("y"),),
        private=(Signal("x"),),
        sample=dict,
    )
    digests = set()
    for index, folder in enumerate(
        (ROOT, ROOT / "circuits" / "main", tmp_path / "src", tmp_path / "src" / "lib", Path("/"))
    ):
        monkeypatch.chdir(folder)
        digests.add(compiled_digest(toolchain, spec, tmp_path / str(index)))
    assert len(digests) == 1


def test_tlc_6_folders_with_spaces_and_dots_build_and_prove(
    store: ArtifactStore, toolchain: Toolchain, tmp_path: Path
) -> None:
    fresh = fresh_store(tmp_path / "a b.c", store.home, phase1=False)
    spec = replace(product(tmp_path / "s r.c", "x.y"), name="x.y")
    circuit = fresh.build_key_set("a b.c", [spec], self_test)["x.y"]
    assert circuit.zkey.name == "x.y.zkey"
    assert (fresh.home / "phase1" / "development_11.ptau").is_file()
    snarkjs = SnarkjsCli(toolchain)
    for prover in (NativeProver(), SnarkjsProver(snarkjs)):
        proved = prover.prove(circuit, product_inputs(5))
        for verifier in (NativeVerifier(), SnarkjsVerifier(snarkjs)):
            assert verifier.verify(circuit.verifying_key, proved.public_signals, proved.proof)


# The witness program (TLC-4).


def with_import(name: str) -> bytes:
    """A witness program, empty but complete, that wants one more import."""
    return witness_program(f'(import "runtime" "{name}" (func))')


def witness_program(imports: str = "", init: str = "") -> bytes:
    """A witness program, complete, that does nothing but this when it begins."""
    text = f"""(module
      {imports}
      (memory (export "memory") 1)
      (func $init (export "init") (param i32) {init}) (func (export "setInputSignal") (param i32 i32 i32))
      (func (export "getInputSignalSize") (param i32 i32) (result i32) i32.const 1)
      (func (export "getWitnessSize") (result i32) i32.const 1)
      (func (export "getInputSize") (result i32) i32.const 1)
      (func (export "getMessageChar") (result i32) i32.const 0)
      (func (export "getSharedRWMemoryStart") (result i32) i32.const 0)
      (func (export "getWitness") (param i32)))"""
    return bytes(wasmtime.wat2wasm(text))


def test_tlc_4_a_witness_program_with_an_unknown_import_is_refused(
    products: tuple[ArtifactStore, KeySet], tmp_path: Path
) -> None:
    assert WitnessCalculator(with_import("showSharedRWMemory"), "x").calculate({"x": [7]})[0] == 7
    with pytest.raises(InvalidArtifactError) as refusal:
        WitnessCalculator(with_import("writeSharedRWMemoryLine"), "x")
    assert "writeSharedRWMemoryLine" in str(refusal.value)
    assert CIRCOM_VERSION in str(refusal.value)

    bad = copied(products[1]["product"], tmp_path / "artifact")
    bad.wasm.write_bytes(with_import("writeSharedRWMemoryLine"))
    bad = sign_again(bad)
    with pytest.raises(InvalidArtifactError) as refusal:
        NativeProver().prove(BuiltCircuit.load(bad.folder, bad.spec), product_inputs(3))
    assert bad.wasm.name in str(refusal.value)


@pytest.mark.parametrize(
    "text", ["(module)", '(module (memory (export "memory") 1) (func (export "init") (param i32)))']
)
def test_tlc_4_wasm_that_is_no_witness_program_is_refused(text: str) -> None:
    with pytest.raises(InvalidArtifactError):
        WitnessCalculator(bytes(wasmtime.wat2wasm(text)), "x")


#: Ends only when the byte at 0 is not 0 any more, which nobody sees to.
WAITS_FOR_EVER = "(loop $again (br_if $again (i32.eqz (i32.load8_u (i32.const 0)))))"


@pytest.mark.parametrize(
    ("init", "what"),
    [
        ("(call $init (i32.const 1))", "it calls itself too often"),
        ("unreachable", "it made an invalid operation"),
        ("(drop (i32.load (i32.const 65536)))", "it made an invalid operation"),
    ],
)
def test_tlc_4_a_witness_program_that_fails_is_told_in_one_sentence(init: str, what: str) -> None:
    assert WitnessCalculator(witness_program(init="(drop (i32.load (i32.const 0)))"), "x").calculate({"x": [7]})
    with pytest.raises(WitnessError) as refusal:
        WitnessCalculator(witness_program(init=init), "x").calculate({"x": [7]})
    assert what in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_tlc_4_a_witness_program_has_one_memory() -> None:
    """And with it no more than 32-bit addresses reach."""
    assert WitnessCalculator(witness_program(), "x").calculate({"x": [7]})
    two = WitnessCalculator(witness_program("(memory 1)"), "x")
    with pytest.raises(WitnessError, match="memory"):
        two.calculate({"x": [7]})


def test_tlc_4_an_endless_witness_program_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mastermind.zk.witness.TIMEOUT_S", 0.2)
    assert WitnessCalculator(witness_program(), "x").calculate({"x": [7]})
    with pytest.raises(WitnessError, match=r"did not finish within 0\.2 s"):
        WitnessCalculator(witness_program(init=WAITS_FOR_EVER), "x").calculate({"x": [7]})


def test_tlc_4_stopping_one_witness_program_leaves_another_its_witness() -> None:
    """They share an engine: the other one is interrupted too, and begins again."""
    endless = WitnessCalculator(witness_program(init=WAITS_FOR_EVER), "x")
    programs = [endless, WitnessCalculator(witness_program(), "x")]
    begun = threading.Event()

    def calculate(store: wasmtime.Store) -> bytes:
        program = programs.pop(0)  # endless when it begins, and not when it begins again
        begun.set()
        return program._calculate(store, {"x": [7]}, None)

    other = _Calculation(calculate)
    begun.wait()
    stopped = _Calculation(lambda store: endless._calculate(store, {"x": [7]}, None))
    stopped.stop()
    assert other.wait(10)
    other.stop()
    assert (other.error, other.witness[0]) == (None, 7)


def test_tlc_4_ctrl_c_stops_a_witness_program() -> None:
    endless = WitnessCalculator(witness_program(init=WAITS_FOR_EVER), "x")
    timer = threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        endless.calculate({"x": [7]})
    timer.join()
    assert not [thread for thread in threading.enumerate() if thread.name == "witness"]


# run().


def test_run_returns_what_was_printed_without_colours() -> None:
    done = run(["/bin/sh", "-c", r"printf '\033[32;22m[INFO]\033[0m yes\n'; echo no >&2"], timeout_s=10)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "[INFO] yes\n", "no\n")


def test_run_accepts_only_the_exit_codes_it_is_told() -> None:
    argv = ["/bin/sh", "-c", "echo out; echo first >&2; echo why >&2; exit 7"]
    assert run(argv, timeout_s=10, accept=(0, 7)).exit_code == 7
    with pytest.raises(ToolFailedError) as failure:
        run(argv, timeout_s=10, accept=(0, 1))
    assert failure.value.argv == tuple(argv)
    assert failure.value.exit_code == 7
    assert failure.value.stderr_tail == "first\nwhy"
    assert "why" in str(failure.value)


def test_run_keeps_only_the_end_of_what_a_failed_program_printed() -> None:
    script = "import sys; sys.stderr.write('x' * 100_000 + 'end'); sys.exit(1)"
    with pytest.raises(ToolFailedError) as failure:
        run([sys.executable, "-c", script], timeout_s=30)
    assert failure.value.stderr_tail.endswith("end")
    assert len(failure.value.stderr_tail) == 2000


def test_run_says_when_a_program_was_killed() -> None:
    with pytest.raises(ToolFailedError) as failure:
        run(["/bin/sh", "-c", "kill -9 $$"], timeout_s=10, accept=range(256))
    assert failure.value.exit_code == -signal.SIGKILL


def test_run_gives_stdin_and_shows_it_in_no_argument() -> None:
    secret = b"a secret of the test"
    script = "cat; tr '\\0' ' ' < /proc/$$/cmdline"
    done = run(["/bin/sh", "-c", script], timeout_s=10, stdin=secret)
    assert done.stdout.startswith(secret.decode())
    assert done.stdout.count(secret.decode()) == 1
    assert "cmdline" in done.stdout


def test_run_does_not_wait_for_a_program_to_read_its_stdin() -> None:
    assert run(["/bin/true"], timeout_s=10, stdin=b"x" * (1 << 22)).exit_code == 0
    argv = [sys.executable, "-c", "import sys; sys.stdout.write('y' * (1 << 22)); sys.stdout.write(sys.stdin.read())"]
    assert len(run(argv, timeout_s=30, stdin=b"x" * (1 << 22)).stdout) == 1 << 23


def test_run_reports_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ToolNotFoundError):
        run([tmp_path / "nothing"], timeout_s=10)
    with pytest.raises(ToolNotFoundError):
        run([program(tmp_path / "garbage", "\x7fELF")], timeout_s=10)


#: Writes the numbers of itself and of a child of its own, which both sleep.
FAMILY = 'sleep 600 & echo "$$ $!" > "$0"; wait'


def family(path: Path) -> list[int]:
    assert wait_until(lambda: path.is_file() and path.read_text("utf-8").count(" ") == 1)
    return [int(word) for word in path.read_text("utf-8").split()]


def test_run_kills_a_program_and_its_children_on_a_timeout(tmp_path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(ToolTimeoutError) as failure:
        run(["/bin/sh", "-c", FAMILY, tmp_path / "pids"], timeout_s=1)
    assert time.monotonic() - start < 10
    assert failure.value.timeout_s == 1
    assert failure.value.argv[:2] == ("/bin/sh", "-c")
    assert wait_until(lambda: not any(map(alive, family(tmp_path / "pids"))))


def test_run_kills_a_child_that_outlives_the_program_and_holds_its_output(tmp_path: Path) -> None:
    script = 'sleep 600 & echo "$$ $!" > "$0"; exit 0'
    with pytest.raises(ToolTimeoutError):
        run(["/bin/sh", "-c", script, tmp_path / "pids"], timeout_s=1)
    assert wait_until(lambda: not any(map(alive, family(tmp_path / "pids"))))


def test_run_kills_the_program_when_it_is_interrupted(tmp_path: Path) -> None:
    script = "import sys; from mastermind.zk.tools import run; run(sys.argv[1:], timeout_s=600)"
    argv = [sys.executable, "-c", script, "/bin/sh", "-c", FAMILY, str(tmp_path / "pids")]
    with subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        pids = family(tmp_path / "pids")
        assert all(map(alive, pids))
        process.send_signal(signal.SIGINT)
        assert process.wait(10) != 0
    assert wait_until(lambda: not any(map(alive, pids)))


def test_run_leaves_no_file_open() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        run(["/bin/true"], timeout_s=10)
        with pytest.raises(ToolFailedError):
            run(["/bin/false"], timeout_s=10)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


# snarkjs that gives no answer is not an answer.


def scripted_snarkjs(toolchain: Toolchain, folder: Path, script: str) -> SnarkjsCli:
    build = folder / "snarkjs" / "build"
    build.mkdir(parents=True)
    (build / "cli.cjs").write_text(script, "utf-8")
    return SnarkjsCli(replace(toolchain, modules=folder), timeout_s=5)


@pytest.mark.parametrize(
    ("script", "verdict"),
    [
        ("console.log('[INFO] snarkJS: OK!')", True),
        ("console.log('[ERROR] snarkJS: Invalid proof'); process.exit(1)", False),
        ("", None),
        ("process.exit(1)", None),
        ("throw new Error('broken')", None),
        ("console.log('OK!'); process.exit(1)", None),
        ("process.exit(99)", None),
        ("process.kill(process.pid, 'SIGKILL')", None),
    ],
)
def test_sil_3_snarkjs_without_a_verdict_is_a_failure(
    products: tuple[ArtifactStore, KeySet], toolchain: Toolchain, tmp_path: Path, script: str, verdict: bool | None
) -> None:
    circuit = products[1]["product"]
    proved = NativeProver().prove(circuit, product_inputs(2))
    verifier = SnarkjsVerifier(scripted_snarkjs(toolchain, tmp_path, script))
    if verdict is None:
        with pytest.raises(ToolFailedError):
            verifier.verify(circuit.verifying_key, proved.public_signals, proved.proof)
    else:
        assert verifier.verify(circuit.verifying_key, proved.public_signals, proved.proof) is verdict


def test_snarkjs_that_hangs_is_killed(
    products: tuple[ArtifactStore, KeySet], toolchain: Toolchain, tmp_path: Path
) -> None:
    hanging = scripted_snarkjs(toolchain, tmp_path, "setInterval(() => {}, 1000)")
    hanging._timeout_s = 0.5
    with pytest.raises(ToolTimeoutError):
        SnarkjsProver(hanging).prove(products[1]["product"], product_inputs(2))


@pytest.mark.parametrize(
    "script",
    [
        "",
        "require('node:fs').writeFileSync(process.argv[7], '{}')",
        "for (const at of [7, 8]) require('node:fs').writeFileSync(process.argv[at], '<html>')",
    ],
)
def test_snarkjs_that_ends_well_without_a_proof_is_a_failure(
    products: tuple[ArtifactStore, KeySet], toolchain: Toolchain, tmp_path: Path, script: str
) -> None:
    """`process.argv`: node, snarkjs, groth16, fullprove, inputs, wasm, zkey, proof, public signals."""
    with pytest.raises(ToolFailedError):
        SnarkjsProver(scripted_snarkjs(toolchain, tmp_path, script)).prove(products[1]["product"], product_inputs(2))


@pytest.mark.parametrize("answer", ["{}", "null", "{ proof: {}, publicSignals: [] }", "7"])
def test_a_worker_that_answers_without_a_proof_is_a_failure(
    products: tuple[ArtifactStore, KeySet], toolchain: Toolchain, tmp_path: Path, answer: str
) -> None:
    package = tmp_path / "snarkjs"
    package.mkdir()
    (package / "index.js").write_text(f"exports.groth16 = {{ fullProve: async () => ({answer}) }};", "utf-8")
    with (
        SnarkjsWorker(replace(toolchain, modules=tmp_path), timeout_s=10) as worker,
        pytest.raises(ToolFailedError),
    ):
        SnarkjsProver(worker).prove(products[1]["product"], product_inputs(2))


def test_versions_are_read_from_the_packages(toolchain: Toolchain, tmp_path: Path) -> None:
    lock = json.loads((ROOT / "circuits" / "package-lock.json").read_bytes())
    for package in ("circom2", "circomlib", "snarkjs"):
        assert toolchain.version(package) == lock["packages"][f"node_modules/{package}"]["version"]
    with pytest.raises(ToolNotFoundError):
        replace(toolchain, modules=tmp_path).version("snarkjs")
