"""A typed client of the referee.

Refusals come back as the errors that the referee raised; no answer is a RefereeUnreachableError, and one that no
referee gives a NotARefereeError. Requests are repeated while there is no answer: the referee answers the same request
the same way however often it comes.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, TypeVar

import httpx

from mastermind.errors import (
    InsufficientCreditError,
    LimitReachedError,
    MalformedEvidenceError,
    NotARefereeError,
    NotThePlayerError,
    ProofRejectedError,
    RefereeError,
    RefereeUnreachableError,
    ReplayError,
    UnknownGameError,
    WrongStateError,
)
from mastermind.field import parse_field_element, random_field_element
from mastermind.game.circuits import authorise_inputs
from mastermind.game.duel import Duel, Player
from mastermind.game.reveal import Reveal
from mastermind.game.secret_files import PlayerKey
from mastermind.game.transcript import Transcript
from mastermind.referee.contract import Contract, Refusal, Role, refusal_class, refuse
from mastermind.referee.log import GameLog, read_contract, read_match
from mastermind.referee.match import Match, read_player
from mastermind.referee.requests import About, Consent, InitGame, Request, agreement
from mastermind.zk.artifacts import KeySet
from mastermind.zk.evidence import canonical_json, parse_json
from mastermind.zk.prove import Prover

#: How long a request is repeated before the referee counts as unreachable: at first, and of a player at a game.
PATIENCE_S = 5.0
PLAYERS_PATIENCE_S = 600.0
#: The longest turns of any referee, and some more.
MAX_PATIENCE_S = 3 * 86_400.0
#: The longest pause between two tries, and how long one waits for the whole of an answer.
MAX_PAUSE_S = 5.0
TIMEOUT_S = 30.0
#: No answer of a referee, and no event, is longer.
MAX_ANSWER_BYTES = 1 << 22
#: What has as many digits is the whole of a field element: fewer than one in 10^16 are shorter.
FULL_DIGITS = 60
#: Games that are looked through for one that begins with some digits, of each status.
MAX_LISTED = 100
#: A shorter absence is not worth a word.
SHORT_S = 1.0


V = TypeVar("V", "GameView", "MatchView")

#: Is told that the referee cannot be reached, or is back.
Tell = Callable[[str], None]

_STATUSES: dict[int, type[RefereeError]] = {
    402: InsufficientCreditError,
    403: NotThePlayerError,
    404: UnknownGameError,
    409: WrongStateError,
    413: LimitReachedError,
    422: ProofRejectedError,
    429: LimitReachedError,
}


@dataclass(frozen=True)
class RefereeInfo:
    """What a referee says about itself.

    Attributes:
        slot: the present one.
        key_sets: key set id and status (`development` or `ceremony`) by rules, spelled.
        welcome: credits that a new player has.
    """

    referee_id: int
    slot: int
    slot_seconds: int
    key_sets: Mapping[str, tuple[str, str]]
    welcome: int


@dataclass(frozen=True)
class GameView:
    """A game as the referee shows it.

    Attributes:
        events: how many requests of it have been accepted.
        slot: the present one, or that of the event.
        keys: `development` or `ceremony`.
        may_claim: who may claim the pot in that slot.
    """

    contract: Contract
    events: int
    slot: int
    keys: str
    key_set_id: str
    may_claim: Role | None


@dataclass(frozen=True)
class MatchView:
    """A match as the referee shows it; see `GameView`."""

    contract: Match
    events: int
    slot: int
    keys: str
    key_set_id: str
    may_claim: Player | None


@dataclass(frozen=True)
class DuelRecord:
    """All that has been played and opened in a match, not yet checked.

    Attributes:
        codes: what each player has opened after the end, with its proof.
    """

    duel: Duel
    codes: tuple[Reveal | None, Reveal | None]


class RefereeClient:
    """One referee at a URL. Close it, or use it in a `with`."""

    def __init__(
        self,
        url: str,
        *,
        transport: httpx.BaseTransport | None = None,
        patience_s: float = PATIENCE_S,
        tell: Tell = lambda _: None,
    ) -> None:
        """Ask the referee at `url`, each time for `patience_s` seconds at least; `tell` hears of longer absences.

        Raises:
            NotARefereeError: that is not a URL of http or https.
        """
        _require_url(url)
        self.url = url.rstrip("/")
        self._patience_s = patience_s
        self._tell = tell
        self._needed_until_s = 0.0
        self._http = httpx.Client(base_url=self.url, timeout=TIMEOUT_S, transport=transport)
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> RefereeClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def be_patient(self, tell: Tell | None = None, *, turn_s: float = 0.0) -> None:
        """From now on give the referee minutes to come back, and as long as the present turn takes (seconds)."""
        self._patience_s = max(self._patience_s, PLAYERS_PATIENCE_S)
        self._needed_until_s = time.monotonic() + min(turn_s, MAX_PATIENCE_S)
        self._tell = tell or self._tell

    @cached_property
    def slot_seconds(self) -> int:
        """How long a slot is; that never changes. Raises as `info`."""
        return self.info().slot_seconds

    def info(self) -> RefereeInfo:
        """What the referee says about itself. Raises RefereeUnreachableError, NotARefereeError."""
        fields = self._json("GET", "/referee")
        with _understood():
            return RefereeInfo(
                referee_id=parse_field_element(fields["referee_id"], "referee_id"),
                slot=int(fields["slot"]),
                slot_seconds=int(fields["slot_seconds"]),
                key_sets={
                    str(entry["rules"]): (str(entry["key_set_id"]), str(entry["keys"])) for entry in fields["key_sets"]
                },
                welcome=int(fields["welcome"]),
            )

    def games(self, status: str = "open", limit: int = 50) -> list[GameView]:
        """Games of a status (`open`, `playing`, `closed`), the newest first."""
        fields = self._json("GET", "/games", params={"status": status, "limit": limit})
        with _understood():
            return [_game_view(entry) for entry in fields["games"]]

    def matches(self, status: str = "open", limit: int = 50) -> list[MatchView]:
        """Matches of a status (`open`, `playing`, `closed`), the newest first."""
        fields = self._json("GET", "/matches", params={"status": status, "limit": limit})
        with _understood():
            return [_match_view(entry) for entry in fields["matches"]]

    def game(self, game: int) -> GameView:
        """A game as it is now. Raises UnknownGameError, RefereeUnreachableError."""
        fields = self._json("GET", f"/games/{game}")
        with _understood():
            return _game_view(fields)

    def match(self, match: int) -> MatchView:
        """A match as it is now. Raises UnknownGameError, RefereeUnreachableError."""
        fields = self._json("GET", f"/matches/{match}")
        with _understood():
            return _match_view(fields)

    def duel(self, match: int) -> DuelRecord:
        """All steps of both games of a match and the opened codes, not yet checked. Raises UnknownGameError."""
        fields = self._json("GET", f"/matches/{match}/duel")
        with _understood():
            first, second = (Transcript.parse(canonical_json(game)) for game in fields["games"])
            hosts, guests = (
                None if opening is None else Reveal.parse(canonical_json(opening)) for opening in fields["openings"]
            )
            return DuelRecord(Duel(first, second), (hosts, guests))

    def transcript(self, game: int) -> Transcript:
        """All steps of a game, not yet checked.

        Raises:
            UnknownGameError: no such game.
            WrongStateError: some were played elsewhere.
        """
        with _understood():
            return Transcript.parse(canonical_json(self._json("GET", f"/games/{game}/transcript")))

    def log(self, game: int, about: About = "games") -> GameLog:
        """The log of a game or match, not yet audited. Raises UnknownGameError."""
        with _understood():
            return GameLog.parse(canonical_json(self._json("GET", f"/{about}/{game}/log")))

    def credits(self, player_id: int) -> int:
        """What a player has."""
        fields = self._json("GET", f"/players/{player_id}")
        with _understood():
            return int(fields["credits"])

    def send(self, game: int, request: Request) -> GameView:
        """Send a request about a game and return the game after it.

        Raises:
            RefereeError: it is refused, with the referee's reason.
            RefereeUnreachableError: no answer; whether it has been accepted is not known.
        """
        fields = self._post(game, request)
        with _understood():
            return _game_view(fields)

    def send_to_match(self, match: int, request: Request) -> MatchView:
        """Send a request about a match and return the match after it. Raises as `send`."""
        fields = self._post(match, request)
        with _understood():
            return _match_view(fields)

    def watch(self, game: int, *, after: int = -1, silence_s: float = TIMEOUT_S) -> Iterator[GameView]:
        """Yield the game after each event from the one after number `after` on.

        Ends when the referee or the network ends it, or nothing has come for `silence_s` seconds.

        Raises:
            UnknownGameError: no such game.
        """
        for fields in self._events(f"/games/{game}/events", after, silence_s):
            with _understood():
                view = _game_view(fields)
            yield view

    def watch_match(self, match: int, *, after: int = -1, silence_s: float = TIMEOUT_S) -> Iterator[MatchView]:
        """Yield the match after each event, as `watch` does for a game."""
        for fields in self._events(f"/matches/{match}/events", after, silence_s):
            with _understood():
                view = _match_view(fields)
            yield view

    def _post(self, game: int, request: Request) -> Any:
        opens = isinstance(request, InitGame)
        path = f"/{request.about}" if opens else f"/{request.about}/{game}/{request.method}"
        return self._json("POST", path, body=canonical_json(request.to_json()))

    def _events(self, path: str, after: int, silence_s: float) -> Iterator[Any]:
        """The data of each event."""
        headers = {"Last-Event-ID": str(after)} if after >= 0 else {}
        timeout = httpx.Timeout(TIMEOUT_S, read=silence_s)
        end_s = time.monotonic() + silence_s
        try:
            with self._stream("GET", path, silence_s, headers=headers, timeout=timeout) as response:
                if response.status_code == 429 or response.status_code >= 500:
                    time.sleep(min(MAX_PAUSE_S, SHORT_S))
                    return
                if response.status_code != 200:
                    raise _refusal(response, _read(response, end_s))
                rest = b""
                for chunk in response.iter_bytes():
                    *lines, rest = (rest + chunk).split(b"\n")
                    # One line of data in each event, as our referee writes them; comments come in between.
                    for line in lines:
                        if line.startswith(b"data:"):
                            with _understood():
                                fields = parse_json(line[5:].rstrip(b"\r"))
                            yield fields
                            end_s = time.monotonic() + silence_s
                    if len(rest) > MAX_ANSWER_BYTES:
                        raise NotARefereeError(f"{self.url} sends an event without end")
                    if time.monotonic() >= end_s:
                        return
        except httpx.ReadTimeout:
            return
        except httpx.HTTPError:
            # Whoever goes on asks for the game, and that is repeated.
            time.sleep(min(MAX_PAUSE_S, SHORT_S))

    @contextmanager
    def _stream(self, method: str, path: str, limit_s: float, **options: Any) -> Iterator[httpx.Response]:
        """A response, not yet read, whose headers have come within `limit_s` seconds. Raises httpx.HTTPError."""

        def trace(event: str, info: Mapping[str, Any]) -> None:
            if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
                self._sockets.append(info["return_value"].get_extra_info("socket"))

        def give_up() -> None:
            # The timeouts of the library are of each read: many small ones take any time.
            for line in self._sockets:
                with suppress(OSError):
                    socket.socket.shutdown(line, socket.SHUT_RDWR)

        self._sockets = [line for line in self._sockets if line.fileno() >= 0]
        timer = threading.Timer(limit_s, give_up)
        timer.daemon = True
        timer.start()
        try:
            with self._http.stream(method, path, extensions={"trace": trace}, **options) as response:
                timer.cancel()
                yield response
        finally:
            timer.cancel()

    def _json(
        self, method: str, path: str, *, params: Mapping[str, Any] | None = None, body: bytes | None = None
    ) -> Any:
        headers = {} if body is None else {"Content-Type": "application/json"}
        start_s, pause_s, told = time.monotonic(), 0.1, False
        until_s = max(start_s + self._patience_s, self._needed_until_s)
        while True:
            asked = ""
            try:
                end_s = time.monotonic() + TIMEOUT_S
                with self._stream(method, path, TIMEOUT_S, params=params, content=body, headers=headers) as response:
                    content = _read(response, end_s)
            except httpx.HTTPError as error:
                found: Exception = RefereeUnreachableError(f"{self.url} does not answer: {error}")
                found.__cause__ = error
            else:
                asked = response.headers.get("Retry-After", "")
                if response.status_code < 500 and not asked:
                    if told:
                        self._tell(f"{self.url} answers again")
                    if response.status_code == 200:
                        with _understood():
                            return parse_json(content)
                    raise _refusal(response, content)
                found = _refusal(response, content)
            now_s = time.monotonic()
            if now_s >= until_s:
                raise found
            if not told and now_s - start_s >= SHORT_S:
                until = datetime.now() + timedelta(seconds=until_s - now_s)
                self._tell(f"{found}; trying again until {until:%Y-%m-%d %H:%M:%S}")
                told = True
            wanted_s = max(pause_s, float(asked) if asked.isdecimal() else 0.0)
            time.sleep(min(MAX_PAUSE_S, wanted_s, until_s - now_s))
            pause_s *= 2


def find_game(client: RefereeClient, text: str) -> GameView:
    """A game by its solution hash, or by the first digits of it while it is listed and they fit no other.

    Games that are over are looked for when no other begins so.

    Raises:
        UnknownGameError: none, or several.
        NotInFieldError: not a solution hash.
    """
    if len(text) >= FULL_DIGITS:
        return client.game(parse_field_element(text, "the game"))
    return _find(client.games, text, "games")


def find_match(client: RefereeClient, text: str) -> MatchView:
    """A match by its solution hash, or by the first digits of it. Raises as `find_game`."""
    if len(text) >= FULL_DIGITS:
        return client.match(parse_field_element(text, "the match"))
    return _find(client.matches, text, "duels")


def _find(listed: Callable[[str, int], list[V]], text: str, what: str) -> V:
    found: list[V] = []
    for statuses in (("open", "playing"), ("closed",)):
        found = found or [
            view
            for status in statuses
            for view in listed(status, MAX_LISTED)
            if str(view.contract.solution_hash).startswith(text)
        ]
    if len(found) != 1:
        raise UnknownGameError(f"{len(found)} {what} begin with {text[:20]!r}", refusal="unknown_game")
    return found[0]


def require_open(view: GameView | MatchView) -> None:
    """Refuse what nobody can join any more. Raises WrongStateError."""
    if view.contract.closed:
        refuse(Refusal.CLOSED)
    if view.contract.accepted:
        refuse(Refusal.ALREADY_ACCEPTED)


def make_consent(
    key_set: KeySet, prover: Prover, player: PlayerKey, action: str, *, referee_id: int, game: int, amount: int
) -> Consent:
    """Agree to an action at a referee: a fresh nonce and the proof."""
    nonce = random_field_element()
    message = agreement(action, referee_id, game, amount, nonce).message()
    return Consent(nonce, prover.prove(key_set["authorise"], authorise_inputs(player.key, message)).proof)


def _require_url(url: str) -> None:
    """Refuse what is no URL of http or https. Raises NotARefereeError."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL()
    if parsed.scheme not in ("http", "https") or not parsed.host or not 0 < (parsed.port or 80) < 1 << 16:
        raise NotARefereeError(f"{url!r} is not the URL of a referee; it looks like http://localhost:8460")


