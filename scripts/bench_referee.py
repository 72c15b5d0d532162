"""Measure the referee: real server processes, real client processes, real proofs made beforehand.

    python scripts/bench_referee.py --database postgresql://... --workers 2
    python scripts/bench_referee.py --kills 100

Scenarios: throughput (as fast as a few clients can), latency (50 games at once, at a steady pace), flood (1,000
requests with false proofs while games go on) and, with --kills, kill -9 of the server under load: what was answered
must be in the books, no game half moved, the ledger exact. Prints a line each; JSON goes to build/bench_referee.json.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mastermind.cli.output import default_home
from mastermind.game.circuits import specs
from mastermind.game.play import Table
from mastermind.game.secret_files import GameSecret, PlayerKey
from mastermind.referee.client import make_consent
from mastermind.referee.config import Settings
from mastermind.referee.requests import AcceptGame, GiveClue, InitGame, MakeGuess, Request
from mastermind.referee.storage import RefereeRecord, Storage
from mastermind.rules import Rules
from mastermind.zk.artifacts import ArtifactStore
from mastermind.zk.evidence import canonical_json
from mastermind.zk.prove import NativeProver

RULES = Rules.parse("hit-and-blow")
REWARD = 10
SUPPLY = 10**9
MASTERMIND = Path(sys.executable).with_name("mastermind")
START_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Sent:
    """A request ready to be sent."""

    path: str
    body: bytes


@dataclass(frozen=True)
class Script:
    """A game: its name, opening and acceptance, and its moves, all proved."""

    game: int
    start: tuple[Sent, ...]
    moves: tuple[Sent, ...]


def make_game(referee_id: int, guesses: int) -> Script:
    """Prove a game of `guesses` guesses, none of them right."""
    key_set = ArtifactStore(default_home()).load_key_set(RULES.spelling, specs(RULES))
    table = Table(RULES, key_set, NativeProver())
    master, breaker = PlayerKey.new(), PlayerKey.new()
    secret = RULES.random_code()
    wrong = RULES.random_code()
    while wrong == secret:
        wrong = RULES.random_code()
    transcript, kept = table.open_game(master, secret)
    game = transcript.steps[0].step.public_signals[0]
    consent = partial(make_consent, key_set, table.prover, referee_id=referee_id, game=game, amount=REWARD)
    start: list[Request] = [
        InitGame(RULES, key_set.id, REWARD, transcript.steps[0], consent(master, "init_game")),
    ]
    transcript = table.join_game(transcript, breaker)
    start.append(AcceptGame(REWARD, transcript.steps[1], consent(breaker, "accept_game")))
    moves: list[Request] = []
    records: list[GameSecret] = [kept]
    for _ in range(guesses):
        transcript = table.make_guess(transcript, breaker, wrong)
        moves.append(MakeGuess(transcript.steps[-1]))
        transcript = table.give_clue(transcript, master, records[-1], records.append)
        moves.append(GiveClue(transcript.steps[-1]))
    return Script(game, tuple(_sent(game, item) for item in start), tuple(_sent(game, item) for item in moves))


def _sent(game: int, request: Request) -> Sent:
    path = "/games" if isinstance(request, InitGame) else f"/games/{game}/{request.method}"
    return Sent(path, canonical_json(request.to_json()))


class Connection:
    """A client's connection, kept open."""

    def __init__(self, port: int) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def post(self, sent: Sent) -> tuple[int, bytes, float]:
        """Send and return status, answer and seconds."""
        start = time.perf_counter()
        self._http.request("POST", sent.path, sent.body, {"Content-Type": "application/json"})
        response = self._http.getresponse()
        answer = response.read()
        return response.status, answer, time.perf_counter() - start


def run_moves(port: int, scripts: Sequence[Script], threads: int, pace_s: float) -> list[float]:
    """Play the moves of all games and return the seconds of each; `pace_s` between the moves of one game."""

    def one(script: Script) -> list[float]:
        connection, taken = Connection(port), []
        if pace_s:
            time.sleep(random.uniform(0, pace_s))  # noqa: S311
        for move in script.moves:
            status, answer, seconds = connection.post(move)
            if status != 200:
                raise RuntimeError(f"{move.path}: {status} {answer[:300]!r}")
            taken.append(seconds)
            time.sleep(max(0.0, pace_s - seconds))
        return taken

    with ThreadPoolExecutor(threads) as pool:
        return [seconds for taken in pool.map(one, scripts) for seconds in taken]


def run_processes(port: int, scripts: Sequence[Script], processes: int, threads: int, pace_s: float) -> list[float]:
    """`run_moves` from several processes at once, `threads` games at a time in each."""
    with ProcessPoolExecutor(processes) as pool:
        parts = [scripts[index::processes] for index in range(processes)]
        found = pool.map(run_moves, [port] * processes, parts, [threads] * processes, [pace_s] * processes)
        return [seconds for taken in found for seconds in taken]


