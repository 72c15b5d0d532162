"""Provers under load, under attack and under the knife: order, leftovers, memory, secrets and life after death."""

from __future__ import annotations

import gc
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from mastermind.cli.output import default_home
from mastermind.errors import ProofSelfCheckError, ToolFailedError, ToolTimeoutError, WitnessError
from mastermind.field import random_field_element
from mastermind.game.circuits import give_clue_inputs, random_salt
from mastermind.packing import pack_clue, pack_code
from mastermind.rules import Rules
from mastermind.zk.artifacts import ArtifactStore, BuiltCircuit, KeySet
from mastermind.zk.evidence import Proof, VerifyingKey
from mastermind.zk.prove import NativeProver, ProvedStatement, Prover, SnarkjsProver, _loaded, self_test
from mastermind.zk.snarkjs import SnarkjsCli, SnarkjsWorker
from mastermind.zk.tools import Toolchain
from mastermind.zk.verify import NativeVerifier, SnarkjsVerifier
from tests.zk.tiny import TEMPLATE, copied, product, product_inputs

ROOT = Path(__file__).resolve().parents[2]
RULES = Rules.parse("hit-and-blow")
SECRET = (0, 1, 2, 3)
PROVERS = ("native", "snarkjs", "worker")


@pytest.fixture(params=PROVERS)
def prover(request: pytest.FixtureRequest, snarkjs_cli: SnarkjsCli, snarkjs_worker: SnarkjsWorker) -> Prover:
    provers: dict[str, Prover] = {
        "native": NativeProver(),
        "snarkjs": SnarkjsProver(snarkjs_cli),
        "worker": SnarkjsProver(snarkjs_worker),
    }
    return provers[request.param]


@pytest.fixture(scope="module")
def tiny(products: tuple[ArtifactStore, KeySet]) -> BuiltCircuit:
    return products[1]["product"]


@pytest.fixture(scope="module")
def sibling(products: tuple[ArtifactStore, KeySet]) -> BuiltCircuit:
    return products[1]["sibling"]


@pytest.fixture
def give_clue(hit_and_blow: KeySet) -> BuiltCircuit:
    return hit_and_blow["give_clue"]


def clue_inputs(guess: Sequence[int]) -> dict[str, object]:
    return give_clue_inputs(
        RULES,
        game_id=random_field_element(),
        turn_count=2,
        guess=guess,
        secret=SECRET,
        salt=random_salt(),
        key=random_field_element(),
    )


def false_inputs(guess: Sequence[int] = (0, 1, 4, 5)) -> dict[str, object]:
    """Inputs that claim one hit more than there is; well formed, so that only the circuit can refuse them."""
    inputs = clue_inputs(guess)
    clue = inputs["clue"]
    assert isinstance(clue, int)
    return {**inputs, "clue": clue + 1}


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


# Both provers and both transports make proofs that all verifiers accept.


@pytest.mark.parametrize("name", ["authorise", "open_game", "make_guess", "give_clue", "certify_game"])
def test_proofs_of_every_prover_are_accepted(
    prover: Prover, hit_and_blow: KeySet, name: str, snarkjs_worker: SnarkjsWorker
) -> None:
    circuit = hit_and_blow[name]
    inputs = circuit.spec.sample()
    proved = prover.prove(circuit, inputs)
    assert proved.public_signals == circuit.spec.public_inputs(circuit.spec.check_inputs(inputs))
    for verifier in (NativeVerifier(), SnarkjsVerifier(snarkjs_worker)):
        assert verifier.verify(circuit.verifying_key, proved.public_signals, proved.proof)


def test_two_proofs_of_one_statement_differ(prover: Prover, tiny: BuiltCircuit) -> None:
    first, second = (prover.prove(tiny, product_inputs(3)) for _ in range(2))
    assert first.public_signals == second.public_signals
    assert first.proof != second.proof


def test_a_false_statement_is_refused_by_the_circuit(prover: Prover, give_clue: BuiltCircuit) -> None:
    with pytest.raises(WitnessError) as refusal:
        prover.prove(give_clue, false_inputs())
    assert (refusal.value.template, refusal.value.file) == ("GiveClue", "main/give_clue.circom")
    assert refusal.value.line is not None


