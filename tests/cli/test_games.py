"""Two people with a folder and a key store each, who play by sending one file to and fro; and all that goes wrong."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from filelock import FileLock

from mastermind.cli.main import main
from mastermind.game.play import Table
from mastermind.game.secret_files import GameSecret, PlayerKey
from mastermind.game.transcript import Transcript, lock_path, write_json
from mastermind.rules import Rules
from mastermind.zk.artifacts import VERIFYING_KEY, ArtifactStore, KeySet
from mastermind.zk.prove import NativeProver
from mastermind.zk.tools import Toolchain, run
from tests.game.games import Played, play

RULES = Rules.parse("hit-and-blow")
COMMAND = Path(sys.executable).with_name("mastermind")
TIMEOUT_S = 120
#: Longer than a command takes that waits for nothing.
WAITING_S = 5

ACCEPTED, REJECTED, BAD_INPUT, TOOL_FAILURE = 0, 1, 2, 3


@dataclass
class Person:
    """Somebody at a machine of their own: a folder, a home for keys, an environment.

    Attributes:
        said: all that the commands have printed.
    """

    folder: Path
    home: Path
    variables: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for folder in (self.folder, self.temporary):
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def temporary(self) -> Path:
        """Where all temporary files go."""
        return self.folder.with_name(f"{self.folder.name}-tmp")

    @property
    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("MASTERMIND")}
        own = {"MASTERMIND_HOME": str(self.home), "TMPDIR": str(self.temporary)}
        return {**inherited, **own, **self.variables}

    def run(self, *words: str, expect: int = ACCEPTED) -> str:
        """Run a command without a terminal and return what it prints; it ends with the exit code that is expected."""
        completed = subprocess.run(
            [COMMAND, *words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        self.said += [completed.stdout, completed.stderr]
        assert "Traceback" not in completed.stderr
        assert completed.returncode == expect, completed.stderr
        if expect != ACCEPTED:
            assert completed.stdout == ""
            assert "mastermind: " in completed.stderr or "Usage: " in completed.stderr
        return completed.stdout

    def json(self, *words: str) -> Any:
        """Run a command with --json and return the one value that it prints."""
        return json.loads(self.run(*words, "--json"))

    def send(self, name: str, to: Person) -> None:
        """Put a file into somebody else's folder."""
        shutil.copy(self.folder / name, to.folder / name)


@pytest.fixture(scope="module")
def master(store: ArtifactStore, hit_and_blow: KeySet, tmp_path_factory: pytest.TempPathFactory) -> Person:
    """Has made the keys."""
    return Person(tmp_path_factory.mktemp("people") / "master", store.home)


@pytest.fixture(scope="module")
def breaker(master: Person, tmp_path_factory: pytest.TempPathFactory) -> Person:
    """Has no keys yet, and no programs at all on the path."""
    folder = tmp_path_factory.mktemp("people")
    nothing = folder / "empty"
    nothing.mkdir()
    return Person(folder / "breaker", folder / "home", {"PATH": str(nothing)})


@dataclass
class Evening:
    """A whole game as the two of them have played it.

    Attributes:
        answers: of the commands that printed JSON, by what was done.
        text: of the others.
        public: every file that went to the other one.
    """

    master: Person
    breaker: Person
    answers: dict[str, Any] = field(default_factory=dict)
    text: dict[str, str] = field(default_factory=dict)
    public: list[Path] = field(default_factory=list)


