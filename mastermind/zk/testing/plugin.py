"""The pytest plugin: fixtures to test any Circom circuit with."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from mastermind.errors import MissingProjectError
from mastermind.zk.project import HOME_VARIABLE, Project
from mastermind.zk.testing.circuits import Circuits
from mastermind.zk.tools import Toolchain


@pytest.fixture(scope="session")
def circuit_home(request: pytest.FixtureRequest) -> Path:
    """Folder for npm packages and compiled circuits, kept between sessions.

    That of the commands for a project with a table `[tool.mastermind.zk]`; for others `MASTERMIND_HOME`, else pytest's
    cache. Who keeps them elsewhere overrides this fixture.
    """
    with suppress(MissingProjectError):
        return Project.find(request.config.rootpath).home
    named = os.environ.get(HOME_VARIABLE)
    return Path(named).absolute() if named else request.config.cache.mkdir("mastermind")


@pytest.fixture(scope="session")
def circuits(circuit_home: Path) -> Circuits:
    """Compiles circuits for tests, each once: `circuits.load("circuits/range.circom")`.

    A machine without Node fails these tests; it does not skip them.
    """
    return Circuits(Toolchain.install(circuit_home), circuit_home)
