"""Fixtures for the toolkit: a pair of one-constraint circuits, and the evidence that is tampered with."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from mastermind.zk.artifacts import ArtifactStore, KeySet
from mastermind.zk.phase1 import Phase1
from mastermind.zk.prove import self_test
from mastermind.zk.snarkjs import SnarkjsCli, SnarkjsWorker
from mastermind.zk.tools import Toolchain, run
from tests.zk.tiny import fresh_store, product

EVM = Path(__file__).resolve().parents[1] / "support" / "evm"


@pytest.fixture(scope="session")
def products(
    store: ArtifactStore, phase1: Phase1, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ArtifactStore, KeySet]]:
    """A store of its own with `product` and its `sibling`, and their key set.

    Copy before tampering: the files are read again at the end, so a test that changed them shows.
    """
    folder = tmp_path_factory.mktemp("products")
    small = fresh_store(folder / "home", store.home)
    circuits = (product(folder / "src"), product(folder / "src", "sibling", offset=2))
    key_set = small.build_key_set("products", circuits, self_test)
    yield small, key_set
    assert small.load_key_set("products", circuits) == key_set


@pytest.fixture
def fresh(tmp_path: Path, store: ArtifactStore, phase1: Phase1) -> ArtifactStore:
    """A store in a home where nothing has been built."""
    return fresh_store(tmp_path / "home", store.home)


@pytest.fixture(scope="session")
def snarkjs_cli(toolchain: Toolchain) -> SnarkjsCli:
    return SnarkjsCli(toolchain)


@pytest.fixture(scope="session")
def snarkjs_worker(toolchain: Toolchain) -> Iterator[SnarkjsWorker]:
    with SnarkjsWorker(toolchain) as worker:
        yield worker


@pytest.fixture(scope="session")
def evm(store: ArtifactStore) -> Path:
    """The `node_modules` of the compiler and the virtual machine, installed once into the checkout's `build/`."""
    lock = (EVM / "package-lock.json").read_bytes()
    target = store.home / "test_evm" / hashlib.sha256(lock).hexdigest()[:16]
    target.parent.mkdir(parents=True, exist_ok=True)
    npm = shutil.which("npm")
    assert npm is not None
    with FileLock(target.with_suffix(".lock")):
        if not target.is_dir():
            with tempfile.TemporaryDirectory(dir=target.parent) as folder:
                made = Path(folder) / "made"
                made.mkdir()
                for name in ("package.json", "package-lock.json"):
                    shutil.copy(EVM / name, made)
                run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], timeout_s=300, cwd=made)
                made.rename(target)
    return target / "node_modules"