@pytest.fixture(scope="module")
def evening(master: Person, breaker: Person) -> Evening:
    """The secret is 1 0 4 7; it is found with the third guess. One prints text, the other JSON."""
    played = Evening(master, breaker)

    def send(sender: Person, name: str, to: Person) -> None:
        sender.send(name, to)
        kept = to.folder.parent / f"{len(played.public)}-{name}"
        shutil.copy(to.folder / name, kept)
        played.public.append(kept)

    opening = ("--player", "master.json", "--game", "game.json", "--secret", "game.secret.json")
    playing = ("--game", "game.json", "--player", "breaker.json")
    answering = ("--game", "game.json", "--secret", "game.secret.json", "--player", "master.json")

    played.text["player"] = master.run("player", "new", "--out", "master.json")
    played.text["open"] = master.run("game", "open", *opening, "--code", "1 0 4 7")
    send(master, "game.json", breaker)

    played.answers["player"] = breaker.json("player", "new", "--out", "breaker.json")
    breaker.run("game", "join", *playing, expect=BAD_INPUT)  # No keys yet.
    master.run("keys", "export", "hit-and-blow.keys")
    send(master, "hit-and-blow.keys", breaker)
    played.answers["import"] = breaker.json("keys", "import", "hit-and-blow.keys")

    played.answers["join"] = breaker.json("game", "join", *playing)
    for number, guess in enumerate((["5", "7", "2", "6"], ["5,0,4,3"], ["1047"]), start=1):
        played.answers[f"guess {number}"] = breaker.json("game", "guess", *playing, *guess)
        send(breaker, "game.json", master)
        # Once by snarkjs, to see that nothing stays behind.
        prover = "snarkjs" if number == 2 else "native"
        played.text[f"clue {number}"] = master.run("game", "clue", *answering, "--prover", prover)
        send(master, "game.json", breaker)

    played.answers["show"] = breaker.json("game", "show", "game.json")
    played.text["show"] = breaker.run("game", "show", "game.json")
    played.answers["verify"] = breaker.json("game", "verify", "game.json")
    played.text["verify"] = master.run("game", "verify", "game.json")
    played.text["certify"] = master.run("game", "certify", *answering, "--out", "certificate.json")
    send(master, "certificate.json", breaker)
    played.answers["verify-certificate"] = breaker.json("game", "verify-certificate", "certificate.json")
    played.text["verify-certificate"] = master.run(
        "game", "verify-certificate", "certificate.json", "--verifier", "all"
    )
    played.text["reveal"] = master.run("game", "reveal", *answering, "--out", "reveal.json")
    send(master, "reveal.json", breaker)
    played.answers["verify-reveal"] = breaker.json("game", "verify-reveal", "--game", "game.json", "reveal.json")
    played.answers["export"] = breaker.json("game", "export", "--game", "game.json", "--step", "5", "--out", "step5")
    return played


# A whole game


def test_two_people_play_a_whole_game(evening: Evening) -> None:
    answers, text = evening.answers, evening.text
    assert answers["import"]["replaced"] is None
    assert (answers["join"]["turn_count"], answers["join"]["next_step"]) == (1, "make_guess")
    assert [answers[f"guess {number}"]["turn_count"] for number in (1, 2, 3)] == [2, 4, 6]
    shown = answers["show"]
    assert (shown["solved"], shown["winner"], shown["next_step"]) == (True, "breaker", None)
    assert shown["guesses"] == [[5, 7, 2, 6], [5, 0, 4, 3], [1, 0, 4, 7]]
    assert shown["clues"] == [{"hits": 0, "blows": 1}, {"hits": 2, "blows": 0}, {"hits": 4, "blows": 0}]
    assert shown["breaker_id"] == answers["player"]["player_id"]
    assert shown["master_id"] in text["player"]
    assert shown["key_set_id"] == answers["import"]["key_set_id"]
    for name in ("verify", "verify-certificate"):
        assert answers[name]["accepted"] is True
        assert {key: answers[name][key] for key in shown} == shown
        for value in (shown["master_id"], shown["breaker_id"], shown["key_set_id"]):
            assert value in text[name]
    assert answers["verify-reveal"] == {"accepted": True, "keys": "development", "secret": [1, 0, 4, 7]}


def test_the_board_is_as_people_know_it(evening: Evening) -> None:
    board = click.unstyle(evening.text["show"])
    for line in ("1  5 7 2 6   ○···", "2  5 0 4 3   ●●··", "3  1 0 4 7   ●●●●", "4  . . . ."):
        assert line in board
    assert "The breaker has won, in 3 guesses." in board
    assert "native, reference, snarkjs" not in evening.text["verify"]


def test_set_4_nobody_takes_development_keys_for_anything_else(evening: Evening) -> None:
    for name, said in evening.text.items():
        assert name == "player" or "development keys" in said, name
    for name, answer in evening.answers.items():
        assert name == "player" or "development" in (answer.get("keys"), answer.get("status")), name


def test_the_second_player_has_no_node(evening: Evening) -> None:
    person = evening.breaker
    assert shutil.which("node", path=person.environment["PATH"]) is None
    person.run("tools", expect=TOOL_FAILURE)
    person.run("game", "verify", "game.json", "--verifier", "snarkjs", expect=TOOL_FAILURE)
    person.run("game", "verify", "game.json")


def test_both_have_the_same_files(evening: Evening) -> None:
    one, other = (person.folder / "game.json" for person in (evening.master, evening.breaker))
    assert one.read_bytes() == other.read_bytes()
    assert len(Transcript.read(one).steps) == 8
    assert (evening.breaker.folder / "certificate.json").stat().st_size < 3000


