"""What is asked of the referee: every request, the statements that must be proved for it, and what it does.

    init_game          {"rules", "key_set_id", "reward", "step", "consent"}
    accept_game        {"reward", "step", "consent"}
    make_guess         {"step"}
    give_clue          {"step"}
    submit_game_proof  {"certificate"}
    claim_reward       {"player_id", "amount", "consent"}
    forfeit_win        {"referee_id", "winner", "amount", "consent"}
    settle             {"player_id", "consent"}

and for a match, which is two games in step (`mastermind.referee.match`):

    open_match         {"rules", "key_set_id", "reward", "step", "consent"}
    join_match         {"reward", "opening", "step", "consent"}
    start_match        {"player_id", "step", "consent"}
    play_step          {"step"}
    claim_match        {"player_id", "amount", "consent"}
    forfeit_match      {"referee_id", "winner", "amount", "consent"}
    settle_match       {"player_id", "consent"}
    open_code          {"public", "proof"}

A step and its proof are as in a transcript, a certificate as in its file. A *consent* is `{"nonce", "proof"}`: an
`authorise` proof over the `Agreement` of action, referee, game or match (its solution hash), amount and nonce. A move
needs none: its proof is the mover's signature. Names that a request does not have are ignored, verifying keys above
all; what it has is read strictly.

A request has no effect of its own: `verify` gives the effect, and only when every proof holds. So no caller can
forget the verdict, and proofs are verified before anything is locked.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar, cast

from mastermind.errors import (
    InvalidInputError,
    MalformedEvidenceError,
    ProofRejectedError,
    RejectedEvidenceError,
    ReplayError,
    UnknownGameError,
)
from mastermind.game.certificate import Certificate
from mastermind.game.duel import Player
from mastermind.game.message import Agreement
from mastermind.game.steps import SIGNAL_COUNTS, GameState, Step, StepKind
from mastermind.game.transcript import (
    ProvedStep,
    VerifyingKeys,
    read_element,
    read_key_set_id,
    read_proof,
    read_rules,
    read_step,
    require_proofs,
)
from mastermind.referee import contract as rules_of
from mastermind.referee import match as match_rules
from mastermind.referee.contract import MAX_REWARD, Contract, Outcome, Refusal, Role
from mastermind.referee.match import Match, Staked, read_player
from mastermind.rules import Rules
from mastermind.zk.evidence import Proof, canonical_json, parse_json, parse_public_signals, public_json
from mastermind.zk.verify import Statement, Verifier

#: A certificate is the largest thing that is sent: two proofs and some field elements.
MAX_BYTES = 1 << 14


@dataclass(frozen=True)
class Circumstances:
    """What a request meets at the referee.

    Attributes:
        credit: what the payer has, in credits; 0 for requests without one.
    """

    referee_id: int
    slot: int
    credit: int


#: What a verified request does to the game or match; None: there is none of this name yet.
Effect = Callable[[Staked | None, Circumstances], Outcome[Staked]]

#: What a request is about, as in the paths of the service.
About = Literal["games", "matches"]

#: Whom a forfeit names.
Winner = TypeVar("Winner", Role, Player)

_Claim = tuple[str, Statement, int | None]


@dataclass(frozen=True)
class Consent:
    """A player's agreement.

    Attributes:
        nonce: used once by this player.
        proof: of `authorise`.
    """

    nonce: int
    proof: Proof

    @classmethod
    def parse(cls, data: object) -> Consent:
        """Read a consent. Raises MalformedEvidenceError."""
        fields = _read_object(data, "consent", {"nonce", "proof"})
        return cls(read_element(fields, "nonce", "consent."), read_proof(fields["proof"], "consent.proof"))

    def to_json(self) -> dict[str, Any]:
        return {"nonce": str(self.nonce), "proof": self.proof.to_json()}


@dataclass(frozen=True)
class Signature:
    """Who has agreed to what: a consent in its request.

    Attributes:
        amount: credits agreed to; 0 where none are at stake.
    """

    player_id: int
    action: str
    amount: int
    consent: Consent


def agreement(action: str, referee_id: int, game: int, amount: int, nonce: int) -> Agreement:
    """What a player agrees to at a referee; `game` is the solution hash, which is there before there is a game id."""
    return Agreement(action, game, nonce, referee=referee_id, amount=amount)


class Request(ABC):
    """One request.

    Attributes:
        method: the method of the contract that it calls.
        about: whether it is about a game or a match.
        signature: the consent in it, if it needs one.
        payer: the player whose credit it spends, if it does.
    """

    method: ClassVar[str]
    about: ClassVar[About] = "games"

    @classmethod
    @abstractmethod
    def parse(cls, data: object) -> Self:
        """Read a request from parsed JSON. Raises MalformedEvidenceError."""

    @property
    def signature(self) -> Signature | None:
        return None

    @property
    def payer(self) -> int | None:
        return None

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The object that `parse_request` reads."""

    @abstractmethod
    def verify(self, keys: VerifyingKeys, verifier: Verifier, *, referee_id: int, game: int) -> Effect:
        """Verify every proof and return what the request does; the effect raises what the contract's method raises.

        Raises:
            ProofRejectedError: a proof does not show what it should.
        """


