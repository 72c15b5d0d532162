"""Real processes: the server, its workers and two players; killed at will, and nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from mastermind.game.certificate import Certificate
from mastermind.game.reveal import Reveal
from mastermind.game.secret_files import GameSecret, PlayerKey
from mastermind.game.transcript import Transcript
from mastermind.referee.client import PATIENCE_S, RefereeClient
from mastermind.referee.config import Settings
from mastermind.referee.match import HOST, PLAYER_NAMES
from mastermind.referee.requests import AcceptGame, InitGame, Request
from mastermind.referee.storage import RefereeRecord
from mastermind.rules import Code
from mastermind.zk.artifacts import ArtifactStore
from mastermind.zk.verify import NativeVerifier
from tests.referee.world import REWARD, RULES, SUPPLY, WELCOME, PlayedGame, World, body

MASTERMIND = [sys.executable, "-m", "mastermind"]
TIMEOUT_S = 90


class Server:
    """`mastermind referee serve` over books that outlive it."""

    def __init__(self, folder: Path, store: ArtifactStore, port: int, workers: int = 1) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._log = folder / "server.log"
        self._argv = [
            *MASTERMIND, "referee", "serve", "--folder", str(folder), "--home", str(store.home), "--port", str(port),
            "--workers", str(workers), "--allow-development-keys",
        ]  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(self._argv, stderr=log, start_new_session=True)
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            assert self.process.poll() is None, self._log.read_text("utf-8")[-2000:]
            try:
                if httpx.get(f"{self.url}/health", timeout=5).status_code == 200:
                    return
            except httpx.HTTPError:
                time.sleep(0.05)
        raise AssertionError("the server does not start")

    def end(self, number: int) -> int:
        """End it, and everything that it has started."""
        assert self.process is not None
        if number == signal.SIGKILL:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)
        return self.process.wait(TIMEOUT_S)


StartServer = Callable[..., Server]


@pytest.fixture
def start_server(world: World, store: ArtifactStore, tmp_path: Path, free_port: int) -> Iterator[StartServer]:
    """Starts a server of the world's referee on the books of a URL; it is ended after the test."""
    servers: list[Server] = []

    def start(url: str, workers: int = 1) -> Server:
        folder = tmp_path / "referee"
        folder.mkdir()
        Settings(url, {RULES.spelling: world.keys.id}, WELCOME, 100, 0).write_new(folder)
        world.storage(url).create(RefereeRecord(world.referee_key.id, 180, SUPPLY))
        servers.append(Server(folder, store, free_port, workers))
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        if server.process is not None and server.process.poll() is None:
            server.end(signal.SIGKILL)
    world.close()


def require_exact_books(world: World, url: str) -> None:
    storage = world.storage(url)
    supply, balances, entries = storage.look(lambda view: view.sums())
    assert supply == balances == entries == SUPPLY
    assert storage.look(lambda view: view.wrong_accounts()) == []


