"""Where the circuit sources and the pinned npm packages lie: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

from pathlib import Path


def circuits_dir() -> Path:
    """Return the folder that holds `lib/`, `main/`, `package.json` and `package-lock.json`."""
    package = Path(__file__).resolve().parent
    inside = package / "circuits"
    return inside if inside.is_dir() else package.parent / "circuits"
