"""The books: games and matches, events, nonces, accounts and entries in a database, SQLite or PostgreSQL.

Everything that matters is here and nothing of it in a process. Each request is one transaction: the game's row is
locked; the state, its event, the nonce and the entries change together or not at all; and when `transact` returns they
are on disk. PostgreSQL is used with row locks, taken in one order (the game, then accounts by name); whoever loses a
race or meets a deadlock starts again. SQLite has one writer at a time, and its write-ahead log is synced at each
commit: requests that wait for the writer share the next commit.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    Engine,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    bindparam,
    create_engine,
    event,
    func,
    insert,
    make_url,
    select,
    update,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError, OperationalError

from mastermind.errors import InvalidInputError, ReplayError
from mastermind.referee.ledger import HOUSE, MAX_SUPPLY, Transfer, post
from mastermind.referee.log import read_contract, read_match
from mastermind.referee.match import Match, Staked
from mastermind.referee.requests import About

SCHEMA_VERSION = 2
#: Races are lost by few requests, and seldom.
MAX_TRIES = 12
#: Requests that share a commit at most.
MAX_BATCH = 64
#: How long a writer waits for the others; at 4 ms a transaction that is a long queue.
BUSY_TIMEOUT_S = 20

T = TypeVar("T")

_metadata = MetaData()
_ELEMENT = String(78)

_referee = Table(
    "referee",
    _metadata,
    Column("schema_version", Integer, primary_key=True),
    Column("referee_id", _ELEMENT, nullable=False),
    Column("slot_seconds", Integer, nullable=False),
    Column("supply", BigInteger, nullable=False),
)
_games = Table(
    "games",
    _metadata,
    # Of a match, the host is the master here and the guest the breaker.
    Column("game", _ELEMENT, primary_key=True),
    Column("about", String(8), nullable=False),
    Column("key_set_id", String(64), nullable=False),
    Column("rules", String(16), nullable=False),
    Column("master_id", _ELEMENT, nullable=False),
    Column("breaker_id", _ELEMENT),
    Column("reward", BigInteger, nullable=False),
    Column("status", String(8), nullable=False),
    Column("event_count", Integer, nullable=False),
    Column("opened_slot", BigInteger, nullable=False),
    Column("contract", Text, nullable=False),
    Index("games_by_status", "about", "status", "opened_slot", "game"),
    Index("games_by_master", "master_id", "status"),
    Index("games_by_breaker", "breaker_id", "status"),
)
_events = Table(
    "events",
    _metadata,
    Column("game", _ELEMENT, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("slot", BigInteger, nullable=False),
    Column("method", String(24), nullable=False),
    Column("request", Text, nullable=False),
    Column("packed", String(48), nullable=False),
    Column("answer", Text, nullable=False),
)
_nonces = Table(
    "nonces",
    _metadata,
    Column("player_id", _ELEMENT, primary_key=True),
    Column("nonce", _ELEMENT, primary_key=True),
)
_accounts = Table(
    "accounts",
    _metadata,
    Column("account", String(96), primary_key=True),
    Column("balance", BigInteger, CheckConstraint("balance >= 0", name="never_negative"), nullable=False),
)
_entries = Table(
    "entries",
    _metadata,
    # SQLite counts by itself only in a column that is exactly an INTEGER.
    Column("entry", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("account", String(96), nullable=False, index=True),
    Column("amount", BigInteger, nullable=False),
    Column("reason", String(128), nullable=False),
)

_STORED = (_games.c.about, _games.c.contract, _games.c.key_set_id, _games.c.event_count, _games.c.opened_slot)
# What every request runs is put together once.
_SELECT_GAME = select(*_STORED).where(_games.c.game == bindparam("name"))
_LOCK_GAME = _SELECT_GAME.with_for_update()
_SELECT_ANSWER = select(_events.c.answer).where(_events.c.digest == bindparam("name"))
_UPDATE_GAME = update(_games).where(_games.c.game == bindparam("name"))
_INSERT_EVENT = insert(_events)
STATUSES = ("open", "playing", "closed")


@dataclass(frozen=True)
class RefereeRecord:
    """What a set of books was made for; it never changes.

    Attributes:
        supply: all credits there are.
    """

    referee_id: int
    slot_seconds: int
    supply: int


@dataclass(frozen=True)
class StoredGame:
    """A game or match in the books.

    Attributes:
        event_count: how many requests of it have been accepted.
    """

    contract: Staked
    key_set_id: str
    event_count: int
    opened_slot: int

    @property
    def about(self) -> About:
        """Whether it is a game or a match."""
        return _about(self.contract)


@dataclass(frozen=True)
class StoredEvent:
    """An event in the books; `request` and `answer` are JSON."""

    number: int
    slot: int
    method: str
    request: str
    packed: str
    answer: str


class Storage:
    """The books in one database. Safe for many threads, processes and machines."""

    def __init__(self, url: str) -> None:
        """Use the database at an SQLAlchemy URL; `postgresql://` is psycopg's.

        Raises:
            InvalidInputError: not the URL of such a database.
        """
        try:
            parsed = make_url(url)
        except (ArgumentError, ValueError):
            # Not `from` the error: it may show a part of the password.
            raise InvalidInputError("that is not the URL of a database") from None
        try:
            if parsed.drivername == "postgresql":
                parsed = parsed.set(drivername="postgresql+psycopg")
            if parsed.get_backend_name() not in ("sqlite", "postgresql"):
                raise InvalidInputError(f"{parsed.get_backend_name()} is not supported; use sqlite or postgresql")
            sqlite = parsed.get_backend_name() == "sqlite"
            self._engine = _sqlite_engine(parsed) if sqlite else _postgresql_engine(parsed)
        except (ArgumentError, NoSuchModuleError) as error:
            raise InvalidInputError("that is not the URL of a database") from error
        self._batches = _Batches(self._begin) if sqlite else None

    def create(self, record: RefereeRecord) -> None:
        """Make new books and put the supply into the house.

        Raises:
            InvalidInputError: there are books already, an impossible supply, or no database.
        """
        if not 1 <= record.supply <= MAX_SUPPLY:
            raise InvalidInputError("the supply is not a number of credits")
        with self._reported():
            if self._batches is not None:
                _create_private(self._engine.url.database)
            with self._engine.begin() as connection:
                _metadata.create_all(connection)
            with self._begin() as connection:
                if connection.execute(select(func.count()).select_from(_referee)).scalar_one():
                    raise InvalidInputError("this database already has a referee's books")
                connection.execute(
                    insert(_referee).values(
                        schema_version=SCHEMA_VERSION,
                        referee_id=str(record.referee_id),
                        slot_seconds=record.slot_seconds,
                        supply=record.supply,
                    )
                )
                connection.execute(insert(_accounts).values(account=HOUSE, balance=record.supply))
                connection.execute(insert(_entries).values(account=HOUSE, amount=record.supply, reason="supply"))

    def record(self) -> RefereeRecord:
        """What these books were made for.

        Raises:
            InvalidInputError: there are no books, or those of another version.
        """
        with self._reported(), self._engine.connect() as connection:
            row = connection.execute(select(_referee)).one_or_none()
        if row is None or row.schema_version != SCHEMA_VERSION:
            raise InvalidInputError("this database has no referee's books of this version")
        return RefereeRecord(int(row.referee_id), row.slot_seconds, row.supply)

    def transact(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in one transaction and return its answer once everything is durable.

        `work` may run several times, and has no effect outside the transaction.
        """
        if self._batches is not None:
            return self._batches.transact(work)
        for attempt in range(MAX_TRIES):
            try:
                with self._begin() as connection:
                    return work(Transaction(connection))
            except (IntegrityError, OperationalError) as error:
                if attempt == MAX_TRIES - 1 or not _lost_a_race(error):
                    raise
                time.sleep(random.uniform(0, 0.005 * 2 ** min(attempt, 6)))  # noqa: S311 (only spreads the tries)
        raise AssertionError("unreachable")

    def look(self, read: Callable[[View], T]) -> T:
        """Run a reading `read` in one transaction."""
        try:
            with self._engine.connect() as connection:
                return read(View(connection))
        except OperationalError as error:
            if not error.connection_invalidated:
                raise
            with self._engine.connect() as connection:  # the server has restarted
                return read(View(connection))

    def close(self) -> None:
        """Close all connections."""
        if self._batches is not None:
            self._batches.close()
        self._engine.dispose()

    @contextmanager
    def _begin(self) -> Iterator[Connection]:
        with self._engine.connect().execution_options(write=True) as connection, connection.begin():
            yield connection

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise InvalidInputError(f"the database cannot be used: {error.orig}") from error
        except OSError as error:
            raise InvalidInputError(f"the database cannot be used: {error.strerror}") from error


