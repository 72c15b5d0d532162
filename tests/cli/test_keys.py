"""Key sets on their way to another machine: what arrives is what was sent, or nothing."""

from __future__ import annotations

import hashlib
import json
import random
import struct
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mastermind.cli.main import main
from mastermind.errors import InsecureKeyError, InvalidArtifactError, InvalidInputError
from mastermind.game.circuits import specs
from mastermind.game.play import Table
from mastermind.game.transcript import VerifyingKeys
from mastermind.rules import Rules
from mastermind.zk import archive
from mastermind.zk.archive import INDEX, export_key_set, import_key_set
from mastermind.zk.artifacts import MANIFEST, VERIFYING_KEY, ArtifactStore, KeySet
from mastermind.zk.circuit import CircuitSpec
from mastermind.zk.evidence import VerifyingKey, key_set_id
from mastermind.zk.prove import NativeProver
from mastermind.zk.tools import Toolchain
from mastermind.zk.verify import NativeVerifier
from tests.game.games import build_other_key_set, play
from tests.game.tamper import at

RULES = Rules.parse("hit-and-blow")
CIRCUITS = ("authorise", "open_game", "make_guess", "give_clue", "certify_game")

#: The files of an archive by name.
Content = dict[str, bytes]


@pytest.fixture(scope="module")
def exported(hit_and_blow: KeySet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exported") / "hit-and-blow.keys"
    export_key_set(hit_and_blow, path)
    return path


@pytest.fixture(scope="module")
def content(exported: Path) -> Content:
    """Copy before tampering."""
    with zipfile.ZipFile(exported) as file:
        return {name: file.read(name) for name in file.namelist()}


@pytest.fixture(scope="module")
def others(store: ArtifactStore, toolchain: Toolchain, hit_and_blow: KeySet) -> KeySet:
    """Another key set for the same rules, made elsewhere."""
    return build_other_key_set(store, RULES)[1]


@pytest.fixture
def home(tmp_path: Path) -> ArtifactStore:
    """A machine without any keys."""
    return ArtifactStore(tmp_path / "home")


def packed(path: Path, content: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, data in content.items():
            file.writestr(name, data)
    return path


def specs_of(name: str) -> tuple[CircuitSpec, ...]:
    assert name == RULES.spelling
    return specs(RULES)


def take(store: ArtifactStore, path: Path) -> KeySet:
    return import_key_set(store, path, specs_of)[0]


def tree(store: ArtifactStore) -> dict[str, bytes | None]:
    """All there is in a home, lock files aside."""
    paths = sorted(path for path in store.home.rglob("*") if path.suffix != ".lock")
    return {str(path.relative_to(store.home)): path.read_bytes() if path.is_file() else None for path in paths}


def refused(store: ArtifactStore, path: Path) -> InvalidInputError:
    """The error for an archive that is not taken; the store is as it was."""
    store.home.mkdir(exist_ok=True)
    before = tree(store)
    around = sorted(path.parent.iterdir())
    with pytest.raises(InvalidInputError) as caught:
        take(store, path)
    assert tree(store) == before
    assert sorted(path.parent.iterdir()) == around
    return caught.value


def folder_of(content: Content, circuit: str) -> str:
    return str(json.loads(content[INDEX])["circuits"][circuit])


def signed_again(
    content: Content,
    circuit: str,
    files: Mapping[str, bytes] | None = None,
    edit: Callable[[dict[str, Any]], object] = lambda _: None,
) -> Content:
    """The archive of someone who changes files or the manifest of a circuit and makes all digests fit."""
    index = json.loads(content[INDEX])
    digest = index["circuits"][circuit]
    own = {name.removeprefix(f"{digest}/"): data for name, data in content.items() if name.startswith(digest)}
    rest = {name: data for name, data in content.items() if not name.startswith(digest) and name != INDEX}
    manifest = json.loads(own.pop(MANIFEST))
    own |= files or {}
    manifest["files"] = {name: hashlib.sha256(data).hexdigest() for name, data in own.items()}
    edit(manifest)
    own[MANIFEST] = json.dumps(manifest).encode()
    index["circuits"][circuit] = hashlib.sha256(own[MANIFEST]).hexdigest()
    return {
        INDEX: json.dumps(index).encode(),
        **rest,
        **{f"{index['circuits'][circuit]}/{name}": data for name, data in own.items()},
    }


def with_index(content: Content, **changes: object) -> Content:
    index = json.loads(content[INDEX]) | changes
    return {**content, INDEX: json.dumps({name: value for name, value in index.items() if value is not None}).encode()}


# There and back


def test_the_same_key_set_arrives(
    exported: Path, home: ArtifactStore, hit_and_blow: KeySet, native_prover: NativeProver
) -> None:
    arrived, previous = import_key_set(home, exported, specs_of)
    assert previous is None
    assert (arrived.id, arrived.artifacts) == (hit_and_blow.id, hit_and_blow.artifacts)
    assert home.load_key_set(RULES.spelling, specs(RULES)) == arrived
    assert home.load_key_set(RULES.spelling, specs(RULES), hit_and_blow.id) == arrived
    # What is proved there is accepted here.
    game = play(Table(RULES, arrived, native_prover), (1, 0, 4, 7), [(1, 0, 4, 7)])
    assert game.transcript.verify(VerifyingKeys.of(hit_and_blow, RULES), NativeVerifier()).solved


def test_an_archive_of_what_arrived_is_the_same_file(exported: Path, home: ArtifactStore, tmp_path: Path) -> None:
    export_key_set(take(home, exported), tmp_path / "again.keys")
    assert (tmp_path / "again.keys").read_bytes() == exported.read_bytes()


def test_importing_twice_changes_nothing(exported: Path, home: ArtifactStore) -> None:
    take(home, exported)
    before = tree(home)
    arrived, previous = import_key_set(home, exported, specs_of)
    assert previous == arrived.id
    assert tree(home) == before


def test_everything_that_is_used_is_in_the_archive(content: Content, hit_and_blow: KeySet) -> None:
    assert set(json.loads(content[INDEX])["circuits"]) == set(CIRCUITS)
    for name, circuit in hit_and_blow.circuits.items():
        for suffix in ("r1cs", "wasm", "zkey", "sym"):
            assert f"{circuit.digest}/{name}.{suffix}" in content
        assert f"{circuit.digest}/{VERIFYING_KEY}" in content


def test_an_archive_packed_anew_is_accepted(content: Content, home: ArtifactStore, tmp_path: Path) -> None:
    """The twin of all that is refused below."""
    take(home, packed(tmp_path / "a.keys", content))
    for circuit in CIRCUITS:
        again = packed(tmp_path / "b.keys", signed_again(content, circuit))
        assert take(ArtifactStore(tmp_path / circuit), again).id == json.loads(content[INDEX])["key_set_id"]


# Changed on the way


def test_art_4_one_changed_byte_in_any_file_is_refused(content: Content, home: ArtifactStore, tmp_path: Path) -> None:
    for name, data in content.items():
        middle = len(data) // 2
        changed = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        error = refused(home, packed(tmp_path / "a.keys", {**content, name: changed}))
        if name.rpartition("/")[2] not in (INDEX, MANIFEST):
            # Refused for its digest, by name.
            assert isinstance(error, InvalidArtifactError)
            assert error.path.name == name.rpartition("/")[2]
    assert len(content) > 40


def test_any_file_missing_is_refused(content: Content, home: ArtifactStore, tmp_path: Path) -> None:
    folder = folder_of(content, "give_clue")
    names = [name for name in content if name == INDEX or name.startswith(folder)]
    assert len(names) > 8
    for name in names:
        rest = {other: data for other, data in content.items() if other != name}
        assert isinstance(refused(home, packed(tmp_path / "a.keys", rest)), InvalidArtifactError)


@pytest.mark.parametrize(
    "name", ["note.txt", "FOLDER/note.txt", "FOLDER/source/", "0" * 64 + "/manifest.json", "manifest.json"]
)
def test_a_file_that_belongs_to_nothing_is_refused(
    name: str, content: Content, home: ArtifactStore, tmp_path: Path
) -> None:
    name = name.replace("FOLDER", folder_of(content, "give_clue"))
    error = refused(home, packed(tmp_path / "a.keys", {**content, name: b"x" if not name.endswith("/") else b""}))
    assert isinstance(error, InvalidArtifactError)


OUTSIDE = ("../evil", "../../evil", "ROOT/evil", "FOLDER/../../evil", "FOLDER/../evil", "FOLDER/source/../../../evil")


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_name_that_leads_out_of_the_store_is_refused(
    name: str, content: Content, home: ArtifactStore, tmp_path: Path
) -> None:
    """As an entry of the archive, and listed by a manifest whose digests all fit."""
    name = name.replace("ROOT", str(tmp_path))
    entry = name.replace("FOLDER", folder_of(content, "give_clue"))
    refused(home, packed(tmp_path / "a.keys", {**content, entry: b"evil"}))
    listed = signed_again(content, "give_clue", {name.removeprefix("FOLDER/"): b"evil"})
    refused(home, packed(tmp_path / "a.keys", listed))
    assert not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize("name", ["", ".", "source", "manifest.json", "a" * 5000, "x\x00y", "give_clue.zkey/x"])
def test_a_manifest_that_lists_what_no_file_is_called_is_refused(
    name: str, content: Content, home: ArtifactStore, tmp_path: Path
) -> None:
    def edit(manifest: dict[str, Any]) -> None:
        manifest["files"][name] = hashlib.sha256(b"x").hexdigest()

    listed = signed_again(content, "give_clue", edit=edit)
    folder = folder_of(listed, "give_clue")
    refused(home, packed(tmp_path / "a.keys", listed))
    if name not in ("manifest.json", "x\x00y"):
        refused(home, packed(tmp_path / "a.keys", {**listed, f"{folder}/{name}": b"x"}))


def test_a_lone_surrogate_in_a_name_is_refused(content: Content, home: ArtifactStore, tmp_path: Path) -> None:
    def edit(manifest: dict[str, Any]) -> None:
        manifest["files"]["\ud800"] = "0" * 64

    refused(home, packed(tmp_path / "a.keys", signed_again(content, "give_clue", edit=edit)))


def test_an_entry_that_is_there_twice_is_refused(content: Content, home: ArtifactStore, tmp_path: Path) -> None:
    path = packed(tmp_path / "a.keys", content)
    name = f"{folder_of(content, 'give_clue')}/{VERIFYING_KEY}"
    with zipfile.ZipFile(path, "a") as file, pytest.warns(UserWarning, match="Duplicate name"):
        file.writestr(name, content[name])
    assert isinstance(refused(home, path), InvalidArtifactError)


# Large or no archive at all


def test_an_archive_that_unpacks_to_more_than_the_bound_is_refused(
    content: Content, home: ArtifactStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = packed(tmp_path / "a.keys", content)
    total = sum(len(data) for data in content.values())
    assert total < archive.MAX_BYTES // 4
    monkeypatch.setattr(archive, "MAX_BYTES", total - 1)
    assert isinstance(refused(home, path), InvalidArtifactError)
    monkeypatch.setattr(archive, "MAX_BYTES", total)
    take(home, path)


def test_a_zip_bomb_is_not_unpacked(content: Content, home: ArtifactStore, tmp_path: Path) -> None:
    """Half a gigabyte of zeros in a listed file, whose manifest agrees: refused by what the archive says it holds."""
    name = f"{folder_of(content, 'give_clue')}/give_clue.wasm"
    path = packed(tmp_path / "a.keys", {key: data for key, data in content.items() if key != name})
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as file, file.open(name, "w") as entry:
        for _ in range(archive.MAX_BYTES // (1 << 24) + 1):
            entry.write(bytes(1 << 24))
    assert path.stat().st_size < 1 << 25
    tracemalloc.start()
    try:
        assert isinstance(refused_quietly(home, path), InvalidArtifactError)
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


def refused_quietly(store: ArtifactStore, path: Path) -> InvalidInputError:
    """As `refused`, without looking at what is in the home before and after."""
    with pytest.raises(InvalidInputError) as caught:
        take(store, path)
    assert list(store.home.iterdir()) == []
    return caught.value


def test_an_entry_that_holds_more_than_it_says_is_not_unpacked(home: ArtifactStore, tmp_path: Path) -> None:
    path = packed(tmp_path / "a.keys", {INDEX: bytes(1 << 26)}, zipfile.ZIP_DEFLATED)
    data = path.read_bytes()
    said, less = struct.pack("<I", 1 << 26), struct.pack("<I", 100)
    assert data.count(said) == 2
    path.write_bytes(data.replace(said, less))
    tracemalloc.start()
    try:
        refused_quietly(home, path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


def test_more_files_than_any_key_set_has_are_refused(home: ArtifactStore, tmp_path: Path) -> None:
    names = {f"{number}": b"" for number in range(archive.MAX_FILES + 1)}
    assert isinstance(refused(home, packed(tmp_path / "a.keys", names)), InvalidArtifactError)


@pytest.mark.parametrize("data", [b"", b"PK", b"<html>", b"PK\x05\x06" + bytes(18), bytes(1000)])
def test_what_is_no_archive_is_refused(data: bytes, home: ArtifactStore, tmp_path: Path) -> None:
    (tmp_path / "a.keys").write_bytes(data)
    assert isinstance(refused(home, tmp_path / "a.keys"), InvalidArtifactError)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_a_cut_archive_is_refused(part: float, exported: Path, home: ArtifactStore, tmp_path: Path) -> None:
    data = exported.read_bytes()
    (tmp_path / "a.keys").write_bytes(data[: int(len(data) * part)])
    assert isinstance(refused(home, tmp_path / "a.keys"), InvalidArtifactError)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_another_compression_is_refused(
    compression: int, content: Content, home: ArtifactStore, tmp_path: Path
) -> None:
    path = packed(tmp_path / "a.keys", {INDEX: content[INDEX]}, compression)
    assert isinstance(refused(home, path), InvalidArtifactError)


def test_a_changed_byte_anywhere_in_the_zip_itself_breaks_nothing(
    content: Content, home: ArtifactStore, tmp_path: Path
) -> None:
    """Headers and compressed data: whatever the ZIP reader makes of them, it is an archive that is not taken."""
    manifest = f"{folder_of(content, 'authorise')}/{MANIFEST}"
    path = packed(tmp_path / "a.keys", {name: content[name] for name in (INDEX, manifest)}, zipfile.ZIP_DEFLATED)
    data = path.read_bytes()
    home.home.mkdir()
    source = random.Random(7)
    for place in range(0, len(data), 2):
        changed = data[place] ^ source.randrange(1, 256)
        path.write_bytes(data[:place] + bytes([changed]) + data[place + 1 :])
        refused_quietly(home, path)


# Not what it says it is


@pytest.mark.parametrize(
    "changes",
    [
        {"key_set_id": "0" * 64},
        {"key_set_id": None},
        {"key_set_id": 7},
        {"format": 2},
        {"format": None},
        {"name": None},
        {"name": ["4x8u7"]},
        {"circuits": None},
        {"circuits": {}},
        {"circuits": []},
        {"circuits": "all"},
    ],
    ids=str,
)
def test_another_index_is_refused(
    changes: dict[str, object], content: Content, home: ArtifactStore, tmp_path: Path
) -> None:
    error = refused(home, packed(tmp_path / "a.keys", with_index(content, **changes)))
    assert isinstance(error, InvalidArtifactError)


def test_circuits_exchanged_with_each_other_are_refused(content: Content, home: ArtifactStore, tmp_path: Path) -> None:
    circuits = json.loads(content[INDEX])["circuits"]
    exchanged = {**circuits, "open_game": circuits["authorise"], "authorise": circuits["open_game"]}
    error = refused(home, packed(tmp_path / "a.keys", with_index(content, circuits=exchanged)))
    assert isinstance(error, InvalidArtifactError)


@pytest.mark.parametrize("circuit", CIRCUITS)
def test_a_circuit_less_is_refused(circuit: str, content: Content, home: ArtifactStore, tmp_path: Path) -> None:
    circuits = json.loads(content[INDEX])["circuits"]
    folder = circuits.pop(circuit)
    rest = {name: data for name, data in content.items() if not name.startswith(folder)}
    refused(home, packed(tmp_path / "a.keys", with_index(rest, circuits=circuits)))


def test_circuits_of_other_rules_are_refused(
    build_key_set: Callable[[Rules], KeySet], home: ArtifactStore, tmp_path: Path
) -> None:
    """Those of `classic`, called hit-and-blow: same names, same public signals, other constraints."""
    classic = build_key_set(Rules.parse("classic"))
    export_key_set(KeySet(RULES.spelling, classic.circuits), tmp_path / "a.keys")
    error = refused(home, tmp_path / "a.keys")
    assert isinstance(error, InvalidArtifactError)


def test_one_circuit_of_other_rules_is_refused(
    build_key_set: Callable[[Rules], KeySet], hit_and_blow: KeySet, home: ArtifactStore, tmp_path: Path
) -> None:
    classic = build_key_set(Rules.parse("classic"))
    for name in ("give_clue", "certify_game"):
        mixed = KeySet(RULES.spelling, {**hit_and_blow.circuits, name: classic[name]})
        (tmp_path / "a.keys").unlink(missing_ok=True)
        export_key_set(mixed, tmp_path / "a.keys")
        assert isinstance(refused(home, tmp_path / "a.keys"), InvalidArtifactError)


def test_set_1_a_key_without_phase_2_is_refused(content: Content, home: ArtifactStore, tmp_path: Path) -> None:
    """All digests fit; delta is what it was before any contribution."""
    name = f"{folder_of(content, 'give_clue')}/{VERIFYING_KEY}"
    key = json.loads(content[name])
    key["vk_delta_2"] = key["vk_gamma_2"]
    forged = signed_again(content, "give_clue", {VERIFYING_KEY: json.dumps(key).encode()})
    assert isinstance(refused(home, packed(tmp_path / "a.keys", forged)), InsecureKeyError)


def test_a_verifying_key_of_another_proving_key_is_refused(
    content: Content, others: KeySet, home: ArtifactStore, tmp_path: Path
) -> None:
    keys = {}
    for name in CIRCUITS:
        data = content[f"{folder_of(content, name)}/{VERIFYING_KEY}"]
        keys[name] = VerifyingKey.parse(json.loads(data))
    keys["give_clue"] = others["give_clue"].verifying_key
    data = json.dumps(keys["give_clue"].to_json()).encode()
    forged = with_index(signed_again(content, "give_clue", {VERIFYING_KEY: data}), key_set_id=key_set_id(keys))
    assert isinstance(refused(home, packed(tmp_path / "a.keys", forged)), InvalidArtifactError)


def test_circuits_from_other_sources_are_refused(content: Content, home: ArtifactStore, tmp_path: Path) -> None:
    def edit(manifest: dict[str, Any]) -> None:
        source = next(name for name in manifest["sources"] if "circomlib/" not in name)
        manifest["sources"][source] = "0" * 64

    forged = signed_again(content, "give_clue", edit=edit)
    assert isinstance(refused(home, packed(tmp_path / "a.keys", forged)), InvalidArtifactError)


MANIFEST_PARTS = (
    ("format",),
    ("circuit",),
    ("public",),
    ("recipe",),
    ("sources",),
    ("constraints",),
    ("domain_power",),
    ("files",),
    ("files", "give_clue.wasm"),
    ("setup",),
    ("setup", "status"),
    ("setup", "phase1"),
    ("setup", "phase1", "origin"),
    ("setup", "phase1", "power"),
    ("setup", "contributions"),
)


@pytest.mark.parametrize("place", MANIFEST_PARTS, ids=".".join)
def test_a_manifest_of_another_form_is_refused(
    place: tuple[str, ...], content: Content, home: ArtifactStore, tmp_path: Path
) -> None:
    """Everything that is later read from a manifest has its type, or the archive is not taken."""
    wrong: list[object] = [None, 7, "x", ["x"], {"x": "y"}, [["x", "y"]], -1]
    manifest = json.loads(content[f"{folder_of(content, 'give_clue')}/{MANIFEST}"])
    right = at(manifest, place)
    for value in wrong:
        if type(value) is type(right) and value != -1:
            continue

        def edit(manifest: dict[str, Any], value: object = value) -> None:
            at(manifest, place[:-1])[place[-1]] = value

        error = refused(home, packed(tmp_path / "a.keys", signed_again(content, "give_clue", edit=edit)))
        assert isinstance(error, InvalidArtifactError), value

    def remove(manifest: dict[str, Any]) -> None:
        del at(manifest, place[:-1])[place[-1]]

    if place != ("files", "give_clue.wasm"):  # With its file it would be another list, not another form.
        assert isinstance(
            refused(home, packed(tmp_path / "a.keys", signed_again(content, "give_clue", edit=remove))),
            InvalidArtifactError,
        )


# Two key sets for the same rules


def test_an_older_key_set_is_kept_for_the_games_begun_with_it(
    exported: Path, others: KeySet, home: ArtifactStore, native_prover: NativeProver, tmp_path: Path
) -> None:
    first = take(home, exported)
    begun = play(Table(RULES, first, native_prover), (1, 0, 4, 7), [(5, 7, 2, 6)])
    export_key_set(others, tmp_path / "others.keys")
    second, previous = import_key_set(home, tmp_path / "others.keys", specs_of)
    assert previous == first.id
    assert second.id == others.id != first.id
    assert home.load_key_set(RULES.spelling, specs(RULES)).id == second.id
    # The game goes on under the keys that it names.
    found = home.load_key_set(RULES.spelling, specs(RULES), begun.transcript.key_set_id)
    assert found.id == first.id
    table = Table(RULES, found, native_prover)
    solved = table.make_guess(begun.transcript, begun.breaker, (1, 0, 4, 7))
    records = [begun.kept]
    solved = table.give_clue(solved, begun.master, records[-1], records.append)
    assert solved.verify(table.keys, NativeVerifier()).winner == "breaker"
    # And the first is in use again when it is imported again, or by its id.
    assert import_key_set(home, exported, specs_of)[1] == second.id
    assert home.load_key_set(RULES.spelling, specs(RULES)).id == first.id
    for wanted, replaced in ((second.id, first.id), (second.id, None), (first.id, second.id)):
        result = command("keys", "use", "--json", wanted, home=home.home)
        assert (result.exit_code, json.loads(result.stdout)["replaced"]) == (0, replaced)
        assert home.load_key_set(RULES.spelling, specs(RULES)).id == wanted
    assert f"keys use --rules {RULES.spelling} {first.id}" in command("keys", "use", second.id, home=home.home).stdout
    for wrong in ("ab" * 32, second.id[:16], "../key_sets/4x8u7"):
        assert command("keys", "use", wrong, home=home.home).exit_code == 2
    assert home.id_in_use(RULES.spelling) == second.id


def test_a_bad_archive_leaves_what_is_in_use_in_use(
    exported: Path, others: KeySet, home: ArtifactStore, tmp_path: Path
) -> None:
    first = take(home, exported)
    export_key_set(others, tmp_path / "others.keys")
    with zipfile.ZipFile(tmp_path / "others.keys") as file:
        theirs = {name: file.read(name) for name in file.namelist()}
    bad = [
        with_index(theirs, key_set_id=first.id),
        {**theirs, "note.txt": b"x"},
        {name: data for name, data in theirs.items() if not name.endswith("certify_game.zkey")},
        {**theirs, f"{folder_of(theirs, 'certify_game')}/certify_game.wasm": b"<html>"},
    ]
    for content in bad:
        refused(home, packed(tmp_path / "a.keys", content))
    assert home.load_key_set(RULES.spelling, specs(RULES)).id == first.id


# Through the command


def command(*words: str | Path, home: Path | None = None) -> Result:
    """Run a command; it never ends in a traceback."""
    result = CliRunner().invoke(main, [str(word) for word in words], env={"MASTERMIND_HOME": str(home or "")})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result


def test_export_and_import_name_the_same_id(store: ArtifactStore, hit_and_blow: KeySet, tmp_path: Path) -> None:
    there, keys = tmp_path / "home", tmp_path / "hit-and-blow.keys"
    result = command("keys", "export", "--json", keys, home=store.home)
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "file": str(keys),
        "key_set_id": hit_and_blow.id,
        "keys": "development",
        "bytes": keys.stat().st_size,
    }
    result = command("keys", "import", "--json", keys, home=there)
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    assert (answer["key_set_id"], answer["rules"], answer["replaced"]) == (hit_and_blow.id, RULES.spelling, None)
    shown = [command("keys", "show", "--json", home=home).stdout for home in (store.home, there)]
    ours, theirs = (json.loads(text) for text in shown)
    for answer in (ours, theirs):
        for circuit in answer["circuits"]:
            del circuit["folder"]
    assert ours == theirs
    for words in (("keys", "show"), ("keys", "import", keys)):
        result = command(*words, home=there)
        assert (result.exit_code, hit_and_blow.id in result.stdout) == (0, True)
    # Development keys are called so.
    assert "development" in result.stdout


@pytest.mark.parametrize("words", [("keys", "show"), ("keys", "export", "FILE"), ("circuits",)])
def test_a_home_without_keys(words: tuple[str, ...], tmp_path: Path) -> None:
    result = command(*(word.replace("FILE", str(tmp_path / "a.keys")) for word in words), home=tmp_path / "home")
    assert result.exit_code == (0 if words == ("circuits",) else 2)
    assert not (tmp_path / "a.keys").exists()


def test_a_file_is_not_written_over(store: ArtifactStore, hit_and_blow: KeySet, tmp_path: Path) -> None:
    (tmp_path / "a.keys").write_text("mine")
    result = command("keys", "export", tmp_path / "a.keys", home=store.home)
    assert result.exit_code == 2
    assert (tmp_path / "a.keys").read_text() == "mine"


@pytest.mark.parametrize("name", ["hit-and-blow", "classic", "4x8u07", "../4x8u7", "", "4x9u7"])
def test_a_key_set_under_another_name_is_refused(name: str, content: Content, tmp_path: Path) -> None:
    """Named rules have one spelling in files: a key set under another would be imported and never found."""
    path = packed(tmp_path / "a.keys", with_index(content, name=name))
    result = command("keys", "import", path, home=tmp_path / "home")
    assert result.exit_code == 2
    assert result.stderr.startswith("mastermind: ")
    assert not (tmp_path / "home" / "key_sets").exists()
    path = packed(tmp_path / "a.keys", with_index(content, name=RULES.spelling))
    assert command("keys", "import", path, home=tmp_path / "home").exit_code == 0


def test_a_refused_archive_is_bad_input(content: Content, tmp_path: Path) -> None:
    for bad in (b"<html>", b""):
        (tmp_path / "a.keys").write_bytes(bad)
        result = command("keys", "import", tmp_path / "a.keys", home=tmp_path / "home")
        assert (result.exit_code, result.stdout) == (2, "")
        assert len(result.stderr.strip().splitlines()) == 1
    assert command("keys", "import", tmp_path / "missing.keys", home=tmp_path / "home").exit_code == 2