def test_plain_snarkjs_accepts_an_exported_step(evening: Evening, toolchain: Toolchain) -> None:
    folder = evening.breaker.folder / "step5"
    files = [folder / name for name in (VERIFYING_KEY, "public.json", "proof.json")]
    argv = [*toolchain.snarkjs, "groth16", "verify"]
    assert "OK!" in run([*argv, *files], timeout_s=TIMEOUT_S).stdout
    signals = json.loads(files[1].read_text())
    assert signals[4] == "2"
    files[1].write_text(json.dumps([*signals[:4], "3"]))
    assert "OK!" not in run([*argv, *files], timeout_s=TIMEOUT_S, accept=(1,)).stdout
    files[1].write_text(json.dumps(signals))
    expected = {"step": "give_clue", "circuit": "give_clue", "keys": "development", "out": "step5"}
    assert evening.answers["export"] == expected


def secrets_of(evening: Evening) -> tuple[set[bytes], bytes]:
    """The master's key and salt in all their spellings, and the packed code."""
    player = json.loads((evening.master.folder / "master.json").read_bytes())
    record = json.loads((evening.master.folder / "game.secret.json").read_bytes())
    texts: set[bytes] = set()
    for text in (player["private"]["key"], record["private"]["salt"]):
        number = int(text)
        big, little = number.to_bytes(32, "big"), number.to_bytes(32, "little")
        texts |= {text.encode(), f"{number:x}".encode(), little.hex().encode(), big, little}
    packed = sum(peg << 3 * place for place, peg in enumerate(record["private"]["secret"]))
    return texts, f'"{packed}"'.encode()


def test_com_8_the_other_player_learns_no_secret(evening: Evening) -> None:
    texts, packed = secrets_of(evening)
    for path in [*evening.public, *evening.breaker.folder.rglob("*"), *evening.breaker.home.rglob("*")]:
        content = path.read_bytes() if path.is_file() else b""
        assert not any(text in content for text in texts), path
    # The code itself is in no file before it was guessed: the game came back five times before that.
    games = [path for path in evening.public if path.name.endswith("game.json")]
    assert [packed in path.read_bytes() for path in games] == [False] * 5 + [True, True]
    assert (evening.master.folder / "master.json").read_bytes().count(b'"key"') == 1


def test_com_8_nothing_printed_holds_a_secret(evening: Evening) -> None:
    texts, _ = secrets_of(evening)
    for person in (evening.master, evening.breaker):
        assert len(person.said) >= 20
        for said in person.said:
            assert not any(text in said.encode() for text in texts)
    for name in ("open", "clue 1", "clue 2"):
        assert "1 0 4 7" not in click.unstyle(evening.text[name])
        assert "1047" not in click.unstyle(evening.text[name])


def test_com_9_no_temporary_file_stays(evening: Evening) -> None:
    for person in (evening.master, evening.breaker):
        assert list(person.temporary.iterdir()) == []
    strays = {path.name for path in evening.master.folder.iterdir()} - {
        "master.json",
        "game.json",
        "game.secret.json",
        "hit-and-blow.keys",
        "certificate.json",
        "reveal.json",
    }
    assert all(name.startswith(".") and name.endswith(".lock") for name in strays)
    modes = {
        name: (evening.master.folder / name).stat().st_mode & 0o777 for name in ("master.json", "game.secret.json")
    }
    assert modes == {"master.json": 0o600, "game.secret.json": 0o600}


# One command at a time, in this process


@dataclass(frozen=True)
class Files:
    """The files of a game in a folder of their own: `game0.json` .. `game6.json` after so many steps, and the rest."""

    folder: Path
    home: Path

    def __getitem__(self, name: str) -> Path:
        return self.folder / name

    def run(self, *words: str, expect: int = ACCEPTED, passphrase: str | None = None) -> Result:
        """Run a command; names of files in it are taken from the folder."""
        known = {path.name for path in self.folder.iterdir()} | {"new.json", "missing.json"}
        argv = [str(self.folder / word) if word in known else word for word in words]
        environment = {"MASTERMIND_HOME": str(self.home), "MASTERMIND_PASSPHRASE": passphrase}
        result = CliRunner().invoke(main, argv, env=environment)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        assert "Traceback" not in result.output
        assert result.exit_code == expect, result.output
        if expect != ACCEPTED:
            assert result.stdout == ""
            assert result.stderr != ""
        return result

    def said(self, *words: str, expect: int) -> str:
        return self.run(*words, expect=expect).stderr


@pytest.fixture(scope="module")
def game(hit_and_blow: KeySet, native_prover: NativeProver) -> Played:
    return play(Table(RULES, hit_and_blow, native_prover), (1, 0, 4, 7), [(5, 7, 2, 6), (1, 0, 4, 7)])


