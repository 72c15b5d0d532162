"""The transcript: all steps of one game with their proofs, in one file that anyone can check.

    {"format": "mastermind transcript 1", "rules": "4x8u7", "key_set_id": "...",
     "steps": [{"step": "open_game", "public": [...], "proof": {...}}, ...]}

Public signals and proofs are snarkjs's. A `join_game` step also has its `nonce`. Verification needs the transcript and
the verifying keys, nothing else. Reading is strict and bounded; writing only ever appends.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from mastermind.errors import (
    InvalidInputError,
    MalformedEvidenceError,
    RefusedStepError,
    RejectedEvidenceError,
)
from mastermind.field import parse_field_element
from mastermind.game.steps import CIRCUITS, GameState, Step, apply
from mastermind.locks import locked
from mastermind.rules import Rules
from mastermind.zk.artifacts import KeySet
from mastermind.zk.evidence import Proof, VerifyingKey, key_set_id, parse_json, parse_public_signals, public_json
from mastermind.zk.verify import Statement, Verifier, verify_all

FORMAT = "mastermind transcript 1"
#: A game of 42 attempts, the most there can be, has 86 steps of under 2 KB.
MAX_BYTES = 1 << 18
#: No spelling of rules is longer; a message does not repeat what is.
_MAX_RULES = 8

T = TypeVar("T")


@dataclass(frozen=True)
class VerifyingKeys:
    """The verifying keys of all circuits for one set of rules: all that a check needs.

    Attributes:
        status: `development` or `ceremony`.
        sole_contributors: player ids of those who alone have made one of the keys, as far as they have said so.
    """

    rules: Rules
    keys: Mapping[str, VerifyingKey]
    status: str
    sole_contributors: frozenset[int] = frozenset()

    @classmethod
    def of(cls, key_set: KeySet, rules: Rules) -> VerifyingKeys:
        """The verifying keys of a key set."""
        keys = {name: built.verifying_key for name, built in key_set.circuits.items()}
        return cls(rules, keys, key_set.status, frozenset(int(id_) for id_ in key_set.sole_contributors))

    @property
    def id(self) -> str:
        """The key set id."""
        return key_set_id(self.keys)

    def statement(self, proved: ProvedStep) -> Statement:
        """What the proof of a step has to show."""
        return self.keys[CIRCUITS[proved.step.kind]], proved.step.public_signals, proved.proof

    def require(self, rules: Rules, identifier: str) -> None:
        """Check that evidence was made with these keys. Raises RejectedEvidenceError."""
        if rules != self.rules:
            raise RejectedEvidenceError(
                f"it is a game of {rules.name}, the keys are for {self.rules.name}", reason="other rules"
            )
        if identifier != self.id:
            raise RejectedEvidenceError(
                f"it was made with the key set {identifier[:16]}, yours is {self.id[:16]}", reason="other keys"
            )


@dataclass(frozen=True)
class ProvedStep:
    """A step and its proof."""

    step: Step
    proof: Proof

    def to_json(self) -> dict[str, Any]:
        nonce = {} if self.step.nonce is None else {"nonce": str(self.step.nonce)}
        return {
            "step": self.step.kind,
            **nonce,
            "public": public_json(self.step.public_signals),
            "proof": self.proof.to_json(),
        }


@dataclass(frozen=True)
class Transcript:
    """The steps of one game so far; not yet checked."""

    rules: Rules
    key_set_id: str
    steps: tuple[ProvedStep, ...] = ()

    @classmethod
    def parse(cls, data: bytes) -> Transcript:
        """Read a transcript.

        Raises:
            MalformedEvidenceError: it is not well formed; `field` names the part, e.g. `steps[3].proof`.
        """
        fields = read_fields(data, FORMAT, {"rules", "key_set_id", "steps"}, MAX_BYTES)
        rules = read_rules(fields["rules"])
        steps = fields["steps"]
        if not isinstance(steps, list) or len(steps) > 2 + 2 * rules.attempts:
            raise MalformedEvidenceError("steps is not a list of at most two per attempt and two more", field="steps")
        return cls(
            rules,
            read_key_set_id(fields["key_set_id"]),
            tuple(read_step(step, f"steps[{index}]") for index, step in enumerate(steps)),
        )

    @classmethod
    def read(cls, path: Path) -> Transcript:
        """Read a transcript file. Raises MalformedEvidenceError."""
        return read_file(path, cls.parse, MAX_BYTES)

    def to_json(self) -> dict[str, Any]:
        """The object that `parse` reads."""
        return {
            "format": FORMAT,
            "rules": self.rules.spelling,
            "key_set_id": self.key_set_id,
            "steps": [step.to_json() for step in self.steps],
        }

    def state(self) -> GameState:
        """Fold `apply` over the steps, without looking at the proofs.

        Raises:
            RejectedEvidenceError: a step is refused.
        """
        state = GameState(self.rules)
        for index, proved in enumerate(self.steps):
            try:
                state = apply(state, proved.step)
            except RefusedStepError as error:
                raise RejectedEvidenceError(
                    f"{self._name(index)} is refused: {error}", reason=error.refusal, step=index
                ) from error
        return state

    def verify(self, keys: VerifyingKeys, verifier: Verifier, *, since: int = 0) -> GameState:
        """Check every step and every proof and return the state of the game.

        `since` leaves out the proofs of that many steps, for callers that have checked them before.

        Raises:
            RejectedEvidenceError: other keys, a refused step, or a proof that does not show its step; the step
                and the reason are attributes.
        """
        keys.require(self.rules, self.key_set_id)
        state = self.state()
        proved_steps = list(enumerate(self.steps))[since:]
        require_proofs(
            verifier,
            [(self._name(index), keys.statement(proved), index) for index, proved in proved_steps],
        )
        return state

    def _name(self, index: int) -> str:
        """What people call a step: they count from 1."""
        return f"step {index + 1} of {len(self.steps)} ({self.steps[index].step.kind})"

    def with_step(self, step: ProvedStep) -> Transcript:
        """This transcript and one step more."""
        return replace(self, steps=(*self.steps, step))

    def write_new(self, path: Path) -> None:
        """Write a transcript to a new file. Raises InvalidInputError when the file exists."""
        with locked(lock_path(path)):
            if path.exists():
                raise InvalidInputError(f"{path} exists; a transcript is only ever continued")
            write_json(path, self.to_json())

    def append_to(self, path: Path) -> None:
        """Write over the file of an earlier transcript, which this one must continue, in one step.

        Raises:
            InvalidInputError: the file has changed since it was read: it is not the beginning of this transcript.
        """
        with locked(lock_path(path)):
            there = Transcript.read(path)
            if replace(self, steps=self.steps[: len(there.steps)]) != there:
                raise InvalidInputError(f"{path} has changed in the meantime; nothing was written")
            write_json(path, self.to_json())


def require_proofs(verifier: Verifier, claims: Sequence[tuple[str, Statement, int | None]]) -> None:
    """Verify the proofs of some claims: what each is called, its statement, and the step it belongs to, if any.

    Raises:
        RejectedEvidenceError: the first one that is malformed or does not show its statement.
    """
    answers = verify_all(verifier, [statement for _, statement, _ in claims])
    for what, _, step in claims:
        try:
            valid = next(answers)
        except InvalidInputError as error:
            raise RejectedEvidenceError(
                f"the proof of {what} is malformed: {error}", reason="malformed proof", step=step
            ) from error
        if not valid:
            raise RejectedEvidenceError(f"the proof of {what} does not show it", reason="invalid proof", step=step)


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """Read a file of at most `max_bytes`. Raises MalformedEvidenceError."""
    try:
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise MalformedEvidenceError(f"cannot read {path}: {error.strerror}", field="file") from error
    if len(data) > max_bytes:
        raise MalformedEvidenceError(f"{path} is larger than {max_bytes} bytes", field="file")
    return data


def read_file(path: Path, parse: Callable[[bytes], T], max_bytes: int) -> T:
    """Read and parse a file of at most `max_bytes`. Raises MalformedEvidenceError, whose message names the file."""
    data = read_bounded(path, max_bytes)
    try:
        return parse(data)
    except MalformedEvidenceError as error:
        raise MalformedEvidenceError(f"{path}: {error}", field=error.field) from error


def read_fields(data: bytes, file_format: str, names: set[str], max_bytes: int) -> dict[str, Any]:
    """Parse a JSON object with exactly these fields and this `format`. Raises MalformedEvidenceError."""
    try:
        fields = parse_json(data, max_bytes=max_bytes)
    except ValueError as error:
        raise MalformedEvidenceError(f"it is not acceptable JSON: {error}", field="file") from error
    if not isinstance(fields, dict) or fields.get("format") != file_format:
        raise MalformedEvidenceError(f"it is not a {file_format!r}", field="format")
    _require_names(fields, names | {"format"}, "")
    return fields


def read_rules(text: object) -> Rules:
    """Read rules in their one spelling. Raises MalformedEvidenceError."""
    try:
        rules = Rules.parse(text if isinstance(text, str) and len(text) <= _MAX_RULES else "")
    except InvalidInputError as error:
        raise MalformedEvidenceError(f"rules: {error}", field="rules") from error
    if rules.spelling != text:
        raise MalformedEvidenceError("rules are not spelled out", field="rules")
    return rules


def read_key_set_id(text: object) -> str:
    """Read a SHA-256 in hex. Raises MalformedEvidenceError."""
    if not isinstance(text, str) or len(text) != 64 or not set(text) <= set("0123456789abcdef"):
        raise MalformedEvidenceError("key_set_id is not a SHA-256 in hex", field="key_set_id")
    return text


def read_element(fields: Mapping[str, Any], name: str, where: str = "") -> int:
    """Read a field element. Raises MalformedEvidenceError."""
    try:
        return parse_field_element(fields[name], where + name)
    except InvalidInputError as error:
        raise MalformedEvidenceError(str(error), field=where + name) from error


def read_proof(data: object, where: str) -> Proof:
    """Read a proof. Raises MalformedEvidenceError."""
    try:
        return Proof.parse(data)
    except InvalidInputError as error:
        raise MalformedEvidenceError(f"{where}: {error}", field=where) from error


def read_step(data: object, where: str) -> ProvedStep:
    """Read a step and its proof. Raises MalformedEvidenceError."""
    if not isinstance(data, dict):
        raise MalformedEvidenceError(f"{where} is not an object", field=where)
    kind = data.get("step")
    if not isinstance(kind, str) or kind not in CIRCUITS:
        raise MalformedEvidenceError(f"{where}.step is not the name of a step", field=f"{where}.step")
    names = {"step", "public", "proof"} | ({"nonce"} if kind == "join_game" else set())
    _require_names(data, names, f"{where}.")
    try:
        public_signals = parse_public_signals(data["public"])
    except InvalidInputError as error:
        raise MalformedEvidenceError(f"{where}: {error}", field=f"{where}.public") from error
    nonce = read_element(data, "nonce", f"{where}.") if kind == "join_game" else None
    return ProvedStep(Step(kind, public_signals, nonce), read_proof(data["proof"], f"{where}.proof"))


def lock_path(path: Path) -> Path:
    """The lock that guards writing `path`."""
    return path.with_name(f".{path.name}.lock")


def write_json(path: Path, content: Any) -> None:
    """Write compact JSON in one step: readers see the old file or the new one."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(content, file, separators=(",", ":"))
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        # Public, unlike what mkstemp makes by default; as the user's umask would have it.
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _require_names(fields: Mapping[str, Any], names: set[str], where: str) -> None:
    for name in sorted(names - fields.keys()):
        raise MalformedEvidenceError(f"{where}{name} is missing", field=f"{where}{name}")
    for name in fields.keys() - names:
        # Shown quoted: the name comes from outside, and may be meant for the terminal.
        raise MalformedEvidenceError(f"{where}{str(name)[:40]!r} is unknown", field=f"{where}{str(name)[:40]}")
