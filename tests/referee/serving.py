"""The application on a real port, in a thread of the test, and a bad line to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import uvicorn
from fastapi import FastAPI


@contextmanager
def serving(app: FastAPI) -> Iterator[httpx.Client]:
    """The application on a real port, in a thread, and a plain client of it."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, timeout_graceful_shutdown=5))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        end = time.monotonic() + 20
        while not server.started:
            assert time.monotonic() < end, "the server does not start"
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()


class BadLine(httpx.BaseTransport):
    """Every request is refused first, then answered by a proxy, then its answer is lost; then all is well."""

    def __init__(self) -> None:
        self._line = httpx.HTTPTransport()
        self._count = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._count += 1
        if self._count % 4 == 1:
            raise httpx.ConnectError("refused")
        if self._count % 4 == 2:
            return httpx.Response(503, text="<html>")
        response = self._line.handle_request(request)
        if self._count % 4 == 3:
            response.close()
            raise httpx.ReadError("reset")
        return response

    def close(self) -> None:
        self._line.close()
