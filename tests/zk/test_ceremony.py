"""A ceremony of three people in three folders, with the real tools on a circuit of one constraint."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mastermind.errors import InvalidArtifactError, InvalidInputError, Phase1TooSmallError, RejectedCeremonyError
from mastermind.zk import binfile, ceremony
from mastermind.zk.archive import export_key_set, import_key_set
from mastermind.zk.artifacts import ArtifactStore, BuiltCircuit, KeySet
from mastermind.zk.binfile import SectionedFile
from mastermind.zk.ceremony import PHASE1, Workbench
from mastermind.zk.circuit import CircuitSpec
from mastermind.zk.contributions import TRANSCRIPT, CeremonyTranscript, Phase1Record, check_beacon
from mastermind.zk.evidence import canonical_json
from mastermind.zk.phase1 import Phase1, open_phase1
from mastermind.zk.prove import NativeProver, self_test
from mastermind.zk.tools import Completed, Toolchain, run
from mastermind.zk.verify import NativeVerifier
from mastermind.zk.zkey import ZkeyHeader, read_contributions
from tests.zk.tiny import copied, fresh_store, product, product_inputs, sign_again

PEOPLE = ("Ada", "Zoë", "Bo")
BEACON = check_beacon("0badcafe" * 4, 10, "a draw of tomorrow")
_FIXED_BYTES = 64 * 3 + 128 + 64


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> CircuitSpec:
    return product(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def bench(spec: CircuitSpec, toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    folder = tmp_path_factory.mktemp("bench")
    return Workbench.make([spec], toolchain, ArtifactStore(folder / "home"), folder)


@pytest.fixture(scope="module")
def public(shared_ptau: Path) -> Phase1:
    """The public phase 1."""
    return open_phase1(shared_ptau / "powersOfTau28_hez_final_08.ptau")


@pytest.fixture(scope="module")
def rounds(bench: Workbench, public: Phase1, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, ...]]:
    """The folders of a whole ceremony: the start, one for each person, and the end. Copy before tampering."""
    folder = tmp_path_factory.mktemp("rounds")
    folders = tuple(folder / str(number) for number in range(len(PEOPLE) + 2))
    ceremony.start("products", bench, public, folders[0])
    for number, name in enumerate(PEOPLE):
        ceremony.contribute(folders[number], folders[number + 1], bench, name, identifier="7" if name == "Bo" else None)
    ceremony.end(folders[-2], folders[-1], bench, BEACON)
    contents = [tree(folder) for folder in folders]
    yield folders
    assert [tree(folder) for folder in folders] == contents


@pytest.fixture(scope="module")
def finished(
    rounds: tuple[Path, ...],
    bench: Workbench,
    store: ArtifactStore,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[ArtifactStore, KeySet]:
    """A store of its own with the keys of the ceremony in use."""
    own = fresh_store(tmp_path_factory.mktemp("finished") / "home", store.home, phase1=False)
    return own, ceremony.finish(rounds[-1], bench, own, self_test)


@pytest.fixture
def final(rounds: tuple[Path, ...], tmp_path: Path) -> Path:
    """A copy of the last folder, to be tampered with."""
    return Path(shutil.copytree(rounds[-1], tmp_path / "final"))


def tree(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the transcript and make all its digests fit, as someone who forges one would."""
    content = json.loads((folder / TRANSCRIPT).read_bytes())
    change(content)
    digest = content.pop("digest")
    contributions = content.pop("contributions")
    digest = hashlib.sha256(canonical_json(content)).hexdigest()
    content["digest"], content["contributions"] = digest, contributions
    for made in contributions:
        del made["digest"]
        digest = made["digest"] = hashlib.sha256(canonical_json({"before": digest, **made})).hexdigest()
    (folder / TRANSCRIPT).write_text(json.dumps(content), "utf-8")


def with_sections(zkey: Path, changed: Mapping[int, bytes]) -> None:
    """Write a zkey with other contents of some sections."""
    file = SectionedFile.open(zkey, b"zkey")
    sections = [(number, changed.get(number, file.read(number))) for number in file.sections]
    zkey.write_bytes(binfile.build(b"zkey", file.version, sections))


