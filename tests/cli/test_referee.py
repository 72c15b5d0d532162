"""`mastermind referee` and `mastermind play`: exit codes, files, and whole games."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from mastermind.cli import main
from mastermind.cli import referee as commands
from mastermind.game.secret_files import PlayerKey
from mastermind.referee.config import KEY_FILE, Settings
from mastermind.referee.duel_seat import DuelSeat
from mastermind.referee.ledger import HOUSE, Transfer, player_account
from mastermind.referee.match import GUEST, HOST
from mastermind.referee.referee import Referee
from mastermind.referee.seats import Seat
from mastermind.referee.service import create_app
from mastermind.referee.storage import Storage, View
from mastermind.zk.artifacts import ArtifactStore, KeySet
from mastermind.zk.evidence import canonical_json
from tests.referee.serving import serving
from tests.referee.world import (
    CODES,
    REWARD,
    SECRET,
    WELCOME,
    WRONG,
    PlayedGame,
    World,
    play_match,
    send,
    send_to_match,
)

TIMEOUT_S = 90


@pytest.fixture(scope="module")
def world(hit_and_blow: KeySet) -> World:
    return World(hit_and_blow)


@pytest.fixture(scope="module")
def solved_game(world: World) -> PlayedGame:
    return world.play([WRONG, SECRET])


@pytest.fixture
def referee(world: World, tmp_path: Path) -> Iterator[Referee]:
    yield world.referee(f"sqlite:///{tmp_path / 'books.db'}")
    world.close()


@pytest.fixture
def http(referee: Referee) -> Iterator[httpx.Client]:
    with serving(create_app(referee)) as client:
        yield client


@pytest.fixture
def player(tmp_path: Path) -> Path:
    path = tmp_path / "player.json"
    PlayerKey.new().write(path)
    return path


def run(*argv: object, typed: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(item) for item in argv], input=typed)


def accepted(*argv: object, typed: str | None = None) -> Any:
    result = run(*argv, "--json", typed=typed)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_init_makes_a_referee_that_can_be_loaded(tmp_path: Path, store: ArtifactStore, hit_and_blow: KeySet) -> None:
    folder = tmp_path / "r"
    answer = accepted("referee", "init", "--folder", folder, "--home", store.home)
    assert answer["key_sets"] == {"4x8u7": hit_and_blow.id}
    assert answer["keys"] == {"4x8u7": "development"}
    settings = Settings.read(folder)
    assert settings.key_sets == {"4x8u7": hit_and_blow.id}
    assert str(PlayerKey.read(folder / KEY_FILE).id) == answer["referee_id"]
    # The books as well, and what SQLite keeps beside them while they are in use.
    storage = Storage(settings.database)
    storage.look(View.sums)
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    storage.close()
    assert modes == dict.fromkeys([KEY_FILE, "referee.json", "books.db", "books.db-wal", "books.db-shm"], 0o600)
    again = run("referee", "init", "--folder", folder, "--home", store.home)
    assert (again.exit_code, "already" in again.output) == (2, True)


def test_grant(tmp_path: Path, player: Path, store: ArtifactStore, hit_and_blow: KeySet) -> None:
    folder = tmp_path / "r"
    accepted("referee", "init", "--folder", folder, "--supply", 500, "--welcome", 100, "--home", store.home)
    name = PlayerKey.read(player).id
    argv = ["referee", "grant", name, 400, "--folder", folder, "--home", store.home]
    assert accepted(*argv) == {"player_id": str(name), "amount": 400, "credits": 500, "seen_before": False}
    assert run(*argv).exit_code == 1
    for mistyped in (f"0{name}", str(name)[:50], f"0x{name:x}"):
        result = run("referee", "grant", mistyped, 1, "--folder", folder, "--home", store.home)
        assert (result.exit_code, "PLAYER_ID" in result.output) == (2, True)


def test_who_is_granted_credits_without_having_been_seen(
    tmp_path: Path, player: Path, store: ArtifactStore, hit_and_blow: KeySet
) -> None:
    folder = tmp_path / "r"
    accepted("referee", "init", "--folder", folder, "--home", store.home)
    argv = ["referee", "grant", PlayerKey.read(player).id, 1, "--folder", folder, "--home", store.home]
    assert ["never seen" in run(*argv).output for _ in range(2)] == [True, False]


def test_turns_shorter_than_proofs_are_refused(
    tmp_path: Path, store: ArtifactStore, hit_and_blow: KeySet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REF-10: with both numbers, and nothing is made."""
    monkeypatch.setattr("mastermind.referee.config.proof_seconds", lambda _: 5.0)
    folder = tmp_path / "r"
    result = run("referee", "init", "--folder", folder, "--slot-seconds", 1, "--home", store.home)
    assert result.exit_code == 2
    assert "2 s" in result.output
    assert "5.00 s" in result.output
    assert not folder.exists()
    assert run("referee", "init", "--folder", folder, "--slot-seconds", 50, "--home", store.home).exit_code == 0