class _understood:
    """What does not read as an answer of a referee is no referee's answer."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, (ValueError, KeyError, TypeError)):
            raise NotARefereeError(f"the answer is not one of a referee: {error}") from error


def _game_view(fields: Any) -> GameView:
    may_claim = fields["contract"]["may_claim"]
    if may_claim not in ("master", "breaker", None):
        raise ValueError("may_claim is not a player")
    return GameView(read_contract(fields["contract"]), *_read_view(fields), may_claim)


def _match_view(fields: Any) -> MatchView:
    may_claim = fields["contract"]["may_claim"]
    player = None if may_claim is None else read_player(may_claim, "may_claim")
    return MatchView(read_match(fields["contract"]), *_read_view(fields), player)


def _read_view(fields: Any) -> tuple[int, int, str, str]:
    """Number of events, slot, status and id of the keys; from an answer, or from what there is now."""
    events = int(fields["event"]) + 1 if "event" in fields else int(fields["events"])
    return events, int(fields["slot"]), str(fields["keys"]), str(fields["key_set_id"])


def _read(response: httpx.Response, end_s: float) -> bytes:
    """The body, if it comes in time. Raises NotARefereeError for a longer one than any referee's, httpx.HTTPError."""
    content = b""
    for chunk in response.iter_bytes():
        content += chunk
        if len(content) > MAX_ANSWER_BYTES:
            raise NotARefereeError(f"{response.url} answers more than any referee does")
        if time.monotonic() >= end_s:
            raise httpx.ReadTimeout("the answer does not end", request=response.request)
    return content


def _refusal(response: httpx.Response, content: bytes) -> Exception:
    """The error that the referee raised."""
    try:
        found = parse_json(content)["error"]
        refusal, message = str(found["refusal"]), str(found["message"])
    except (ValueError, KeyError, TypeError):
        said = f"{response.url} answers {response.status_code}, and not as a referee does"
        return RefereeUnreachableError(said) if response.status_code >= 500 else NotARefereeError(said)
    if refusal in ("not_found", "method_not_allowed"):
        return NotARefereeError(f"there is no referee at {response.url}")
    if response.status_code == 400:
        return MalformedEvidenceError(message, field=str(found.get("field", "")))
    if refusal.upper() in Refusal.__members__:
        return refusal_class(Refusal[refusal.upper()])(message, refusal=refusal)
    if refusal == "nonce_used":
        return ReplayError(message, refusal=refusal)
    if response.status_code in _STATUSES:
        return _STATUSES[response.status_code](message, refusal=refusal)
    return RefereeUnreachableError(f"the referee has failed: {message}")