class _Job:
    """Work that waits for the writer, and then its answer or error."""

    def __init__(self, work: Callable[[Transaction], Any]) -> None:
        self.work = work
        self.done = threading.Event()
        self.answer: Any = None
        self.error: Exception | None = None


class _Batches:
    """Several transactions in one commit: a thread of its own does the work of all who wait for it."""

    def __init__(self, begin: Callable[[], AbstractContextManager[Connection]]) -> None:
        self._begin = begin
        self._waiting: SimpleQueue[_Job | None] = SimpleQueue()
        self._writer: threading.Thread | None = None
        self._starting = threading.Lock()

    def transact(self, work: Callable[[Transaction], T]) -> T:
        with self._starting:
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_all, name="books", daemon=True)
                self._writer.start()
            job = _Job(work)
            self._waiting.put(job)
        job.done.wait()
        if job.error is not None:
            raise job.error
        answer: T = job.answer
        return answer

    def close(self) -> None:
        """Let the thread end, once it has done what waits for it."""
        with self._starting:
            if self._writer is not None:
                self._waiting.put(None)
                self._writer.join()
                self._writer = None

    def _write_all(self) -> None:
        while (job := self._waiting.get()) is not None:
            jobs = [job]
            while len(jobs) < MAX_BATCH and not self._waiting.empty():
                another = self._waiting.get()
                if another is None:
                    self._write(jobs)
                    return
                jobs.append(another)
            self._write(jobs)

    def _write(self, jobs: Sequence[_Job]) -> None:
        try:
            self._commit(jobs)
        except Exception:  # nothing is written; each by itself, then, and its error is its own
            for job in jobs:
                try:
                    self._commit([job])
                except Exception as error:
                    job.error = error
        for job in jobs:
            job.done.set()

    def _commit(self, jobs: Sequence[_Job]) -> None:
        with self._begin() as connection:
            for job in jobs:
                books = Transaction(connection)
                job.error = None
                try:
                    job.answer = job.work(books)
                except Exception as error:
                    if books.wrote:
                        raise  # what it wrote must go, and everything of this commit with it
                    job.error = error


