"""Real proofs, and books on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from mastermind.referee.match import GUEST
from mastermind.referee.referee import Referee
from mastermind.zk.artifacts import KeySet
from tests.referee.world import CODES, SECRET, SUPPLY, WRONG, FakeClock, PlayedGame, PlayedMatch, World, play_match

#: Where Debian's package `postgresql` has the programs of a server.
_POSTGRESQL = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
#: A server refuses to run as root; Debian's package makes this user.
_SERVER_USER = "postgres"


@pytest.fixture(scope="session")
def world(hit_and_blow: KeySet) -> World:
    return World(hit_and_blow)


@pytest.fixture(scope="session")
def solved_game(world: World) -> PlayedGame:
    """A game that the breaker wins with the second guess. Its requests fit any referee of the world, once."""
    return world.play([WRONG, SECRET])


@pytest.fixture(scope="session")
def other_game(world: World, solved_game: PlayedGame) -> PlayedGame:
    """Another game of the same players with the same secret; its second guess is not answered yet."""
    return world.play([WRONG, (1, 2, 3, 4)], master=solved_game.master, breaker=solved_game.breaker, clues=1)


@pytest.fixture(scope="session")
def won_match(world: World) -> PlayedMatch:
    """A match in which the host breaks the guest's code in the first round, and the guest does not."""
    return play_match(world, (CODES[GUEST], WRONG))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def referee(world: World, database: str, clock: FakeClock) -> Iterator[Referee]:
    """On each kind of books, which are exact afterwards."""
    referee = world.referee(database, clock=clock)
    yield referee
    supply, balances, entries = referee.storage.look(lambda view: view.sums())
    assert supply == balances == entries == SUPPLY
    assert referee.storage.look(lambda view: view.wrong_accounts()) == []


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a server on loopback that is ours alone, without the name of a database.

    A machine without PostgreSQL fails these tests; it does not skip them.
    """
    initdb, pg_ctl = (shutil.which(name, path=_search_path()) for name in ("initdb", "pg_ctl"))
    assert initdb is not None, "PostgreSQL is needed: install the package postgresql"
    assert pg_ctl is not None
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
    root = os.geteuid() == 0
    if root:
        shutil.chown(folder, _SERVER_USER)
    data = folder / "data"

    def run(*argv: str) -> None:
        subprocess.run(
            argv,
            check=True,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=120,
            user=_SERVER_USER if root else None,
            group=_SERVER_USER if root else None,
            extra_groups=[] if root else None,
        )

    try:
        run(initdb, "-D", str(data), "-U", "referee", "-A", "trust", "-E", "UTF8", "--no-instructions")
        for port in range(54_330, 54_400):
            options = f"-h 127.0.0.1 -p {port} -k {folder}"
            try:
                run(pg_ctl, "-D", str(data), "-o", options, "-l", str(folder / "log"), "-w", "start")
                break
            except subprocess.CalledProcessError:
                continue  # the port is taken
        else:
            raise AssertionError(f"PostgreSQL does not start: {(folder / 'log').read_text('utf-8')[-2000:]}")
        try:
            yield f"postgresql://referee@127.0.0.1:{port}"
        finally:
            run(pg_ctl, "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def new_postgresql_database(postgresql: str) -> Callable[[], str]:
    """Makes an empty database and returns its URL."""
    numbers = itertools.count()

    def make() -> str:
        name = f"books{next(numbers)}"
        with psycopg.connect(f"{postgresql}/postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"{postgresql}/{name}"

    return make


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path, world: World) -> Iterator[str]:
    """The URL of an empty database, of each kind in turn. What the test has opened there is closed after it."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'books.db'}"
    else:
        make: Callable[[], str] = request.getfixturevalue("new_postgresql_database")
        yield make()
    world.close()


def _search_path() -> str:
    return os.pathsep.join([*map(str, _POSTGRESQL), os.environ.get("PATH", "")])