def with_contributions(zkey: Path, choose: Callable[[list[bytes]], Sequence[bytes]]) -> None:
    """Write a zkey with another list of contributions."""
    listed = SectionedFile.open(zkey, b"zkey").read(10)
    position, entries = 68, []
    while position < len(listed):
        (parameters,) = struct.unpack_from("<I", listed, position + _FIXED_BYTES + 4)
        entries.append(listed[position : position + _FIXED_BYTES + 8 + parameters])
        position += len(entries[-1])
    chosen = choose(entries)
    with_sections(zkey, {10: listed[:64] + struct.pack("<I", len(chosen)) + b"".join(chosen)})


def adopt(folder: Path) -> None:
    """Make the transcript tell of the key that is now in the folder."""
    zkey = folder / "product.zkey"
    read = read_contributions(zkey)

    def change(content: dict[str, Any]) -> None:
        for made, found in zip(content["contributions"], read, strict=True):
            made["circuits"]["product"]["hash"] = found.digest
        content["contributions"][-1]["circuits"]["product"]["after"] = hashlib.blake2b(zkey.read_bytes()).hexdigest()

    edit(folder, change)


def rejected(folder: Path, bench: Workbench) -> RejectedCeremonyError:
    with pytest.raises(RejectedCeremonyError) as caught:
        ceremony.verify(folder, bench)
    return caught.value


# The ceremony that holds


def test_three_people_make_keys_together(rounds: tuple[Path, ...]) -> None:
    transcript = ceremony.read_transcript(rounds[-1])
    assert [made.name for made in transcript.contributions] == [*PEOPLE, ""]
    assert [made.id for made in transcript.contributions] == [None, None, "7", None]
    assert transcript.contributions[-1].beacon == BEACON
    key = ZkeyHeader.read(rounds[-1] / "product.zkey")
    assert [made.digest for made in key.contributions] == [
        made.circuits["product"].hash for made in transcript.contributions
    ]
    keys = [hashlib.blake2b((folder / "product.zkey").read_bytes()).hexdigest() for folder in rounds]
    assert [made.circuits["product"].before for made in transcript.contributions] == keys[:-1]
    assert [made.circuits["product"].after for made in transcript.contributions] == keys[1:]
    assert transcript.circuits["product"].initial == keys[0]


def test_every_folder_tells_all_that_was_before(rounds: tuple[Path, ...]) -> None:
    transcripts = [ceremony.read_transcript(folder) for folder in rounds]
    for earlier, later in pairwise(transcripts):
        assert later.contributions[:-1] == earlier.contributions
        later.require_published(earlier.last_digest)
        with pytest.raises(RejectedCeremonyError):
            earlier.require_published(later.last_digest)


