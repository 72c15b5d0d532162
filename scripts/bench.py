"""Measure proving, verifying, playing and building on this machine.

Prints tables and writes `build/bench.json`. All figures of one run come from the same machine in the same minutes, so
the ratios mean something where single times do not. Run with `make bench`.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import groth16py
import strengths

from mastermind.cli.output import ProgressLine, default_home
from mastermind.game.certificate import Certificate
from mastermind.game.circuits import specs
from mastermind.game.play import Table
from mastermind.game.secret_files import GameSecret, PlayerKey
from mastermind.game.transcript import Transcript
from mastermind.rules import Rules
from mastermind.zk.artifacts import ArtifactStore, BuiltCircuit
from mastermind.zk.circom import PackagedCompiler
from mastermind.zk.compile import OPTIONS
from mastermind.zk.prove import NativeProver, ProvedStatement, Prover, SnarkjsProver, self_test
from mastermind.zk.r1cs import encode_witness
from mastermind.zk.render import render
from mastermind.zk.snarkjs import SnarkjsCli, SnarkjsWorker
from mastermind.zk.tools import Toolchain, run
from mastermind.zk.verify import NativeVerifier, ReferenceVerifier, SnarkjsVerifier, Verifier
from mastermind.zk.witness import WitnessCalculator

RULES = Rules.parse("hit-and-blow")
RUNS = 15
SLOW_RUNS = 5

MEMORY_SCRIPT = """
import resource, sys
from pathlib import Path
from mastermind.game.circuits import specs
from mastermind.rules import Rules
from mastermind.zk.artifacts import ArtifactStore
from mastermind.zk.prove import NativeProver
def resident_kb():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
rules = Rules.parse("hit-and-blow")
circuit = ArtifactStore(Path(sys.argv[1])).load_key_set(rules.spelling, specs(rules))["give_clue"]
prover = NativeProver()
prover.prove(circuit, circuit.spec.sample())
first = resident_kb()
for _ in range(100):
    prover.prove(circuit, circuit.spec.sample())