class _Stated(Request):
    """A request whose statements can be read off it."""

    def verify(self, keys: VerifyingKeys, verifier: Verifier, *, referee_id: int, game: int) -> Effect:
        claims = self._claims(keys)
        signed = self.signature
        if signed is not None:
            message = agreement(signed.action, referee_id, game, signed.amount, signed.consent.nonce).message()
            claims.append(
                ("the consent", (keys.keys["authorise"], (signed.player_id, message), signed.consent.proof), None)
            )
        try:
            require_proofs(verifier, claims)
        except RejectedEvidenceError as error:
            raise _rejected(error) from error
        return self._perform

    def _claims(self, keys: VerifyingKeys) -> list[_Claim]:
        """What is to be proved besides the signature."""
        return []

    @abstractmethod
    def _perform(self, contract: Staked | None, now: Circumstances) -> Outcome[Staked]: ...


@dataclass(frozen=True)
class InitGame(_Stated):
    """The master opens a game."""

    method: ClassVar[str] = "init_game"
    rules: Rules
    key_set_id: str
    reward: int
    step: ProvedStep
    consent: Consent

    @classmethod
    def parse(cls, data: object) -> Self:
        fields = _read_object(data, "", {"rules", "key_set_id", "reward", "step", "consent"})
        return cls(
            read_rules(fields["rules"]),
            read_key_set_id(fields["key_set_id"]),
            _read_amount(fields, "reward"),
            _read_step(fields["step"], "open_game"),
            Consent.parse(fields["consent"]),
        )

    @property
    def solution_hash(self) -> int:
        """The name that the game will have."""
        return self.step.step.public_signals[0]

    @property
    def signature(self) -> Signature:
        return Signature(self.payer, self.method, self.reward, self.consent)

    @property
    def payer(self) -> int:
        return self.step.step.public_signals[1]

    def to_json(self) -> dict[str, Any]:
        return {
            "rules": self.rules.spelling,
            "key_set_id": self.key_set_id,
            "reward": self.reward,
            "step": self.step.to_json(),
            "consent": self.consent.to_json(),
        }

    def _claims(self, keys: VerifyingKeys) -> list[_Claim]:
        return [_step_claim(self.step, keys)]

    def _perform(self, contract: Staked | None, now: Circumstances) -> Outcome[Staked]:
        _require_new(contract)
        return rules_of.init_game(self.rules, now.referee_id, self.reward, self.step.step, credit=now.credit)


@dataclass(frozen=True)
class AcceptGame(_Stated):
    """A breaker joins and stakes the same reward."""

    method: ClassVar[str] = "accept_game"
    reward: int
    step: ProvedStep
    consent: Consent

    @classmethod
    def parse(cls, data: object) -> Self:
        fields = _read_object(data, "", {"reward", "step", "consent"})
        return cls(
            _read_amount(fields, "reward"),
            _read_step(fields["step"], "join_game"),
            Consent.parse(fields["consent"]),
        )

    @property
    def signature(self) -> Signature:
        return Signature(self.payer, self.method, self.reward, self.consent)

    @property
    def payer(self) -> int:
        return self.step.step.public_signals[0]

    def to_json(self) -> dict[str, Any]:
        return {"reward": self.reward, "step": self.step.to_json(), "consent": self.consent.to_json()}

    def _claims(self, keys: VerifyingKeys) -> list[_Claim]:
        return [_step_claim(self.step, keys)]

    def _perform(self, contract: Staked | None, now: Circumstances) -> Outcome[Staked]:
        return rules_of.accept_game(_known(contract), self.reward, self.step.step, now.slot, credit=now.credit)


