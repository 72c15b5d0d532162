"""How commands speak: exit codes, one sentence per error, progress on stderr, JSON on request."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar

import click

from mastermind.errors import GameError, InvalidInputError, MastermindError, RejectedCeremonyError, WitnessError
from mastermind.sources import default_home as default_home
from mastermind.zk.artifacts import ArtifactStore

ACCEPTED, REJECTED, BAD_INPUT, TOOL_FAILURE = 0, 1, 2, 3
#: What shells report for a program that Ctrl-C ended; click's own 1 would read as a rejection.
INTERRUPTED = 130
#: The same for one whose output nobody reads on.
PIPE_CLOSED = 141

EXIT_CODES = "\b\nExit codes: 0 accepted, 1 rejected, 2 bad input, 3 a tool failed, 130 interrupted."

P = ParamSpec("P")
R = TypeVar("R")


def command_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Turn the package's errors into one sentence and an exit code.

    1 for what the game or a proof says no to, 2 for bad input, 3 for a tool that failed.
    """

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except InvalidInputError as error:
            fail(str(error), BAD_INPUT)
        except (GameError, RejectedCeremonyError, WitnessError) as error:
            # A statement without a witness is false: no tool has failed.
            fail(f"rejected: {error}", REJECTED)
        except MastermindError as error:
            fail(str(error), TOOL_FAILURE)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("mastermind"):
                raise
            fail(
                f"{error.name} is not installed; pip install 'mastermind-zk[referee]' "
                "(in a checkout: pip install -e '.[referee]')",
                TOOL_FAILURE,
            )
        except BrokenPipeError:
            # Whoever read what is printed has had enough, as `head` has; nothing is to be said about the rest.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(PIPE_CLOSED)
        except OSError as error:
            fail(f"{error.filename or 'a file'}: {error.strerror or error}", BAD_INPUT)
        except KeyboardInterrupt:
            fail("interrupted", INTERRUPTED)

    return wrapper


def fail(message: str, exit_code: int) -> NoReturn:
    """Say what is wrong on stderr and exit."""
    tell(message)
    sys.exit(exit_code)


def tell(message: str) -> None:
    """Say something on stderr that is no answer."""
    click.echo(f"mastermind: {message}", err=True)


def print_json(value: Any) -> None:
    """Print one JSON value for machines."""
    click.echo(json.dumps(value, indent=1))


def print_json_line(value: Any) -> None:
    """Print one of several JSON values, each on a line of its own."""
    click.echo(json.dumps(value))


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")


def store_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--home` and pass an ArtifactStore as `store`."""

    @click.option(
        "--home",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="MASTERMIND_HOME",
        help="Folder of built circuits and keys. [default: build/ of a checkout, else the user's cache folder]",
    )
    @wraps(function)
    def wrapper(*args: Any, home: Path | None, **kwargs: Any) -> Any:
        return function(*args, store=ArtifactStore(home or default_home()), **kwargs)

    return wrapper


class ProgressLine:
    """Reports the steps of long work on stderr, each with the seconds since the start."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._start = time.monotonic()
        self._lock = threading.Lock()
        self._quiet = quiet

    def __call__(self, step: str) -> None:
        if not self._quiet:
            with self._lock:
                click.echo(click.style(f"[{time.monotonic() - self._start:5.1f} s] {step}", dim=True), err=True)
