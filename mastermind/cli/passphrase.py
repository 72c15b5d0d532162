"""Asking for the passphrase of a secret file: the environment first, then the terminal, once for each file."""

from __future__ import annotations

import os
import warnings
from getpass import GetPassWarning
from pathlib import Path

import click

from mastermind.errors import SecretFileError

VARIABLE = "MASTERMIND_PASSPHRASE"

_known: dict[Path, str] = {}


def ask(path: Path) -> str:
    """Return the passphrase of an encrypted file. Raises SecretFileError when there is nobody to ask."""
    if VARIABLE in os.environ:
        return os.environ[VARIABLE]
    if path not in _known:
        _known[path] = _prompt(path, f"Passphrase of {path}", twice=False)
    return _known[path]


def choose(path: Path) -> str:
    """Return a passphrase for a new file, typed twice. Raises SecretFileError when it is empty, or nobody can type."""
    if VARIABLE not in os.environ:
        return _prompt(path, f"New passphrase for {path}", twice=True)
    if not os.environ[VARIABLE]:
        raise SecretFileError(f"${VARIABLE} is empty, which protects nothing", path=path)
    return os.environ[VARIABLE]


def _prompt(path: Path, text: str, *, twice: bool) -> str:
    with warnings.catch_warnings():
        # Without a terminal getpass would read from wherever, and show what is typed.
        warnings.simplefilter("error", GetPassWarning)
        try:
            return str(click.prompt(text, hide_input=True, confirmation_prompt=twice, err=True))
        except GetPassWarning as error:
            raise SecretFileError(
                f"there is no terminal to ask for the passphrase of {path} at; set ${VARIABLE}", path=path
            ) from error
