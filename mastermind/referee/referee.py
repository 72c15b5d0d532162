"""The referee at work: reads a request, verifies its proofs, and changes the books in one transaction.

Knows requests, rules and books, and nothing of HTTP. Any number of threads and processes may run one each on the same
books.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mastermind.errors import (
    LimitReachedError,
    ProofRejectedError,
    RefereeError,
    UnknownGameError,
    WrongStateError,
    counted,
)
from mastermind.game.reveal import Reveal
from mastermind.game.transcript import Transcript, VerifyingKeys
from mastermind.referee.contract import PER_TURN_SLOTS, SETTLE_SLOTS
from mastermind.referee.ledger import HOUSE, Transfer, player_account
from mastermind.referee.log import FORMAT, staked_json
from mastermind.referee.match import GUEST, HOST, Match
from mastermind.referee.requests import (
    About,
    Circumstances,
    Effect,
    InitGame,
    Request,
    digest,
    parse_request,
)
from mastermind.referee.storage import RefereeRecord, Storage, StoredEvent, StoredGame, Transaction
from mastermind.zk.evidence import Proof, canonical_json
from mastermind.zk.verify import Verifier

#: What the name of a game or match is called in answers.
_NAMES: Mapping[About, str] = {"games": "game", "matches": "match"}

#: Tells the present slot.
Clock = Callable[[], int]


def wall_clock(slot_seconds: int) -> Clock:
    """Slots of the system's clock, counted from 1970: the same on all machines."""
    return lambda: int(time.time()) // slot_seconds


@dataclass(frozen=True)
class Terms:
    """On what terms a referee takes games.

    Attributes:
        welcome: credits that a player has from the house at the first stake, while the house has them.
        games_per_player: stakes that one player may have at a time.
        allow_development_keys: whether games may be staked on keys whose maker can prove anything.
    """

    welcome: int = 0
    games_per_player: int = 20
    allow_development_keys: bool = False


