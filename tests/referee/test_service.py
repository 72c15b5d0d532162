"""The referee over HTTP: statuses, limits, news, numbers, and what every answer says."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from mastermind.errors import (
    MalformedEvidenceError,
    NotARefereeError,
    NotThePlayerError,
    OutOfTurnError,
    ProofRejectedError,
    RefereeUnreachableError,
    ReplayError,
    UnknownGameError,
    WrongStateError,
)
from mastermind.field import MODULUS
from mastermind.game.transcript import Transcript
from mastermind.referee.client import RefereeClient
from mastermind.referee.contract import Contract
from mastermind.referee.front import JsonFormatter, Rates
from mastermind.referee.log import GameLog
from mastermind.referee.referee import Referee, Terms
from mastermind.referee.requests import MAX_BYTES, METHODS, InitGame
from mastermind.referee.service import create_app
from mastermind.zk.evidence import canonical_json
from mastermind.zk.verify import NativeVerifier
from tests.referee.serving import serving
from tests.referee.world import REWARD, WELCOME, FakeClock, PlayedGame, World, send


@pytest.fixture
def referee(world: World, tmp_path: Path) -> Iterator[Referee]:
    yield world.referee(f"sqlite:///{tmp_path / 'books.db'}", clock=FakeClock())
    world.close()


@pytest.fixture
def http(referee: Referee) -> Iterator[httpx.Client]:
    with serving(create_app(referee)) as client:
        yield client


@pytest.fixture
def client(http: httpx.Client) -> Iterator[RefereeClient]:
    with RefereeClient(str(http.base_url), patience_s=0) as client:
        yield client


def post(http: httpx.Client, played: PlayedGame, index: int, **changes: Any) -> Any:
    request = played.requests[index]
    path = "/games" if isinstance(request, InitGame) else f"/games/{played.game}/{request.method}"
    return http.post(path, content=canonical_json({**request.to_json(), **changes}))


def test_a_whole_game_through_the_typed_client(client: RefereeClient, world: World, solved_game: PlayedGame) -> None:
    played = solved_game
    info = client.info()
    assert (info.referee_id, info.slot_seconds, info.welcome) == (world.referee_key.id, 180, WELCOME)
    assert info.key_sets == {"4x8u7": (world.keys.id, "development")}
    for index, request in enumerate(played.requests):
        view = client.send(played.game, request)
        assert (view.events, view.keys) == (index + 1, "development")
    assert client.game(played.game).may_claim == "breaker"
    assert [game.contract.solution_hash for game in client.games("playing")] == [played.game]
    assert client.games("open") == []
    assert client.transcript(played.game) == played.transcript
    with pytest.raises(NotThePlayerError):
        client.send(played.game, played.claim(played.master))
    client.send(played.game, played.claim(played.breaker))
    assert client.credits(played.breaker.id) == WELCOME + REWARD
    assert client.log(played.game).audit(world.keys, NativeVerifier()).closed
    assert client.games("playing") == []


def test_refusals_come_back_as_they_were_raised(client: RefereeClient, solved_game: PlayedGame) -> None:
    played = solved_game
    with pytest.raises(UnknownGameError):
        client.game(1)
    with pytest.raises(UnknownGameError):
        client.send(played.game, played.requests[1])
    client.send(played.game, played.requests[0])
    with pytest.raises(WrongStateError) as caught:
        client.send(played.game, played.requests[2])
    assert caught.value.refusal == "not_accepted"
    client.send(played.game, played.requests[1])
    with pytest.raises(OutOfTurnError):
        client.send(played.game, played.requests[3])
    opening = played.requests[0]
    assert isinstance(opening, InitGame)
    with pytest.raises(ReplayError) as replay:
        client.send(played.game, replace(opening, consent=played.consent(played.master, "init_game", REWARD)))
    assert replay.value.refusal == "already_open"
    with pytest.raises(ProofRejectedError):
        client.send(played.game, replace(played.claim(played.breaker), player_id=played.master.id))


@pytest.mark.parametrize(
    ("change", "status", "refusal"),
    [
        ({"reward": 11}, 422, "proof_rejected"),
        ({"reward": "10"}, 400, "malformed"),
        ({"rules": "4x6r10"}, 422, "unknown_key_set"),
        ({"key_set_id": "00" * 32}, 422, "unknown_key_set"),
        ({"step": None}, 400, "malformed"),
    ],
)
def test_statuses_of_refusals(
    http: httpx.Client, solved_game: PlayedGame, change: dict[str, Any], status: int, refusal: str
) -> None:
    answer = post(http, solved_game, 0, **change)
    assert (answer.status_code, answer.json()["error"]["refusal"]) == (status, refusal)
    assert post(http, solved_game, 0).status_code == 200


def test_the_field_of_a_malformed_request_is_named(http: httpx.Client, solved_game: PlayedGame) -> None:
    step = solved_game.requests[0].to_json()["step"]
    bad = {**step, "public": [str(MODULUS), step["public"][1]]}
    error = post(http, solved_game, 0, step=bad).json()["error"]
    assert (error["refusal"], error["field"]) == ("malformed", "step.public")


BAD_PATHS = (
    "/games/01",
    "/games/-1",
    "/games/x",
    f"/games/{MODULUS}",
    "/players/0x1",
    "/games?limit=0",
    "/games?status=lost",
    "/games?after=x",
)


@pytest.mark.parametrize("path", BAD_PATHS)
def test_paths_and_queries_are_read_strictly(http: httpx.Client, path: str) -> None:
    answer = http.get(path)
    assert (answer.status_code, answer.json()["error"]["refusal"]) == (400, "malformed")


def test_a_body_that_is_too_large(http: httpx.Client) -> None:
    answer = http.post("/games", content=b" " * (MAX_BYTES + 1))
    assert (answer.status_code, answer.json()["error"]["refusal"]) == (413, "too_large")
    assert http.post("/games", content=b" " * MAX_BYTES).status_code == 400


def test_there_is_nothing_else(http: httpx.Client) -> None:
    assert http.get("/nothing").json()["error"]["refusal"] == "not_found"
    assert http.delete("/games").json()["error"]["refusal"] == "method_not_allowed"
    assert http.get("/docs").status_code == 404


def test_every_answer_says_that_development_keys_are_allowed(http: httpx.Client, solved_game: PlayedGame) -> None:
    """SET-4: whatever it is about."""
    answers = [
        http.get("/referee"), http.get("/health"), http.get("/metrics"), http.get("/games"), http.get("/games/1"),
        http.get("/nothing"), http.get("/openapi.json"), post(http, solved_game, 0), post(http, solved_game, 2),
    ]  # fmt: skip
    assert [answer.headers.get("mastermind-keys") for answer in answers] == ["development"] * len(answers)


def test_without_leave_no_answer_says_so(world: World, tmp_path: Path, solved_game: PlayedGame) -> None:
    strict = world.referee(f"sqlite:///{tmp_path / 'books.db'}", terms=Terms(WELCOME))
    with serving(create_app(strict)) as http:
        answer = post(http, solved_game, 0)
    assert (answer.status_code, answer.json()["error"]["refusal"]) == (422, "development_keys")
    assert "mastermind-keys" not in answer.headers
    world.close()


def test_too_many_requests(referee: Referee) -> None:
    with serving(create_app(referee, requests_per_second=2)) as http:
        answers = [http.get("/referee") for _ in range(9)]
        assert [answer.status_code for answer in answers] == [200] * 8 + [429]
        assert answers[-1].json()["error"]["refusal"] == "too_many_requests"
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert http.get("/health").status_code == 200


def test_rates_are_of_each_address_and_come_back() -> None:
    rates = Rates(1.0)
    assert [rates.take("a", 100.0) for _ in range(4)] == [0.0] * 4
    assert rates.take("a", 100.0) == 1.0
    assert rates.take("b", 100.0) == 0.0
    assert rates.take("a", 101.5) == 0.0
    assert rates.take("a", 101.5) == 0.5


def read_news(http: httpx.Client, game: int, last: int | None, count: int) -> list[tuple[str, str, dict[str, Any]]]:
    """The number, method and answer of the first `count` events; then the client goes away."""
    headers = {} if last is None else {"Last-Event-ID": str(last)}
    found: list[tuple[str, str, dict[str, Any]]] = []
    lines: dict[str, str] = {}
    with http.stream("GET", f"/games/{game}/events", headers=headers) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        for line in response.iter_lines():
            if line and not line.startswith(":"):
                name, _, value = line.partition(": ")
                lines[name] = value
            elif lines:
                found.append((lines["id"], lines["event"], json.loads(lines["data"])))
                lines = {}
                if len(found) == count:
                    break
    return found


def test_news_come_in_order_and_go_on_where_they_were_left(
    http: httpx.Client, referee: Referee, solved_game: PlayedGame
) -> None:
    played = solved_game
    answers = send(referee, played, *played.requests[:4])
    first = read_news(http, played.game, None, 4)
    assert [(number, method) for number, method, _ in first] == [
        ("0", "init_game"),
        ("1", "accept_game"),
        ("2", "make_guess"),
        ("3", "give_clue"),
    ]
    assert [data for _, _, data in first] == [json.loads(answer) for answer in answers]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(read_news, http, played.game, 3, 2)
        # Not through this server, as another worker would: it finds out by itself.
        send(referee, played, *played.requests[4:])
        assert [number for number, _, _ in waiting.result()] == ["4", "5"]


def test_the_typed_client_waits_no_longer_than_it_is_told(client: RefereeClient, solved_game: PlayedGame) -> None:
    client.send(solved_game.game, solved_game.requests[0])
    start = time.monotonic()
    assert [view.events for view in client.watch(solved_game.game, silence_s=0.5)] == [1]
    assert time.monotonic() - start < 5


def test_a_server_that_is_told_to_end_ends_its_streams(referee: Referee, solved_game: PlayedGame) -> None:
    send(referee, solved_game, solved_game.requests[0])
    app = create_app(referee)
    with ThreadPoolExecutor(1) as pool, serving(app) as http:
        waiting = pool.submit(http.get, f"/games/{solved_game.game}/events", timeout=30)
        while "referee_watchers 1" not in http.get("/metrics").text:
            time.sleep(0.02)
        start = time.monotonic()
        app.state.before_exit()
        assert "init_game" in waiting.result().text
        assert time.monotonic() - start < 3


def test_news_of_no_game_and_with_a_bad_number(http: httpx.Client) -> None:
    assert http.get("/games/1/events").status_code == 404
    assert http.get("/games/1/events", headers={"Last-Event-ID": "x"}).status_code == 400


def test_log_and_transcript_can_be_checked_elsewhere(
    http: httpx.Client, referee: Referee, world: World, solved_game: PlayedGame
) -> None:
    send(referee, solved_game, *solved_game.requests)
    log = GameLog.parse(http.get(f"/games/{solved_game.game}/log").content)
    contract = log.audit(world.keys, NativeVerifier())
    assert isinstance(contract, Contract)
    assert contract.game.winner == "breaker"
    transcript = Transcript.parse(http.get(f"/games/{solved_game.game}/transcript").content)
    assert transcript.verify(world.keys, NativeVerifier()).winner == "breaker"


def test_games_are_listed_in_pages(http: httpx.Client, solved_game: PlayedGame, other_game: PlayedGame) -> None:
    post(http, solved_game, 0)
    post(http, other_game, 0)
    first = http.get("/games", params={"limit": 1}).json()
    assert first["more"]
    rest = http.get("/games", params={"limit": 2, "after": first["games"][0]["game"]}).json()
    assert not rest["more"]
    assert {game["game"] for game in first["games"] + rest["games"]} == {str(solved_game.game), str(other_game.game)}


def test_numbers(http: httpx.Client, solved_game: PlayedGame) -> None:
    post(http, solved_game, 0)
    post(http, solved_game, 2)
    text = http.get("/metrics").text
    for line in (
        'referee_requests_total{operation="init_game",status="200"} 1.0',
        'referee_requests_total{operation="make_guess",status="409"} 1.0',
        'referee_refusals_total{refusal="not_accepted"} 1.0',
        'referee_games{status="open"} 1',
        "referee_credits_supply 10000",
        "referee_credits_balances 10000",
        "referee_credits_entries 10000",
    ):
        assert line in text, line
    assert http.get("/health").json() == {"status": "ok", "games": {"open": 1, "playing": 0, "closed": 0}}


def test_logs_are_json_and_hold_no_bodies(
    http: httpx.Client, solved_game: PlayedGame, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "mastermind.referee"):
        post(http, solved_game, 0)
    lines = [
        json.loads(JsonFormatter().format(record)) for record in caplog.records if record.name == "mastermind.referee"
    ]
    assert (lines[-1]["method"], lines[-1]["path"], lines[-1]["status"]) == ("POST", "/games", 200)
    assert str(solved_game.requests[0].to_json()["consent"]["nonce"]) not in caplog.text


def test_a_fault_is_not_a_verdict(
    referee: Referee,
    http: httpx.Client,
    client: RefereeClient,
    solved_game: PlayedGame,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> str:
        raise ZeroDivisionError("private")

    with monkeypatch.context() as patch:
        patch.setattr(referee, "act", fail)
        answer = post(http, solved_game, 0)
        assert (answer.status_code, answer.json()["error"]["refusal"]) == (500, "internal")
        assert "private" not in answer.text
        with pytest.raises(RefereeUnreachableError):
            client.send(solved_game.game, solved_game.requests[0])
    assert post(http, solved_game, 0).status_code == 200


def test_openapi_describes_every_method_with_an_example_that_reads(http: httpx.Client, solved_game: PlayedGame) -> None:
    document = http.get("/openapi.json").json()
    operations = {entry["operationId"]: entry for path in document["paths"].values() for entry in path.values()}
    assert set(METHODS) < operations.keys()
    for method in METHODS:
        example = operations[method]["requestBody"]["content"]["application/json"]["example"]
        path = "/games" if method == "init_game" else f"/games/1/{method}"
        answer = http.post(path, json=example)
        # Well formed, about no game and under no known keys.
        assert answer.status_code == (422 if method == "init_game" else 404), method


@pytest.mark.parametrize("status", [200, 404, 502])
@pytest.mark.parametrize("content", [b"<html>", b"{}", b"[]", b'{"error": 1}'])
def test_what_no_referee_says(content: bytes, status: int) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(status, content=content))
    error = RefereeUnreachableError if status == 502 else NotARefereeError
    with RefereeClient("http://x", transport=transport, patience_s=0) as client, pytest.raises(error):
        client.game(1)


def test_a_request_is_sent_again_when_the_connection_fails() -> None:
    calls = []

    def answer(request: httpx.Request) -> httpx.Response:
        calls.append(request.content)
        if len(calls) < 3:
            raise httpx.ConnectError("gone")
        return httpx.Response(400, json={"error": {"refusal": "malformed", "message": "m", "field": "f"}})

    with (
        RefereeClient("http://x", transport=httpx.MockTransport(answer)) as client,
        pytest.raises(MalformedEvidenceError) as caught,
    ):
        client.game(1)
    assert caught.value.field == "f"
    assert len(calls) == 3


class Absence:
    """A referee that does not answer so many times."""

    def __init__(self, tries: int, failure: httpx.Response | None = None) -> None:
        self.left, self._failure = tries, failure

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.left -= 1
        if self.left < 0:
            return httpx.Response(200, json={"credits": 7})
        if self._failure is None:
            raise httpx.ConnectError("refused", request=request)
        return self._failure


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mastermind.referee.client.MAX_PAUSE_S", 0.01)
    monkeypatch.setattr("mastermind.referee.client.SHORT_S", 0.0)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("failure", [None, httpx.Response(503, text="<html>")])
def test_a_player_waits_for_the_referee_and_is_told_once(failure: httpx.Response | None) -> None:
    said: list[str] = []
    transport = httpx.MockTransport(Absence(20, failure))
    with RefereeClient("http://x", transport=transport, patience_s=0, tell=said.append) as client:
        client.be_patient()
        assert client.credits(1) == 7
        assert client.credits(1) == 7
    assert [("until" in line, "again" in line) for line in said] == [(True, True), (False, True)]


@pytest.mark.usefixtures("hurried")
def test_a_player_waits_until_the_turn_is_over_and_then_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mastermind.referee.client.PLAYERS_PATIENCE_S", 0.0)
    absence = Absence(10**6)
    with RefereeClient("http://x", transport=httpx.MockTransport(absence), patience_s=0) as client:
        client.be_patient(turn_s=0.5)
        start = time.monotonic()
        with pytest.raises(RefereeUnreachableError):
            client.credits(1)
        assert 0.5 <= time.monotonic() - start < 5
        # However long a turn a referee speaks of.
        client.be_patient(turn_s=1e300)
        absence.left = 3
        assert client.credits(1) == 7


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("failure", [None, httpx.Response(503), httpx.Response(429)])
def test_news_that_cannot_be_had_are_no_news(failure: httpx.Response | None) -> None:
    """A stream that breaks, or for which there is no place: the game itself is asked for again."""
    with RefereeClient("http://x", transport=httpx.MockTransport(Absence(1, failure))) as client:
        assert list(client.watch(1)) == []


@pytest.mark.parametrize("url", ["", "x", "localhost:8460", "ftp://x", "http://", "http://x:abc", "http://x:99999"])
def test_what_is_no_url_of_a_referee(url: str) -> None:
    with pytest.raises(NotARefereeError):
        RefereeClient(url)


def test_what_will_not_change_is_asked_once() -> None:
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(404, text="<html>")

    with RefereeClient("http://x", transport=httpx.MockTransport(answer)) as client:
        client.be_patient()
        with pytest.raises(NotARefereeError):
            client.info()
    assert len(asked) == 1


@contextmanager
def raw_server(head: bytes, piece: bytes, every_s: float) -> Iterator[str]:
    """A server that says `head` to each request, and then `piece` again and again until nobody listens."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        with suppress(OSError):
            while True:
                line, _ = listener.accept()
                with line, suppress(OSError):
                    line.recv(1 << 16)
                    line.sendall(head)
                    while True:
                        line.sendall(piece)
                        time.sleep(every_s)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


