"""What every HTTP request passes before and after it is served: rate, time, numbers, one line of log.

The log is JSON, one object a line: method, path, status, refusal, milliseconds. Never a body and never a header.
"""

from __future__ import annotations

import json
import logging
import time
from collections import OrderedDict
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger("mastermind.referee")

#: Addresses whose rate is remembered; the longest silent ones are forgotten.
MAX_ADDRESSES = 10_000
#: A burst may have this many seconds' worth of requests.
BURST_S = 4


class JsonFormatter(logging.Formatter):
    """One JSON object a line; `extra={"fields": {...}}` adds to it."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields)


class Rates:
    """A token bucket for each address. Protects one worker; nothing else depends on it."""

    def __init__(self, per_second: float) -> None:
        """Let each address make `per_second` requests a second; 0: as many as it likes."""
        self._per_second = per_second
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str, now_s: float) -> float:
        """Take a token and return 0, or return the seconds until there is one."""
        if not self._per_second:
            return 0.0
        full = max(1.0, self._per_second * BURST_S)
        tokens, since_s = self._buckets.pop(address, (full, now_s))
        tokens = min(full, tokens + (now_s - since_s) * self._per_second)
        allowed = tokens >= 1
        self._buckets[address] = (tokens - allowed, now_s)
        if len(self._buckets) > MAX_ADDRESSES:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - tokens) / self._per_second


class Numbers:
    """What this worker has served, for Prometheus."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "referee_requests", "Requests by operation and status.", ["operation", "status"], registry=self.registry
        )
        self.refusals = Counter("referee_refusals", "Refusals by reason.", ["refusal"], registry=self.registry)
        self.seconds = Histogram(
            "referee_request_seconds", "Time to the first byte of the answer.", ["operation"], registry=self.registry
        )


class Front:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, rates: Rates, numbers: Numbers, development: bool) -> None:
        self._app = app
        self._rates = rates
        self._numbers = numbers
        self._development = development

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        status = 500

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if self._development:
                    # Every answer says so, whatever it is about.
                    message["headers"].append((b"mastermind-keys", b"development"))
                self._record(scope, status, time.perf_counter() - start)
            await send(message)

        address = (scope.get("client") or ("",))[0]
        wait_s = self._rates.take(address, time.monotonic())
        if wait_s and scope["path"] not in ("/health", "/metrics"):
            scope["refusal"] = "too_many_requests"
            body = error_json("too_many_requests", "too many requests from this address; try again later")
            refused = JSONResponse(body, 429, {"Retry-After": str(int(wait_s) + 1)})
            await refused(scope, receive, answer)
            return
        await self._app(scope, receive, answer)

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        route = scope.get("route")
        operation = getattr(route, "operation_id", None) or "none"
        refusal = scope.get("refusal")
        self._numbers.requests.labels(operation, str(status)).inc()
        self._numbers.seconds.labels(operation).observe(seconds)
        if refusal:
            self._numbers.refusals.labels(refusal).inc()
        fields: dict[str, Any] = {
            "method": scope["method"],
            "path": scope["path"],
            "status": status,
            "ms": round(seconds * 1000, 1),
        }
        logger.info("request", extra={"fields": {**fields, **({"refusal": refusal} if refusal else {})}})


def error_json(refusal: str, message: str, field: str | None = None) -> dict[str, Any]:
    """The body of a refusal."""
    return {"error": {"refusal": refusal, "message": message, **({} if field is None else {"field": field})}}
