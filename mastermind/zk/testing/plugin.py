"""The pytest plugin: fixtures to test any Circom circuit with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mastermind.zk.testing.circuits import Circuits
from mastermind.zk.tools import Toolchain


@pytest.fixture(scope="session")
def circuit_home(request: pytest.FixtureRequest) -> Path:
    """Folder for npm packages and compiled circuits, kept between sessions: `MASTERMIND_HOME`, else pytest's cache.

    A project that keeps them elsewhere overrides this fixture.
    """
    named = os.environ.get("MASTERMIND_HOME")
    return Path(named).absolute() if named else request.config.cache.mkdir("mastermind")


@pytest.fixture(scope="session")
def circuits(circuit_home: Path) -> Circuits:
    """Compiles circuits for tests, each once: `circuits.load("circuits/range.circom")`.

    A machine without Node fails these tests; it does not skip them.
    """
    return Circuits(Toolchain.install(circuit_home), circuit_home)
