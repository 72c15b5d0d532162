"""The referee over HTTP: requests in, answers out, news as server-sent events.

Thin: it reads bodies, hands them to `mastermind.referee.referee` in a thread (verifying and committing must not hold up
the event loop), and turns refusals into statuses. There are no passwords and no sessions; whoever asks for a change
proves that it is theirs to ask.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI, Header, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, Response, StreamingResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException

from mastermind.errors import (
    InsufficientCreditError,
    InvalidInputError,
    LimitReachedError,
    MalformedEvidenceError,
    NotThePlayerError,
    ProofRejectedError,
    RefereeError,
    ReplayError,
    UnknownGameError,
    WrongStateError,
)
from mastermind.field import parse_field_element
from mastermind.referee.front import Front, Numbers, Rates, error_json, logger
from mastermind.referee.referee import Referee
from mastermind.referee.requests import MATCH_METHODS, MAX_BYTES, METHODS, About
from mastermind.referee.schemas import SCHEMAS, request_body, responses
from mastermind.referee.storage import View
from mastermind.referee.watchers import Watchers

#: Threads that verify and commit; more requests wait, and the event loop goes on. Most of them wait for a commit.
ACTING_THREADS = 16
READING_THREADS = 8
#: Server-sent events that one worker serves at a time.
MAX_WATCHERS = 1_000
#: A comment after this long a silence shows that the connection lives.
KEEPALIVE_S = 15
MAX_PAGE = 100

_STATUSES: tuple[tuple[type[RefereeError], int], ...] = (
    (InsufficientCreditError, 402),
    (NotThePlayerError, 403),
    (UnknownGameError, 404),
    (WrongStateError, 409),
    (ReplayError, 409),
    (ProofRejectedError, 422),
    (LimitReachedError, 429),
)

_ELEMENT = r"^(0|[1-9][0-9]{0,76})$"
_Element = Annotated[str, Path(pattern=_ELEMENT)]
_SUMMARIES = {
    "init_game": "Open a game and stake the reward",
    "accept_game": "Join a game and stake the same reward",
    "make_guess": "Guess",
    "give_clue": "Answer the newest guess",
    "submit_game_proof": "Show by a certificate how the game has gone on elsewhere",
    "claim_reward": "Claim the pot",
    "forfeit_win": "Give the pot to a player, with the referee's key",
    "settle": "Have an abandoned pot paid to whoever may claim it",
    "open_match": "Open a match of two games with a code of one's own, and stake the reward",
    "join_match": "Join a match with a code of one's own, and stake the same reward",
    "start_match": "Join the guest's game: the rounds begin",
    "play_step": "Guess, or answer the newest guess; the answer that decides the duel pays out",
    "claim_match": "Claim the pot while the other player is late, or take back the stake of a match that nobody joined",
    "forfeit_match": "Give the pot to a player, with the referee's key",
    "settle_match": "Have an abandoned pot paid to whoever may claim it",
    "open_code": "Open one's code after the end",
}

#: What the two kinds of pots are called in paths and in the document.
_GAMES: tuple[About, str] = "games", "game"
_MATCHES: tuple[About, str] = "matches", "match"

T = TypeVar("T")


def create_app(referee: Referee, *, requests_per_second: float = 0) -> FastAPI:
    """The application of one worker.

    `requests_per_second` is what each address may ask for; 0: no limit.
    """
    numbers = Numbers()
    acting, reading = CapacityLimiter(ACTING_THREADS), CapacityLimiter(READING_THREADS)

    async def read(work: Callable[[], T]) -> T:
        return await to_thread.run_sync(work, limiter=reading)

    async def look(reading: Callable[[View], T]) -> T:
        return await read(partial(referee.storage.look, reading))

    watchers = Watchers(lambda games: look(partial(View.event_counts, games=games)))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        watchers.start()
        loop = asyncio.get_running_loop()
        # Streams of events end by themselves before the server waits for open connections; else it would wait in vain.
        app.state.before_exit = lambda: asyncio.run_coroutine_threadsafe(watchers.stop(), loop)
        _before_exit(app.state.before_exit)
        logger.info("ready", extra={"fields": {"referee_id": str(referee.id)}})
        yield
        await watchers.stop()
        referee.storage.close()
        logger.info("stopped")

    app = FastAPI(title="Mastermind referee", version="1", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.add_middleware(
        Front, rates=Rates(requests_per_second), numbers=numbers, development=referee.terms.allow_development_keys
    )
    app.openapi = partial(_openapi, app)  # type: ignore[method-assign]

    async def act(request: Request, method: str, game: str | None) -> Response:
        body = await _body(request)
        name = None if game is None else parse_field_element(game, "game")
        answer = await to_thread.run_sync(referee.act, method, name, body, limiter=acting)
        watchers.tell()
        return Response(answer, media_type="application/json")

    async def news(game: int, first: int) -> AsyncIterator[str]:
        async with watchers.watching(game):
            while True:
                events = await look(partial(View.events, game=game, since=first))
                for happened in events:
                    yield f"id: {happened.number}\nevent: {happened.method}\ndata: {happened.answer}\n\n"
                    first = happened.number + 1
                if watchers.stopped:
                    return
                if not events:
                    yield ": waiting\n\n"
                await watchers.wait(game, first, KEEPALIVE_S)

    def add_method(about: About, one: str, method: str) -> None:
        named = Path(alias=one, pattern=_ELEMENT)

        @app.post(
            f"/{about}/{{{one}}}/{method}",
            operation_id=method,
            summary=_SUMMARIES[method],
            responses=responses(f"{one.title()}Answer", "400", "402", "403", "404", "409", "413", "422", "429"),
            openapi_extra={"requestBody": request_body(method)},
        )
        async def on_game(request: Request, game: str = named) -> Response:
            return await act(request, method, game)

    def add_kind(about: About, one: str, methods: Sequence[str]) -> None:
        """The operations on games or on matches; the first method opens one."""
        named = Path(alias=one, pattern=_ELEMENT)

        @app.post(
            f"/{about}",
            operation_id=methods[0],
            summary=_SUMMARIES[methods[0]],
            responses=responses(f"{one.title()}Answer", "400", "402", "409", "413", "422", "429"),
            openapi_extra={"requestBody": request_body(methods[0])},
        )
        async def on_opening(request: Request) -> Response:
            return await act(request, methods[0], None)

        for method in methods[1:]:
            add_method(about, one, method)

        @app.get(
            f"/{about}",
            operation_id=f"list_{about}",
            summary=f"{about.title()}, the newest first",
            responses=responses(about.title(), "400", "429"),
        )
        async def list_kind(
            status: Literal["open", "playing", "closed"] = "open",
            limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
            after: Annotated[str | None, Query(pattern=_ELEMENT)] = None,
        ) -> JSONResponse:
            last = None if after is None else parse_field_element(after, "after")
            return JSONResponse(await read(lambda: referee.games_json(status, limit, last, about)))

        @app.get(
            f"/{about}/{{{one}}}",
            operation_id=f"show_{one}",
            summary=f"A {one} as it is now",
            responses=responses(one.title(), "400", "404", "429"),
        )
        async def show(game: str = named) -> JSONResponse:
            name = parse_field_element(game, one)
            return JSONResponse(await read(lambda: referee.game_json(name, about)))

        @app.get(
            f"/{about}/{{{one}}}/log",
            operation_id=f"show_{one}_log",
            summary="Everything the referee did, for `mastermind referee audit`",
            responses=responses(None, "400", "404", "429"),
        )
        async def show_log(game: str = named) -> JSONResponse:
            name = parse_field_element(game, one)
            return JSONResponse(await read(lambda: referee.log_json(name, about)))

        @app.get(
            f"/{about}/{{{one}}}/events",
            operation_id=f"watch_{one}",
            summary="Server-sent events: each answer as it is given, from the one after Last-Event-ID on",
            responses=responses(None, "400", "404", "429", media_type="text/event-stream"),
        )
        async def watch(
            game: str = named, last_event_id: Annotated[str | None, Header(pattern=r"^[0-9]{1,9}$")] = None
        ) -> StreamingResponse:
            name = parse_field_element(game, one)
            await read(lambda: referee.game_json(name, about))
            if watchers.count >= MAX_WATCHERS:
                raise LimitReachedError("too many watchers here; try again later", refusal="too_many_watchers")
            first = 0 if last_event_id is None else int(last_event_id) + 1
            headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
            return StreamingResponse(news(name, first), media_type="text/event-stream", headers=headers)

    add_kind(*_GAMES, METHODS)
    add_kind(*_MATCHES, MATCH_METHODS)

    @app.get("/referee", operation_id="show_referee", summary="Id, keys and terms", responses=responses(None, "429"))
    async def show_referee() -> JSONResponse:
        return JSONResponse(await read(referee.info_json))

    @app.get(
        "/games/{game}/transcript",
        operation_id="show_transcript",
        summary="All steps and proofs, for `mastermind game verify`",
        responses=responses(None, "400", "404", "409", "429"),
    )
    async def show_transcript(game: _Element) -> JSONResponse:
        name = parse_field_element(game, "game")
        return JSONResponse(await read(lambda: referee.transcript_json(name)))

    @app.get(
        "/matches/{match}/duel",
        operation_id="show_duel",
        summary="All steps and proofs of both games, and the opened codes with theirs",
        responses=responses(None, "400", "404", "429"),
    )
    async def show_duel(match: _Element) -> JSONResponse:
        name = parse_field_element(match, "match")
        return JSONResponse(await read(lambda: referee.duel_json(name)))

    @app.get(
        "/players/{player_id}",
        operation_id="show_player",
        summary="Credits and number of stakes",
        responses=responses("Player", "400", "429"),
    )
    async def show_player(player_id: _Element) -> JSONResponse:
        player = parse_field_element(player_id, "player_id")
        return JSONResponse(await read(lambda: referee.player_json(player)))

    @app.get("/health", operation_id="show_health", summary="Whether the books can be read", responses=responses(None))
    async def show_health() -> JSONResponse:
        counts = await look(View.game_counts)
        return JSONResponse({"status": "ok", "games": counts})

    @app.get(
        "/metrics",
        operation_id="show_metrics",
        summary="Prometheus text: this worker's numbers, and the sums of the books",
        responses=responses(None, media_type="text/plain"),
    )
    async def show_metrics() -> Response:
        counts, sums = await look(lambda view: (view.game_counts(), view.sums()))
        lines = [f'referee_games{{status="{status}"}} {count}' for status, count in counts.items()]
        lines += [
            f"referee_credits_{name} {value}"
            for name, value in zip(("supply", "balances", "entries"), sums, strict=True)
        ]
        lines.append(f"referee_watchers {watchers.count}")
        text = generate_latest(numbers.registry).decode() + "\n".join(lines) + "\n"
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    def refused(request: Request, status: int, refusal: str, message: str, field: str | None = None) -> JSONResponse:
        request.scope["refusal"] = refusal
        return JSONResponse(error_json(refusal, message, field), status)

    @app.exception_handler(RefereeError)
    async def on_refusal(request: Request, error: RefereeError) -> JSONResponse:
        status = 413 if error.refusal == "too_large" else next(s for kind, s in _STATUSES if isinstance(error, kind))
        return refused(request, status, error.refusal, str(error))

    @app.exception_handler(InvalidInputError)
    async def on_malformed(request: Request, error: InvalidInputError) -> JSONResponse:
        field = error.field if isinstance(error, MalformedEvidenceError) else None
        return refused(request, 400, "malformed", str(error), field)

    @app.exception_handler(RequestValidationError)
    async def on_invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first: dict[str, Any] = error.errors()[0]
        field = str(first["loc"][-1])
        return refused(request, 400, "malformed", f"{field}: {first['msg']}", field)

    @app.exception_handler(HTTPException)
    async def on_http(request: Request, error: HTTPException) -> JSONResponse:
        refusal = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "malformed")
        answer = refused(request, error.status_code, refusal, str(error.detail))
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(Exception)
    async def on_fault(request: Request, error: Exception) -> JSONResponse:
        logger.error("fault", exc_info=error)
        return refused(request, 500, "internal", "the referee has failed; nothing has changed")

    return app


async def _body(request: Request) -> bytes:
    """The body, never more of it than a request can need. Raises LimitReachedError."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BYTES:
            raise LimitReachedError(f"a request has at most {MAX_BYTES} bytes", refusal="too_large")
    return body


def _openapi(app: FastAPI) -> dict[str, Any]:
    if not app.openapi_schema:
        document = get_openapi(title=app.title, version=app.version, routes=app.routes)
        document.setdefault("components", {}).setdefault("schemas", {}).update(SCHEMAS)
        app.openapi_schema = document
    return app.openapi_schema


def _before_exit(act: Callable[[], object]) -> None:
    """Run `act` when the process is told to end, before the server's own answer to that.

    The server has no hook for it; its own handler is called afterwards.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        before = signal.getsignal(number)

        def handle(signum: int, frame: Any, before: Any = before) -> None:
            act()
            if callable(before):
                before(signum, frame)

        signal.signal(number, handle)