class Server:
    """`mastermind referee serve` on a free port, over books that outlive it."""

    def __init__(self, folder: Path, workers: int) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._command = [
            str(MASTERMIND), "referee", "serve", "--folder", str(folder), "--port", str(self.port),
            "--workers", str(workers), "--allow-development-keys",
        ]  # fmt: skip
        self._log = (folder / "server.log").open("a")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._process = subprocess.Popen(self._command, stderr=self._log, start_new_session=True)
        end = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < end:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1)
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("the server does not start; see server.log")

    def cpu_s(self) -> float:
        """Seconds of processor time that its processes have had."""
        assert self._process is not None
        ticks = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                fields = stat.read_text("ascii", errors="replace").rpartition(")")[2].split()
                if int(fields[2]) == self._process.pid:
                    ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def end(self, number: int) -> None:
        """End it with a signal: all its processes with SIGKILL, else the first one."""
        assert self._process is not None
        if number == signal.SIGKILL:
            os.killpg(self._process.pid, number)
        else:
            self._process.send_signal(number)
        self._process.wait(60)


@contextmanager
def serving(folder: Path, workers: int) -> Iterator[Server]:
    """A server for the time of a scenario."""
    server = Server(folder, workers)
    server.start()
    try:
        yield server
    finally:
        server.end(signal.SIGTERM)


def begin(port: int, scripts: Sequence[Script]) -> None:
    """Open and accept all games."""
    connection = Connection(port)
    for script in scripts:
        for sent in script.start:
            status, answer, _ = connection.post(sent)
            if status != 200:
                raise RuntimeError(f"{sent.path}: {status} {answer[:300]!r}")


def throughput(server: Server, scripts: Sequence[Script]) -> dict[str, Any]:
    """Moves a second that two client processes get through with 12 connections."""
    begin(server.port, scripts)
    start, used_s = time.perf_counter(), server.cpu_s()
    taken = run_processes(server.port, scripts, 2, 6, 0.0)
    elapsed = time.perf_counter() - start
    return {
        "moves": len(taken),
        "moves_per_second": round(len(taken) / elapsed, 1),
        "server_cpu_ms_per_move": round((server.cpu_s() - used_s) / len(taken) * 1e3, 2),
        "load_average": round(os.getloadavg()[0], 1),
        **_percentiles(taken),
    }


def latency(server: Server, scripts: Sequence[Script], moves_per_second: float) -> dict[str, Any]:
    """Milliseconds of a move while all games are played at once, at a steady pace."""
    begin(server.port, scripts)
    taken = run_processes(server.port, scripts, 2, len(scripts), len(scripts) / moves_per_second)
    return {"games": len(scripts), "offered_per_second": moves_per_second, **_percentiles(taken)}


def flood(server: Server, scripts: Sequence[Script], false_count: int) -> dict[str, Any]:
    """Milliseconds of honest moves while false proofs come in as fast as four connections send them."""
    begin(server.port, scripts)
    # The right statement at the right time, under the proof of another guess.
    targets = [
        Sent(victim.moves[0].path, _with_proof_of(victim.moves[0].body, other.moves[0].body))
        for victim, other in zip(scripts, [*scripts[1:], scripts[0]], strict=True)
    ]
    statuses: list[int] = []
    lock = threading.Lock()

    def attack(part: int) -> None:
        connection = Connection(server.port)
        for index in range(part, false_count, 4):
            status, _, _ = connection.post(targets[index % len(targets)])
            with lock:
                statuses.append(status)

    attackers = [threading.Thread(target=attack, args=(part,)) for part in range(4)]
    start = time.perf_counter()
    for attacker in attackers:
        attacker.start()
    taken = run_processes(server.port, scripts, 1, len(scripts), 0.5)
    for attacker in attackers:
        attacker.join()
    return {
        "false_proofs": len(statuses),
        "refused": sum(400 <= status < 500 for status in statuses),
        "false_per_second": round(len(statuses) / (time.perf_counter() - start), 1),
        **_percentiles(taken),
    }


def _with_proof_of(body: bytes, other: bytes) -> bytes:
    request = json.loads(body)
    request["step"]["proof"] = json.loads(other)["step"]["proof"]
    return canonical_json(request)


