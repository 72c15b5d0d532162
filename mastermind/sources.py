"""Where the circuit sources and the pinned npm packages lie: beside the package in a checkout, inside it in a wheel.

And where everything that is built goes, when nobody says otherwise.
"""

from __future__ import annotations

import os
from pathlib import Path


def circuits_dir() -> Path:
    """Return the folder that holds `lib/`, `main/`, `package.json` and `package-lock.json`."""
    package = Path(__file__).resolve().parent
    inside = package / "circuits"
    return inside if inside.is_dir() else package.parent / "circuits"


def default_home() -> Path:
    """`build/` of the checkout that this package is run from, else a folder in the user's cache."""
    checkout = circuits_dir().parent
    if (checkout / "pyproject.toml").is_file():
        return checkout / "build"
    cache = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(cache) / "mastermind"