@pytest.fixture(scope="module")
def originals(game: Played, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    game.master.write(folder / "master.json")
    game.breaker.write(folder / "breaker.json")
    PlayerKey.new().write(folder / "stranger.json")
    game.opened.write_new(folder / "secret.json", game.master)
    game.kept.write_new(folder / "late.json", game.master)
    other, kept = game.table.open_game(game.master, (1, 0, 4, 7))
    other.write_new(folder / "other.json")
    kept.write_new(folder / "other.secret.json", game.master)
    for steps in range(7):
        game.cut(steps).write_new(folder / f"game{steps}.json")
    certificate = game.table.certify(game.transcript, game.master, game.kept)
    write_json(folder / "certificate.json", certificate.to_json())
    write_json(folder / "reveal.json", game.table.reveal(game.transcript, game.master, game.kept).to_json())
    again = game.again([(1, 0, 4, 7)])
    again.transcript.write_new(folder / "again.json")
    return folder


@pytest.fixture
def files(originals: Path, store: ArtifactStore, tmp_path: Path) -> Files:
    """Each test has its own copy."""
    for path in originals.iterdir():
        if not path.name.startswith("."):
            shutil.copy(path, tmp_path)
    return Files(tmp_path, store.home)


GUESS = ("--player", "breaker.json", "--game")
CLUE = ("--player", "master.json", "--secret", "secret.json", "--game")
LATE = ("--player", "master.json", "--secret", "late.json", "--game")


def test_each_move_once(files: Files) -> None:
    """The twins of all that is refused below."""
    files.run("game", "join", *GUESS, "game1.json")
    files.run("game", "guess", *GUESS, "game2.json", "5726")
    files.run("game", "clue", *CLUE, "game3.json")
    files.run("game", "certify", *LATE, "game4.json", "--out", "new.json")
    files.run("game", "reveal", *LATE, "game6.json", "--out", "new.json")
    for steps in range(7):
        files.run("game", "show", f"game{steps}.json")
        files.run("game", "verify", f"game{steps}.json")
    files.run("game", "verify-certificate", "certificate.json")
    files.run("game", "verify-reveal", "--game", "game6.json", "reveal.json")
    files.run("player", "show", "master.json")


@pytest.mark.parametrize(
    "words",
    [
        ("game", "open", "--player", "master.json", "--random", "--game", "new.json", "--secret", "missing.json"),
        ("game", "join", *GUESS, "game1.json"),
        ("game", "guess", *GUESS, "game2.json", "5726"),
        ("game", "clue", *CLUE, "game3.json"),
        ("game", "show", "game4.json"),
        ("game", "verify", "game4.json"),
        ("game", "certify", *LATE, "game4.json", "--out", "new.json"),
        ("game", "verify-certificate", "certificate.json"),
        ("game", "export", "--game", "game4.json", "--step", "3", "--out", "new.json"),
        ("game", "reveal", *LATE, "game6.json", "--out", "new.json"),
        ("game", "verify-reveal", "--game", "game6.json", "reveal.json"),
        ("player", "new", "--out", "new.json"),
        ("player", "show", "master.json"),
        ("keys", "show"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_json_is_one_value(words: tuple[str, ...], files: Files) -> None:
    result = files.run(*words, "--json")
    assert isinstance(json.loads(result.stdout), dict)
    assert result.stderr == ""


REFUSED_MOVES = {
    "join twice": ("game", "join", *GUESS, "game2.json"),
    "join a game that is over": ("game", "join", *GUESS, "game6.json"),
    "join an empty game": ("game", "join", *GUESS, "game0.json"),
    "guess before the join": ("game", "guess", *GUESS, "game1.json", "5726"),
    "guess twice": ("game", "guess", *GUESS, "game3.json", "5726"),
    "guess after the end": ("game", "guess", *GUESS, "game6.json", "5726"),
    "guess in another's name": ("game", "guess", "--player", "stranger.json", "--game", "game2.json", "5726"),
    "clue without a guess": ("game", "clue", *CLUE, "game2.json"),
    "clue twice": ("game", "clue", *LATE, "game4.json"),
    "clue of another player": (
        "game",
        "clue",
        "--player",
        "breaker.json",
        "--secret",
        "secret.json",
        "--game",
        "game3.json",
    ),
    "clue from another game's secret": (
        *("game", "clue", "--player", "master.json", "--secret", "other.secret.json", "--game", "game3.json"),
    ),
    "rep 6 clue in a turn answered otherwise": ("game", "clue", *LATE, "again.json"),
    "rep 6 clue in an older transcript": ("game", "clue", *LATE, "game3.json"),
    "certify before a clue": ("game", "certify", *CLUE, "game3.json", "--out", "new.json"),
    "certify in another's name": (
        *("game", "certify", "--player", "breaker.json", "--secret", "late.json", "--game", "game4.json"),
        *("--out", "new.json"),
    ),
    "reveal before the end": ("game", "reveal", *LATE, "game4.json", "--out", "new.json"),
    "reveal another game's secret": (
        *("game", "reveal", "--player", "master.json", "--secret", "other.secret.json", "--game", "game6.json"),
        *("--out", "new.json"),
    ),
    "reveal of another game": ("game", "verify-reveal", "--game", "again.json", "reveal.json"),
    "reveal of a game that goes on": ("game", "verify-reveal", "--game", "game4.json", "reveal.json"),
}


@pytest.mark.parametrize("name", REFUSED_MOVES)
def test_a_refused_move_exits_with_1_and_changes_nothing(name: str, files: Files) -> None:
    before = {path.name: path.read_bytes() for path in files.folder.glob("*.json")}
    said = files.said(*REFUSED_MOVES[name], expect=REJECTED)
    assert said.startswith("mastermind: rejected: ")
    assert len(said.strip().splitlines()) == 1
    assert {path.name: path.read_bytes() for path in files.folder.glob("*.json")} == before


def changed(path: Path, change: Callable[[Any], None]) -> None:
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document))


def false_clue(document: Any) -> None:
    """In the newest step, which nothing later contradicts."""
    clue = document["steps"][-1]["public"]
    clue[4] = "1" if clue[4] != "1" else "2"


def exchange_proofs(document: Any) -> None:
    steps = document["steps"]
    steps[0]["proof"], steps[1]["proof"] = steps[1]["proof"], steps[0]["proof"]


@pytest.mark.parametrize(
    ("words", "change"),
    [
        (("game", "show", "game4.json"), false_clue),
        (("game", "verify", "game4.json"), false_clue),
        (("game", "guess", *GUESS, "game4.json", "1047"), false_clue),
        (("game", "certify", *LATE, "game4.json", "--out", "new.json"), false_clue),
        (("game", "show", "game2.json"), exchange_proofs),
        (("game", "guess", *GUESS, "game2.json", "5726"), exchange_proofs),
        (("game", "clue", *CLUE, "game3.json"), exchange_proofs),
        (("game", "reveal", *LATE, "game6.json", "--out", "new.json"), exchange_proofs),
        (("game", "verify-reveal", "--game", "game6.json", "reveal.json"), exchange_proofs),
    ],
    ids=lambda value: value.__name__ if callable(value) else " ".join(value[:2]),
)
def test_a_false_transcript_exits_with_1(words: tuple[str, ...], change: Callable[[Any], None], files: Files) -> None:
    name = next(word for word in words if word.startswith("game") and word.endswith(".json"))
    changed(files[name], change)
    before = files[name].read_bytes()
    assert files.said(*words, expect=REJECTED).startswith("mastermind: rejected: ")
    assert files[name].read_bytes() == before
    assert not files["new.json"].exists()


def test_false_evidence_exits_with_1(files: Files) -> None:
    changed(files["certificate.json"], lambda document: document.update(master_id="5"))
    files.run("game", "verify-certificate", "certificate.json", expect=REJECTED)
    changed(files["reveal.json"], lambda document: document.update(secret=[1, 0, 7, 4]))
    files.run("game", "verify-reveal", "--game", "game6.json", "reveal.json", expect=REJECTED)


BAD_INPUT_CASES = {
    "no such game": ("game", "show", "missing.json"),
    "no game": ("game", "show", "master.json"),
    "no certificate": ("game", "verify-certificate", "game4.json"),
    "no reveal": ("game", "verify-reveal", "--game", "game6.json", "certificate.json"),
    "no player": ("game", "join", "--player", "secret.json", "--game", "game1.json"),
    "no secret": ("game", "clue", "--player", "master.json", "--secret", "master.json", "--game", "game3.json"),
    "no such step": ("game", "export", "--game", "game4.json", "--step", "4", "--out", "new.json"),
    "negative step": ("game", "export", "--game", "game4.json", "--step", "-1", "--out", "new.json"),
    "no such verifier": ("game", "verify", "game4.json", "--verifier", "mine"),
    "no such prover": ("game", "join", *GUESS, "game1.json", "--prover", "mine"),
    "no such command": ("game", "cheat"),
    "no such option": ("game", "show", "game4.json", "--cheat"),
    "no player named": ("game", "join", "--game", "game1.json"),
    "player file is there": ("player", "new", "--out", "master.json"),
    "game file is there": (
        *("game", "open", "--player", "master.json", "--random", "--game", "game1.json", "--secret", "new.json"),
    ),
    "secret file is there": (
        *("game", "open", "--player", "master.json", "--random", "--game", "new.json", "--secret", "secret.json"),
    ),
    "code and random": (
        *("game", "open", "--player", "master.json", "--random", "--code", "1047", "--game", "new.json"),
        *("--secret", "missing.json"),
    ),
    "illegal code": (
        *("game", "open", "--player", "master.json", "--code", "1044", "--game", "new.json"),
        *("--secret", "missing.json"),
    ),
    "rules that no game can have": (
        *("game", "open", "--rules", "9x9r9", "--player", "master.json", "--random", "--game", "new.json"),
        *("--secret", "missing.json"),
    ),
    "rules without keys": (
        *("game", "open", "--rules", "2x9r9", "--player", "master.json", "--random", "--game", "new.json"),
        *("--secret", "missing.json"),
    ),
}


@pytest.mark.parametrize("name", BAD_INPUT_CASES)
def test_bad_input_exits_with_2_and_changes_nothing(name: str, files: Files) -> None:
    before = {path.name: path.read_bytes() for path in files.folder.glob("*.json")}
    files.run(*BAD_INPUT_CASES[name], expect=BAD_INPUT)
    assert {path.name: path.read_bytes() for path in files.folder.glob("*.json")} == before


@pytest.mark.parametrize("name", ["game4.json", "certificate.json", "reveal.json"])
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"<html>", b"\xff\xfe", b"[" * 200_000])
def test_a_malformed_file_exits_with_2(name: str, data: bytes, files: Files) -> None:
    command: dict[str, tuple[str, ...]] = {
        "game4.json": ("game", "verify", "game4.json"),
        "certificate.json": ("game", "verify-certificate", "certificate.json"),
        "reveal.json": ("game", "verify-reveal", "--game", "game6.json", "reveal.json"),
    }
    files[name].write_bytes(data)
    assert files.said(*command[name], expect=BAD_INPUT).startswith("mastermind: ")