class View:
    """Reading the books."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def game(self, game: int) -> StoredGame | None:
        """A game, or None."""
        return self._game(game, lock=False)

    def answer(self, digest: str) -> str | None:
        """The answer to a request that has been accepted, or None."""
        return self._connection.execute(_SELECT_ANSWER, {"name": digest}).scalar_one_or_none()

    def events(self, game: int, since: int = 0) -> list[StoredEvent]:
        """The events of a game from number `since` on."""
        columns = (_events.c[name] for name in ("number", "slot", "method", "request", "packed", "answer"))
        rows = self._connection.execute(
            select(*columns).where(_events.c.game == str(game), _events.c.number >= since).order_by(_events.c.number)
        )
        return [StoredEvent(*row) for row in rows]

    def event_counts(self, games: Sequence[int]) -> dict[int, int]:
        """How many events each of these games has."""
        rows = self._connection.execute(
            select(_games.c.game, _games.c.event_count).where(_games.c.game.in_([str(game) for game in games]))
        )
        return {int(game): count for game, count in rows}

    def games(self, about: About, status: str, limit: int, after: int | None = None) -> list[StoredGame]:
        """`games` or `matches` of a status, the newest first; `after` is the last one of the page before."""
        query = select(*_STORED).where(_games.c.about == about, _games.c.status == status)
        if after is not None:
            last = self._connection.execute(
                select(_games.c.opened_slot).where(_games.c.game == str(after))
            ).scalar_one_or_none()
            if last is None:
                return []
            query = query.where(
                (_games.c.opened_slot < last) | ((_games.c.opened_slot == last) & (_games.c.game < str(after)))
            )
        rows = self._connection.execute(query.order_by(_games.c.opened_slot.desc(), _games.c.game.desc()).limit(limit))
        return [_stored(*row) for row in rows]

    def game_counts(self) -> dict[str, int]:
        """How many games and matches there are of each status."""
        rows = self._connection.execute(select(_games.c.status, func.count()).group_by(_games.c.status))
        return dict.fromkeys(STATUSES, 0) | {row[0]: row[1] for row in rows}

    def games_of(self, player_id: int) -> int:
        """In how many games and matches the player has a stake."""
        player = str(player_id)
        mine = (_games.c.master_id == player) | (_games.c.breaker_id == player)
        return self._connection.execute(
            select(func.count()).select_from(_games).where(mine, _games.c.status != "closed")
        ).scalar_one()

    def balance(self, account: str) -> int | None:
        """The balance of an account, or None when there is no such account."""
        return self._connection.execute(
            select(_accounts.c.balance).where(_accounts.c.account == account)
        ).scalar_one_or_none()

    def sums(self) -> tuple[int, int, int]:
        """The supply, the sum of all balances, and the sum of all entries: three times the same."""
        supply = self._connection.execute(select(_referee.c.supply)).scalar_one()
        balances = self._connection.execute(select(func.sum(_accounts.c.balance))).scalar_one()
        entries = self._connection.execute(select(func.sum(_entries.c.amount))).scalar_one()
        return int(supply), int(balances), int(entries)

    def wrong_accounts(self) -> list[str]:
        """Accounts whose balance is not the sum of their entries: none."""
        sums = (
            select(_entries.c.account, func.sum(_entries.c.amount).label("total")).group_by(_entries.c.account)
        ).subquery()
        rows = self._connection.execute(
            select(_accounts.c.account)
            .outerjoin(sums, sums.c.account == _accounts.c.account)
            .where(func.coalesce(sums.c.total, 0) != _accounts.c.balance)
        )
        return list(rows.scalars())

    def _game(self, game: int, *, lock: bool) -> StoredGame | None:
        query = _LOCK_GAME if lock else _SELECT_GAME
        row = self._connection.execute(query, {"name": str(game)}).one_or_none()
        return None if row is None else _stored(*row)


class Transaction(View):
    """Reading and writing the books in one transaction.

    Attributes:
        wrote: whether anything has been written.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.wrote = False

    def lock_game(self, game: int) -> StoredGame | None:
        """A game, locked until the end of the transaction, or None; then its name is locked."""
        stored = self._game(game, lock=True)
        if stored is None and self._connection.dialect.name == "postgresql":
            # There is no row to lock before the game is opened, and two openings may come at once.
            self._connection.execute(select(func.pg_advisory_xact_lock(game % (1 << 63))))
            stored = self._game(game, lock=True)
        return stored

    def lock_balance(self, account: str) -> int | None:
        """A balance, locked until the end of the transaction, or None when there is no such account."""
        return self._connection.execute(
            select(_accounts.c.balance).where(_accounts.c.account == account).with_for_update()
        ).scalar_one_or_none()

    def save(
        self,
        contract: Staked,
        contract_text: str,
        key_set_id: str,
        digest: str,
        happened: StoredEvent,
    ) -> None:
        """Write a game after its newest event."""
        self.wrote = True
        game = str(contract.solution_hash)
        status = "closed" if contract.closed else "playing" if contract.accepted else "open"
        first, second = contract.players
        changing = {
            "contract": contract_text,
            "event_count": happened.number + 1,
            "status": status,
            "breaker_id": None if second is None else str(second),
        }
        if happened.number == 0:
            self._connection.execute(
                insert(_games).values(
                    game=game,
                    about=_about(contract),
                    key_set_id=key_set_id,
                    rules=contract.rules.spelling,
                    master_id=str(first),
                    reward=contract.reward,
                    opened_slot=happened.slot,
                    **changing,
                )
            )
        else:
            self._connection.execute(_UPDATE_GAME, {"name": game, **changing})
        self._connection.execute(_INSERT_EVENT, {"game": game, "digest": digest, **vars(happened)})

    def use_nonce(self, player_id: int, nonce: int) -> None:
        """Use up a nonce of a player. Raises ReplayError when it has been used."""
        key = {"player_id": str(player_id), "nonce": str(nonce)}
        used = self._connection.execute(select(_nonces).filter_by(**key)).one_or_none()
        if used is not None:
            raise ReplayError("this nonce has been used before", refusal="nonce_used")
        self.wrote = True
        self._connection.execute(insert(_nonces).values(**key))

    def transfer(self, transfer: Transfer, reason: str) -> None:
        """Move credits. Raises InsufficientCreditError."""
        accounts = sorted((transfer.source, transfer.target))
        held = {account: self.lock_balance(account) for account in accounts}
        new = post({account: balance or 0 for account, balance in held.items()}, transfer)
        self.wrote = True
        for account in accounts:
            if held[account] is None:
                self._connection.execute(insert(_accounts).values(account=account, balance=new[account]))
            else:
                self._connection.execute(
                    update(_accounts).where(_accounts.c.account == account).values(balance=new[account])
                )
        self._connection.execute(
            insert(_entries),
            [{"account": account, "amount": amount, "reason": reason} for account, amount in transfer.entries],
        )


