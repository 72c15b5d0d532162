"""The log of a game or match: everything that was asked of the referee and what came of it, to be checked by anyone.

    {"format": "mastermind referee log 1", "referee_id": "...", "slot_seconds": 180, "rules": "4x8u7",
     "key_set_id": "...", "game": "<solution hash>",
     "events": [{"event": 0, "slot": 9, "method": "init_game", "request": {...}, "packed": "..."}, ...]}

`audit` does again what the referee did - every proof, every rule, every slot - and compares the packed state after each
event. Nothing of the referee is believed, but one thing: whether a player had the credits, which only the books know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mastermind.errors import MalformedEvidenceError, RefereeError, RejectedEvidenceError
from mastermind.game.steps import GameState
from mastermind.game.transcript import (
    VerifyingKeys,
    read_element,
    read_fields,
    read_file,
    read_key_set_id,
    read_rules,
)
from mastermind.referee.contract import MAX_REWARD, MAX_SLOT, Contract, may_claim
from mastermind.referee.match import Match, Staked, read_player
from mastermind.referee.match import may_claim as may_claim_match
from mastermind.referee.requests import Circumstances, Request, read_request
from mastermind.rules import Clue, Code, Rules
from mastermind.zk.verify import Verifier

FORMAT = "mastermind referee log 1"
#: A match of 42 attempts has some 180 events of under 4 KB.
MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class Event:
    """One accepted request.

    Attributes:
        number: in its game, from 0.
        slot: when it was accepted.
        packed: the packed state afterwards.
    """

    number: int
    slot: int
    request: Request
    packed: int

    def to_json(self) -> dict[str, Any]:
        return {
            "event": self.number,
            "slot": self.slot,
            "method": self.request.method,
            "request": self.request.to_json(),
            "packed": str(self.packed),
        }


@dataclass(frozen=True)
class GameLog:
    """The log of one game or match as read; `audit` says what it shows.

    Attributes:
        game: its solution hash.
    """

    referee_id: int
    slot_seconds: int
    rules: Rules
    key_set_id: str
    game: int
    events: tuple[Event, ...]

    @classmethod
    def parse(cls, data: bytes) -> GameLog:
        """Read a log. Raises MalformedEvidenceError."""
        names = {"referee_id", "slot_seconds", "rules", "key_set_id", "game", "events"}
        fields = read_fields(data, FORMAT, names, MAX_BYTES)
        events = fields["events"]
        if not isinstance(events, list):
            raise MalformedEvidenceError("events is not a list", field="events")
        return cls(
            referee_id=read_element(fields, "referee_id"),
            slot_seconds=_read_count(fields, "slot_seconds", ""),
            rules=read_rules(fields["rules"]),
            key_set_id=read_key_set_id(fields["key_set_id"]),
            game=read_element(fields, "game"),
            events=tuple(_read_event(event, index) for index, event in enumerate(events)),
        )

    @classmethod
    def read(cls, path: Path) -> GameLog:
        """Read a log file. Raises MalformedEvidenceError."""
        return read_file(path, cls.parse, MAX_BYTES)

    def to_json(self) -> dict[str, Any]:
        """The object that `parse` reads."""
        return {
            "format": FORMAT,
            "referee_id": str(self.referee_id),
            "slot_seconds": self.slot_seconds,
            "rules": self.rules.spelling,
            "key_set_id": self.key_set_id,
            "game": str(self.game),
            "events": [event.to_json() for event in self.events],
        }

    def audit(self, keys: VerifyingKeys, verifier: Verifier) -> Staked:
        """Do again what the referee did and return the game or match at the end.

        Raises:
            RejectedEvidenceError: other keys, a proof that does not hold, or something that the rules do not
                allow; `step` is the number of the bad event.
        """
        keys.require(self.rules, self.key_set_id)
        contract: Staked | None = None
        used: set[tuple[int, int]] = set()
        slot = 0
        for event in self.events:
            number, request = event.number, event.request
            if event.slot < slot:
                raise RejectedEvidenceError(f"event {number} is before the one before it", reason="slot", step=number)
            slot = event.slot
            if request.signature is not None:
                nonce = (request.signature.player_id, request.signature.consent.nonce)
                if nonce in used:
                    raise RejectedEvidenceError(f"event {number} uses a nonce again", reason="nonce", step=number)
                used.add(nonce)
            try:
                effect = request.verify(keys, verifier, referee_id=self.referee_id, game=self.game)
                contract = effect(contract, Circumstances(self.referee_id, slot, credit=MAX_REWARD)).contract
            except RefereeError as error:
                raise RejectedEvidenceError(
                    f"event {number} ({request.method}) is refused: {error}", reason=error.refusal, step=number
                ) from error
            if contract.solution_hash != self.game:
                raise RejectedEvidenceError(f"event {number} opens another game", reason="wrong_game", step=number)
            if contract.packed != event.packed:
                raise RejectedEvidenceError(
                    f"event {number} ({request.method}) leads to another state than the log says",
                    reason="other_state",
                    step=number,
                )
        if contract is None:
            raise RejectedEvidenceError("the log is empty", reason="empty")
        return contract


def staked_json(contract: Staked, slot: int) -> dict[str, Any]:
    """A game or a match as everybody may see it; `slot` decides who may claim."""
    return match_json(contract, slot) if isinstance(contract, Match) else contract_json(contract, slot)


def contract_json(contract: Contract, slot: int) -> dict[str, Any]:
    """A contract as everybody may see it; `slot` decides who may claim."""
    game = contract.game
    return {
        "rules": game.rules.spelling,
        "referee_id": str(contract.referee_id),
        "reward": contract.reward,
        "pot": contract.pot,
        **_board_json(game),
        "is_solved": game.solved,
        "winner": game.winner,
        "next_step": game.next_step,
        "finalize_slot": contract.finalize_slot,
        "last_played_slot": contract.last_played_slot,
        "may_claim": None if contract.closed else may_claim(contract, slot),
        "packed": str(contract.packed),
    }


def read_contract(fields: Mapping[str, Any]) -> Contract:
    """Read what `contract_json` wrote; what follows from the rest is not read but follows again.

    Raises:
        MalformedEvidenceError: it is not such an object.
    """
    with _reading("a contract"):
        return Contract(
            referee_id=read_element(fields, "referee_id"),
            reward=int(fields["reward"]),
            pot=int(fields["pot"]),
            game=_read_board(read_rules(fields["rules"]), fields),
            finalize_slot=_read_count(fields, "finalize_slot", ""),
            last_played_slot=_read_count(fields, "last_played_slot", ""),
        )


def match_json(match: Match, slot: int) -> dict[str, Any]:
    """A match as everybody may see it; players are 0, the host, and 1, the guest, and `slot` decides who may claim."""
    move = match.next_move
    return {
        "rules": match.rules.spelling,
        "referee_id": str(match.referee_id),
        "reward": match.reward,
        "pot": match.pot,
        "players": [_text(player_id) for player_id in match.players],
        "boards": [_board_json(board) for board in match.boards],
        "last_played_slot": match.last_played_slot,
        "next": None if move is None else {"player": move[0], "step": move[1]},
        "outcome": match.outcome.name.lower(),
        "paid": list(match.paid),
        "codes": [None if code is None else list(code) for code in match.codes],
        "may_claim": None if match.closed else may_claim_match(match, slot),
        "packed": str(match.packed),
    }


def read_match(fields: Mapping[str, Any]) -> Match:
    """Read what `match_json` wrote; what follows from the rest is not read but follows again.

    Raises:
        MalformedEvidenceError: it is not such an object.
    """
    with _reading("a match"):
        rules = read_rules(fields["rules"])
        first, second = (_read_board(rules, board) for board in fields["boards"])
        hosts_code, guests_code = (_read_code(rules, code) for code in fields["codes"])
        if second.solution_hash is None or second.master_id is None:
            raise ValueError
        return Match(
            referee_id=read_element(fields, "referee_id"),
            reward=int(fields["reward"]),
            pot=int(fields["pot"]),
            boards=(first, second),
            last_played_slot=_read_count(fields, "last_played_slot", ""),
            paid=tuple(read_player(player, "paid") for player in fields["paid"]),
            codes=(hosts_code, guests_code),
        )


def _board_json(game: GameState) -> dict[str, Any]:
    return {
        "solution_hash": _text(game.solution_hash),
        "master_id": _text(game.master_id),
        "breaker_id": _text(game.breaker_id),
        "game_id": _text(game.game_id),
        "turn_count": game.turn_count,
        "guesses": [list(guess) for guess in game.guesses],
        "clues": [list(clue) for clue in game.clues],
    }


def _read_board(rules: Rules, fields: Mapping[str, Any]) -> GameState:
    def read(name: str) -> int | None:
        return None if fields[name] is None else read_element(fields, name)

    return GameState(
        rules,
        master_id=read("master_id"),
        solution_hash=read("solution_hash"),
        breaker_id=read("breaker_id"),
        game_id=read("game_id"),
        turn_count=_read_count(fields, "turn_count", ""),
        guesses=tuple(rules.require_code(guess, "guess") for guess in fields["guesses"]),
        clues=tuple(rules.require_clue(Clue(*clue)) for clue in fields["clues"]),
    )


def _read_code(rules: Rules, code: Any) -> Code | None:
    return None if code is None else rules.require_code(code)


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """What does not read as it was written is malformed."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, MalformedEvidenceError):
            raise
        raise MalformedEvidenceError(f"it is not {what}", field=what.split()[-1]) from error


def _read_event(data: object, index: int) -> Event:
    where = f"events[{index}]"
    if not isinstance(data, dict) or data.keys() != {"event", "slot", "method", "request", "packed"}:
        raise MalformedEvidenceError(f"{where} is not an event", field=where)
    if data["event"] != index or isinstance(data["event"], bool):
        raise MalformedEvidenceError(f"{where} has another number", field=f"{where}.event")
    try:
        request = read_request(str(data["method"]), data["request"])
    except MalformedEvidenceError as error:
        raise MalformedEvidenceError(f"{where}: {error}", field=f"{where}.{error.field}") from error
    return Event(index, _read_count(data, "slot", f"{where}."), request, read_element(data, "packed", f"{where}."))


def _read_count(fields: Mapping[str, Any], name: str, where: str) -> int:
    value = fields[name]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_SLOT:
        raise MalformedEvidenceError(f"{where}{name} is not a count", field=f"{where}{name}")
    return value


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)