class Referee:
    """One referee over its books."""

    def __init__(
        self,
        storage: Storage,
        key_sets: Mapping[str, VerifyingKeys],
        verifier: Verifier,
        terms: Terms,
        clock: Clock | None = None,
    ) -> None:
        """Work on `storage` with these verifying keys, by key set id; no others are ever used.

        Raises:
            InvalidInputError: the storage has no books.
        """
        self.record: RefereeRecord = storage.record()
        self.terms = terms
        self.storage = storage
        self.key_sets = dict(key_sets)
        self.clock = clock or wall_clock(self.record.slot_seconds)
        self._verifier = verifier

    @property
    def id(self) -> int:
        """The player id of the referee's key."""
        return self.record.referee_id

    def act(self, method: str, game: int | None, body: bytes) -> str:
        """Do what a request asks and return the answer as JSON, the same for the same request however often it comes.

        `game` is the solution hash; None for `init_game` and `open_match`, whose step names it.

        Raises:
            MalformedEvidenceError: the body is not such a request.
            RefereeError: it is refused, and nothing has changed.
        """
        request = parse_request(method, body)
        if isinstance(request, InitGame):
            game = request.solution_hash
        assert game is not None
        keys = self._keys(request, game)
        if request.payer in keys.sole_contributors:
            raise ProofRejectedError(
                "nobody plays for stakes on keys that they alone have made: they could prove anything",
                refusal="sole_contributor",
            )
        effect = request.verify(keys, self._verifier, referee_id=self.id, game=game)
        text = canonical_json(request.to_json())
        identifier = digest(game, request.method, text)
        return self.storage.transact(
            lambda books: self._commit(books, game, request, text.decode(), identifier, keys, effect)
        )

    def grant(self, player_id: int, amount: int) -> tuple[int, bool]:
        """Give a player credits of the house, for whoever runs the referee.

        Returns what the player then has, and whether this player had been seen before; if not, the welcome is in it
        too, as at the first stake.

        Raises:
            InsufficientCreditError: the house does not have them.
        """
        account = player_account(player_id)

        def give(books: Transaction) -> tuple[int, bool]:
            seen = books.lock_balance(account) is not None
            welcome = 0 if seen else self._welcome(books)
            books.transfer(Transfer(HOUSE, account, welcome + amount), "grant")
            return books.balance(account) or 0, seen

        return self.storage.transact(give)

    def game_json(self, game: int, about: About = "games") -> dict[str, Any]:
        """A game or match as it is now. Raises UnknownGameError."""
        return self._game_json(self._stored(game, about))

    def games_json(self, status: str, limit: int, after: int | None, about: About = "games") -> dict[str, Any]:
        """Games or matches of a status, the newest first, and whether there may be more."""
        games = self.storage.look(lambda view: view.games(about, status, limit, after))
        return {about: [self._game_json(stored) for stored in games], "more": len(games) == limit}

    def log_json(self, game: int, about: About = "games") -> dict[str, Any]:
        """The log of a game or match, as `mastermind.referee.log` reads it. Raises UnknownGameError."""
        stored, events = self._events(game, about)
        return {
            "format": FORMAT,
            "referee_id": str(self.id),
            "slot_seconds": self.record.slot_seconds,
            "rules": stored.contract.rules.spelling,
            "key_set_id": stored.key_set_id,
            "game": str(game),
            "events": [
                {
                    "event": happened.number,
                    "slot": happened.slot,
                    "method": happened.method,
                    "request": json.loads(happened.request),
                    "packed": happened.packed,
                }
                for happened in events
            ],
        }

    def transcript_json(self, game: int) -> dict[str, Any]:
        """The transcript of a game, as `mastermind game verify` reads it.

        Raises:
            UnknownGameError: no such game.
            WrongStateError: a certificate has jumped over steps that the referee has never seen.
        """
        stored, events = self._events(game, "games")
        if any(happened.method == "submit_game_proof" for happened in events):
            raise WrongStateError(
                "a certificate has taken this game over steps that were played elsewhere", refusal="steps_missing"
            )
        requests = [json.loads(happened.request) for happened in events]
        empty = Transcript(stored.contract.rules, stored.key_set_id)
        return {**empty.to_json(), "steps": [request["step"] for request in requests if "step" in request]}

    def duel_json(self, match: int) -> dict[str, Any]:
        """Both transcripts of a match, by the player who breaks, and the openings of the codes, by their owner.

        Raises UnknownGameError.
        """
        stored, events = self._events(match, "matches")
        assert isinstance(stored.contract, Match)
        boards, codes = stored.contract.boards, stored.contract.codes
        steps: tuple[list[Any], list[Any]] = ([], [])
        openings: list[dict[str, Any] | None] = [None, None]
        for happened in events:
            request = json.loads(happened.request)
            match happened.method:
                case "open_match":
                    steps[GUEST].append(request["step"])
                case "join_match":
                    steps[HOST].append(request["opening"])
                    steps[GUEST].append(request["step"])
                case "start_match":
                    steps[HOST].append(request["step"])
                case "play_step":
                    breaker = HOST if request["step"]["public"][0] == str(boards[HOST].game_id) else GUEST
                    steps[breaker].append(request["step"])
                case "open_code":
                    owner = GUEST if request["public"][0] == str(boards[HOST].game_id) else HOST
                    code = codes[owner]
                    assert code is not None
                    proof = Proof.parse(request["proof"])
                    openings[owner] = Reveal(stored.contract.rules, stored.key_set_id, code, proof).to_json()
        empty = Transcript(stored.contract.rules, stored.key_set_id).to_json()
        return {"games": [{**empty, "steps": steps[HOST]}, {**empty, "steps": steps[GUEST]}], "openings": openings}

    def player_json(self, player_id: int) -> dict[str, Any]:
        """The credits of a player and the number of stakes. A player never seen has the welcome waiting."""
        account = player_account(player_id)
        balance, games = self.storage.look(lambda view: (view.balance(account), view.games_of(player_id)))
        return {
            "player_id": str(player_id),
            "credits": self.terms.welcome if balance is None else balance,
            "games": games,
        }

    def info_json(self) -> dict[str, Any]:
        """What a client has to know about this referee."""
        return {
            "referee_id": str(self.id),
            "slot": self.clock(),
            "slot_seconds": self.record.slot_seconds,
            "per_turn_slots": PER_TURN_SLOTS,
            "settle_slots": SETTLE_SLOTS,
            "welcome": self.terms.welcome,
            "games_per_player": self.terms.games_per_player,
            "allow_development_keys": self.terms.allow_development_keys,
            "key_sets": [
                {"rules": keys.rules.spelling, "name": keys.rules.name, "key_set_id": name, "keys": keys.status}
                for name, keys in self.key_sets.items()
            ],
        }

    def _commit(
        self,
        books: Transaction,
        game: int,
        request: Request,
        text: str,
        identifier: str,
        keys: VerifyingKeys,
        effect: Effect,
    ) -> str:
        stored = books.lock_game(game)
        slot = self.clock()
        if stored is not None:
            # Clocks of several machines differ by a little; a game's time never goes back.
            slot = max(slot, stored.opened_slot, stored.contract.last_played_slot)
        balance = None if request.payer is None else books.lock_balance(player_account(request.payer))
        welcome = 0 if request.payer is None or balance is not None else self._welcome(books)
        try:
            outcome = effect(
                None if stored is None else stored.contract,
                Circumstances(self.id, slot, welcome if balance is None else balance),
            )
        except RefereeError:
            # No request is accepted twice. If this one has been, it is answered as it was then.
            answer = books.answer(identifier)
            if answer is None:
                raise
            return answer
        if request.payer is not None and books.games_of(request.payer) >= self.terms.games_per_player:
            raise LimitReachedError(
                f"a player may have {counted(self.terms.games_per_player, 'game')} at a time", refusal="too_many_games"
            )
        if request.signature is not None:
            books.use_nonce(request.signature.player_id, request.signature.consent.nonce)
        reason = f"{game} {request.method}"
        if request.payer is not None and welcome:
            books.transfer(Transfer(HOUSE, player_account(request.payer), welcome), f"{reason}: welcome")
        for transfer in sorted(outcome.transfers, key=lambda transfer: transfer.target):
            books.transfer(transfer, reason)
        contract = staked_json(outcome.contract, slot)
        number = 0 if stored is None else stored.event_count
        answer = _text(
            {
                _NAMES[request.about]: str(game),
                "event": number,
                "slot": slot,
                "method": request.method,
                "keys": keys.status,
                "key_set_id": keys.id,
                "contract": contract,
            }
        )
        happened = StoredEvent(number, slot, request.method, text, contract["packed"], answer)
        books.save(outcome.contract, _text(contract), keys.id, identifier, happened)
        return answer

    def _welcome(self, books: Transaction) -> int:
        """What the house gives a player at the first stake."""
        return min(self.terms.welcome, books.lock_balance(HOUSE) or 0)

    def _keys(self, request: Request, game: int) -> VerifyingKeys:
        """The pinned keys for a request; what a request says about keys only has to agree with them."""
        if isinstance(request, InitGame):
            keys = self.key_sets.get(request.key_set_id)
            if keys is None or keys.rules != request.rules:
                raise ProofRejectedError("this referee does not use that key set", refusal="unknown_key_set")
            if keys.status != "ceremony" and not self.terms.allow_development_keys:
                raise ProofRejectedError(
                    "games are not staked on development keys: whoever made them can prove anything",
                    refusal="development_keys",
                )
            return keys
        identifier = self._key_set_id(game, request.about)
        if identifier not in self.key_sets:
            raise ProofRejectedError("the key set of this game is not in use here", refusal="unknown_key_set")
        return self.key_sets[identifier]

    @lru_cache(maxsize=10_000)  # noqa: B019 (it never changes, and a process has one referee)
    def _key_set_id(self, game: int, about: About) -> str:
        return self._stored(game, about).key_set_id

    def _stored(self, game: int, about: About) -> StoredGame:
        return _known(self.storage.look(lambda view: view.game(game)), about)

    def _events(self, game: int, about: About) -> tuple[StoredGame, list[StoredEvent]]:
        stored, events = self.storage.look(lambda view: (view.game(game), view.events(game)))
        return _known(stored, about), events

    def _game_json(self, stored: StoredGame) -> dict[str, Any]:
        keys = self.key_sets.get(stored.key_set_id)
        return {
            _NAMES[stored.about]: str(stored.contract.solution_hash),
            "events": stored.event_count,
            "slot": self.clock(),
            "keys": "unknown" if keys is None else keys.status,
            "key_set_id": stored.key_set_id,
            "contract": staked_json(stored.contract, self.clock()),
        }


def _known(stored: StoredGame | None, about: About) -> StoredGame:
    if stored is None or stored.about != about:
        raise UnknownGameError(f"this referee has no such {_NAMES[about]}", refusal="unknown_game")
    return stored


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
