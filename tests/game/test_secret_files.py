"""Secret files and the secrets in them: who can read them, what they betray, and where they come from."""

from __future__ import annotations

import ast
import base64
import json
import os
import random
import stat
import traceback
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import mastermind
from mastermind.errors import InvalidCodeError, MastermindError, NotInFieldError, RefusedStepError, SecretFileError
from mastermind.field import MODULUS
from mastermind.game import secret_files
from mastermind.game.circuits import (
    MINIMUM_SALT,
    certify_game_inputs,
    give_clue_inputs,
    open_game_inputs,
    player_id,
    random_salt,
    solution_hash,
)
from mastermind.game.play import Table
from mastermind.game.secret_files import GameSecret, PlayerKey, read_player_id
from mastermind.game.transcript import write_json
from mastermind.packing import pack_code
from mastermind.poseidon import poseidon
from mastermind.rules import Rules
from mastermind.zk.archive import export_key_set
from mastermind.zk.evidence import canonical_json
from tests.game.games import Played
from tests.game.tamper import at, encode, mutations

RULES = Rules.parse("hit-and-blow")
MASTER = PlayerKey(16180339887498948482045868343656381177203091798057628621354486227052604628189)
RECORD = GameSecret(
    RULES,
    secret=(6, 2, 5, 3),
    salt=2718281828459045235360287471352662497757247093699959574966967627724076630353,
    game_id=12345,
    answered=((0, 1, 2, 3),),
)
PASSPHRASE = "correct horse battery staple"


def passphrase(_: Path) -> str:
    return PASSPHRASE


def never(path: Path) -> str:
    raise AssertionError(f"nobody has to be asked about {path}")


class Kind:
    """One of the two kinds of secret files, with what it is to hold."""

    def __init__(self, name: str) -> None:
        self.name = name

    def write(self, path: Path, secret: str | None = None) -> None:
        if self.name == "player":
            MASTER.write(path, secret)
        else:
            RECORD.write_new(path, MASTER, secret)

    def read(self, path: Path, ask: Callable[[Path], str] = never) -> PlayerKey | GameSecret:
        return PlayerKey.read(path, ask) if self.name == "player" else GameSecret.read(path, ask)

    @property
    def content(self) -> PlayerKey | GameSecret:
        return MASTER if self.name == "player" else RECORD

    @property
    def public(self) -> dict[str, str]:
        """The public part, with a false value for each field."""
        if self.name == "player":
            return {"player_id": str(player_id(5))}
        return {"rules": "4x9u7", "solution_hash": str(solution_hash(RULES, (0, 1, 2, 3), RECORD.salt, 5))}