@dataclass(frozen=True)
class Move(_Stated):
    """A move: its step proof is all it needs."""

    step: ProvedStep

    @classmethod
    def parse(cls, data: object) -> Self:
        return cls(_read_step(_read_object(data, "", {"step"})["step"], cast(StepKind, cls.method)))

    def to_json(self) -> dict[str, Any]:
        return {"step": self.step.to_json()}

    def _claims(self, keys: VerifyingKeys) -> list[_Claim]:
        return [_step_claim(self.step, keys)]


@dataclass(frozen=True)
class MakeGuess(Move):
    """The breaker guesses."""

    method: ClassVar[str] = "make_guess"

    def _perform(self, contract: Staked | None, now: Circumstances) -> Outcome[Staked]:
        return rules_of.make_guess(_known(contract), self.step.step, now.slot)


@dataclass(frozen=True)
class GiveClue(Move):
    """The master answers."""

    method: ClassVar[str] = "give_clue"

    def _perform(self, contract: Staked | None, now: Circumstances) -> Outcome[Staked]:
        return rules_of.give_clue(_known(contract), self.step.step, now.slot)


@dataclass(frozen=True)
class SubmitGameProof(Request):
    """Anyone shows how the game has gone on elsewhere."""

    method: ClassVar[str] = "submit_game_proof"
    certificate: Certificate

    @classmethod
    def parse(cls, data: object) -> Self:
        fields = _read_object(data, "", {"certificate"})
        try:
            return cls(Certificate.parse(canonical_json(fields["certificate"])))
        except MalformedEvidenceError as error:
            raise MalformedEvidenceError(f"certificate: {error}", field=f"certificate.{error.field}") from error

    def to_json(self) -> dict[str, Any]:
        return {"certificate": self.certificate.to_json()}

    def verify(self, keys: VerifyingKeys, verifier: Verifier, *, referee_id: int, game: int) -> Effect:
        try:
            return partial(self._jump, self.certificate.verify(keys, verifier))
        except RejectedEvidenceError as error:
            raise _rejected(error) from error

    def _jump(self, shown: GameState, contract: Staked | None, now: Circumstances) -> Outcome[Staked]:
        return rules_of.submit_game_proof(_known(contract), shown, now.slot)


@dataclass(frozen=True)
class ClaimReward(_Stated):
    """The winner claims the pot."""

    method: ClassVar[str] = "claim_reward"
    player_id: int
    amount: int
    consent: Consent

    @classmethod
    def parse(cls, data: object) -> Self:
        fields = _read_object(data, "", {"player_id", "amount", "consent"})
        return cls(read_element(fields, "player_id"), _read_amount(fields, "amount"), Consent.parse(fields["consent"]))

    @property
    def signature(self) -> Signature:
        return Signature(self.player_id, self.method, self.amount, self.consent)

    def to_json(self) -> dict[str, Any]:
        return {"player_id": str(self.player_id), "amount": self.amount, "consent": self.consent.to_json()}

    def _perform(self, contract: Staked | None, now: Circumstances) -> Outcome[Staked]:
        return rules_of.claim_reward(_known(contract), self.player_id, self.amount, now.slot)


@dataclass(frozen=True)
class _Forfeit(_Stated, Generic[Winner]):
    """The referee's key gives the pot to one of the players; the winner is part of what it agrees to."""

    referee_id: int
    winner: Winner
    amount: int
    consent: Consent

    @classmethod
    def parse(cls, data: object) -> Self:
        fields = _read_object(data, "", {"referee_id", "winner", "amount", "consent"})
        return cls(
            read_element(fields, "referee_id"),
            cls._read_winner(fields["winner"]),
            _read_amount(fields, "amount"),
            Consent.parse(fields["consent"]),
        )

    @classmethod
    @abstractmethod
    def _read_winner(cls, data: object) -> Winner: ...

    @classmethod
    def action(cls, winner: Winner) -> str:
        """What the referee's key agrees to."""
        return f"{cls.method} {winner}"

    @property
    def signature(self) -> Signature:
        return Signature(self.referee_id, self.action(self.winner), self.amount, self.consent)

    def to_json(self) -> dict[str, Any]:
        return {
            "referee_id": str(self.referee_id),
            "winner": self.winner,
            "amount": self.amount,
            "consent": self.consent.to_json(),
        }