def test_two_players_and_the_server_with_one_of_them_killed(
    world: World, start_server: StartServer, store: ArtifactStore, tmp_path: Path
) -> None:
    books = f"sqlite:///{tmp_path / 'books.db'}"
    server = start_server(books)
    keys = {"master": PlayerKey.new(), "breaker": PlayerKey.new()}
    for role, key in keys.items():
        key.write(tmp_path / f"{role}.json")

    def play(role: str, *argv: str) -> subprocess.Popen[str]:
        command = [*MASTERMIND, "play", *argv, "--player", str(tmp_path / f"{role}.json"), "--folder",
                   str(tmp_path / role), "--home", str(store.home), "--json"]  # fmt: skip
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
        found = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0, found[1]
        return found

    def started_with(events: int) -> None:
        """Wait until the referee has seen so many steps."""
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            if len(client.transcript(game).steps) >= events:
                return
            time.sleep(0.02)
        raise AssertionError("nobody moves")

    host = play("master", "host", "--referee", server.url, "--reward", str(REWARD), "--code", "7460")
    with RefereeClient(server.url) as client:
        end = time.monotonic() + TIMEOUT_S
        while not (found := client.games("open")):
            assert host.poll() is None, host.communicate()
            assert time.monotonic() < end
            time.sleep(0.05)
        game = found[0].contract.solution_hash
        # Away for longer than somebody waits who only asks: a player goes on, and is told once.
        server.end(signal.SIGKILL)
        time.sleep(PATIENCE_S + 2)
        server.start()
        guest = play("breaker", "join", str(game)[:12], "--referee", server.url, "--auto")
        started_with(4)
        host.kill()
        said = host.communicate()[1]
        assert (said.count("trying again until"), said.count("answers again")) == (1, 1)
        host = play("master", "host")
        guest.kill()
        guest.communicate()
        guest = play("breaker", "join", "--auto")
        ended(guest)
        ended(host)
        view = client.game(game)
        assert view.contract.closed
        winner = view.contract.game.winner
        assert winner is not None
        loser = "master" if winner == "breaker" else "breaker"
        assert client.credits(keys[winner].id) == WELCOME + REWARD
        assert client.credits(keys[loser].id) == WELCOME - REWARD
        assert client.log(game).audit(world.keys, NativeVerifier()) == view.contract
    # What each has in hand can be checked without the other and without the referee.
    certificate = Certificate.read(tmp_path / "master" / "certificate.json")
    state = certificate.verify(world.keys, NativeVerifier())
    assert state == Transcript.read(tmp_path / "master" / "transcript.json").verify(world.keys, NativeVerifier())
    secret_file = tmp_path / "master" / "secret.json"
    assert secret_file.stat().st_mode & 0o777 == 0o600
    assert GameSecret.read(secret_file).answered == state.guesses
    # COM-8: nothing that the server has written or can read holds the salt.
    salt = str(GameSecret.read(secret_file).salt).encode()
    for path in [*tmp_path.glob("books.db*"), tmp_path / "referee" / "server.log"]:
        assert salt not in path.read_bytes()
    assert server.end(signal.SIGTERM) == 0
    require_exact_books(world, books)


def test_a_duel_of_two_players_who_are_both_killed_and_go_on(
    world: World, start_server: StartServer, store: ArtifactStore, tmp_path: Path
) -> None:
    books = f"sqlite:///{tmp_path / 'books.db'}"
    server = start_server(books)
    keys = PlayerKey.new(), PlayerKey.new()
    # The computer breaks the guest's code with its second guess, and the host's with its third.
    codes: tuple[Code, Code] = (0, 1, 2, 5), (0, 1, 2, 4)
    for name, key in zip(PLAYER_NAMES, keys, strict=True):
        key.write(tmp_path / f"{name}.json")

    def play(name: str, *argv: str) -> subprocess.Popen[str]:
        command = [*MASTERMIND, "play", "duel", "host" if name == "host" else "join", *argv, "--auto", "strong",
                   "--player", str(tmp_path / f"{name}.json"), "--folder", str(tmp_path / name),
                   "--home", str(store.home), "--json"]  # fmt: skip
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def until(condition: Callable[[], bool]) -> None:
        end = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < end, "nobody moves"
            time.sleep(0.02)

    with RefereeClient(server.url) as client:
        new = ["--referee", server.url, "--reward", str(REWARD), "--rules", RULES.name, "--code", "0125"]
        host = play("host", *new)
        until(lambda: bool(client.matches("open")))
        match = client.matches("open")[0].contract.solution_hash
        guest = play("guest", str(match)[:12], "--referee", server.url, "--code", "0124")
        for events, player in ((4, host), (6, guest)):
            until(lambda events=events: client.match(match).events >= events)  # type: ignore[misc]
            player.kill()
            player.communicate()
            if player is host:
                host = play("host")
        for process in (host, play("guest")):
            errors = process.communicate(timeout=TIMEOUT_S)[1]
            assert process.returncode == 0, errors
        view = client.match(match)
        assert view.contract.closed
        assert view.contract.codes == codes
        assert view.contract.paid == (HOST,)
        assert [client.credits(key.id) for key in keys] == [WELCOME + REWARD, WELCOME - REWARD]
        assert client.log(match, "matches").audit(world.keys, NativeVerifier()) == view.contract
    # What each has in hand can be checked without the other and without the referee.
    for name, code in zip(PLAYER_NAMES, reversed(codes), strict=True):
        opened = Reveal.read(tmp_path / name / "their-code.json")
        game = Transcript.read(tmp_path / name / "your-guesses.json").verify(world.keys, NativeVerifier())
        assert opened.verify_against(game, world.keys, NativeVerifier()) == code
        secret_file = tmp_path / name / "secret.json"
        assert secret_file.stat().st_mode & 0o777 == 0o600
        salt = str(GameSecret.read(secret_file).salt).encode()
        for path in [*tmp_path.glob("books.db*"), tmp_path / "referee" / "server.log"]:
            assert salt not in path.read_bytes()
    assert server.end(signal.SIGTERM) == 0
    require_exact_books(world, books)