def test_development_keys_are_not_served_without_leave(
    tmp_path: Path, store: ArtifactStore, hit_and_blow: KeySet
) -> None:
    """SET-4."""
    folder = tmp_path / "r"
    accepted("referee", "init", "--folder", folder, "--home", store.home)
    result = run("referee", "serve", "--folder", folder, "--home", store.home)
    assert result.exit_code == 2
    assert "--allow-development-keys" in result.output


def test_serving_a_folder_that_is_none(tmp_path: Path, store: ArtifactStore) -> None:
    assert run("referee", "serve", "--folder", tmp_path, "--home", store.home).exit_code == 2


def test_audit(referee: Referee, solved_game: PlayedGame, tmp_path: Path, store: ArtifactStore) -> None:
    """0 for an honest log, 1 for another one, 2 for none."""
    send(referee, solved_game, *solved_game.requests, solved_game.claim(solved_game.breaker))
    log, path = referee.log_json(solved_game.game), tmp_path / "log.json"
    path.write_bytes(canonical_json(log))
    assert accepted("referee", "audit", path, "--home", store.home)["contract"]["winner"] == "breaker"
    result = run("referee", "audit", path, "--home", store.home)
    assert result.exit_code == 0
    assert "accepted: 7 events" in result.output
    assert "The pot has been paid." in result.output
    log["events"][4]["packed"] = "1"
    path.write_bytes(canonical_json(log))
    result = run("referee", "audit", path, "--home", store.home)
    assert result.exit_code == 1
    assert "event 4" in result.output
    path.write_bytes(b"<html>")
    assert run("referee", "audit", path, "--home", store.home).exit_code == 2


def test_forfeit(
    http: httpx.Client, referee: Referee, world: World, solved_game: PlayedGame, tmp_path: Path, store: ArtifactStore
) -> None:
    send(referee, solved_game, *solved_game.requests[:3])
    world.referee_key.write(tmp_path / KEY_FILE)
    other = tmp_path / "other"
    other.mkdir()
    PlayerKey.new().write(other / KEY_FILE)
    argv = ["referee", "forfeit", str(solved_game.game)[:12], "--referee", http.base_url, "--winner", "breaker"]
    assert run(*argv, "--folder", other, "--home", store.home).exit_code == 1
    answer = accepted(*argv, "--folder", tmp_path, "--home", store.home)
    expected = {"game": str(solved_game.game), "winner": "breaker", "keys": "development", "amount": 2 * REWARD}
    assert answer == expected
    assert run(*argv, "--folder", tmp_path, "--home", store.home).exit_code == 1


def test_list_and_watch(http: httpx.Client, referee: Referee, solved_game: PlayedGame, store: ArtifactStore) -> None:
    url = http.base_url
    send(referee, solved_game, solved_game.requests[0])
    assert [game["contract"]["reward"] for game in accepted("play", "list", "--referee", url)] == [REWARD]
    assert "hit-and-blow" in run("play", "list", "--referee", url).output
    send(referee, solved_game, *solved_game.requests[1:], solved_game.claim(solved_game.breaker))
    assert accepted("play", "list", "--referee", url) == []
    result = run("play", "watch", solved_game.game, "--referee", url, "--home", store.home)
    assert result.exit_code == 0, result.output
    assert "accepted: 7 events" in result.output
    # The answer that ends the game and the claim leave the same board: it is shown once.
    assert result.output.count("The breaker has won, in 2 guesses.") == 1
    boards = re.findall(r"^ +1  .*$", result.output, re.MULTILINE)
    assert len(boards) == 5
    result = run("play", "watch", str(solved_game.game)[:12], "--referee", url, "--home", store.home, "--json")
    *events, end = map(json.loads, result.stdout.splitlines())
    assert [event["events"] for event in events] == [1, 2, 3, 4, 5, 6, 7]
    assert (events[3]["contract"]["clues"], end["accepted"], end["keys"]) == ([[1, 2]], True, "development")