def _about(contract: Staked) -> About:
    return "matches" if isinstance(contract, Match) else "games"


def _stored(about: str, contract: str, key_set_id: str, event_count: int, opened_slot: int) -> StoredGame:
    read = read_match if about == "matches" else read_contract
    return StoredGame(read(json.loads(contract)), key_set_id, event_count, opened_slot)


def _create_private(database: str | None) -> None:
    """Make the file of an SQLite database one that only its owner can read; the files beside it take the mode over."""
    if database and database != ":memory:" and not database.startswith("file:"):
        path = Path(database)
        path.touch(mode=0o600)
        path.chmod(0o600)


def _sqlite_engine(url: Any) -> Engine:
    # Readers and writers wait for each other inside SQLite, so every thread may have its own connection.
    engine = create_engine(url, pool_size=32, max_overflow=32, connect_args={"timeout": BUSY_TIMEOUT_S})

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # `_begin` says which transaction
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # The writer's lock at once: a reader that becomes a writer could only fail.
        writes = connection.get_execution_options().get("write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgresql_engine(url: Any) -> Engine:
    return create_engine(url, pool_size=16, max_overflow=16)


def _lost_a_race(error: DBAPIError) -> bool:
    """Whether the same work may well succeed on another try."""
    if isinstance(error, IntegrityError):
        return True  # somebody has written the same row: now it can be read
    if error.connection_invalidated:
        return True  # the server has restarted; whether this was written will be found out
    state = getattr(error.orig, "sqlstate", None)
    return state in ("40001", "40P01") or "database is locked" in str(error.orig)