def test_evidence_under_unknown_keys_exits_with_2(files: Files) -> None:
    """What is not on this machine vouches for nothing; the sentence says what to do."""
    changed(files["game4.json"], lambda document: document.update(key_set_id="0" * 64))
    assert "import" in files.said("game", "verify", "game4.json", expect=BAD_INPUT)
    changed(files["certificate.json"], lambda document: document.update(key_set_id="../../evil"))
    files.run("game", "verify-certificate", "certificate.json", expect=BAD_INPUT)


def test_control_characters_of_a_file_do_not_reach_the_terminal(files: Files) -> None:
    changed(files["game4.json"], lambda document: document.update({"\x1b[2Jhello\r\n": 1}))
    said = files.said("game", "verify", "game4.json", expect=BAD_INPUT)
    assert "hello" in said
    assert "\x1b" not in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("name", ["master.json", "secret.json"])
@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_secret_files_that_others_can_read_exit_with_2(name: str, mode: int, files: Files) -> None:
    files[name].chmod(mode)
    said = files.said("game", "clue", *CLUE, "game3.json", expect=BAD_INPUT)
    assert "chmod 600" in said
    files[name].chmod(0o600)
    files.run("game", "clue", *CLUE, "game3.json")


def test_player_show_shows_the_id_alone(files: Files, game: Played) -> None:
    assert files.run("player", "show", "master.json").stdout == f"{game.master.id}\n"
    assert json.loads(files.run("player", "show", "master.json", "--json").stdout) == {"player_id": str(game.master.id)}


