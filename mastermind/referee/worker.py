"""Runs the service: uvicorn, one worker process or several on the same books.

Workers are separate processes that import this module, so what they need is handed over in the environment.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from mastermind.referee.config import Settings, load_referee
from mastermind.referee.front import JsonFormatter
from mastermind.referee.service import create_app
from mastermind.zk.artifacts import ArtifactStore

_FOLDER, _HOME, _DEVELOPMENT = (
    "MASTERMIND_REFEREE_FOLDER",
    "MASTERMIND_REFEREE_HOME",
    "MASTERMIND_REFEREE_DEVELOPMENT_KEYS",
)
#: How long open requests may still take when the server is told to end.
SHUTDOWN_S = 10

_LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": JsonFormatter}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "loggers": {
        name: {"handlers": ["stderr"], "level": level, "propagate": False}
        for name, level in (("mastermind.referee", "INFO"), ("uvicorn.error", "INFO"))
    },
}


def serve(folder: Path, home: Path, *, host: str, port: int, workers: int, allow_development_keys: bool) -> None:
    """Serve until told to end (SIGTERM, SIGINT); open requests are finished first, and then the signal is repeated.

    Raises:
        WrongKeySetError, InvalidInputError: the referee of `folder` cannot be run.
    """
    os.environ[_FOLDER], os.environ[_HOME] = str(folder.absolute()), str(home.absolute())
    os.environ[_DEVELOPMENT] = "1" if allow_development_keys else ""
    # What is wrong is found out here, where it can be said in one sentence, and not in each worker.
    app = app_of_environment()
    uvicorn.run(
        app if workers == 1 else "mastermind.referee.worker:app_of_environment",
        factory=workers > 1,
        host=host,
        port=port,
        workers=workers,
        log_config=_LOGGING,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_S,
    )


def app_of_environment() -> FastAPI:
    """The application of one worker.

    Raises:
        WrongKeySetError, InvalidInputError: as `serve`.
    """
    settings = Settings.read(Path(os.environ[_FOLDER]))
    store = ArtifactStore(Path(os.environ[_HOME]))
    referee = load_referee(settings, store, allow_development_keys=bool(os.environ[_DEVELOPMENT]))
    return create_app(referee, requests_per_second=settings.requests_per_second)
