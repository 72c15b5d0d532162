"""Asking for the passphrase of a secret file: the environment first, then the terminal, once for each file."""

from __future__ import annotations

import os
from pathlib import Path

import click

VARIABLE = "MASTERMIND_PASSPHRASE"

_known: dict[Path, str] = {}


def ask(path: Path) -> str:
    """Return the passphrase of an encrypted file."""
    if VARIABLE in os.environ:
        return os.environ[VARIABLE]
    if path not in _known:
        _known[path] = str(click.prompt(f"Passphrase of {path}", hide_input=True, err=True))
    return _known[path]


def choose(path: Path) -> str:
    """Return a passphrase for a new file, typed twice."""
    if VARIABLE in os.environ:
        return os.environ[VARIABLE]
    chosen = click.prompt(f"New passphrase for {path}", hide_input=True, confirmation_prompt=True, err=True)
    return str(chosen)