@dataclass(frozen=True)
class ForfeitWin(_Forfeit[Role]):
    """The referee's key ends a game."""

    method: ClassVar[str] = "forfeit_win"

    @classmethod
    def _read_winner(cls, data: object) -> Role:
        if data == "master":
            return "master"
        if data == "breaker":
            return "breaker"
        raise MalformedEvidenceError("winner is neither master nor breaker", field="winner")

    def _perform(self, contract: Staked | None, now: Circumstances) -> Outcome[Staked]:
        return rules_of.forfeit_win(_known(contract), self.referee_id, self.winner, self.amount)


@dataclass(frozen=True)
class Settle(_Stated):
    """Anyone has an abandoned pot paid out."""

    method: ClassVar[str] = "settle"
    player_id: int
    consent: Consent

    @classmethod
    def parse(cls, data: object) -> Self:
        fields = _read_object(data, "", {"player_id", "consent"})
        return cls(read_element(fields, "player_id"), Consent.parse(fields["consent"]))

    @property
    def signature(self) -> Signature:
        return Signature(self.player_id, self.method, 0, self.consent)

    def to_json(self) -> dict[str, Any]:
        return {"player_id": str(self.player_id), "consent": self.consent.to_json()}

    def _perform(self, contract: Staked | None, now: Circumstances) -> Outcome[Staked]:
        return rules_of.settle(_known(contract), now.slot)


class _OfMatch(Request):
    """A request about a match."""

    about: ClassVar[About] = "matches"


@dataclass(frozen=True)
class OpenMatch(_OfMatch, InitGame):
    """The host opens a match, with the opening of the game that the guest will break."""

    method: ClassVar[str] = "open_match"

    def _perform(self, contract: Staked | None, now: Circumstances) -> Outcome[Staked]:
        _require_new(contract)
        return match_rules.open_match(self.rules, now.referee_id, self.reward, self.step.step, credit=now.credit)


@dataclass(frozen=True)
class JoinMatch(_OfMatch, _Stated):
    """A guest joins a match: opens a game, and joins the host's.

    The guest agrees to both games by name: openings and joining steps from elsewhere, even the guest's own, are no use.
    """

    method: ClassVar[str] = "join_match"
    reward: int
    opening: ProvedStep
    step: ProvedStep
    consent: Consent

    @classmethod
    def parse(cls, data: object) -> Self:
        fields = _read_object(data, "", {"reward", "opening", "step", "consent"})
        return cls(
            _read_amount(fields, "reward"),
            _read_step(fields["opening"], "open_game", "opening"),
            _read_step(fields["step"], "join_game"),
            Consent.parse(fields["consent"]),
        )

    @classmethod
    def action(cls, opening: Step, step: Step) -> str:
        """What the guest agrees to; it names the guest's solution hash and the message of the joining step."""
        return f"{cls.method} {opening.public_signals[0]} {step.public_signals[1]}"

    @property
    def signature(self) -> Signature:
        action = self.action(self.opening.step, self.step.step)
        return Signature(self.payer, action, self.reward, self.consent)

    @property
    def payer(self) -> int:
        return self.step.step.public_signals[0]

    def to_json(self) -> dict[str, Any]:
        return {
            "reward": self.reward,
            "opening": self.opening.to_json(),
            "step": self.step.to_json(),
            "consent": self.consent.to_json(),
        }

    def _claims(self, keys: VerifyingKeys) -> list[_Claim]:
        return [_step_claim(self.opening, keys), _step_claim(self.step, keys)]

    def _perform(self, contract: Staked | None, now: Circumstances) -> Outcome[Staked]:
        return match_rules.join_match(
            _known_match(contract), self.reward, self.opening.step, self.step.step, now.slot, credit=now.credit
        )


