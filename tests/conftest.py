"""What all tests share: the toolchain and real key sets, built once into the checkout's `build/`."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from mastermind.cli.output import default_home
from mastermind.game.circuits import specs
from mastermind.rules import Rules
from mastermind.zk.artifacts import ArtifactStore, KeySet
from mastermind.zk.phase1 import Phase1, development_phase1
from mastermind.zk.prove import NativeProver, self_test
from mastermind.zk.tools import Toolchain


@pytest.fixture(scope="session")
def store() -> ArtifactStore:
    return ArtifactStore(default_home())


@pytest.fixture(scope="session")
def toolchain(store: ArtifactStore) -> Toolchain:
    """Node and the pinned packages. A machine without them fails these tests; it does not skip them."""
    return Toolchain.install(store.home)


@pytest.fixture(scope="session")
def phase1(store: ArtifactStore, toolchain: Toolchain) -> Phase1:
    """The development phase 1 of the shared home."""
    return development_phase1(1, toolchain, store.home)


@pytest.fixture(scope="session")
def circuit_home(store: ArtifactStore) -> Path:
    """Where the plugin compiles circuits under test: with all else that is built."""
    return store.home


@pytest.fixture(scope="session")
def build_key_set(store: ArtifactStore) -> Callable[[Rules], KeySet]:
    """Build (or find) the real key set of some rules."""

    def build(rules: Rules) -> KeySet:
        return store.build_key_set(rules.spelling, specs(rules), self_test)

    return build


@pytest.fixture(scope="session")
def hit_and_blow(build_key_set: Callable[[Rules], KeySet]) -> KeySet:
    return build_key_set(Rules.parse("hit-and-blow"))


@pytest.fixture(scope="session")
def native_prover() -> NativeProver:
    return NativeProver()


@pytest.fixture(scope="session")
def shared_ptau() -> Path:
    """Real files of the Hermez ceremony, which lie beside the checkout on machines that have them."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "ptau"
    if not folder.is_dir():
        pytest.skip("the public phase-1 files are not on this machine")
    return folder


@pytest.fixture
def free_port() -> int:
    """A port on loopback that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port