def test_com_4_a_random_secret_is_another_each_time(files: Files, game: Played) -> None:
    secrets = set()
    for number in range(3):
        files.run(
            *("game", "open", "--player", "master.json", "--random"),
            *("--game", str(files[f"g{number}"]), "--secret", str(files[f"s{number}"])),
        )
        record = GameSecret.read(files[f"s{number}"])
        secrets.add((record.secret, record.salt))
    assert len({salt for _, salt in secrets}) == 3
    assert len({code for code, _ in secrets}) > 1


# Mistyped

MISTYPED = [
    ("red,blue",),
    ("12a4",),
    ("",),
    (" ",),
    (),
    ("5", "7", "2"),
    ("5", "7", "2", "6", "0"),
    ("5", "7", "2", "8"),
    ("5", "7", "2", "5"),
    ("572",),
    ("57266",),
    ("5.7.2.6",),
    ("5", "7", "2", "1e0"),
    ("0x5", "7", "2", "6"),
    ("--", "-5", "7", "2", "6"),
    ("\uff15\uff17\uff12\uff16",),
    ("5", "7", "2", "\u0666"),
    ("9" * 5000,),
    ("5", "7", "2", "9" * 5000),
    ("5\x007\x002\x006",),
]


@pytest.mark.parametrize("code", MISTYPED, ids=repr)
def test_inp_5_a_mistyped_guess_exits_with_2_and_uses_no_turn(code: tuple[str, ...], files: Files) -> None:
    before = files["game2.json"].read_bytes()
    said = files.said("game", "guess", *GUESS, "game2.json", *code, expect=BAD_INPUT)
    assert said.startswith("mastermind: ")
    assert len(said) < 200
    assert files["game2.json"].read_bytes() == before