@dataclass(frozen=True)
class StartMatch(_OfMatch, _Stated):
    """The host joins the guest's game, and agrees to that in this match: a joining step from elsewhere is no use."""

    method: ClassVar[str] = "start_match"
    player_id: int
    step: ProvedStep
    consent: Consent

    @classmethod
    def parse(cls, data: object) -> Self:
        fields = _read_object(data, "", {"player_id", "step", "consent"})
        return cls(
            read_element(fields, "player_id"), _read_step(fields["step"], "join_game"), Consent.parse(fields["consent"])
        )

    @classmethod
    def action(cls, step: Step) -> str:
        """What the host agrees to; it names the message of the joining step."""
        return f"{cls.method} {step.public_signals[1]}"

    @property
    def signature(self) -> Signature:
        return Signature(self.player_id, self.action(self.step.step), 0, self.consent)

    def to_json(self) -> dict[str, Any]:
        return {"player_id": str(self.player_id), "step": self.step.to_json(), "consent": self.consent.to_json()}

    def _claims(self, keys: VerifyingKeys) -> list[_Claim]:
        return [_step_claim(self.step, keys)]

    def _perform(self, contract: Staked | None, now: Circumstances) -> Outcome[Staked]:
        return match_rules.start_match(_known_match(contract), self.player_id, self.step.step, now.slot)


@dataclass(frozen=True)
class PlayStep(_OfMatch, Move):
    """A guess or an answer, in the game of the match that it belongs to."""

    method: ClassVar[str] = "play_step"

    @classmethod
    def parse(cls, data: object) -> Self:
        step = _read_object(data, "", {"step"})["step"]
        name = step.get("step") if isinstance(step, dict) else None
        return cls(_read_step(step, "give_clue" if name == "give_clue" else "make_guess"))

    def _perform(self, contract: Staked | None, now: Circumstances) -> Outcome[Staked]:
        return match_rules.play_step(_known_match(contract), self.step.step, now.slot)


@dataclass(frozen=True)
class ClaimMatch(_OfMatch, ClaimReward):
    """Whoever waits for a late move claims the pot."""

    method: ClassVar[str] = "claim_match"

    def _perform(self, contract: Staked | None, now: Circumstances) -> Outcome[Staked]:
        return match_rules.claim_match(_known_match(contract), self.player_id, self.amount, now.slot)


@dataclass(frozen=True)
class ForfeitMatch(_OfMatch, _Forfeit[Player]):
    """The referee's key ends a match."""

    method: ClassVar[str] = "forfeit_match"

    @classmethod
    def _read_winner(cls, data: object) -> Player:
        return read_player(data, "winner")

    def _perform(self, contract: Staked | None, now: Circumstances) -> Outcome[Staked]:
        return match_rules.forfeit_match(_known_match(contract), self.referee_id, self.winner, self.amount)


@dataclass(frozen=True)
class SettleMatch(_OfMatch, Settle):
    """Anyone has an abandoned pot paid out."""

    method: ClassVar[str] = "settle_match"

    def _perform(self, contract: Staked | None, now: Circumstances) -> Outcome[Staked]:
        return match_rules.settle_match(_known_match(contract), now.slot)


@dataclass(frozen=True)
class OpenCode(_OfMatch, _Stated):
    """A player opens their code after the end, as `mastermind.game.reveal` does: the proof is the signature.

    Attributes:
        public_signals: of the proof, which is of `give_clue`.
    """

    method: ClassVar[str] = "open_code"
    public_signals: tuple[int, ...]
    proof: Proof

    @classmethod
    def parse(cls, data: object) -> Self:
        fields = _read_object(data, "", {"public", "proof"})
        return cls(_read_signals(fields["public"], "give_clue", "public"), read_proof(fields["proof"], "proof"))

    def to_json(self) -> dict[str, Any]:
        return {"public": public_json(self.public_signals), "proof": self.proof.to_json()}

    def _claims(self, keys: VerifyingKeys) -> list[_Claim]:
        return [("the opened code", (keys.keys["give_clue"], self.public_signals, self.proof), None)]

    def _perform(self, contract: Staked | None, now: Circumstances) -> Outcome[Staked]:
        return match_rules.open_code(_known_match(contract), self.public_signals)


