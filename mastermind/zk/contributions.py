"""The transcript of a ceremony: which circuits, from which phase 1, and who has contributed to their keys, in order.

Owns the form of `ceremony.json` and its digests; whether the keys are those it tells of is for
`mastermind.zk.ceremony`. Every contribution has a digest over itself and all before it. A contributor publishes it:
what happened up to then cannot be told otherwise afterwards without showing another digest.

There are two formats. A transcript of the first names the key set that its keys are for; one of the second is about
circuits of somebody's own, and says of each where its source is in their project.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from mastermind.errors import InvalidArtifactError, InvalidInputError, RejectedCeremonyError
from mastermind.field import parse_field_element
from mastermind.zk.evidence import canonical_json, parse_json
from mastermind.zk.zkey import Contribution

TRANSCRIPT = "ceremony.json"
KEY_SET_FORMAT = "mastermind ceremony 1"
OWN_CIRCUITS_FORMAT = "mastermind ceremony 2"
MAX_BYTES = 1 << 20
MAX_CONTRIBUTIONS = 256
MAX_CIRCUITS = 64
#: snarkjs keeps 64 characters of a name, as UTF-16 counts them.
MAX_NAME_CHARACTERS = 64
MAX_SOURCE_CHARACTERS = 200
MAX_PATH_CHARACTERS = 200
#: What snarkjs takes at least, and at most what it hashes in seconds: everybody who verifies does it for each circuit.
BEACON_POWERS = range(10, 21)
#: A beacon is a hash or a signature that nobody could know before.
BEACON_BYTES = range(16, 129)
#: Fewer people than this are one who has to be believed.
CEREMONY_PEOPLE = 2

_HEX_64 = re.compile(r"[0-9a-f]{64}")
_HEX_128 = re.compile(r"[0-9a-f]{128}")
_LABEL = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_TIME = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True)
class OwnSource:
    """How to find the source of a circuit of somebody's own.

    Attributes:
        path: of the file with `component main`, below the root of the sources.
        parameters: for the template, over those of the project.
    """

    path: str
    parameters: Mapping[str, bool | int | str]


@dataclass(frozen=True)
class CeremonyCircuit:
    """A circuit as the ceremony began with it.

    Attributes:
        sources: SHA-256 of each file of its source, as rendered, by path.
        r1cs: BLAKE2b-512 of its constraints.
        initial: BLAKE2b-512 of the key that follows from constraints and phase 1, without a contribution.
        own: None for a circuit of a key set.
    """

    sources: Mapping[str, str]
    r1cs: str
    initial: str
    own: OwnSource | None = None

    def to_json(self) -> dict[str, Any]:
        """The object in a transcript."""
        own = {} if self.own is None else {"source": self.own.path, "parameters": dict(self.own.parameters)}
        return {**own, "sources": dict(self.sources), "r1cs": self.r1cs, "initial": self.initial}


@dataclass(frozen=True)
class Phase1Record:
    """The phase 1 of a ceremony: origin, power and BLAKE2b-512 as in `mastermind.zk.phase1`."""

    origin: str
    power: int
    blake2b: str


@dataclass(frozen=True)
class Beacon:
    """A public random value that ends the contributions.

    Attributes:
        value: in hex.
        iterations_power: it is hashed 2^this times.
        source: where anyone can look it up, in words.
    """

    value: str
    iterations_power: int
    source: str


@dataclass(frozen=True)
class KeyChange:
    """What a contribution did to the key of one circuit.

    Attributes:
        before: BLAKE2b-512 of the key that it was made to.
        after: the same of the key that it left.
        hash: of the contribution, as snarkjs shows it.
    """

    before: str
    after: str
    hash: str


@dataclass(frozen=True)
class Contributed:
    """A contribution to the keys of all circuits, or the beacon that ends them.

    Attributes:
        name: what the contributor goes by; empty for the beacon.
        id: a public number of the contributor, such as a player id, in decimal. Nothing proves it.
        time: UTC, by the clock of the contributor's machine.
        beacon: None for a person.
        circuits: by name of the circuit.
        digest: SHA-256 over this contribution and the digest before it: what its contributor publishes.
    """

    name: str
    id: str | None
    time: str
    beacon: Beacon | None
    circuits: Mapping[str, KeyChange]
    digest: str = ""

    @property
    def who(self) -> str:
        """The contributor, for messages."""
        return "the beacon" if self.beacon is not None else self.name


@dataclass(frozen=True)
class CeremonyTranscript:
    """All that has happened in a ceremony so far.

    Attributes:
        name: of the key set that the keys are for; None for circuits of somebody's own.
        started: UTC, by the clock of the machine that started it.
        tools: versions of what made the initial keys.
        digest: SHA-256 over all that was there at the start.
    """

    name: str | None
    started: str
    tools: Mapping[str, str]
    phase1: Phase1Record
    circuits: Mapping[str, CeremonyCircuit]
    contributions: tuple[Contributed, ...] = ()
    digest: str = ""

    @classmethod
    def started_now(
        cls, name: str | None, tools: Mapping[str, str], phase1: Phase1Record, circuits: Mapping[str, CeremonyCircuit]
    ) -> CeremonyTranscript:
        """The transcript of a ceremony that begins.

        Raises:
            InvalidInputError: it would not be read again, because of the names or the number of the circuits.
        """
        begun = cls(name, now(), tools, phase1, circuits)
        begun = replace(begun, digest=begun._start_digest)
        try:
            _transcript(parse_json(begun.to_bytes(), max_bytes=MAX_BYTES))
        except ValueError as error:
            raise InvalidInputError(f"no transcript can tell of these circuits: {error}") from error
        return begun

    def with_contribution(
        self, name: str, identifier: str | None, beacon: Beacon | None, circuits: Mapping[str, KeyChange]
    ) -> CeremonyTranscript:
        """The transcript with one contribution more, made now."""
        made = Contributed(name, identifier, now(), beacon, circuits)
        made = replace(made, digest=_digest(self.last_digest, made))
        return replace(self, contributions=(*self.contributions, made))

    @classmethod
    def parse(cls, data: bytes, path: Path) -> CeremonyTranscript:
        """Read a transcript; `path` is for messages.

        Raises:
            InvalidArtifactError: it is not well formed.
            RejectedCeremonyError: it has been changed: a digest in it is not the one of what it tells.
        """
        try:
            transcript = _transcript(parse_json(data, max_bytes=MAX_BYTES))
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            reason = str(error) if isinstance(error, InvalidInputError) else "it is not such a JSON object"
            raise InvalidArtifactError(f"{path} is not the transcript of a ceremony: {reason}", path=path) from error
        transcript._require_digests()
        return transcript

    @classmethod
    def read(cls, path: Path) -> CeremonyTranscript:
        """Read the file of a transcript. Raises as `parse`."""
        try:
            with path.open("rb") as file:
                return cls.parse(file.read(MAX_BYTES + 1), path)
        except OSError as error:
            raise InvalidArtifactError(f"{path} cannot be read: {error.strerror}", path=path) from error

    def to_json(self) -> dict[str, Any]:
        """The object that `parse` reads."""
        return {
            **self._start_json(),
            "digest": self.digest,
            "contributions": [{**_made_json(made), "digest": made.digest} for made in self.contributions],
        }

    def to_bytes(self) -> bytes:
        """The content of the file."""
        return (json.dumps(self.to_json(), indent=1) + "\n").encode()

    @property
    def people(self) -> tuple[Contributed, ...]:
        """The contributions without the beacon."""
        return tuple(made for made in self.contributions if made.beacon is None)

    @property
    def ended(self) -> bool:
        """Whether a beacon has ended the contributions."""
        return bool(self.contributions) and self.contributions[-1].beacon is not None

    @property
    def last_digest(self) -> str:
        """The digest of the latest contribution, which covers the whole transcript."""
        return self.contributions[-1].digest if self.contributions else self.digest

    @property
    def status(self) -> str:
        """`ceremony` when nobody alone can know the secrets of these keys if names are people, else `development`.

        A ceremony takes the public phase 1, at least two contributors (one id is one of them, whatever the names),
        and a beacon as its end.
        """
        parties = {made.id or made.name for made in self.people}
        public = self.phase1.origin == "hermez"
        return "ceremony" if public and self.ended and len(parties) >= CEREMONY_PEOPLE else "development"

    def recorded(self, circuit: str) -> tuple[Contribution, ...]:
        """The contributions that the key of a circuit has to have."""
        return tuple(
            Contribution(made.name, made.circuits[circuit].hash)
            if made.beacon is None
            else Contribution("", made.circuits[circuit].hash, made.beacon.value, made.beacon.iterations_power)
            for made in self.contributions
        )

    def key_digest(self, circuit: str) -> str:
        """BLAKE2b-512 of the key of a circuit as it is now."""
        return self.contributions[-1].circuits[circuit].after if self.contributions else self.circuits[circuit].initial

    def require_published(self, digest: str) -> None:
        """Check that a digest that somebody published is in this transcript.

        Raises:
            InvalidInputError: it is no such digest.
            RejectedCeremonyError: it is not in the transcript.
        """
        digest = digest.strip().lower()
        if not _HEX_64.fullmatch(digest):
            raise InvalidInputError("a published digest has 64 hexadecimal digits; give the whole of it")
        if digest not in {self.digest, *(made.digest for made in self.contributions)}:
            raise RejectedCeremonyError(
                f"the digest {digest[:16]} is not in this transcript: it is another ceremony, "
                "or somebody has left that contribution out"
            )

    def require_contributions(self, circuit: str, found: tuple[Contribution, ...]) -> None:
        """Check that the contributions in the key of a circuit are those of this transcript, in order.

        Raises:
            RejectedCeremonyError: naming the first that is not, by number and contributor.
        """
        expected = self.recorded(circuit)
        for index in range(max(len(expected), len(found))):
            there = found[index] if index < len(found) else None
            wanted = expected[index] if index < len(expected) else None
            if there == wanted:
                continue
            who = there.name if wanted is None and there is not None else self.contributions[index].who
            if there is not None and there.digest in {earlier.digest for earlier in found[:index]}:
                who = there.name
                what = f"repeats contribution {[made.digest for made in found].index(there.digest) + 1}"
            elif wanted is None:
                what = "is not in the transcript"
            elif wanted.digest not in {made.digest for made in found}:
                replaced = there is not None and there.digest not in {made.digest for made in expected}
                what = "has been replaced by another" if replaced else "is missing from the key"
            elif there is not None and not there.on_curves:
                what = "has a point that is not on its curve"
            elif there is not None and there.digest == wanted.digest:
                what = "goes by another name or beacon in the key"
            else:
                what = "is at another place in the key"
            raise RejectedCeremonyError(
                f"{circuit}: contribution {index + 1} ({who}) {what}",
                circuit=circuit,
                contribution=index + 1,
                contributor=who,
            )

    def _start_json(self) -> dict[str, Any]:
        kind = (
            {"format": OWN_CIRCUITS_FORMAT} if self.name is None else {"format": KEY_SET_FORMAT, "key_set": self.name}
        )
        return {
            **kind,
            "started": self.started,
            "tools": dict(self.tools),
            "phase1": vars(self.phase1),
            "circuits": {name: made.to_json() for name, made in self.circuits.items()},
        }

    @cached_property
    def _start_digest(self) -> str:
        return hashlib.sha256(canonical_json(self._start_json())).hexdigest()

    def _require_digests(self) -> None:
        """Check the chain of digests, and that every key follows the one before it. Raises RejectedCeremonyError."""
        if self.digest != self._start_digest:
            raise RejectedCeremonyError("the transcript has been changed: its start is not the one of its digest")
        digest = self.digest
        seen: set[str] = set()
        keys = {name: circuit.initial for name, circuit in self.circuits.items()}
        for number, made in enumerate(self.contributions, 1):
            if made.digest != _digest(digest, made):
                raise RejectedCeremonyError(
                    f"the transcript has been changed: contribution {number} ({made.who}) is not the one of its digest",
                    contribution=number,
                    contributor=made.who,
                )
            if folded(made.name) in seen or any(earlier.beacon for earlier in self.contributions[: number - 1]):
                raise RejectedCeremonyError(
                    f"contribution {number} ({made.who}) is one too many: a name contributes once, a beacon is the end",
                    contribution=number,
                    contributor=made.who,
                )
            seen.add(folded(made.name))
            for circuit, change in made.circuits.items():
                if change.before != keys[circuit]:
                    raise RejectedCeremonyError(
                        f"{circuit}: contribution {number} ({made.who}) was made to another key than the one before it",
                        circuit=circuit,
                        contribution=number,
                        contributor=made.who,
                    )
                keys[circuit] = change.after
            digest = made.digest


def now() -> str:
    """The time as transcripts write it."""
    return datetime.now(UTC).strftime(_TIME)


def check_name(name: str) -> str:
    """Return what a contributor goes by.

    Raises:
        InvalidInputError: empty, too long, or with characters that are not printed or could be written in two ways.
    """
    return _printable(name, "the name", MAX_NAME_CHARACTERS)


def check_beacon(value: str, iterations_power: int, source: str) -> Beacon:
    """Return a beacon, its value in lower case.

    Raises:
        InvalidInputError: not hexadecimal, of another length, or hashed too often or too rarely.
    """
    value = value.lower().removeprefix("0x")
    if not re.fullmatch(r"(?:[0-9a-f]{2})+", value) or len(value) // 2 not in BEACON_BYTES:
        raise InvalidInputError(f"a beacon has {BEACON_BYTES.start} to {BEACON_BYTES.stop - 1} bytes in hexadecimal")
    if iterations_power not in BEACON_POWERS:
        raise InvalidInputError(f"a beacon is hashed 2^{BEACON_POWERS.start} to 2^{BEACON_POWERS.stop - 1} times")
    return Beacon(value, iterations_power, _printable(source, "the source of the beacon", MAX_SOURCE_CHARACTERS))


def check_id(text: str) -> str:
    """Return the public id of a contributor. Raises InvalidInputError when it is not a field element in decimal."""
    return str(parse_field_element(text, "the id"))


def _printable(text: str, what: str, limit: int) -> str:
    # To Python nothing is printable that turns the direction of writing, breaks a line or is half a character.
    if not text.isprintable() or text != text.strip() or not 2 <= len(text.encode("utf-16-le")) <= 2 * limit:
        raise InvalidInputError(f"{what} must be 1 to {limit} printable characters, without spaces around")
    if unicodedata.normalize("NFC", text) != text:
        raise InvalidInputError(f"{what} must be in Unicode's composed form")
    return text


def _digest(before: str, made: Contributed) -> str:
    return hashlib.sha256(canonical_json({"before": before, **_made_json(made)})).hexdigest()


def _made_json(made: Contributed) -> dict[str, Any]:
    return {
        "name": made.name,
        "id": made.id,
        "time": made.time,
        "beacon": None if made.beacon is None else vars(made.beacon),
        "circuits": {circuit: vars(change) for circuit, change in made.circuits.items()},
    }


def _transcript(data: Any) -> CeremonyTranscript:
    known = {"format", "started", "tools", "phase1", "circuits", "contributions", "digest"}
    is_own = data["format"] == OWN_CIRCUITS_FORMAT
    if not is_own and data["format"] != KEY_SET_FORMAT:
        raise InvalidInputError(f"it is not of the format {KEY_SET_FORMAT!r} or {OWN_CIRCUITS_FORMAT!r}")
    fields = _fields(data, known if is_own else known | {"key_set"}, "it")
    phase1 = _fields(fields["phase1"], {"origin", "power", "blake2b"}, "phase1")
    power = phase1["power"]
    if phase1["origin"] not in ("development", "hermez", "private") or type(power) is not int or not 1 <= power <= 28:
        raise InvalidInputError("there is no such phase 1")
    circuits = {
        _text(name, _LABEL, "the name of a circuit"): _circuit(value, is_own=is_own)
        for name, value in fields["circuits"].items()
    }
    contributions = fields["contributions"]
    if not 1 <= len(circuits) <= MAX_CIRCUITS or not isinstance(contributions, list):
        raise InvalidInputError("it has no circuits or no list of contributions")
    if len(contributions) > MAX_CONTRIBUTIONS:
        raise InvalidInputError(f"it has more than {MAX_CONTRIBUTIONS} contributions")
    made = tuple(_contributed(entry, circuits) for entry in contributions)
    return CeremonyTranscript(
        name=None if is_own else _text(fields["key_set"], _LABEL, "the name of the key set"),
        started=_time(fields["started"]),
        tools={
            _text(name, _LABEL, "the name of a tool"): _printable(version, "the version of a tool", 200)
            for name, version in fields["tools"].items()
        },
        phase1=Phase1Record(phase1["origin"], power, _text(phase1["blake2b"], _HEX_128, "the digest of phase 1")),
        circuits=circuits,
        contributions=made,
        digest=_text(fields["digest"], _HEX_64, "the digest"),
    )


def folded(name: str) -> str:
    """A name as it is compared: two that look alike but for capitals are one."""
    return unicodedata.normalize("NFKC", name).casefold()


def _circuit(data: Any, *, is_own: bool) -> CeremonyCircuit:
    known = {"sources", "r1cs", "initial"}
    fields = _fields(data, known | {"source", "parameters"} if is_own else known, "a circuit")
    sources = {
        _path(path): _text(digest, _HEX_64, "the digest of a source") for path, digest in fields["sources"].items()
    }
    own = OwnSource(_path(fields["source"]), _parameters(fields["parameters"])) if is_own else None
    return CeremonyCircuit(
        sources,
        r1cs=_text(fields["r1cs"], _HEX_128, "the digest r1cs"),
        initial=_text(fields["initial"], _HEX_128, "the digest initial"),
        own=own,
    )


def _path(value: Any) -> str:
    path = _printable(value, "a path", MAX_PATH_CHARACTERS)
    if path.startswith("/") or ".." in path.split("/"):
        raise InvalidInputError("a path leads out of the sources")
    return path


def _parameters(data: Any) -> dict[str, bool | int | str]:
    if not isinstance(data, dict) or not all(isinstance(value, bool | int | str) for value in data.values()):
        raise InvalidInputError("the parameters of a circuit are not well formed")
    return {_printable(name, "a parameter", MAX_PATH_CHARACTERS): value for name, value in data.items()}


def _contributed(data: Any, circuits: Mapping[str, CeremonyCircuit]) -> Contributed:
    fields = _fields(data, {"name", "id", "time", "beacon", "circuits", "digest"}, "a contribution")
    beacon = fields["beacon"]
    if beacon is not None:
        values = _fields(beacon, {"value", "iterations_power", "source"}, "a beacon")
        if type(values["iterations_power"]) is not int:
            raise InvalidInputError("the number of times that the beacon is hashed is not an integer")
        beacon = check_beacon(**values)
        if beacon.value != values["value"] or fields["name"] != "" or fields["id"] is not None:
            raise InvalidInputError("a beacon has a name, an id or a value in another spelling")
    changes = _fields(fields["circuits"], set(circuits), "a contribution")
    return Contributed(
        name=check_name(fields["name"]) if beacon is None else "",
        id=None if fields["id"] is None else check_id(fields["id"]),
        time=_time(fields["time"]),
        beacon=beacon,
        circuits={name: _change(changes[name]) for name in circuits},
        digest=_text(fields["digest"], _HEX_64, "the digest of a contribution"),
    )


def _change(data: Any) -> KeyChange:
    fields = _fields(data, {"before", "after", "hash"}, "a contribution")
    return KeyChange(**{name: _text(fields[name], _HEX_128, f"the digest {name}") for name in fields})


def _fields(data: Any, names: set[str], what: str) -> dict[str, Any]:
    if not isinstance(data, dict) or data.keys() != names:
        raise InvalidInputError(f"{what} does not have exactly {', '.join(sorted(names))}")
    return data


def _text(value: Any, form: re.Pattern[str], what: str) -> str:
    if not isinstance(value, str) or not form.fullmatch(value):
        raise InvalidInputError(f"{what} is not well formed")
    return value


def _time(value: Any) -> str:
    if not isinstance(value, str) or datetime.strptime(value, _TIME).strftime(_TIME) != value:
        raise InvalidInputError("a time is not like 2026-01-31T12:00:00Z")
    return value