@pytest.mark.parametrize("code", [("5", "7", "2", "6"), ("5726",), ("5,7,2,6",), ("5 7", "2 6"), (" 5, 7, 2, 6 ",)])
def test_a_guess_can_be_typed_in_several_ways(code: tuple[str, ...], files: Files) -> None:
    answer = json.loads(files.run("game", "guess", *GUESS, "game2.json", *code, "--json").stdout)
    assert answer["guesses"] == [[5, 7, 2, 6]]


@pytest.mark.parametrize("code", ["red,blue", "12a4", "", "1044", "1048", "104", "10477"])
def test_inp_5_a_mistyped_secret_opens_no_game(code: str, files: Files) -> None:
    opening = ("game", "open", "--player", "master.json", "--game", "new.json", "--secret", "missing.json", "--code")
    said = files.said(*opening, code, expect=BAD_INPUT)
    assert code == "" or code not in said
    assert not files["new.json"].exists()
    assert not files["missing.json"].exists()


# Two at once


def test_rep_6_two_guesses_of_one_turn_are_not_answered_at_once(files: Files, game: Played) -> None:
    """A command that comes while another one answers waits for it, and then knows what has been answered."""
    other = game.table.make_guess(game.cut(2), game.breaker, (0, 1, 2, 3))
    other.write_new(files["other-guess.json"])
    secret_file = files["secret.json"]
    with FileLock(lock_path(secret_file)):
        process = subprocess.Popen(
            [COMMAND, "game", "clue", *CLUE, "other-guess.json"],
            cwd=files.folder,
            env={**os.environ, "MASTERMIND_HOME": str(files.home)},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(WAITING_S)
        replace(game.opened, game_id=game.kept.game_id, answered=((5, 7, 2, 6),)).replace(secret_file, game.master)
    said = process.communicate(timeout=TIMEOUT_S)[1]
    assert process.returncode == REJECTED, said
    assert Transcript.read(files["other-guess.json"]) == other
    # The guess that has been answered is answered again.
    files.run("game", "clue", *CLUE, "game3.json")


# At a terminal


class Terminal:
    """A command at a pseudo-terminal: what it shows is read, and answers are typed."""

    def __init__(self, argv: Sequence[str | Path], folder: Path, environment: dict[str, str]) -> None:
        self._descriptor, inner = pty.openpty()
        self.process = subprocess.Popen(
            argv, cwd=folder, env=environment, stdin=inner, stdout=inner, stderr=inner, start_new_session=True
        )
        os.close(inner)
        self.shown = ""

    def answer(self, question: str, text: str) -> None:
        """Wait for a question that has not been answered yet, and type an answer."""
        start = len(self.shown)
        while question not in self.shown[start:]:
            assert self._read(), f"waiting for {question!r}: {self.shown}"
        # What getpass shows before it turns the echo off would be typed too early.
        time.sleep(0.1)
        os.write(self._descriptor, text.encode())

    def end(self) -> int:
        """Read to the end and return the exit code."""
        while self._read():
            pass
        code = self.process.wait(TIMEOUT_S)
        os.close(self._descriptor)
        assert "Traceback" not in self.shown
        return code

    def _read(self) -> bool:
        ready, _, _ = select.select([self._descriptor], [], [], TIMEOUT_S)
        assert ready, f"nothing happens: {self.shown}"
        try:
            data = os.read(self._descriptor, 4096)
        except OSError:
            return False  # The other end is closed.
        self.shown += click.unstyle(data.decode("utf-8", "replace"))
        return bool(data)


@pytest.fixture
def terminal(files: Files) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def start(*words: str, **variables: str) -> Terminal:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("MASTERMIND")}
        environment = {**inherited, "MASTERMIND_HOME": str(files.home), "TERM": "dumb", **variables}
        opened.append(Terminal([COMMAND, *words], files.folder, environment))
        return opened[-1]

    yield start
    for one in opened:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def test_inp_5_a_mistyped_guess_is_asked_for_again(files: Files, terminal: Callable[..., Terminal]) -> None:
    at = terminal("game", "guess", *GUESS, "game2.json")
    for text in ("red,blue", "12a4", "", "5725", "5728", "572", "5726"):
        at.answer("Your guess", f"{text}\n")
    assert at.end() == ACCEPTED, at.shown
    state = Transcript.read(files["game2.json"]).state()
    assert state.guesses == ((5, 7, 2, 6),)