def test_set_6_the_secret_is_nowhere_but_in_the_process(
    rounds: tuple[Path, ...], bench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same contribution once more: nothing that is given could be a secret, and what comes out is another key."""
    asked: list[tuple[list[str], list[dict[str, Any]]]] = []

    def recorded(argv: Sequence[str | Path], *, timeout_s: float, stdin: bytes) -> Completed:
        asked.append(([str(word) for word in argv], json.loads(stdin)))
        return run(argv, timeout_s=timeout_s, stdin=stdin)

    monkeypatch.setattr("mastermind.zk.setup.run", recorded)
    ceremony.contribute(rounds[0], tmp_path / "again", bench, "Ada")
    (argv, steps) = asked[0]
    assert argv[2:] == ["--modules", str(bench.toolchain.modules)]
    (step,) = (step for step in steps if step["do"] == "contribute")
    assert step.keys() == {"do", "from", "to", "name"}
    first, second = (ZkeyHeader.read(folder / "product.zkey") for folder in (rounds[1], tmp_path / "again"))
    assert first.contributions[0].name == second.contributions[0].name == step["name"] == "Ada"
    assert first.delta != second.delta
    assert {path.name for path in (tmp_path / "again").iterdir()} == {TRANSCRIPT, PHASE1, "product.zkey"}


def test_the_phase_1_file_may_travel_apart(final: Path, bench: Workbench, public: Phase1, phase1: Phase1) -> None:
    (final / PHASE1).unlink()
    with pytest.raises(InvalidArtifactError):
        ceremony.verify(final, bench)
    with pytest.raises(RejectedCeremonyError):
        ceremony.verify(final, bench, phase1.path)
    assert ceremony.verify(final, bench, public.path) == ceremony.read_transcript(final)


def test_only_what_was_checked_is_handed_on(
    rounds: tuple[Path, ...], bench: Workbench, public: Phase1, tmp_path: Path
) -> None:
    received = Path(shutil.copytree(rounds[1], tmp_path / "received"))
    (received / PHASE1).write_bytes(b"anything")
    (received / "more").write_bytes(b"anything")
    ceremony.contribute(received, tmp_path / "out", bench, "Eve", ptau=public.path)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {TRANSCRIPT, PHASE1, "product.zkey"}
    assert (tmp_path / "out" / PHASE1).read_bytes() == public.path.read_bytes()


def test_a_folder_that_is_changed_meanwhile_changes_nothing(
    rounds: tuple[Path, ...], bench: Workbench, public: Phase1, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    received = Path(shutil.copytree(rounds[1], tmp_path / "received"))

    def swapped(argv: Sequence[str | Path], *, timeout_s: float, stdin: bytes) -> Completed:
        assert str(received) not in stdin.decode()
        for name in (PHASE1, "product.zkey"):
            (received / name).write_bytes(b"anything")
        return run(argv, timeout_s=timeout_s, stdin=stdin)

    monkeypatch.setattr("mastermind.zk.setup.run", swapped)
    ceremony.contribute(received, tmp_path / "out", bench, "Eve")
    assert (tmp_path / "out" / PHASE1).read_bytes() == public.path.read_bytes()


# What is refused before anything is done


@pytest.fixture
def no_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program is started."""

    def fail(*_: object, **__: object) -> Completed:
        raise AssertionError("a program was started")

    monkeypatch.setattr("mastermind.zk.setup.run", fail)


@pytest.mark.usefixtures("no_tool")
def test_a_folder_is_never_written_over(rounds: tuple[Path, ...], bench: Workbench, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for out in (rounds[1], rounds[2], rounds[1] / "in", tmp_path / "there"):
        with pytest.raises(InvalidInputError):
            ceremony.contribute(rounds[1], out, bench, "Eve")
    with pytest.raises(InvalidInputError):
        ceremony.end(rounds[3], rounds[3], bench, BEACON)
    assert list((tmp_path / "there").iterdir()) == []


@pytest.mark.usefixtures("no_tool")
@pytest.mark.parametrize("name", [PHASE1, "product.zkey", TRANSCRIPT, "more"])
def test_a_folder_with_a_link_is_refused(
    rounds: tuple[Path, ...], bench: Workbench, store: ArtifactStore, public: Phase1, tmp_path: Path, name: str
) -> None:
    """What a link leads to on this machine is nothing to hand on."""
    for number, step in (
        (1, lambda folder: ceremony.contribute(folder, tmp_path / "out", bench, "Eve", ptau=public.path)),
        (3, lambda folder: ceremony.end(folder, tmp_path / "out", bench, BEACON, public.path)),
        (4, lambda folder: ceremony.verify(folder, bench, public.path)),
        (4, lambda folder: ceremony.finish(folder, bench, store, self_test, public.path)),
    ):
        received = Path(shutil.copytree(rounds[number], tmp_path / "received"))
        (received / name).unlink(missing_ok=True)
        (received / name).symlink_to(rounds[number] / name)
        with pytest.raises(InvalidArtifactError, match=f"{name} in the ceremony .* is a symbolic link"):
            step(received)
        assert not (tmp_path / "out").exists()
        shutil.rmtree(received)


@pytest.mark.usefixtures("no_tool")
def test_nothing_follows_the_beacon(rounds: tuple[Path, ...], bench: Workbench, tmp_path: Path) -> None:
    with pytest.raises(RejectedCeremonyError):
        ceremony.contribute(rounds[-1], tmp_path / "out", bench, "Eve")
    with pytest.raises(RejectedCeremonyError):
        ceremony.end(rounds[-1], tmp_path / "out", bench, BEACON)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("no_tool")
def test_a_name_contributes_once(rounds: tuple[Path, ...], bench: Workbench, tmp_path: Path) -> None:
    for name in ("Ada", "ADA", "ada"):
        with pytest.raises(RejectedCeremonyError):
            ceremony.contribute(rounds[1], tmp_path / "out", bench, name)
    for name in ("", " Eve", "Eve\n", "E\x1b[31mve", "Eve\u202e", "e\u0301ve", "x" * 65, "\U0001f600" * 33):
        with pytest.raises(InvalidInputError):
            ceremony.contribute(rounds[1], tmp_path / "out", bench, name)


@pytest.mark.usefixtures("no_tool")
def test_a_ceremony_without_people_or_end_makes_no_keys(
    rounds: tuple[Path, ...], bench: Workbench, tmp_path: Path
) -> None:
    with pytest.raises(RejectedCeremonyError):
        ceremony.end(rounds[0], tmp_path / "out", bench, BEACON)
    for folder in rounds[:-1]:
        with pytest.raises(RejectedCeremonyError):
            ceremony.finish(folder, bench, ArtifactStore(tmp_path / "home"), self_test)
    alone = Path(shutil.copytree(rounds[-1], tmp_path / "alone"))

    def only_the_beacon(content: dict[str, Any]) -> None:
        del content["contributions"][:-1]
        _follow(content)

    edit(alone, only_the_beacon)
    with pytest.raises(RejectedCeremonyError):
        ceremony.finish(alone, bench, ArtifactStore(tmp_path / "home"), self_test)
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    "bad", [("0badcafe", 10, "x"), ("0b" * 129, 10, "x"), ("xy" * 16, 10, "x"), ("abc" * 11, 10, "x")]
    + [("ab" * 16, power, "x") for power in (-1, 9, 21, 63)] + [("ab" * 16, 10, ""), ("ab" * 16, 10, "a\nb")],
    ids=str,
)  # fmt: skip
def test_a_beacon_that_will_not_do_is_refused(bad: tuple[str, int, str]) -> None:
    assert check_beacon("0x" + "AB" * 16, 20, "x").value == "ab" * 16
    with pytest.raises(InvalidInputError):
        check_beacon(*bad)


@pytest.mark.usefixtures("no_tool")
def test_a_phase_1_that_is_too_small_is_refused(bench: Workbench, public: Phase1, tmp_path: Path) -> None:
    with pytest.raises(Phase1TooSmallError):
        ceremony.start("products", bench, replace(public, power=0), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


# Contributions in the key that are not those of the transcript


@pytest.mark.usefixtures("no_tool")
@pytest.mark.parametrize(
    ("choose", "number", "who"),
    [
        (lambda made: [made[0], *made[2:]], 2, "Zoë"),
        (lambda made: made[:-1], 4, "the beacon"),
        (lambda made: [made[0], made[2], made[1], made[3]], 2, "Zoë"),
        (lambda made: [made[0], made[0], *made[1:]], 2, "Ada"),
        (lambda made: [made[0], made[0], *made[2:]], 2, "Ada"),
        (lambda made: [*made, made[1]], 5, "Zoë"),
        (lambda made: [*made[:2], made[2].replace(b"\1\2Bo", b"\1\2By"), made[3]], 3, "Bo"),
        (lambda made: [made[0], made[1][:320] + bytes(64) + made[1][384:], *made[2:]], 2, "Zoë"),
        (lambda made: [made[0], bytes([made[1][0] ^ 1]) + made[1][1:], *made[2:]], 2, "Zoë"),
        (lambda made: [*made[:3], made[3].replace(b"\x0b\xad", b"\x0b\xae")], 4, "the beacon"),
    ],
    ids=["dropped", "beacon dropped", "reordered", "inserted twice", "repeated", "appended", "renamed", "tampered",
         "off its curve", "other beacon"],
)  # fmt: skip
def test_a_contribution_that_is_not_in_its_place_is_named(
    final: Path, bench: Workbench, choose: Callable[[list[bytes]], Sequence[bytes]], number: int, who: str
) -> None:
    zkey = final / "product.zkey"
    untouched = zkey.read_bytes()
    with_contributions(zkey, lambda made: made)
    assert zkey.read_bytes() == untouched
    with_contributions(zkey, choose)
    error = rejected(final, bench)
    assert (error.circuit, error.contribution, error.contributor) == ("product", number, who)


@pytest.mark.usefixtures("no_tool")
def test_a_contribution_off_its_curve_is_refused_whatever_the_transcript_says(final: Path, bench: Workbench) -> None:
    with_contributions(final / "product.zkey", lambda made: [made[0], bytes([made[1][0] ^ 1]) + made[1][1:], *made[2:]])
    adopt(final)
    assert rejected(final, bench).contribution == 2


@pytest.mark.usefixtures("no_tool")
def test_another_key_with_the_same_contributions_is_refused(final: Path, bench: Workbench) -> None:
    points = SectionedFile.open(final / "product.zkey", b"zkey").read(9)
    with_sections(final / "product.zkey", {9: points[64:128] + points[:64] + points[128:]})
    error = rejected(final, bench)
    assert (error.circuit, error.contribution) == ("product", 4)


def test_snarkjs_finds_a_contribution_that_the_transcript_covers_up(final: Path, bench: Workbench) -> None:
    """Zoë's is taken out of the key, and of a transcript whose digests fit."""
    with_contributions(final / "product.zkey", lambda made: [made[0], *made[2:]])

    def change(content: dict[str, Any]) -> None:
        made = content["contributions"]
        made[2]["circuits"]["product"]["before"] = made[1]["circuits"]["product"]["before"]
        del made[1]

    edit(final, change)
    adopt(final)
    error = rejected(final, bench)
    assert (error.circuit, error.contribution, error.contributor) == ("product", 2, "Bo")


def test_snarkjs_finds_proving_points_that_the_transcript_covers_up(final: Path, bench: Workbench) -> None:
    points = SectionedFile.open(final / "product.zkey", b"zkey").read(9)
    with_sections(final / "product.zkey", {9: points[64:128] + points[:64] + points[128:]})
    adopt(final)
    assert rejected(final, bench).circuit == "product"


def test_a_ceremony_that_began_with_another_key_is_refused(final: Path, bench: Workbench) -> None:
    def change(content: dict[str, Any]) -> None:
        content["circuits"]["product"]["initial"] = "ab" * 64
        content["contributions"][0]["circuits"]["product"]["before"] = "ab" * 64

    edit(final, change)
    assert rejected(final, bench).circuit == "product"


@pytest.mark.usefixtures("no_tool")
def test_other_circuits_than_those_of_this_machine_are_refused(
    final: Path, rounds: tuple[Path, ...], bench: Workbench, spec: CircuitSpec
) -> None:
    source = bench.sources["product"]
    rendered = replace(source.rendered, files={"product.circom": "another"})
    other = Workbench(bench.toolchain, {"product": replace(source, rendered=rendered)})
    assert rejected(final, other).circuit == "product"
    assert rejected(final, Workbench(bench.toolchain, {})).circuit == "product"
    edit(final, lambda content: content["circuits"]["product"].update(r1cs="ab" * 64))
    assert rejected(final, bench).circuit == "product"


@pytest.mark.usefixtures("no_tool")
@pytest.mark.parametrize("origin", ["development", "private"])
def test_a_phase_1_is_public_exactly_when_it_is(final: Path, bench: Workbench, origin: str, phase1: Phase1) -> None:
    edit(final, lambda content: content["phase1"].update(origin=origin))
    rejected(final, bench)
    shutil.copyfile(phase1.path, final / PHASE1)
    edit(final, lambda content: content["phase1"].update(origin="hermez", power=phase1.power, blake2b=phase1.digest))
    rejected(final, bench)


# The transcript


@pytest.fixture(scope="module")
def told(rounds: tuple[Path, ...]) -> dict[str, Any]:
    """The transcript of the whole ceremony. Copy before tampering."""
    content: dict[str, Any] = json.loads((rounds[-1] / TRANSCRIPT).read_bytes())
    return content


def parsed(content: object) -> CeremonyTranscript:
    return CeremonyTranscript.parse(json.dumps(content).encode(), Path(TRANSCRIPT))


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of all values that hold no others."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))
    else:
        yield path


def other_value(value: Any) -> Any:
    """A value of the same form."""
    if value is None:
        return "5"
    if isinstance(value, int):
        return value + 1
    if value.endswith("Z"):
        return f"{int(value[:4]) - 1}{value[4:]}"
    return ("b" if value[:1] == "a" else "a") + value[1:]


def test_no_value_of_a_transcript_can_be_changed(told: dict[str, Any]) -> None:
    assert parsed(told).to_json() == told
    found = list(places(told))
    assert len(found) > 40
    for path in found:
        content = deepcopy(told)
        at = content
        for key in path[:-1]:
            at = at[key]  # type: ignore[index]
        at[path[-1]] = other_value(at[path[-1]])  # type: ignore[index]
        with pytest.raises((RejectedCeremonyError, InvalidArtifactError)):
            parsed(content)
        del at[path[-1]]  # type: ignore[arg-type]
        with pytest.raises((RejectedCeremonyError, InvalidArtifactError)):
            parsed(content)


@pytest.mark.parametrize(
    ("change", "number"),
    [
        (lambda made: made.pop(1), 2),
        (lambda made: made.insert(1, made.pop(2)), 2),
        (lambda made: made.insert(2, deepcopy(made[1])), 3),
        (lambda made: made[1].update(time="2026-01-01T00:00:00Z"), 2),
        (lambda made: made[2].update(id="8"), 3),
    ],
    ids=["dropped", "reordered", "repeated", "time", "id"],
)
def test_a_changed_transcript_names_the_contribution(
    told: dict[str, Any], change: Callable[[list[Any]], object], number: int
) -> None:
    content = deepcopy(told)
    change(content["contributions"])
    with pytest.raises(RejectedCeremonyError) as caught:
        parsed(content)
    assert caught.value.contribution == number


@pytest.mark.parametrize(
    ("change", "number"),
    [
        (lambda made: made.append({**deepcopy(made[0]), "name": "Eve"}), 5),
        (lambda made: made.insert(1, {**deepcopy(made[1]), "name": "ada"}), 2),
        (lambda made: made[2]["circuits"]["product"].update(before="ab" * 64), 3),
    ],
    ids=["after the beacon", "a name twice", "to another key"],
)
def test_a_forged_transcript_still_has_to_add_up(
    final: Path, change: Callable[[list[Any]], object], number: int
) -> None:
    edit(final, lambda _: None)
    ceremony.read_transcript(final)
    edit(final, lambda content: change(content["contributions"]))
    with pytest.raises(RejectedCeremonyError) as caught:
        ceremony.read_transcript(final)
    assert caught.value.contribution == number


def test_what_the_keys_cannot_show_the_published_digests_do(final: Path, told: dict[str, Any]) -> None:
    """Times and ids are in no key: whoever forges them gets other digests than the participants have published."""
    before = parsed(told)
    edit(final, lambda content: content["contributions"][1].update(time="2026-01-01T00:00:00Z", id="9"))
    after = ceremony.read_transcript(final)
    after.require_published(before.contributions[0].digest)
    for made in before.contributions[1:]:
        before.require_published(made.digest)
        with pytest.raises(RejectedCeremonyError):
            after.require_published(made.digest)


def test_a_transcript_that_is_none_is_refused(told: dict[str, Any], tmp_path: Path) -> None:
    for content in (b"", b"{}", b"[]", b"null", b"[" * 10_000, b'{"a": 1, "a": 1}', b" " * (1 << 21)):
        with pytest.raises(InvalidArtifactError):
            CeremonyTranscript.parse(content, tmp_path)
    with pytest.raises(InvalidArtifactError):
        ceremony.read_transcript(tmp_path)
    with pytest.raises(InvalidArtifactError):
        parsed({**told, "note": "x"})


# What the keys are called


def test_set_6_one_person_makes_no_ceremony(told: dict[str, Any]) -> None:
    """Two people, the public phase 1 and a beacon do; the same with one thing less does not."""
    whole = parsed(told)
    ada, zoe, _, end = whole.contributions
    assert whole.status == "ceremony"
    assert replace(whole, contributions=(ada, zoe, end)).status == "ceremony"
    assert replace(whole, contributions=(ada, zoe)).status == "development"
    assert replace(whole, contributions=(ada, end)).status == "development"
    one = (replace(ada, id="7"), replace(zoe, id="7"), end)
    assert replace(whole, contributions=one).status == "development"
    for origin in ("development", "private"):
        record = Phase1Record(origin, whole.phase1.power, whole.phase1.blake2b)
        assert replace(whole, phase1=record).status == "development"


def test_the_finished_keys_prove_and_verify(
    finished: tuple[ArtifactStore, KeySet], spec: CircuitSpec, rounds: tuple[Path, ...]
) -> None:
    store, key_set = finished
    assert store.load_key_set("products", [spec]) == key_set
    circuit = key_set["product"]
    assert key_set.status == circuit.status == "ceremony"
    assert circuit.zkey.read_bytes() == (rounds[-1] / "product.zkey").read_bytes()
    assert circuit.ceremony == ceremony.read_transcript(rounds[-1])
    assert [made["name"] for made in circuit.manifest["setup"]["contributions"]] == [*PEOPLE, ""]
    proved = NativeProver().prove(circuit, product_inputs(5))
    assert NativeVerifier().verify(circuit.verifying_key, (30,), proved.proof)
    assert not NativeVerifier().verify(circuit.verifying_key, (31,), proved.proof)
    assert key_set.sole_contributors == frozenset()


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest["files"].pop(TRANSCRIPT),
        lambda manifest: manifest["setup"].update(status="development"),
        lambda manifest: manifest["setup"]["contributions"].pop(0),
        lambda manifest: manifest["setup"]["phase1"].update(origin="private"),
    ],
    ids=["no transcript", "status", "contributions", "phase 1"],
)
def test_an_artifact_that_tells_of_another_ceremony_is_refused(
    finished: tuple[ArtifactStore, KeySet], tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    good = copied(finished[1]["product"], tmp_path / "artifact")
    assert BuiltCircuit.load(good.folder, good.spec) == good
    manifest = deepcopy(dict(good.manifest))
    change(manifest)
    bad = sign_again(replace(good, manifest=manifest))
    with pytest.raises(InvalidArtifactError):
        BuiltCircuit.load(bad.folder, bad.spec)


def test_set_6_who_alone_has_made_a_key_is_known_if_they_said_so(
    finished: tuple[ArtifactStore, KeySet], tmp_path: Path
) -> None:
    circuit = copied(finished[1]["product"], tmp_path / "artifact")
    transcript = circuit.ceremony
    assert transcript is not None
    for chosen, expected in (([0], set()), ([2], {"7"}), ([0, 2], set())):
        made = tuple(transcript.contributions[index] for index in chosen)
        forged = replace(transcript, contributions=made)
        (circuit.folder / TRANSCRIPT).write_bytes(forged.to_bytes())
        edit(circuit.folder, lambda content: _follow(content))
        assert KeySet("products", {"product": circuit}).sole_contributors == expected


def _follow(content: dict[str, Any]) -> None:
    """Make every contribution follow the one before it."""
    before = content["circuits"]["product"]["initial"]
    for made in content["contributions"]:
        made["circuits"]["product"]["before"] = before
        before = made["circuits"]["product"]["after"]


# On to another machine


@pytest.fixture
def elsewhere(tmp_path: Path, store: ArtifactStore, toolchain: Toolchain) -> ArtifactStore:
    return fresh_store(tmp_path / "elsewhere", store.home, phase1=False)


def test_keys_of_a_ceremony_are_imported_when_all_of_it_verifies(
    finished: tuple[ArtifactStore, KeySet],
    spec: CircuitSpec,
    elsewhere: ArtifactStore,
    public: Phase1,
    phase1: Phase1,
    tmp_path: Path,
) -> None:
    export_key_set(finished[1], tmp_path / "a.keys")

    def take(*ptaus: Path) -> KeySet:
        return import_key_set(elsewhere, tmp_path / "a.keys", lambda _: [spec], ptaus=ptaus)[0]

    for ptaus in ((), (phase1.path,)):
        with pytest.raises(InvalidInputError):
            take(*ptaus)
    assert elsewhere.key_set_names() == []
    taken = take(phase1.path, public.path)
    assert taken.id == finished[1].id
    assert elsewhere.load_key_set("products", [spec]).status == "ceremony"
    assert taken["product"].ceremony == finished[1]["product"].ceremony


def test_keys_that_only_say_they_are_of_a_ceremony_are_refused(
    finished: tuple[ArtifactStore, KeySet],
    spec: CircuitSpec,
    elsewhere: ArtifactStore,
    public: Phase1,
    tmp_path: Path,
) -> None:
    """The proving points are others, and everything that is not computed from the circuit fits them."""
    circuit = copied(finished[1]["product"], tmp_path / "artifact")
    points = SectionedFile.open(circuit.zkey, b"zkey").read(9)
    with_sections(circuit.zkey, {9: points[64:128] + points[:64] + points[128:]})
    adopt(circuit.folder)
    forged = sign_again(circuit)
    key_set = KeySet("products", {"product": BuiltCircuit.load(forged.folder, spec)})
    export_key_set(key_set, tmp_path / "forged.keys")
    with pytest.raises(RejectedCeremonyError):
        import_key_set(elsewhere, tmp_path / "forged.keys", lambda _: [spec], ptaus=[public.path])
    assert elsewhere.key_set_names() == []