def test_joining_what_is_over(
    http: httpx.Client, referee: Referee, solved_game: PlayedGame, player: Path, tmp_path: Path, store: ArtifactStore
) -> None:
    argv = ["--referee", http.base_url, "--player", player, "--folder", tmp_path / "seat", "--home", store.home]
    send(referee, solved_game, *solved_game.requests)
    result = run("play", "join", str(solved_game.game)[:12], *argv)
    assert (result.exit_code, "accepted the game already" in result.output) == (1, True)
    send(referee, solved_game, solved_game.claim(solved_game.breaker))
    result = run("play", "join", str(solved_game.game)[:12], *argv)
    assert (result.exit_code, "the game is over" in result.output) == (1, True)
    match = play_match(solved_game.world, (CODES[GUEST], WRONG))
    send_to_match(referee, match, *match.requests)
    result = run("play", "duel", "join", str(match.name)[:12], *argv)
    assert (result.exit_code, "the game is over" in result.output) == (1, True)
    assert not (tmp_path / "seat").exists()


def test_an_interactive_game(
    http: httpx.Client, player: Path, tmp_path: Path, store: ArtifactStore, hit_and_blow: KeySet
) -> None:
    """Board, prompt and clue for the breaker; a mistyped guess uses no turn."""
    common = ["--referee", str(http.base_url), "--home", str(store.home)]
    with hosting(tmp_path, common, "--code", "7460") as host:
        game = open_game(http)
        result = run(
            "play", "join", game[:10], *common, "--player", player, "--folder", tmp_path / "seat",
            typed="12\n0457\n7460\n",
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        assert host.wait(TIMEOUT_S) == 0
    assert "the guess must be 4 numbers" in result.output or "has 2 pegs" in result.output
    assert "●○○" in result.output
    assert "The breaker has won, in 2 guesses." in result.output
    assert f"You have {WELCOME + REWARD} credits." in result.output
    wrong_role = run("play", "host", "--player", player, "--folder", tmp_path / "seat", "--home", store.home)
    assert (wrong_role.exit_code, "breaker's" in wrong_role.output) == (2, True)


def test_a_stake_is_taken_back_while_nobody_has_joined(
    http: httpx.Client, tmp_path: Path, store: ArtifactStore, hit_and_blow: KeySet
) -> None:
    """The host that waits sees it, and ends."""
    common = ["--referee", str(http.base_url), "--home", str(store.home)]
    with hosting(tmp_path, common) as host:
        open_game(http)
        argv = ["--player", tmp_path / "host.json", "--folder", tmp_path / "host", "--home", store.home]
        assert accepted("play", "claim", *argv)["amount"] == REWARD
        assert host.wait(TIMEOUT_S) == 0
        assert run("play", "claim", *argv).exit_code == 1


def test_set_4_what_is_claimed_of_a_duel_says_on_which_keys(
    http: httpx.Client, tmp_path: Path, store: ArtifactStore, hit_and_blow: KeySet
) -> None:
    """For people and for machines."""
    common = ["--referee", str(http.base_url), "--home", str(store.home)]
    for name, words in (("text", []), ("json", ["--json"])):
        folder = tmp_path / name
        folder.mkdir()
        with hosting(folder, common, "--rules", "hit-and-blow", command="duel host"):
            match = open_game(http, "matches")
            argv = ["--player", folder / "host.json", "--folder", folder / "host", "--home", store.home]
            result = run("play", "duel", "claim", *argv, *words)
        assert result.exit_code == 0, result.output
        if words:
            assert json.loads(result.stdout) == {"match": match, "keys": "development", "amount": REWARD}
        else:
            assert result.stdout == f"Claimed: {REWARD} credits (development keys)\n"


def test_a_referee_that_is_not_there(player: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mastermind.referee.client.MAX_PAUSE_S", 0.0)
    assert run("play", "list", "--referee", "http://127.0.0.1:9").exit_code == 3
    folder = tmp_path / "seat"
    assert run("play", "host", "--player", player, "--folder", folder).exit_code == 2
    assert not folder.exists()


def test_what_is_no_referee(http: httpx.Client, player: Path, tmp_path: Path) -> None:
    """Said at once, whatever is asked of it."""
    argv = ["--reward", REWARD, "--player", player, "--folder", tmp_path / "seat"]
    for url in ("localhost:8460", "ftp://localhost", "http://", "http://x:port", f"{http.base_url}nothing"):
        for words in (["host", *argv], ["duel", "host", *argv], ["list"], ["watch", "1204"]):
            result = run("play", *words, "--referee", url)
            assert result.exit_code == 2, result.output
            assert any(text in result.output for text in ("the URL of a referee", "there is no referee at"))


def test_the_command_line_starts_without_the_web_framework() -> None:
    script = "import sys, mastermind.cli; print(*[n for n in ('fastapi', 'sqlalchemy', 'httpx') if n in sys.modules])"
    found = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert found.stdout == "\n"
    assert commands.referee.name in main.commands


def test_an_interactive_duel(
    http: httpx.Client, player: Path, tmp_path: Path, store: ArtifactStore, hit_and_blow: KeySet
) -> None:
    """Boards, prompt and both codes for a guest who types; then lists, and the audit of the log."""
    common = ["--referee", str(http.base_url), "--home", str(store.home)]
    rules = ["--rules", "hit-and-blow", "--code", "7460", "--auto", "strong"]
    with hosting(tmp_path, common, *rules, command="duel host") as host:
        name = open_game(http, "matches")
        result = run(
            "play", "duel", "join", name[:10], *common, "--player", player, "--folder", tmp_path / "seat",
            "--code", "7654", typed="12\nWMOR\n7460\n",
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        assert host.wait(TIMEOUT_S) == 0
    assert "the code has 2 pegs where the rules have 4" in result.output
    assert "Guess 2 (" in result.output
    assert "The guest wins: the host's code was broken first." in result.output
    assert "The host's code was O M W R; opened and checked." in result.output
    assert "The guest's code was O W C M; opened and checked." in result.output
    assert f"You have {WELCOME + REWARD} credits." in result.output
    assert accepted("play", "duel", "list", "--referee", http.base_url) == []
    assert name[:12] in run("play", "duel", "list", "--referee", http.base_url, "--status", "closed").output
    watched = run("play", "duel", "watch", name[:12], "--referee", http.base_url, "--home", store.home)
    assert watched.exit_code == 0, watched.output
    assert watched.output.count("The guest wins: the host's code was broken first.") == 1
    assert "The host's code was O M W R; opened and checked." in watched.output
    assert "all proved and all by the rules (development keys)" in watched.output
    argv = ["--referee", http.base_url, "--home", store.home, "--json"]
    *events, end = map(json.loads, run("play", "duel", "watch", name[:12], *argv).stdout.splitlines())
    assert events[-1]["contract"]["outcome"] == "second_wins"
    assert (end["accepted"], end["keys"], end["opened"]) == (True, "development", [[7, 4, 6, 0], [7, 6, 5, 4]])
    wrong_role = run("play", "duel", "host", "--player", player, "--folder", tmp_path / "seat", "--home", store.home)
    assert (wrong_role.exit_code, "guest's" in wrong_role.output) == (2, True)
    path = tmp_path / "log.json"
    path.write_bytes(http.get(f"/matches/{name}/log").content)
    audited = run("referee", "audit", path, "--home", store.home)
    assert audited.exit_code == 0, audited.output
    assert "The guest wins" in audited.output
    assert "The pot has been paid." in audited.output
    assert accepted("referee", "audit", path, "--home", store.home)["contract"]["paid"] == [1]


def test_a_duel_whose_input_ends_goes_on_later_and_is_forfeited(
    http: httpx.Client, world: World, player: Path, tmp_path: Path, store: ArtifactStore, hit_and_blow: KeySet
) -> None:
    """INP-5: no turn is used; the referee's key then gives the pot to one of the two."""
    common = ["--referee", str(http.base_url), "--home", str(store.home)]
    with hosting(tmp_path, common, "--rules", "hit-and-blow", "--auto", command="duel host") as host:
        name = open_game(http, "matches")
        argv = ["--player", player, "--folder", tmp_path / "seat", "--home", store.home]
        result = run("play", "duel", "join", name, "--referee", http.base_url, *argv, typed="")
        assert (result.exit_code, "the input has ended" in result.output) == (2, True)
        assert http.get(f"/matches/{name}").json()["contract"]["boards"][1]["guesses"] == []
        assert run("play", "duel", "claim", *argv).exit_code == 1
        world.referee_key.write(tmp_path / KEY_FILE)
        answer = accepted(
            "referee", "forfeit", name[:12], "--referee", http.base_url, "--winner", "guest",
            "--folder", tmp_path, "--home", store.home,
        )  # fmt: skip
        assert answer == {"game": name, "winner": "guest", "keys": "development", "amount": 2 * REWARD}
        assert host.wait(TIMEOUT_S) == 0
        result = run("play", "duel", "join", *argv)
        assert result.exit_code == 0, result.output
        assert "The pot has gone to the guest, without an end of the duel." in result.output


class hosting:
    """`mastermind play host`, or another command, in a process of its own; ended with the block."""

    def __init__(self, folder: Path, common: list[str], *argv: str, command: str = "host") -> None:
        PlayerKey.new().write(folder / "host.json")
        files = ["--player", str(folder / "host.json"), "--folder", str(folder / "host")]
        words = [sys.executable, "-m", "mastermind", "play", *command.split(), "--reward", str(REWARD)]
        self._process = subprocess.Popen([*words, *common, *files, *argv], stdout=subprocess.DEVNULL)

    def __enter__(self) -> subprocess.Popen[bytes]:
        return self._process

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


def open_game(http: httpx.Client, about: str = "games") -> str:
    """The name of the one open game or match, once it is there."""
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        games = http.get(f"/{about}").json()[about]
        if games:
            return str(games[0]["game" if about == "games" else "match"])
        time.sleep(0.05)
    raise AssertionError("nobody has opened a game")


def test_a_game_that_the_referee_refuses_leaves_only_its_secret(
    http: httpx.Client, referee: Referee, tmp_path: Path, store: ArtifactStore, hit_and_blow: KeySet
) -> None:
    """Whoever opens it or joins it; the referee has seen the hash of the secret, and may not be honest."""
    key, folder = tmp_path / "rich.json", tmp_path / "seat"
    PlayerKey.new().write(key)
    common = ["--referee", http.base_url, "--home", store.home, "--folder", folder]
    for command, about in (("host", "games"), ("duel host", "matches")):
        words = ["play", *command.split(), "--rules", "hit-and-blow", "--player", key, *common]
        for reward in (WELCOME + 1, 1 << 64):
            result = run(*words, "--reward", reward)
            assert result.exit_code == (1 if reward == WELCOME + 1 else 2), result.output
            assert not folder.exists()
            assert ("the secret is kept in" in " ".join(result.output.split())) == (reward == WELCOME + 1)
        kept = tmp_path / f"seat.refused-{1 if about == 'games' else 2}"
        assert (kept / "secret.json").exists()
        hosts = tmp_path / about
        hosts.mkdir()
        url = ["--referee", str(http.base_url), "--home", str(store.home)]
        with hosting(hosts, url, "--rules", "hit-and-blow", command=command):
            game = open_game(http, about)
            poor = tmp_path / f"poor-{about}.json"
            PlayerKey.new().write(poor)
            referee.storage.transact(
                lambda books, poor=poor: books.transfer(  # type: ignore[misc]
                    Transfer(HOUSE, player_account(PlayerKey.read(poor).id), REWARD - 1), "test"
                )
            )
            result = run("play", *command.replace("host", "join").split(), game, "--player", poor, *common)
            assert (result.exit_code, "does not have the credits" in result.output) == (1, True)
            assert not folder.exists()


def test_rules_that_a_referee_does_not_take(http: httpx.Client, player: Path, tmp_path: Path) -> None:
    argv = ["--referee", http.base_url, "--reward", REWARD, "--player", player, "--folder", tmp_path / "seat"]
    for words in (["host"], ["duel", "host"]):
        result = run("play", *words, "--rules", "classic", *argv)
        assert (result.exit_code, "no games of classic; it takes hit-and-blow" in result.output) == (2, True)


def test_a_folder_of_the_other_kind(
    world: World, player: Path, tmp_path: Path, store: ArtifactStore, hit_and_blow: KeySet
) -> None:
    """Each command says which to use."""
    Seat("master", "http://x", 1, 2, REWARD).write(tmp_path)
    argv = ["--player", player, "--folder", tmp_path, "--home", store.home]
    for command in ("host", "join", "claim"):
        result = run("play", "duel", command, *argv)
        assert (result.exit_code, "is of a game; use `mastermind play host`" in result.output) == (2, True)
    DuelSeat(HOST, "http://x", 1, 2, REWARD).write(tmp_path)
    for command in ("host", "join", "claim"):
        result = run("play", command, *argv)
        assert (result.exit_code, "is of a duel; use `mastermind play duel host`" in result.output) == (2, True)