@pytest.mark.parametrize("key", ["end of file", "interrupt"])
def test_inp_5_leaving_at_the_question_uses_no_turn(key: str, files: Files, terminal: Callable[..., Terminal]) -> None:
    before = files["game2.json"].read_bytes()
    at = terminal("game", "guess", *GUESS, "game2.json")
    at.answer("Your guess", "\x04" if key == "end of file" else "57")
    if key == "interrupt":
        at.process.send_signal(signal.SIGINT)
    assert at.end() not in (ACCEPTED, None)
    assert files["game2.json"].read_bytes() == before


def test_a_secret_is_typed_unseen(files: Files, terminal: Callable[..., Terminal]) -> None:
    at = terminal("game", "open", "--player", "master.json", "--game", "new.json", "--secret", "kept.json")
    for text in ("red", "1044", "6253"):
        at.answer("Your secret", f"{text}\n")
    assert at.end() == ACCEPTED, at.shown
    assert GameSecret.read(files["kept.json"]).secret == (6, 2, 5, 3)
    for text in ("red", "1044", "6253", "6 2 5 3"):
        assert text not in at.shown
    assert b"6253" not in files["new.json"].read_bytes()[:300]


def test_an_encrypted_player_is_asked_for_the_passphrase(files: Files, terminal: Callable[..., Terminal]) -> None:
    at = terminal("player", "new", "--out", "locked.json", "--encrypt")
    at.answer("New passphrase", "one\n")
    at.answer("Repeat", "another\n")
    at.answer("New passphrase", "correct horse\n")
    at.answer("Repeat", "correct horse\n")
    assert at.end() == ACCEPTED, at.shown
    assert "correct horse" not in at.shown
    assert b'"private"' not in files["locked.json"].read_bytes()
    before = files["game1.json"].read_bytes()

    at = terminal("game", "join", "--player", "locked.json", "--game", "game1.json")
    at.answer("Passphrase of", "wrong horse\n")
    assert at.end() == BAD_INPUT
    assert files["game1.json"].read_bytes() == before

    at = terminal("game", "join", "--player", "locked.json", "--game", "game1.json")
    at.answer("Passphrase of", "correct horse\n")
    assert at.end() == ACCEPTED, at.shown
    assert "correct horse" not in at.shown
    identifier = files.run("player", "show", "locked.json").stdout.strip()
    assert str(Transcript.read(files["game1.json"]).state().breaker_id) == identifier


def test_an_encrypted_player_with_the_passphrase_in_the_environment(files: Files) -> None:
    files.run("player", "new", "--out", "new.json", "--encrypt", passphrase="correct horse")
    joining = ("game", "join", "--player", "new.json", "--game", "game1.json")
    files.run(*joining, expect=BAD_INPUT, passphrase="wrong horse")
    files.run(*joining, passphrase="correct horse")
    guessing = ("game", "guess", "--player", "new.json", "--game", "game1.json", "5726")
    files.run(*guessing, passphrase="correct horse")
    # What is not encrypted asks for nothing.
    files.run("game", "clue", *CLUE, "game1.json")


def test_an_encrypted_player_without_anybody_to_ask(files: Files, master: Person) -> None:
    """No terminal, no variable: bad input, and the sentence names the variable."""
    person = Person(files.folder, files.home)
    assert person.run("player", "new", "--out", "locked.json", "--encrypt", expect=BAD_INPUT) == ""
    assert not files["locked.json"].exists()
    with_variable = Person(files.folder, files.home, {"MASTERMIND_PASSPHRASE": "correct horse"})
    with_variable.run("player", "new", "--out", "locked.json", "--encrypt")
    person.run("game", "join", "--player", "locked.json", "--game", "game1.json", expect=BAD_INPUT)
    for said in (person.said[1], person.said[3]):
        assert said.startswith("mastermind: ")
        assert "MASTERMIND_PASSPHRASE" in said
        assert len(said.strip().splitlines()) == 1


def test_an_empty_passphrase_is_refused(files: Files) -> None:
    files.run("player", "new", "--out", "new.json", "--encrypt", expect=BAD_INPUT, passphrase="")
    assert not files["new.json"].exists()