_REQUESTS: tuple[type[Request], ...] = (
    InitGame, AcceptGame, MakeGuess, GiveClue, SubmitGameProof, ClaimReward, ForfeitWin, Settle,
    OpenMatch, JoinMatch, StartMatch, PlayStep, ClaimMatch, ForfeitMatch, SettleMatch, OpenCode,
)  # fmt: skip
_PARSERS: Mapping[str, Callable[[object], Request]] = {request.method: request.parse for request in _REQUESTS}
#: The methods about a game and about a match; the first one of each opens it.
METHODS = tuple(request.method for request in _REQUESTS if request.about == "games")
MATCH_METHODS = tuple(request.method for request in _REQUESTS if request.about == "matches")


def parse_request(method: str, data: bytes) -> Request:
    """Read the body of a request.

    Raises:
        MalformedEvidenceError: it is not one; `field` names the bad part.
    """
    try:
        content = parse_json(data, max_bytes=MAX_BYTES)
    except ValueError as error:
        raise MalformedEvidenceError(f"it is not acceptable JSON: {error}", field="body") from error
    return read_request(method, content)


def read_request(method: str, content: object) -> Request:
    """Read a request from parsed JSON. Raises MalformedEvidenceError."""
    parser = _PARSERS.get(method)
    if parser is None:
        raise MalformedEvidenceError("there is no such method", field="method")
    return parser(content)


def digest(game: int, method: str, request: bytes) -> str:
    """SHA-256 of a request (as canonical JSON) to one game, in hex: the same only for the very same one, proofs too."""
    return hashlib.sha256(b"%d %s " % (game, method.encode()) + request).hexdigest()


def _require_new(contract: Staked | None) -> None:
    if contract is not None:
        raise ReplayError(str(Refusal.ALREADY_OPEN), refusal=Refusal.ALREADY_OPEN.name.lower())


def _known(contract: Staked | None) -> Contract:
    if not isinstance(contract, Contract):
        raise UnknownGameError("this referee has no such game", refusal="unknown_game")
    return contract


def _known_match(contract: Staked | None) -> Match:
    if not isinstance(contract, Match):
        raise UnknownGameError("this referee has no such match", refusal="unknown_game")
    return contract


def _rejected(error: RejectedEvidenceError) -> ProofRejectedError:
    return ProofRejectedError(str(error), refusal="proof_rejected")


def _step_claim(proved: ProvedStep, keys: VerifyingKeys) -> _Claim:
    return f"the step {proved.step.kind}", keys.statement(proved), None


def _read_object(data: object, where: str, names: set[str]) -> Mapping[str, Any]:
    """An object that has these fields; others are ignored."""
    if not isinstance(data, dict):
        raise MalformedEvidenceError(f"{where or 'the request'} is not an object", field=where or "body")
    for name in sorted(names - data.keys()):
        path = f"{where}.{name}" if where else name
        raise MalformedEvidenceError(f"{path} is missing", field=path)
    return data


def _read_amount(fields: Mapping[str, Any], name: str) -> int:
    value = fields[name]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 2 * MAX_REWARD:
        raise MalformedEvidenceError(f"{name} is not a number of credits", field=name)
    return value


def _read_step(data: object, kind: StepKind, where: str = "step") -> ProvedStep:
    """A step as in a transcript, of the kind that the request is for."""
    proved = read_step(data, where)
    if proved.step.kind != kind:
        raise MalformedEvidenceError(f"{where}.step is not {kind}", field=f"{where}.step")
    _require_count(proved.step.public_signals, kind, f"{where}.public")
    return proved


def _read_signals(data: object, kind: StepKind, where: str) -> tuple[int, ...]:
    """The public signals of the circuit of a step."""
    try:
        public_signals = parse_public_signals(data)
    except InvalidInputError as error:
        raise MalformedEvidenceError(f"{where}: {error}", field=where) from error
    _require_count(public_signals, kind, where)
    return public_signals


def _require_count(public_signals: Sequence[int], kind: StepKind, where: str) -> None:
    if len(public_signals) != SIGNAL_COUNTS[kind]:
        raise MalformedEvidenceError(f"{where} does not have {SIGNAL_COUNTS[kind]} signals", field=where)