def test_a_server_killed_under_load_has_lost_nothing_that_it_has_answered(
    world: World, start_server: StartServer, tmp_path: Path, solved_game: PlayedGame, other_game: PlayedGame
) -> None:
    """REF-6 and durability; `scripts/bench_referee.py --kills 100` does it a hundred times."""
    books = f"sqlite:///{tmp_path / 'books.db'}"
    server = start_server(books)
    answered: dict[tuple[str, int], Any] = {}
    lock = threading.Lock()

    def play(played: PlayedGame) -> None:
        requests = [*played.requests, *([played.claim(played.breaker)] if played is solved_game else [])]
        for index, request in enumerate(requests):
            path = "/games" if index == 0 else f"/games/{played.game}/{request.method}"
            end = time.monotonic() + TIMEOUT_S
            while time.monotonic() < end:
                try:
                    answer = httpx.post(server.url + path, content=body(request), timeout=20)
                except httpx.HTTPError:
                    time.sleep(0.01)
                    continue
                assert answer.status_code == 200, answer.text
                with lock:
                    answered[str(played.game), answer.json()["event"]] = answer.json()
                time.sleep(0.3)
                break

    with ThreadPoolExecutor(2) as pool:
        players = [pool.submit(play, played) for played in (solved_game, other_game)]
        for pause_s in (0.05, 0.2, 0.4):
            time.sleep(pause_s)
            server.end(signal.SIGKILL)
            server.start()
        for player in players:
            player.result()
    require_exact_books(world, books)
    storage = world.storage(books)
    for played in (solved_game, other_game):
        events = storage.look(lambda view, played=played: view.events(played.game))  # type: ignore[misc]
        stored = storage.look(lambda view, played=played: view.game(played.game))  # type: ignore[misc]
        assert stored is not None
        assert stored.event_count == len(events)
        assert str(stored.contract.packed) == events[-1].packed
        told = {number: answer for (game, number), answer in answered.items() if game == str(played.game)}
        assert {event.number: json.loads(event.answer) for event in events} == told


def test_two_workers_race_on_one_game(
    world: World, start_server: StartServer, new_postgresql_database: Callable[[], str], solved_game: PlayedGame
) -> None:
    """All is sent six times at once, to two workers: one effect, one answer. Then four claims: one is paid."""
    books = new_postgresql_database()
    server = start_server(books, workers=2)
    played = solved_game
    rival = PlayerKey.new()
    joined = world.table.join_game(Transcript(RULES, world.keys.id, played.transcript.steps[:1]), rival)
    too_late = AcceptGame(REWARD, joined.steps[1], played.consent(rival, "accept_game", REWARD))

    def post(request: Request) -> httpx.Response:
        # A connection of its own, so that the kernel may give it to either worker.
        path = "/games" if isinstance(request, InitGame) else f"/games/{played.game}/{request.method}"
        return httpx.post(server.url + path, content=body(request), timeout=30)

    with ThreadPoolExecutor(6) as pool:
        for request in played.requests:
            answers = list(pool.map(post, [request] * 6))
            assert {answer.status_code for answer in answers} == {200}, [answer.text for answer in answers]
            assert len({answer.text for answer in answers}) == 1
        assert post(too_late).json()["error"]["refusal"] == "already_accepted"
        claims = [played.claim(played.breaker) for _ in range(4)]
        answers = list(pool.map(post, claims))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    with RefereeClient(server.url) as client:
        assert client.game(played.game).events == len(played.requests) + 1
        assert client.credits(played.breaker.id) == WELCOME + REWARD
        client.log(played.game).audit(world.keys, NativeVerifier())
    require_exact_books(world, books)
    assert server.end(signal.SIGTERM) == 0