@pytest.fixture(params=["player", "game secret"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return Kind(request.param)


@pytest.fixture
def quick_scrypt(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that open many files: what they test is not how long it takes."""
    monkeypatch.setattr(secret_files, "_SCRYPT_POWER", 4)


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def edit(path: Path, place: tuple[str, ...], value: object) -> None:
    """Put another value in a place of a JSON file, which keeps its mode."""
    document = json.loads(path.read_bytes())
    at(document, place[:-1])[place[-1]] = value
    path.write_text(json.dumps(document))


def refuses(read: Callable[[], object]) -> bool:
    try:
        read()
    except SecretFileError:
        return True
    return False


# Who can read them


@pytest.mark.usefixtures("no_umask")
def test_a_new_file_can_be_read_by_its_owner_only(kind: Kind, tmp_path: Path) -> None:
    """Whatever the umask: the mode is asked for, not what is left of 0666."""
    for secret in (None, PASSPHRASE):
        path = tmp_path / f"{secret}.json"
        kind.write(path, secret)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.usefixtures("no_umask")
def test_a_replaced_file_can_be_read_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    RECORD.write_new(path, MASTER)
    newer = replace(RECORD, answered=(*RECORD.answered, (3, 2, 1, 0)))
    newer.replace(path, MASTER)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert GameSecret.read(path) == newer
    assert [file.name for file in tmp_path.iterdir()] == ["secret.json"]


@pytest.mark.parametrize("bit", [0o040, 0o020, 0o010, 0o004, 0o002, 0o001], ids=oct)
def test_a_file_that_others_can_reach_is_refused(bit: int, kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    kind.write(path)
    for mode in (0o600, 0o400):
        path.chmod(mode)
        assert kind.read(path) == kind.content
        path.chmod(mode | bit)
        with pytest.raises(SecretFileError) as caught:
            kind.read(path)
        assert caught.value.path == path
    with pytest.raises(SecretFileError):
        RECORD.replace(path, MASTER)


def test_the_player_id_of_a_file_that_others_can_reach_is_not_shown_either(tmp_path: Path) -> None:
    path = tmp_path / "player.json"
    MASTER.write(path)
    assert read_player_id(path) == MASTER.id
    path.chmod(0o644)
    with pytest.raises(SecretFileError):
        read_player_id(path)


def test_a_file_is_never_written_over(kind: Kind, tmp_path: Path) -> None:
    path, link = tmp_path / "secret.json", tmp_path / "link.json"
    kind.write(path)
    content = path.read_bytes()
    link.symlink_to(path)
    (tmp_path / "dangling.json").symlink_to(tmp_path / "elsewhere.json")
    for target in (path, link, tmp_path / "dangling.json"):
        with pytest.raises(SecretFileError) as caught:
            kind.write(target, PASSPHRASE)
        assert caught.value.path == target
    assert path.read_bytes() == content
    assert not (tmp_path / "elsewhere.json").exists()


def test_a_file_that_cannot_be_made_or_read_is_refused(kind: Kind, tmp_path: Path) -> None:
    with pytest.raises(SecretFileError):
        kind.write(tmp_path / "missing" / "secret.json")
    for name in ("missing.json", "."):
        with pytest.raises(SecretFileError):
            kind.read(tmp_path / name)


def test_a_record_is_replaced_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a crash there is the old record or the new one: never half a secret."""
    path = tmp_path / "secret.json"
    RECORD.write_new(path, MASTER)

    def fail(_: int) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="disk full"):
            replace(RECORD, answered=()).replace(path, MASTER)
    assert GameSecret.read(path) == RECORD
    assert [file.name for file in tmp_path.iterdir()] == ["secret.json"]


# With a passphrase


def test_what_is_encrypted_comes_back(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    kind.write(path, PASSPHRASE)
    assert kind.read(path, passphrase) == kind.content
    for text in secret_texts():
        assert text not in path.read_bytes().lower()


def test_a_replaced_record_stays_encrypted(tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    RECORD.write_new(path, MASTER, PASSPHRASE)
    before = json.loads(path.read_bytes())["encrypted"]
    newer = replace(RECORD, answered=())
    newer.replace(path, MASTER, passphrase)
    after = json.loads(path.read_bytes())["encrypted"]
    assert GameSecret.read(path, passphrase) == newer
    # A nonce is used once.
    assert before["kdf"]["salt"] != after["kdf"]["salt"]
    assert before["cipher"]["nonce"] != after["cipher"]["nonce"]


@pytest.mark.parametrize("other", ["", "correct horse battery stapl", "Correct horse battery staple", f"{PASSPHRASE} "])
def test_another_passphrase_is_refused(other: str, kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    kind.write(path, PASSPHRASE)
    with pytest.raises(SecretFileError) as caught:
        kind.read(path, lambda _: other)
    assert caught.value.path == path


def test_without_anybody_to_ask_it_stays_closed(tmp_path: Path) -> None:
    MASTER.write(tmp_path / "player.json", PASSPHRASE)
    RECORD.write_new(tmp_path / "secret.json", MASTER, PASSPHRASE)
    with pytest.raises(SecretFileError):
        PlayerKey.read(tmp_path / "player.json")
    with pytest.raises(SecretFileError):
        GameSecret.read(tmp_path / "secret.json")
    # The id is public.
    assert read_player_id(tmp_path / "player.json") == MASTER.id


@pytest.mark.parametrize("text", ["pässwörd 密码", "\udcff\udcfe", "\x00", "x" * 10_000])
def test_any_passphrase_will_do(text: str, tmp_path: Path) -> None:
    """Bytes that are no UTF-8 come out of the environment as lone surrogates."""
    MASTER.write(tmp_path / "player.json", text)
    assert PlayerKey.read(tmp_path / "player.json", lambda _: text) == MASTER


@pytest.mark.usefixtures("quick_scrypt")
def test_the_public_part_is_authenticated(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    kind.write(path, PASSPHRASE)
    original = path.read_text()
    for name, value in {**kind.public, "note": "1"}.items():
        edit(path, (name,), value)
        with pytest.raises(SecretFileError):
            kind.read(path, passphrase)
        path.write_text(original)
        assert kind.read(path, passphrase) == kind.content


@pytest.mark.usefixtures("quick_scrypt")
def test_every_change_of_an_encrypted_file_is_refused(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    kind.write(path, PASSPHRASE)
    document = json.loads(path.read_bytes())
    count = 0
    for mutation in mutations(document):
        path.write_bytes(mutation.data)
        if mutation.path[:1] == ("encrypted",) and same_bytes(mutation.data, document, mutation.path):
            continue
        assert refuses(lambda: kind.read(path, passphrase)), mutation
        count += 1
    assert count > 100
    path.write_bytes(encode(document))
    assert kind.read(path, passphrase) == kind.content


def same_bytes(data: bytes, document: dict[str, Any], path: tuple[str | int, ...]) -> bool:
    """Whether a change left the hex digits of a leaf worth the same (capitals, a space), or a power that is equal."""
    one: object = at(document, path)
    other: object = at(json.loads(data), path)
    if isinstance(one, str) and isinstance(other, str):
        return one != "scrypt" and other.lower().split() == [one]
    if isinstance(one, int) and not isinstance(other, str | dict | list | None):
        return one == other
    return isinstance(one, dict) and isinstance(other, dict) and {**other, **one} == other


@pytest.mark.parametrize("digit", range(0, 200, 7))
@pytest.mark.usefixtures("quick_scrypt")
def test_a_damaged_ciphertext_is_refused(digit: int, kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    kind.write(path, PASSPHRASE)

    data = json.loads(path.read_bytes())["encrypted"]["data"]
    flipped = f"{int(data[digit], 16) ^ 1:x}"
    edit(path, ("encrypted", "data"), data[:digit] + flipped + data[digit + 1 :])
    with pytest.raises(SecretFileError):
        kind.read(path, passphrase)
    edit(path, ("encrypted", "data"), data)
    assert kind.read(path, passphrase) == kind.content


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("power", value) for value in (16, 40, 10**18, -1, "15", None)),
        *(("r", value) for value in (0, 1 << 20)),
        *(("p", value) for value in (2, 1 << 20)),
        *(("name", value) for value in ("none", "pbkdf2")),
    ],
)
def test_a_key_derivation_that_costs_what_its_author_likes_is_refused(
    name: str, value: object, kind: Kind, tmp_path: Path
) -> None:
    path = tmp_path / "secret.json"
    kind.write(path, PASSPHRASE)
    edit(path, ("encrypted", "kdf", name), value)
    with pytest.raises(SecretFileError):
        kind.read(path, never)


def test_an_encrypted_part_of_another_file_does_not_fit(tmp_path: Path) -> None:
    """Two players with one passphrase: the parts of their files do not mix."""
    other = PlayerKey(5)
    MASTER.write(tmp_path / "one.json", PASSPHRASE)
    other.write(tmp_path / "other.json", PASSPHRASE)
    theirs = json.loads((tmp_path / "other.json").read_bytes())["encrypted"]
    edit(tmp_path / "one.json", ("encrypted",), theirs)
    with pytest.raises(SecretFileError):
        PlayerKey.read(tmp_path / "one.json", passphrase)


@pytest.mark.usefixtures("quick_scrypt")
@pytest.mark.parametrize("private", [[], "x", None, {}])
def test_an_encrypted_part_that_is_no_record_is_refused(
    private: Any, kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever knows the passphrase can seal anything."""
    path = tmp_path / "secret.json"

    def sealed(value: dict[str, Any]) -> bytes:
        return canonical_json(value if "format" in value else private)

    with monkeypatch.context() as patch:
        patch.setattr(secret_files, "canonical_json", sealed)
        kind.write(path, PASSPHRASE)
    assert refuses(lambda: kind.read(path, passphrase))


# Damaged


def test_a_key_that_is_not_its_players_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "player.json"
    for place, value in ((("player_id",), str(player_id(5))), (("private", "key"), "5")):
        path.unlink(missing_ok=True)
        MASTER.write(path)
        edit(path, place, value)
        with pytest.raises(SecretFileError):
            PlayerKey.read(path)


def test_every_change_of_a_player_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "player.json"
    MASTER.write(path)
    document = json.loads(path.read_bytes())
    count = 0
    for mutation in mutations(document):
        if mutation.change == "with one more":
            continue
        path.write_bytes(mutation.data)
        assert refuses(lambda: PlayerKey.read(path)), mutation
        count += 1
    assert count > 50
    path.write_bytes(encode(document))
    assert PlayerKey.read(path) == MASTER


def test_every_change_of_a_game_secret_is_refused_here_or_by_the_game(
    lost_game: Played, table: Table, tmp_path: Path
) -> None:
    """Without the master's key nothing ties the file to its game; with it, the commitment does."""
    path = tmp_path / "secret.json"
    lost_game.opened.write_new(path, lost_game.master)
    document = json.loads(path.read_bytes())
    kinds = {"file": 0, "game": 0}
    for mutation in mutations(document):
        path.write_bytes(mutation.data)
        # The commitment in the file is for people to look at; the one that counts is in the transcript.
        if mutation.change == "with one more" or "solution_hash" in str(mutation) or "game_id" in str(mutation):
            continue
        try:
            record = GameSecret.read(path)
        except SecretFileError:
            kinds["file"] += 1
            continue
        if (record.secret, record.salt) == (lost_game.opened.secret, lost_game.opened.salt):
            # Other rules under which the secret is a code as well, or another list of answers.
            assert record != lost_game.opened, mutation
            continue
        with pytest.raises((RefusedStepError, NotInFieldError)):
            table.certify(lost_game.transcript, lost_game.master, record)
        kinds["game"] += 1
    assert kinds["file"] > 70
    assert kinds["game"] > 5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("secret", code) for code in ([6, 2, 5], [6, 2, 5, 3, 1], [6, 2, 5, 5], [6, 2, 5, 8], "6253", 6253)),
        ("secret", ["6", "2", "5", "3"]),
        *(("salt", salt) for salt in (123456789012345678901234567890, 1234567890123456, f"0{RECORD.salt}")),
        ("salt", str(RECORD.salt + MODULUS)),
        *(("answered", guesses) for guesses in ([[0, 1, 2]], [[0, 1, 2, 2]], None, 7)),
        ("game_id", 12345),
        ("game_id", "-1"),
    ],
)
def test_inp_1_and_inp_3_a_malformed_record_is_refused(name: str, value: object, tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    RECORD.write_new(path, MASTER)
    private = json.loads(path.read_bytes())["private"]
    edit(path, ("private", name), value)
    assert refuses(lambda: GameSecret.read(path))
    edit(path, ("private",), {other: private[other] for other in private if other != name})
    assert refuses(lambda: GameSecret.read(path))
    edit(path, ("private",), private)
    assert GameSecret.read(path) == RECORD


@pytest.mark.parametrize("data", [b"", b"{", b"null", b"[]", b"{}", b"\xff\xfe\x00", b'{"format": 1e5}', b"<html>"])
def test_junk_is_refused(data: bytes, kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    kind.write(path)
    path.write_bytes(data)
    with pytest.raises(SecretFileError) as caught:
        kind.read(path)
    assert caught.value.path == path


def test_a_file_of_the_other_kind_is_refused(tmp_path: Path) -> None:
    MASTER.write(tmp_path / "player.json")
    RECORD.write_new(tmp_path / "secret.json", MASTER)
    with pytest.raises(SecretFileError):
        GameSecret.read(tmp_path / "player.json")
    with pytest.raises(SecretFileError):
        PlayerKey.read(tmp_path / "secret.json")


def test_a_huge_file_is_not_read(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    kind.write(path)
    with path.open("r+b") as file:
        file.truncate(1 << 34)
    with pytest.raises(SecretFileError):
        kind.read(path)


# What they betray


def secret_texts(*numbers: int) -> set[bytes]:
    """Ways in which the secret numbers might be written: decimal, hex, bytes either way round, base64, Montgomery."""
    texts = set()
    for number in numbers or (MASTER.key, RECORD.salt):
        for value in (number, number * (1 << 256) % MODULUS):
            big, little = value.to_bytes(32, "big"), value.to_bytes(32, "little")
            texts |= {str(value).encode(), f"{value:x}".encode(), little.hex().encode(), big.lower(), little.lower()}
            texts |= {base64.b64encode(big).rstrip(b"=").lower(), base64.b64encode(little).rstrip(b"=").lower()}
    return texts


def betrayed(content: bytes, *numbers: int) -> bool:
    return any(text in content.lower() for text in secret_texts(*numbers))


def test_the_search_finds_what_it_looks_for() -> None:
    key = MASTER.key
    found = [str(key).encode(), f"{key:X}".encode(), key.to_bytes(32, "little"), key.to_bytes(32, "big")]
    assert all(betrayed(b"x" + text + b"y") for text in found)
    assert not betrayed(str(MASTER.id).encode())


def test_nothing_secret_is_in_a_repr() -> None:
    for shown in (f"{MASTER!r} {MASTER}", f"{RECORD!r} {RECORD}", f"{[MASTER]} {(RECORD,)}"):
        assert not betrayed(shown.encode())
        assert "6, 2, 5, 3" not in shown


def everything_about(error: BaseException) -> bytes:
    """All that a log of an error could hold: its text, its facts, and those of its causes."""
    text = "".join(traceback.format_exception(error))
    while True:
        text += f"{error!r} {error} {vars(error)!r}"
        cause = error.__cause__ or error.__context__
        if cause is None:
            return text.encode()
        error = cause


def failures(tmp_path: Path, table: Table) -> Iterator[Callable[[], object]]:
    """Things that go wrong with secrets at hand."""
    player, secret = tmp_path / "player.json", tmp_path / "secret.json"
    MASTER.write(player)
    RECORD.write_new(secret, MASTER)
    yield lambda: MASTER.write(player)
    yield lambda: RECORD.write_new(secret, MASTER)
    reads: list[tuple[Path, str, Callable[[Path], object]]] = [
        (player, "key", PlayerKey.read),
        (secret, "salt", GameSecret.read),
    ]
    for path, name, read in reads:
        original = path.read_text()
        value = json.loads(original)["private"][name]
        for changed in (f"0{value}", f"{value}0", f"-{value}", f"{value}.0", f"{value} "):
            edit(path, ("private", name), changed)
            yield partial(read, path)
            path.write_text(original)
        path.write_text(original[:-5])
        yield partial(read, path)
        path.write_text(original)
        path.chmod(0o644)
        yield partial(read, path)
        path.chmod(0o600)
    MASTER.write(tmp_path / "encrypted.json", PASSPHRASE)
    yield lambda: PlayerKey.read(tmp_path / "encrypted.json", lambda _: "wrong")
    yield lambda: table.open_game(MASTER, (*RECORD.secret[:3], 5))
    yield lambda: table.open_game(MASTER, (*RECORD.secret, 9))
    yield lambda: solution_hash(RULES, RECORD.secret, RECORD.salt + MODULUS, MASTER.key)
    yield lambda: solution_hash(RULES, RECORD.secret, RECORD.salt, MASTER.key + MODULUS)
    inputs = open_game_inputs(RULES, RECORD.secret, RECORD.salt, MASTER.key % MODULUS)
    circuit = table.key_set["open_game"]
    yield lambda: table.prover.prove(circuit, {**inputs, "master_id": 5})
    yield lambda: table.prover.prove(circuit, {**inputs, "salt": RECORD.salt + MODULUS})
    yield lambda: table.prover.prove(circuit, {**inputs, "secret": [*RECORD.secret, RECORD.secret[0]]})
    yield lambda: table.prover.prove(circuit, {**inputs, "solution_hash": 5})


def test_nothing_secret_is_in_an_error(table: Table, tmp_path: Path) -> None:
    count = 0
    for fail in failures(tmp_path, table):
        with pytest.raises(MastermindError) as caught:
            fail()
        text = everything_about(caught.value)
        # `doc` of a JSON error is the whole file: only its own message is ever shown.
        text = text.replace(repr(getattr(caught.value.__cause__, "doc", None)).encode(), b"")
        assert not betrayed(text), caught.value
        assert PASSPHRASE.encode() not in text
        assert b"6, 2, 5, 3" not in text
        assert b"6253" not in text
        count += 1
    assert count > 20


def test_com_8_nothing_secret_is_in_the_public_files(lost_game: Played, tmp_path: Path) -> None:
    """Everything that leaves the master's hands, up to the opening of the secret - which opens that alone."""
    game, secret = lost_game, lost_game.kept.secret
    key, salt = game.master.key, game.kept.salt
    game.transcript.write_new(tmp_path / "game.json")
    write_json(tmp_path / "certificate.json", game.table.certify(game.transcript, game.master, game.kept).to_json())
    before = sorted(tmp_path.glob("*.json"))
    write_json(tmp_path / "reveal.json", game.table.reveal(game.transcript, game.master, game.kept).to_json())
    export_key_set(game.table.key_set, tmp_path / "keys")
    contents = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != "keys"}
    with zipfile.ZipFile(tmp_path / "keys") as archive:
        contents |= {name: archive.read(name) for name in archive.namelist()}
    assert len(contents) > 20
    for name, content in contents.items():
        assert not betrayed(content, key, salt, game.breaker.key), name
    # The code itself has few digits, so it is looked for among the values: packed, as a list, and as a name.
    packed = pack_code(game.table.rules, secret)
    for path in before:
        values = set(leaves(json.loads(path.read_bytes())))
        assert not values & {packed, str(packed), tuple(secret), "".join(map(str, secret))}, path
    # The search would find it: the guesses are there in the same form.
    assert str(pack_code(game.table.rules, (5, 7, 2, 6))) in set(leaves(game.transcript.to_json()))
    assert tuple(secret) in set(leaves(json.loads((tmp_path / "reveal.json").read_bytes())))


def leaves(value: Any) -> Iterator[object]:
    """All values in a document, and its lists of integers."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from leaves(item)
    elif isinstance(value, list):
        if all(isinstance(item, int) for item in value):
            yield tuple(value)
        for item in value:
            yield from leaves(item)
    else:
        yield value


def test_com_8_the_masters_files_stay_with_the_master(tmp_path: Path) -> None:
    """The search again, on the files that do hold the secrets."""
    MASTER.write(tmp_path / "player.json")
    RECORD.write_new(tmp_path / "secret.json", MASTER)
    assert betrayed((tmp_path / "player.json").read_bytes(), MASTER.key)
    assert betrayed((tmp_path / "secret.json").read_bytes(), RECORD.salt)
    assert not betrayed((tmp_path / "secret.json").read_bytes(), MASTER.key)


# Where secrets come from


def test_com_1_and_com_2_a_salt_below_2_120_is_refused() -> None:
    key, code, guess = 7, (6, 2, 5, 3), (0, 1, 2, 3)
    makers: list[Callable[[int], object]] = [
        lambda salt: solution_hash(RULES, code, salt, key),
        lambda salt: open_game_inputs(RULES, code, salt, key),
        lambda salt: give_clue_inputs(RULES, game_id=1, turn_count=2, guess=guess, secret=code, salt=salt, key=key),
        lambda salt: certify_game_inputs(RULES, game_id=1, guesses=[guess], secret=code, salt=salt, key=key),
    ]
    for make in makers:
        make(MINIMUM_SALT)
        for salt in (0, 1, 50, 2**32, MINIMUM_SALT - 1):
            with pytest.raises(NotInFieldError):
                make(salt)
    assert MINIMUM_SALT == 2**120


def test_com_2_a_record_with_a_short_salt_is_neither_kept_nor_used(
    lost_game: Played, table: Table, tmp_path: Path
) -> None:
    short = replace(lost_game.kept, salt=50)
    with pytest.raises(NotInFieldError):
        short.write_new(tmp_path / "secret.json", lost_game.master)
    assert not (tmp_path / "secret.json").exists()
    with pytest.raises(NotInFieldError):
        table.certify(lost_game.transcript, lost_game.master, short)


def test_com_2_a_thousand_salts_are_distinct_and_long() -> None:
    salts = {random_salt() for _ in range(1000)}
    assert len(salts) == 1000
    assert all(MINIMUM_SALT <= salt < MODULUS for salt in salts)


def test_com_1_trying_all_codes_finds_nothing(lost_game: Played) -> None:
    """With the salt it would; without it the commitment fits no code."""
    rules, master = lost_game.table.rules, lost_game.master
    commitment = lost_game.transcript.state().solution_hash
    secret = lost_game.kept.secret
    assert solution_hash(rules, secret, lost_game.kept.salt, master.key) == commitment
    for code in [secret, (0, 1, 2, 3), (7, 6, 5, 4), *(rules.random_code() for _ in range(50))]:
        packed = pack_code(rules, code)
        guesses = {
            poseidon(packed),
            poseidon(packed, master.id),
            poseidon(packed, 0, master.id),
            poseidon(packed, 0, 0),
        }
        assert commitment not in guesses


def test_com_1_the_same_code_is_never_committed_to_alike(table: Table) -> None:
    hashes = {table.open_game(MASTER_OF_TWO, (1, 0, 4, 7))[0].state().solution_hash for _ in range(5)}
    assert len(hashes) == 5


MASTER_OF_TWO = PlayerKey(7)


def test_com_4_a_predictable_generator_changes_nothing(
    table: Table, lost_game: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    def constant(*_: object, **__: object) -> int:
        return 4

    functions = [name for name in random.__all__ if name[0].islower()]
    assert {"random", "randrange", "randint", "getrandbits", "choice", "sample"} <= set(functions)
    for name in functions:
        monkeypatch.setattr(random, name, constant)
    for name in ("random", "getrandbits", "randbytes"):
        # Of the predictable class as well: the system's generator has methods of its own.
        monkeypatch.setattr(random.Random, name, constant)
    assert random.random() == random.getrandbits(64) == random.choice([1, 2]) == random.Random(1).random() == 4
    assert len({PlayerKey.new().key for _ in range(20)}) == 20
    assert len({random_salt() for _ in range(20)}) == 20
    for rules in (RULES, Rules.parse("classic")):
        assert len({rules.random_code() for _ in range(50)}) > 20
    opened = lost_game.cut(1)
    assert len({table.join_game(opened, MASTER_OF_TWO).steps[1].step.nonce for _ in range(3)}) == 3


def test_com_4_no_secret_path_imports_a_predictable_generator() -> None:
    """The demonstration may: it repeats a board on request."""
    package = Path(mastermind.__file__).parent
    paths = [package / "rules.py", package / "field.py", *(package / "game").glob("*.py")]
    paths += [*(package / "zk").glob("*.py"), package / "cli" / "games.py", package / "cli" / "players.py"]
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = node.module if isinstance(node, ast.ImportFrom) else ""
            assert not {"random", "numpy"} & {*names, module}, path
    assert len(paths) > 20


@pytest.mark.parametrize("guess", [(6, 2, 5), (6, 2, 5, 5)])
def test_an_illegal_code_is_not_repeated(guess: tuple[int, ...], table: Table) -> None:
    with pytest.raises(InvalidCodeError) as caught:
        table.open_game(MASTER_OF_TWO, guess)
    assert not any(str(digit) in str(caught.value) for digit in (6, 2))


def test_rep_6_the_record_of_answers_has_one_file_whatever_its_name(tmp_path: Path) -> None:
    """Through a symbolic link the file behind it is written; a file with two names is refused."""
    rules, master = Rules.parse("hit-and-blow"), PlayerKey.new()
    path, link, hard = tmp_path / "s.json", tmp_path / "link.json", tmp_path / "hard.json"
    kept = GameSecret(rules, (7, 4, 6, 0), random_salt())
    kept.write_new(path, master)
    link.symlink_to(path)
    replace(kept, game_id=1, answered=((0, 1, 2, 3),)).replace(link, master)
    assert link.is_symlink()
    assert GameSecret.read(path).answered == GameSecret.read(link).answered == ((0, 1, 2, 3),)
    hard.hardlink_to(path)
    with pytest.raises(SecretFileError):
        GameSecret.read(path)
    hard.unlink()
    assert GameSecret.read(path)