OK_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n"


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nX: ", OK_HEAD], ids=["headers", "body"])
def test_an_answer_that_does_not_end_is_no_answer(head: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mastermind.referee.client.TIMEOUT_S", 0.5)
    start = time.monotonic()
    with raw_server(head, b" ", 0.05) as url, RefereeClient(url, patience_s=0) as client:
        with pytest.raises(RefereeUnreachableError):
            client.info()
        assert list(client.watch(1, silence_s=0.5)) == []
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("ask", [RefereeClient.info, lambda client: list(client.watch(1))], ids=["body", "event"])
def test_an_answer_is_not_read_beyond_what_a_referee_says(ask: Callable[[RefereeClient], object]) -> None:
    read = 0

    def pieces() -> Iterator[bytes]:
        nonlocal read
        while read < 1 << 24:
            read += 1 << 16
            yield b"1" * (1 << 16)

    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=pieces()))
    with RefereeClient("http://x", transport=transport, patience_s=0) as client, pytest.raises(NotARefereeError):
        ask(client)
    assert read < 1 << 23


def test_a_referee_that_asks_for_no_pause_is_not_asked_all_the_time() -> None:
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(429, headers={"Retry-After": "0"})

    with (
        RefereeClient("http://x", transport=httpx.MockTransport(answer), patience_s=0.5) as client,
        pytest.raises(NotARefereeError),
    ):
        client.info()
    assert len(asked) < 6
