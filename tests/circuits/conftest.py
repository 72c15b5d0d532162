"""The bench that compiles circuits for these tests, once for all sessions."""

from __future__ import annotations

import pytest

from mastermind.zk.artifacts import ArtifactStore
from mastermind.zk.tools import Toolchain
from tests.support.circuits import Bench


@pytest.fixture(scope="session")
def bench(toolchain: Toolchain, store: ArtifactStore) -> Bench:
    return Bench(toolchain, store.home / "test_circuits")