def test_a_refusal_names_the_file_when_another_copy_of_the_circuit_was_used_before_and_is_gone(
    prover: Prover, give_clue: BuiltCircuit, tmp_path: Path
) -> None:
    shutil.copytree(give_clue.folder, tmp_path / "copy")
    copy = replace(give_clue, folder=tmp_path / "copy")
    _loaded.cache_clear()
    prover.prove(copy, clue_inputs((0, 1, 4, 5)))
    shutil.rmtree(copy.folder)
    with pytest.raises(WitnessError) as refusal:
        prover.prove(give_clue, false_inputs())
    assert refusal.value.file == "main/give_clue.circom"


LOGGING = TEMPLATE.replace("    y === ", '    log("x is", x);\n    y === ')


@pytest.mark.parametrize("prover", PROVERS, indirect=True)
def test_a_circuit_that_logs_proves_and_its_log_goes_nowhere(
    logging_circuit: BuiltCircuit, prover: Prover, capfd: pytest.CaptureFixture[str]
) -> None:
    assert prover.prove(logging_circuit, product_inputs(31337)).public_signals == (31337 * 31338,)
    shown = capfd.readouterr()
    assert "31337" not in shown.out + shown.err


@pytest.fixture(scope="module")
def logging_circuit(products: tuple[ArtifactStore, KeySet], tmp_path_factory: pytest.TempPathFactory) -> BuiltCircuit:
    spec = product(tmp_path_factory.mktemp("logging"), "logging", template=LOGGING)
    return products[0].build_key_set("logging", [spec], self_test)["logging"]


# PRC-3, PRC-4: parallel calls keep to themselves.


def check_clue(proved: ProvedStatement, guess: Sequence[int]) -> None:
    assert proved.public_signals[3] == pack_code(RULES, guess)
    assert proved.public_signals[4] == pack_clue(RULES, RULES.score(SECRET, guess))


def test_prc_3_six_parallel_proofs_are_each_about_their_own_guess(prover: Prover, give_clue: BuiltCircuit) -> None:
    guesses = list(itertools.islice(itertools.permutations((7, 1, 0, 3)), 6))
    assert len(set(guesses)) == 6
    with ThreadPoolExecutor(6) as pool:
        proved = list(pool.map(lambda guess: prover.prove(give_clue, clue_inputs(guess)), guesses))
    for guess, statement in zip(guesses, proved, strict=True):
        check_clue(statement, guess)
        assert NativeVerifier().verify(give_clue.verifying_key, statement.public_signals, statement.proof)


def test_prc_3_good_and_false_statements_side_by_side(prover: Prover, give_clue: BuiltCircuit) -> None:
    def attempt(index: int) -> ProvedStatement | None:
        if index % 2:
            with pytest.raises(WitnessError):
                prover.prove(give_clue, false_inputs())
            return None
        return prover.prove(give_clue, clue_inputs((index, 7, 0, 1)))

    with ThreadPoolExecutor(4) as pool:
        proved = list(pool.map(attempt, (2, 3, 4, 5)))
    for index in (0, 2):
        statement = proved[index]
        assert statement is not None
        check_clue(statement, (index + 2, 7, 0, 1))


FIRST_USE = """
import sys, threading
from pathlib import Path
from mastermind.zk.witness import WitnessCalculator
wasm, witnesses = Path(sys.argv[1]).read_bytes(), []
together = threading.Barrier(8)

def calculate(x):
    together.wait()
    witnesses.append(WitnessCalculator(wasm, "product").calculate({"y": [x * (x + 1)], "x": [x]}))

threads = [threading.Thread(target=calculate, args=(x,)) for x in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(set(witnesses)) == 8
"""