print(first, resident_kb(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def median_s(action: Callable[[], object], runs: int) -> float:
    """The median time of some runs after one that is not counted."""
    action()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def paired_s(actions: Mapping[str, Callable[[], object]], runs: int) -> dict[str, float]:
    """Median times of some actions that take turns, so that a slow moment of the machine meets all of them."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for turn in range(runs + 1):
        for name, action in actions.items():
            seconds = once_s(action)
            if turn:
                times[name].append(seconds)
    return {name: statistics.median(values) for name, values in times.items()}


def once_s(action: Callable[[], object]) -> float:
    """The time of one run."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def bench_circuits(circuits: list[BuiltCircuit], toolchain: Toolchain, worker: SnarkjsWorker) -> dict[str, Any]:
    """Prove and verify each circuit with everything there is."""
    provers: list[tuple[str, Prover, int]] = [
        ("snarkjs", SnarkjsProver(SnarkjsCli(toolchain)), SLOW_RUNS),
        ("worker", SnarkjsProver(worker), RUNS),
        ("native", NativeProver(), RUNS),
    ]
    verifiers: list[tuple[str, Verifier, int]] = [
        ("snarkjs", SnarkjsVerifier(SnarkjsCli(toolchain)), SLOW_RUNS),
        ("worker", SnarkjsVerifier(worker), RUNS),
        ("reference", ReferenceVerifier(), 2),
        ("native", NativeVerifier(), 10 * RUNS),
    ]
    result: dict[str, Any] = {}
    for circuit in circuits:
        inputs = circuit.spec.sample()
        statement: ProvedStatement = NativeProver().prove(circuit, inputs)
        prove = {name: median_s(partial(prover.prove, circuit, inputs), runs) for name, prover, runs in provers}
        verify = {
            name: median_s(
                partial(verifier.verify, circuit.verifying_key, statement.public_signals, statement.proof), runs
            )
            for name, verifier, runs in verifiers
        }
        result[circuit.spec.name] = {
            "constraints": circuit.manifest["constraints"],
            "domain": 1 << circuit.manifest["domain_power"],
            "prove_s": prove,
            "verify_s": verify,
        }
    return result


def play_game(table: Table, turns: int) -> tuple[dict[str, list[float]], Transcript, Certificate]:
    """Play `turns` unsolved turns and return the time of each kind of step, the transcript and a certificate."""
    times: dict[str, list[float]] = {}

    def timed(kind: str, action: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        value = action()
        times.setdefault(kind, []).append(time.perf_counter() - start)
        return value

    rules = table.rules
    master, breaker = PlayerKey.new(), PlayerKey.new()
    secret = rules.random_code()
    guesses = [code for code in (rules.random_code() for _ in range(4 * turns)) if code != secret][:turns]
    transcript, kept = timed("open_game", lambda: table.open_game(master, secret))
    record: list[GameSecret] = [kept]
    transcript = timed("join_game", lambda: table.join_game(transcript, breaker))
    for guess in guesses:
        transcript = timed("make_guess", partial(table.make_guess, transcript, breaker, guess))
        transcript = timed("give_clue", partial(table.give_clue, transcript, master, record[-1], record.append))
    certificate = timed("certify_game", lambda: table.certify(transcript, master, record[-1]))
    timed("verify certificate", lambda: certificate.verify(table.keys, table.verifier))
    return times, transcript, certificate


def bench_game(table: Table) -> dict[str, Any]:
    """A whole game, the certificate after 1 and 7 turns, and transcripts of different lengths."""
    play_game(table, 1)
    start = time.perf_counter()
    times, transcript, certificate = play_game(table, RULES.attempts)
    whole_s = time.perf_counter() - start
    _, short, short_certificate = play_game(table, 1)
    keys, verifier = table.keys, table.verifier
    few, many = len(short.steps), len(transcript.steps)
    newest = transcript.steps[-1]
    bare = groth16py.Verifier(groth16py.VerifyingKey.from_snarkjs(json.dumps(keys.keys["give_clue"].to_json())))
    proof, signals = newest.proof.to_bytes(), list(newest.step.public_signals)
    verify_s = paired_s(
        {
            "bare": partial(bare.verify, proof, signals),
            "certificate 1": partial(short_certificate.verify, keys, verifier),
            f"certificate {RULES.attempts}": partial(certificate.verify, keys, verifier),
            "transcript few": partial(short.verify, keys, verifier),
            "transcript many": partial(transcript.verify, keys, verifier),
        },
        5 * RUNS,
    )
    return {
        "whole_game_s": whole_s,
        "steps_s": {
            kind: {"count": len(values), "median": statistics.median(values)} for kind, values in times.items()
        },
        "bare_verify_s": verify_s["bare"],
        "certificate_verify_s": {turns: verify_s[f"certificate {turns}"] for turns in (1, RULES.attempts)},
        "certificate_bytes": {
            turns: len(json.dumps(c.to_json(), separators=(",", ":"))) + 1
            for turns, c in ((1, short_certificate), (RULES.attempts, certificate))
        },
        "transcript_verify_step_s": (verify_s["transcript many"] - verify_s["transcript few"]) / (many - few),
    }


def bench_floor(circuit: BuiltCircuit) -> dict[str, float]:
    """Inputs to checked proof, beside what arkworks alone takes for a proof of the same witness."""
    inputs = circuit.spec.sample()
    witness = WitnessCalculator(circuit.wasm.read_bytes(), circuit.spec.name).calculate(
        circuit.spec.check_inputs(inputs)
    )
    key, _ = groth16py.import_zkey(str(circuit.zkey))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sample.wtns"
        path.write_bytes(encode_witness(witness))
        return paired_s(
            {
                "native": partial(NativeProver().prove, circuit, inputs),
                "bare": partial(groth16py.prove_wtns, key, str(path)),
            },
            4 * RUNS,
        )


def bench_build(home: Path) -> dict[str, float]:
    """A build in an empty home (npm packages at hand), then one that finds everything."""
    with tempfile.TemporaryDirectory(dir=home) as folder:
        (Path(folder) / "node").symlink_to(home / "node")
        command = [sys.executable, "-m", "mastermind", "build", "--home", folder, "--json"]
        return {
            "cold_s": once_s(lambda: subprocess.run(command, check=True, capture_output=True)),
            "warm_s": statistics.median(
                once_s(lambda: subprocess.run(command, check=True, capture_output=True)) for _ in range(3)
            ),
        }


#: What it costs to start a compiler: a circuit of one constraint.
SQUARE = (
    "pragma circom 2.2.0; template Square() { signal input x; signal output y <== x * x; } component main = Square();"
)


def bench_compiler(toolchain: Toolchain) -> dict[str, dict[str, float]]:
    """The compiler in process and as the npm package runs it, a Node process each time, in turns."""
    (give_clue,) = (spec for spec in specs(RULES) if spec.name == "give_clue")
    compiler = PackagedCompiler(toolchain.modules / "circom2", toolchain.version("circom2"))
    node = [str(toolchain.node), str(toolchain.modules / "circom2" / "cli.js")]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        rendered = render(give_clue, toolchain.modules / "circomlib" / "circuits")
        rendered.write(work)
        (work / "square.circom").write_text(SQUARE, "utf-8")
        for name, main in (("one constraint", "square.circom"), ("give_clue", rendered.main)):
            arguments = [main, "--r1cs", "--wasm", "--sym", *OPTIONS]
            found[name] = paired_s(
                {
                    "in process": partial(compiler.run, arguments, work),
                    "Node": partial(run, [*node, *arguments], timeout_s=60, cwd=work),
                },
                SLOW_RUNS,
            )
    return found


def bench_memory(home: Path) -> dict[str, float]:
    """Resident memory of a process that proves `give_clue` natively 101 times, in MB."""
    completed = subprocess.run(
        [sys.executable, "-c", MEMORY_SCRIPT, str(home)], check=True, capture_output=True, text=True
    )
    first, last, peak = (int(value) / 1024 for value in completed.stdout.split())
    return {"after_1_mb": first, "after_101_mb": last, "peak_mb": peak}


def main() -> None:
    """Run all benchmarks for the reference rules."""
    progress = ProgressLine()
    home = default_home()
    toolchain = Toolchain.install(home, progress)
    key_set = ArtifactStore(home).build_key_set(RULES.spelling, specs(RULES), self_test, progress=progress)
    with SnarkjsWorker(toolchain) as worker:
        progress("circuits")
        circuits = bench_circuits(list(key_set.circuits.values()), toolchain, worker)
    progress("a whole game")
    game = bench_game(Table(RULES, key_set, NativeProver()))
    floor = bench_floor(key_set["give_clue"])
    progress("computer players")
    players = strengths.measure(home)
    progress("memory")
    memory = bench_memory(home)
    progress("building")
    build = bench_build(home)
    compiler = bench_compiler(toolchain)
    machine = {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()}
    report = {
        "machine": machine,
        "circuits": circuits,
        "game": game,
        "floor": floor,
        "players": players,
        "memory": memory,
        "build": build,
        "compiler": compiler,
    }
    (home / "bench.json").write_text(json.dumps(report, indent=1), "utf-8")
    show(report)
    strengths.show(players)
    print(f"\nwritten to {home / 'bench.json'}")


def show(report: dict[str, Any]) -> None:
    """Print the tables."""
    print(f"\n{RULES.name}; medians in ms; ratios from this run")
    print(
        f"\n{'circuit':<14}{'constraints':>12}{'domain':>8}  | prove {'snarkjs':>8}{'worker':>8}{'native':>8}"
        f"{'s/w':>6}{'s/n':>6}  | verify {'snarkjs':>8}{'worker':>8}{'py-ecc':>8}{'native':>8}{'s/n':>6}"
    )
    for name, circuit in report["circuits"].items():
        p, v = circuit["prove_s"], circuit["verify_s"]
        print(
            f"{name:<14}{circuit['constraints']:>12}{circuit['domain']:>8}  |       "
            f"{p['snarkjs'] * 1e3:>8.0f}{p['worker'] * 1e3:>8.0f}{p['native'] * 1e3:>8.1f}"
            f"{p['snarkjs'] / p['worker']:>6.1f}{p['snarkjs'] / p['native']:>6.1f}  |        "
            f"{v['snarkjs'] * 1e3:>8.0f}{v['worker'] * 1e3:>8.1f}{v['reference'] * 1e3:>8.0f}{v['native'] * 1e3:>8.2f}"
            f"{v['snarkjs'] / v['native']:>6.0f}"
        )
    game = report["game"]
    print(f"\nwhole game of {RULES.attempts} attempts, proofs made and verified: {game['whole_game_s']:.2f} s")
    for kind, step in game["steps_s"].items():
        print(f"  {kind:<20}{step['count']:>3} x {step['median'] * 1e3:>7.1f} ms")
    bare_s = game["bare_verify_s"]
    print(f"one verification by arkworks alone: {bare_s * 1e3:.2f} ms; in its terms:")
    for turns, seconds in game["certificate_verify_s"].items():
        size = game["certificate_bytes"][turns]
        print(
            f"  certificate after {turns} turns: {size} bytes, verified in {seconds * 1e3:.2f} ms "
            f"({seconds / bare_s:.2f} x)"
        )
    step_s = game["transcript_verify_step_s"]
    print(f"  transcript: {step_s * 1e3:.2f} ms a step ({step_s / bare_s:.2f} x)")
    floor = report["floor"]
    print(
        f"give_clue, inputs to checked proof: {floor['native'] * 1e3:.1f} ms; a proof of the same witness by arkworks "
        f"alone: {floor['bare'] * 1e3:.1f} ms ({floor['native'] / floor['bare']:.2f} x)"
    )
    memory, build = report["memory"], report["build"]
    print(
        f"memory of native proving: {memory['after_1_mb']:.0f} MB, {memory['after_101_mb']:.0f} MB after 100 more, "
        f"peak {memory['peak_mb']:.0f} MB"
    )
    for name, taken in report["compiler"].items():
        print(
            f"compiling {name}: {taken['in process'] * 1e3:.0f} ms; the same compiler under Node "
            f"{taken['Node'] * 1e3:.0f} ms ({taken['Node'] / taken['in process']:.1f} x)"
        )
    print(f"build: cold {build['cold_s']:.1f} s, with nothing to do {build['warm_s']:.2f} s")


if __name__ == "__main__":
    main()