def kill(
    folder: Path, storage: Storage, make: Callable[[int], list[Script]], kills: int, workers: int
) -> dict[str, Any]:
    """Kill the server under load, again and again; then look for a lost or half move."""
    server = Server(folder, workers)
    server.start()
    answered: dict[tuple[int, int], bytes] = {}
    stop = threading.Event()
    lock = threading.Lock()
    # Each client sends its request again until it is answered, as a client must.
    scripts = make(kills * 3 // 2)

    def client(part: Sequence[Script]) -> None:
        for script in part:
            for sent in (*script.start, *script.moves):
                while not stop.is_set():
                    try:
                        status, answer, _ = Connection(server.port).post(sent)
                    except (OSError, http.client.HTTPException):
                        time.sleep(0.02)
                        continue
                    if status != 200:
                        raise RuntimeError(f"{sent.path}: {status} {answer[:300]!r}")
                    fields = json.loads(answer)
                    with lock:
                        answered[int(fields["game"]), fields["event"]] = answer
                    break

    clients = [threading.Thread(target=client, args=(scripts[part::8],)) for part in range(8)]
    for thread in clients:
        thread.start()
    done = 0
    while done < kills and any(thread.is_alive() for thread in clients):
        time.sleep(random.uniform(0.02, 0.4))  # noqa: S311
        server.end(signal.SIGKILL)
        done += 1
        server.start()
    stop.set()
    for thread in clients:
        thread.join()
    server.end(signal.SIGTERM)
    return {"kills": done, "answered": len(answered), **examine(storage, answered)}


def examine(storage: Storage, answered: dict[tuple[int, int], bytes]) -> dict[str, Any]:
    """Compare what clients were told with what is in the books."""
    lost = half = 0
    games = {game for game, _ in answered}
    for game in games:
        events = storage.look(lambda view, game=game: view.events(game))  # type: ignore[misc]
        stored = storage.look(lambda view, game=game: view.game(game))  # type: ignore[misc]
        told = {number: answer for (name, number), answer in answered.items() if name == game}
        lost += sum(number >= len(events) or events[number].answer.encode() != told[number] for number in told)
        half += stored is None or stored.event_count != len(events) or str(stored.contract.packed) != events[-1].packed
    supply, balances, entries = storage.look(lambda view: view.sums())
    wrong = storage.look(lambda view: view.wrong_accounts())
    return {
        "lost_moves": lost,
        "half_moves": half,
        "ledger_exact": supply == balances == entries and not wrong,
    }


class Scripts:
    """Games proved beforehand, kept in build/ for the next run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        if path.exists():
            kept = json.loads(path.read_text("utf-8"))
            self.key = PlayerKey(int(kept["key"]))
            self._games = [_script(fields) for fields in kept["games"]]
        else:
            self.key, self._games = PlayerKey.new(), []
        self._used = 0

    def take(self, count: int) -> list[Script]:
        """`count` games that no scenario has had yet."""
        missing = self._used + count - len(self._games)
        if missing > 0:
            print(f"proving {missing} games", file=sys.stderr)
            with ProcessPoolExecutor() as pool:
                self._games += pool.map(make_game, [self.key.id] * missing, [RULES.attempts] * missing)
            games = [
                {"game": str(script.game)}
                | {
                    part: [[sent.path, sent.body.decode()] for sent in getattr(script, part)]
                    for part in ("start", "moves")
                }
                for script in self._games
            ]
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps({"key": str(self.key.key), "games": games}), "utf-8")
        self._used += count
        return self._games[self._used - count : self._used]


def _texts(sent: Sequence[Sent]) -> list[tuple[str, str]]:
    return [(item.path, item.body.decode()) for item in sent]


def _script(fields: Any) -> Script:
    start, moves = (tuple(Sent(path, body.encode()) for path, body in fields[part]) for part in ("start", "moves"))
    return Script(int(fields["game"]), start, moves)


def main() -> None:
    """Run the scenarios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", help="an empty PostgreSQL database; by default SQLite in a temporary folder")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--kills", type=int, default=0, help="only kill the server, so many times")
    arguments = parser.parse_args()

    store = ArtifactStore(default_home())
    key_set = store.load_key_set(RULES.spelling, specs(RULES))
    scripts = Scripts(store.home / "bench_referee" / f"{key_set.id}.json")
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        url = arguments.database or f"sqlite:///{folder / 'books.db'}"
        settings = Settings(url, {RULES.spelling: key_set.id}, 1000, 1000, 0)
        settings.write_new(folder)
        storage = Storage(url)
        storage.create(RefereeRecord(scripts.key.id, 180, SUPPLY))

        def report(name: str, found: dict[str, Any]) -> None:
            results[name] = found
            print(f"{name:<12}{json.dumps(found)}")

        if arguments.kills:
            report("kill -9", kill(folder, storage, scripts.take, arguments.kills, arguments.workers))
        else:
            games = scripts.take(40), scripts.take(50), scripts.take(20)
            with serving(folder, arguments.workers) as server:
                report("throughput", throughput(server, games[0]))
                report("latency", latency(server, games[1], 150))
                report("flood", flood(server, games[2], 1000))
            report("books", examine(storage, {}))
    (store.home / "bench_referee.json").write_text(json.dumps(results, indent=1) + "\n", "utf-8")


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    ordered = statistics.quantiles(seconds, n=100)
    return {"p50_ms": round(ordered[49] * 1e3, 1), "p95_ms": round(ordered[94] * 1e3, 1)}


if __name__ == "__main__":
    main()