def test_prc_3_the_first_proofs_of_a_process_may_be_parallel(tiny: BuiltCircuit) -> None:
    # Two engines of wasmtime in one process abort it; no exception shows that.
    argv = [sys.executable, "-c", FIRST_USE, str(tiny.wasm)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("round_number", range(2))
def test_prc_4_prove_commands_at_once_are_each_about_their_own_guess(
    hit_and_blow: KeySet, tmp_path: Path, round_number: int
) -> None:
    """Four commands in one working folder; PRC-1: each ends by itself."""
    guesses = [(4, round_number, 5, 6), (round_number, 4, 5, 6), (4, 5, round_number, 6), (4, 5, 6, round_number)]
    processes = []
    for index, guess in enumerate(guesses):
        inputs = {
            name: [str(item) for item in value] if isinstance(value, list) else str(value)
            for name, value in clue_inputs(guess).items()
        }
        (tmp_path / f"{index}.json").write_text(json.dumps(inputs), "utf-8")
        (tmp_path / f"{index}.json").chmod(0o600)
        argv = [sys.executable, "-m", "mastermind", "prove", "give_clue", "--inputs", f"{index}.json"]
        argv += ["--out", f"out{index}", "--prover", "snarkjs" if index % 2 else "native"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "MASTERMIND_HOME": str(default_home())}
        processes.append(subprocess.Popen(argv, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True))
    for process in processes:
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
        assert said == ""
    key = hit_and_blow["give_clue"].verifying_key
    for index, guess in enumerate(guesses):
        public = tuple(int(text) for text in json.loads((tmp_path / f"out{index}" / "public.json").read_bytes()))
        proof = Proof.parse(json.loads((tmp_path / f"out{index}" / "proof.json").read_bytes()))
        check_clue(ProvedStatement(public, proof), guess)
        assert NativeVerifier().verify(key, public, proof)
    assert len(list(tmp_path.iterdir())) == 2 * len(guesses), "nothing else is left in the folder"


# ART-3 below the manifest: a prover checks its own proof.


def test_art_3_a_wasm_of_a_sibling_makes_no_proof(
    prover: Prover, tiny: BuiltCircuit, sibling: BuiltCircuit, tmp_path: Path
) -> None:
    """y = x (x + 2) is calculated and y = x (x + 1) is proved; all sizes fit."""
    mixed = replace(copied(tiny, tmp_path / "artifact"), digest=str(tmp_path))
    mixed.wasm.write_bytes(sibling.wasm.read_bytes())
    with pytest.raises(ProofSelfCheckError):
        prover.prove(mixed, product_inputs(5, offset=2))


@pytest.mark.parametrize("other", ["open_game", "certify_game", "authorise", "make_guess"])
def test_art_3_a_zkey_of_another_circuit_makes_no_proof(
    prover: Prover, hit_and_blow: KeySet, tmp_path: Path, other: str, capfd: pytest.CaptureFixture[str]
) -> None:
    mixed = replace(copied(hit_and_blow["give_clue"], tmp_path / "artifact"), digest=str(tmp_path))
    mixed.zkey.write_bytes(hit_and_blow[other].zkey.read_bytes())
    # snarkjs compares the sizes itself, and that is a failure of a tool.
    with pytest.raises((ProofSelfCheckError, ToolFailedError)):
        prover.prove(mixed, clue_inputs((4, 1, 5, 3)))
    capfd.readouterr()  # arkworks panics to stderr


def test_a_proof_of_another_statement_is_not_handed_out(tiny: BuiltCircuit) -> None:
    class Confused:
        """A snarkjs that answers every request with the same good proof."""

        def prove(self, inputs: Mapping[str, Sequence[int]], wasm: Path, zkey: Path) -> tuple[Proof, tuple[int, ...]]:
            other = NativeProver().prove(tiny, product_inputs(3))
            return other.proof, other.public_signals

        def verify(self, key: VerifyingKey, public_signals: Sequence[int], proof: Proof) -> NoReturn:
            raise AssertionError

    assert SnarkjsProver(Confused()).prove(tiny, product_inputs(3))
    with pytest.raises(ProofSelfCheckError):
        SnarkjsProver(Confused()).prove(tiny, product_inputs(4))


# The worker's life.

#: snarkjs, but a proof for x = 13 takes for ever, and one for x = 14 a second more.
SLOW_SNARKJS = """
const real = require(%s);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
exports.groth16 = { ...real.groth16, async fullProve(inputs, ...files) {
    if (inputs.x[0] === "13") await sleep(1e6);
    if (inputs.x[0] === "14") await sleep(1000);
    return real.groth16.fullProve(inputs, ...files);
} };
"""


@pytest.fixture
def slow_toolchain(toolchain: Toolchain, tmp_path: Path) -> Toolchain:
    package = tmp_path / "node_modules" / "snarkjs"
    package.mkdir(parents=True)
    script = SLOW_SNARKJS % json.dumps(str(toolchain.modules / "snarkjs"))
    (package / "index.js").write_text(script, "utf-8")
    return replace(toolchain, modules=package.parent)


@contextmanager
def slow_worker(toolchain: Toolchain) -> Iterator[SnarkjsWorker]:
    """A worker that must leave neither a process nor an open file."""
    gc.collect()
    before = open_files()
    with SnarkjsWorker(toolchain, timeout_s=60) as worker:
        yield worker
    gc.collect()
    assert wait_until(lambda: open_files() <= before)


def open_files(pid: int | str = "self") -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def pid_of(worker: SnarkjsWorker) -> int:
    assert worker._worker is not None
    return worker._worker.process.pid


def prove_x(worker: SnarkjsWorker, tiny: BuiltCircuit, x: int) -> ProvedStatement:
    return SnarkjsProver(worker).prove(tiny, product_inputs(x))


def test_a_request_that_takes_too_long_is_killed_and_the_next_one_works(
    slow_toolchain: Toolchain, tiny: BuiltCircuit
) -> None:
    with slow_worker(slow_toolchain) as worker:
        assert prove_x(worker, tiny, 2).public_signals == (6,)
        first = pid_of(worker)
        worker._timeout_s = 1
        start = time.monotonic()
        with pytest.raises(ToolTimeoutError) as failure:
            prove_x(worker, tiny, 13)
        assert 1 <= time.monotonic() - start < 20
        assert failure.value.timeout_s == 1
        assert not alive(first)
        worker._timeout_s = 60
        assert prove_x(worker, tiny, 3).public_signals == (12,)
        second = pid_of(worker)
        assert second != first
    assert not alive(second)


def test_a_request_that_is_under_way_when_another_times_out_is_answered(
    slow_toolchain: Toolchain, tiny: BuiltCircuit
) -> None:
    with slow_worker(slow_toolchain) as worker, ThreadPoolExecutor() as pool:
        prove_x(worker, tiny, 2)
        waiting = pool.submit(prove_x, worker, tiny, 14)
        time.sleep(0.2)
        assert worker._worker is not None
        first = pid_of(worker)
        worker._worker.stop()  # What the timeout of another request does.
        assert waiting.result(60).public_signals == (14 * 15,)
        assert pid_of(worker) != first


def test_a_killed_worker_is_replaced(slow_toolchain: Toolchain, tiny: BuiltCircuit) -> None:
    with slow_worker(slow_toolchain) as worker, ThreadPoolExecutor() as pool:
        for _ in range(2):
            prove_x(worker, tiny, 2)
            idle = pid_of(worker)
            os.kill(idle, signal.SIGKILL)
            assert prove_x(worker, tiny, 4).public_signals == (20,)
            assert pid_of(worker) != idle

        # Killed during a request: the request is sent once more.
        request = pool.submit(prove_x, worker, tiny, 14)
        time.sleep(0.3)
        busy = pid_of(worker)
        os.kill(busy, signal.SIGKILL)
        assert request.result(60).public_signals == (14 * 15,)
        assert pid_of(worker) != busy
        assert not alive(busy)


def test_a_request_that_kills_two_workers_fails(slow_toolchain: Toolchain, tiny: BuiltCircuit) -> None:
    with slow_worker(slow_toolchain) as worker, ThreadPoolExecutor() as pool:
        prove_x(worker, tiny, 2)
        request: Future[ProvedStatement] = pool.submit(prove_x, worker, tiny, 13)
        first = pid_of(worker)
        time.sleep(0.2)
        os.kill(first, signal.SIGKILL)
        assert wait_until(lambda: worker._worker is not None and pid_of(worker) != first)
        time.sleep(0.2)
        os.kill(pid_of(worker), signal.SIGKILL)
        with pytest.raises(ToolFailedError):
            request.result(60)
        assert prove_x(worker, tiny, 3).public_signals == (12,)


def test_a_worker_that_cannot_start_fails(toolchain: Toolchain, tiny: BuiltCircuit, tmp_path: Path) -> None:
    with SnarkjsWorker(replace(toolchain, modules=tmp_path)) as worker, pytest.raises(ToolFailedError):
        prove_x(worker, tiny, 2)


def test_prc_1_closing_ends_the_worker_and_may_be_repeated(toolchain: Toolchain, tiny: BuiltCircuit) -> None:
    worker = SnarkjsWorker(toolchain)
    prove_x(worker, tiny, 2)
    pid = pid_of(worker)
    assert alive(pid)
    worker.close()
    assert not alive(pid)
    worker.close()
    with pytest.raises(ValueError, match="closed"):
        prove_x(worker, tiny, 2)
    SnarkjsWorker(toolchain).close()


def test_closing_ends_a_request_that_is_under_way(slow_toolchain: Toolchain, tiny: BuiltCircuit) -> None:
    with slow_worker(slow_toolchain) as worker, ThreadPoolExecutor() as pool:
        prove_x(worker, tiny, 2)
        request = pool.submit(prove_x, worker, tiny, 13)
        time.sleep(0.2)
        worker.close()
        with pytest.raises(ToolFailedError):
            request.result(10)


def test_a_worker_that_is_dropped_ends(toolchain: Toolchain, tiny: BuiltCircuit) -> None:
    worker = SnarkjsWorker(toolchain)
    prove_x(worker, tiny, 2)
    pid = pid_of(worker)
    del worker
    gc.collect()
    assert wait_until(lambda: not alive(pid))


#: Holds a worker, says its number, and does what the last line says.
PARENT = """
import sys, threading, time
from pathlib import Path
from mastermind.zk.snarkjs import SnarkjsWorker
from mastermind.zk.tools import Toolchain
worker = SnarkjsWorker(Toolchain(Path(sys.argv[1]), Path(sys.argv[2])))
wasm, zkey = Path(sys.argv[3]), Path(sys.argv[4])
worker.prove({"y": [6], "x": [2]}, wasm, zkey)
hanging = lambda: worker.prove({"y": [182], "x": [13]}, wasm, zkey)
print(worker._worker.process.pid, flush=True)
"""


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_prc_1_no_worker_outlives_a_killed_parent(slow_toolchain: Toolchain, tiny: BuiltCircuit, busy: bool) -> None:
    ending = "hanging()" if busy else "time.sleep(600)"
    argv = [sys.executable, "-c", PARENT + ending, str(slow_toolchain.node), str(slow_toolchain.modules)]
    with subprocess.Popen(
        [*argv, str(tiny.wasm), str(tiny.zkey)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert alive(pid)
        time.sleep(0.3)
        parent.kill()
    assert wait_until(lambda: not alive(pid), seconds=5)


@pytest.mark.parametrize("ending", ["", "threading.Thread(target=hanging, daemon=True).start()", "1 / 0"])
def test_prc_1_a_program_that_forgets_to_close_its_worker_ends(
    slow_toolchain: Toolchain, tiny: BuiltCircuit, ending: str
) -> None:
    argv = [sys.executable, "-c", PARENT + ending, str(slow_toolchain.node), str(slow_toolchain.modules)]
    done = subprocess.run(
        [*argv, str(tiny.wasm), str(tiny.zkey)], cwd=ROOT, capture_output=True, text=True, timeout=20, check=False
    )
    assert done.returncode == (1 if ending == "1 / 0" else 0), done.stderr
    assert wait_until(lambda: not alive(int(done.stdout)), seconds=5)


# PRC-6, PRC-7: memory and files.

HUNDRED_PROOFS = """
import sys
from pathlib import Path
from mastermind.errors import WitnessError
from mastermind.game.circuits import specs
from mastermind.rules import Rules
from mastermind.zk.artifacts import ArtifactStore
from mastermind.zk.prove import NativeProver

def rss_mb():
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024

def files():
    return len(list(Path("/proc/self/fd").iterdir()))

rules = Rules.parse("hit-and-blow")
circuit = ArtifactStore(Path(sys.argv[1])).load_key_set(rules.spelling, specs(rules))["give_clue"]
prover = NativeProver()
for _ in range(10):
    prover.prove(circuit, circuit.spec.sample())
memory, open_files = rss_mb(), files()
for _ in range(100):
    prover.prove(circuit, circuit.spec.sample())
print(memory, rss_mb(), files() - open_files)
false = {**circuit.spec.sample(), "solution_hash": 1}
for _ in range(50):
    try:
        prover.prove(circuit, false)
    except WitnessError:
        continue
    raise AssertionError
print(rss_mb(), files() - open_files)
"""


def test_prc_6_7_memory_and_files_are_stable_over_many_proofs(hit_and_blow: KeySet) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HUNDRED_PROOFS, str(default_home())],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (before, after, kept_open), (after_failures, still_open) = (
        [float(word) for word in line.split()] for line in done.stdout.splitlines()
    )
    assert after - before < 20
    assert after_failures - before < 20
    assert max(after, after_failures) < 200
    assert (kept_open, still_open) == (0, 0)


def test_prc_7_failing_proofs_leave_no_file_open_in_the_worker(toolchain: Toolchain, give_clue: BuiltCircuit) -> None:
    with SnarkjsWorker(toolchain) as worker:
        prover = SnarkjsProver(worker)
        prover.prove(give_clue, clue_inputs((4, 5, 6, 7)))
        with pytest.raises(WitnessError):
            prover.prove(give_clue, false_inputs())
        inside, outside = open_files(pid_of(worker)), open_files()
        for _ in range(50):
            with pytest.raises(WitnessError):
                prover.prove(give_clue, false_inputs())
        assert open_files(pid_of(worker)) <= inside
        assert open_files() == outside


# COM-9: secrets stay in memory.


def spellings(secret: int) -> list[bytes]:
    return [str(secret).encode(), hex(secret)[2:].encode(), secret.to_bytes(32, "little"), secret.to_bytes(32, "big")]


def files_holding(secret: int, *folders: Path) -> list[Path]:
    return [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and any(spelling in path.read_bytes() for spelling in spellings(secret))
    ]


def said(error: BaseException | None) -> str:
    """All that an error and those behind it say."""
    text = ""
    while error is not None:
        text += f"{error!r} {error} {vars(error)} "
        error = error.__cause__ or error.__context__
    return text


def test_com_9_the_search_finds_what_there_is(tmp_path: Path) -> None:
    salt = random_salt()
    assert files_holding(salt, tmp_path) == []
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "witness").write_bytes(b"x" + salt.to_bytes(32, "little"))
    (tmp_path / "inputs").write_text(json.dumps({"salt": str(salt)}), "utf-8")
    assert len(files_holding(salt, tmp_path)) == 2


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, of this process and of those it starts."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    for name in ("TMPDIR", "TMP", "TEMP"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert tempfile.gettempdir() == str(folder)
    return folder


@pytest.mark.parametrize("name", PROVERS)
def test_com_9_proofs_leave_no_secret_in_files_or_errors(
    name: str, toolchain: Toolchain, hit_and_blow: KeySet, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = temporary.parent / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    circuit = hit_and_blow["give_clue"]
    with SnarkjsWorker(toolchain, timeout_s=60) as worker:
        provers: dict[str, Prover] = {
            "native": NativeProver(),
            "snarkjs": SnarkjsProver(SnarkjsCli(toolchain)),
            "worker": SnarkjsProver(worker),
        }
        prover = provers[name]
        good, false = clue_inputs((0, 4, 5, 6)), false_inputs()
        prover.prove(circuit, good)
        with pytest.raises(WitnessError) as refusal:
            prover.prove(circuit, false)
    for inputs in (good, false):
        for secret in (inputs["salt"], inputs["key"]):
            assert isinstance(secret, int)
            assert files_holding(secret, temporary, work) == []
            assert str(secret) not in said(refusal.value)
    assert list(work.iterdir()) == []
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("name", ["snarkjs", "worker"])
def test_com_9_a_proof_killed_half_way_leaves_no_secret(
    name: str, toolchain: Toolchain, hit_and_blow: KeySet, temporary: Path
) -> None:
    inputs = clue_inputs((0, 4, 5, 6))
    # Less than Node needs to finish, more than it needs to have read the inputs.
    snarkjs: SnarkjsCli | SnarkjsWorker = SnarkjsCli(toolchain, timeout_s=0.3)
    if name == "worker":
        snarkjs = SnarkjsWorker(toolchain, timeout_s=0.3)
    with pytest.raises(ToolTimeoutError) as failure:
        SnarkjsProver(snarkjs).prove(hit_and_blow["give_clue"], inputs)
    if isinstance(snarkjs, SnarkjsWorker):
        snarkjs.close()
    for secret in (inputs["salt"], inputs["key"]):
        assert isinstance(secret, int)
        assert files_holding(secret, temporary) == []
        assert str(secret) not in said(failure.value)
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("name", ["native", "snarkjs"])
def test_com_9_a_killed_prove_command_leaves_no_secret(
    name: str, hit_and_blow: KeySet, temporary: Path, tmp_path: Path
) -> None:
    inputs = clue_inputs((0, 4, 5, 6))
    text = json.dumps(
        {key: [str(v) for v in value] if isinstance(value, list) else str(value) for key, value in inputs.items()}
    )
    argv = [sys.executable, "-m", "mastermind", "prove", "give_clue", "--inputs", "-", "--out", str(tmp_path / "out")]
    for seconds in (0.5, 0.8, 1.1):
        with subprocess.Popen([*argv, "--prover", name], cwd=ROOT, stdin=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            process.stdin.write(text)
            process.stdin.close()
            time.sleep(seconds)
            process.kill()
    for secret in (inputs["salt"], inputs["key"]):
        assert isinstance(secret, int)
        assert files_holding(secret, tmp_path) == []


def test_com_9_secrets_are_in_no_argument_and_no_environment(toolchain: Toolchain, hit_and_blow: KeySet) -> None:
    inputs = clue_inputs((0, 4, 5, 6))
    secrets = [spelling for name in ("salt", "key") for spelling in spellings(_int(inputs[name]))[:2]]
    seen: list[bytes] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            for entry in Path("/proc").iterdir():
                if entry.name.isdigit():
                    try:
                        seen.append((entry / "cmdline").read_bytes())
                        seen.append((entry / "environ").read_bytes())
                    except OSError:
                        continue  # It has ended, or is not ours.

    with ThreadPoolExecutor() as pool:
        watching = pool.submit(watch)
        SnarkjsProver(SnarkjsCli(toolchain)).prove(hit_and_blow["give_clue"], inputs)
        stop.set()
        watching.result(30)
    assert any(b"fullprove" in line for line in seen), "the watcher saw the tool at work"
    assert not any(secret in line for line in seen for secret in secrets)


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value


#: Prints all that it is given, and fails.
TELL_TALE_CLI = "process.stdin.on('data', (data) => console.error(String(data))).on('end', () => process.exit(1))"
TELL_TALE_API = "exports.groth16 = { fullProve: async (inputs) => { throw new Error(JSON.stringify(inputs)); } }"


@pytest.mark.parametrize("name", ["snarkjs", "worker"])
def test_com_9_an_error_repeats_no_inputs_even_if_the_tool_does(
    name: str, toolchain: Toolchain, tiny: BuiltCircuit, tmp_path: Path
) -> None:
    (tmp_path / "snarkjs" / "build").mkdir(parents=True)
    (tmp_path / "snarkjs" / "build" / "cli.cjs").write_text(TELL_TALE_CLI, "utf-8")
    (tmp_path / "snarkjs" / "index.js").write_text(TELL_TALE_API, "utf-8")
    telling = replace(toolchain, modules=tmp_path)
    secret = random_field_element()
    with SnarkjsWorker(telling) as worker:
        snarkjs = SnarkjsCli(telling) if name == "snarkjs" else worker
        with pytest.raises(ToolFailedError) as failure:
            SnarkjsProver(snarkjs).prove(tiny, product_inputs(secret))
    shown = "".join(traceback.format_exception(failure.value)) + str(vars(failure.value))
    assert "ToolFailedError" in shown
    assert str(secret) not in shown
