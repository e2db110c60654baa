"""The API server's database in an SQLite file, which survives crashes of the process.

A failed write, for instance to a full disk, is rejected and reverted; reads continue, and later writes are tried again.

Writes that arrive during a transaction are grouped into the next one: a hundred concurrent clients wait for two syncs,
not for a hundred.
"""

import asyncio
import logging
import sqlite3
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from lastcall.aio import Signal
from lastcall.errors import InvalidInput, Unavailable
from lastcall_lab.apiserver.storage import private_files
from lastcall_lab.apiserver.storage.change_log import StorageKey, StoredChange, StoredChangeKind
from lastcall_lab.apiserver.storage.store import Store

log = logging.getLogger(__name__)

FILE = "lab.db"

_BESIDE = ("", "-wal", "-shm", "-journal")
"""SQLite's files: it creates the others with the mode of the first."""

_APPLICATION = 0x6C636C62
"""``PRAGMA application_id``, which identifies the lab's databases ("lclb")."""

_LOST = 100
"""Remembered failures, for requests that wait for one of their changes."""

_VERSION = 1
_OBJECTS = (
    "CREATE TABLE objects (resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,"
    " revision INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (resource, namespace, name)) WITHOUT ROWID"
)
_SCHEMA = (_OBJECTS, "CREATE TABLE state (revision INTEGER NOT NULL)", "INSERT INTO state VALUES (0)")


class LostChanges(NamedTuple):
    """The changes of the revisions ``first`` to ``last`` could not be written and were reverted."""

    first: int
    last: int
    why: str


class Database:
    """``store.Journal`` in a file; ``store`` contains what was loaded from it."""

    def __init__(self, path: Path, connection: sqlite3.Connection, store: Store) -> None:
        self.store = store
        self._path = path
        self._connection = connection
        self._waiting: list[StoredChange] = []
        self._saved = store.revision
        self._progress = Signal()
        self._lost: deque[LostChanges] = deque(maxlen=_LOST)
        self._writing: asyncio.Task[None] | None = None
        store.journal = self

    @classmethod
    async def open(cls, directory: Path) -> "Database":
        """Opens the database in a directory; creates both if needed.

        InvalidInput if the file is damaged or foreign; Unavailable if another lab uses it.
        """
        path = directory / FILE
        connection = await asyncio.to_thread(_open_file, path)
        try:
            return cls(path, connection, await asyncio.to_thread(_load_store, path, connection))
        except BaseException:
            connection.close()
            raise

    def append(self, change: StoredChange) -> None:
        """Queues a change; ``wait_durable`` waits until it is on disk."""
        self._waiting.append(change)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all(), name="the lab's database")

    async def wait_durable(self, revision: int) -> None:
        """Returns when all changes up to ``revision`` are on disk. Unavailable if they could not be written."""
        while self._saved < revision:
            await self._progress.next()
        if lost := self._lost_with(revision):
            raise Unavailable(lost.why)

    def is_lost(self, revision: int) -> bool:
        """Whether the change of that revision was reverted because it could not be written."""
        return self._lost_with(revision) is not None

    def _lost_with(self, revision: int) -> "LostChanges | None":
        return next((one for one in self._lost if one.first <= revision <= one.last), None)

    async def close(self) -> None:
        """Waits for queued writes; later changes are not written."""
        self.store.journal = None
        if self._writing:
            await self._writing
        await asyncio.to_thread(self._connection.close)

    async def _write_all(self) -> None:
        while self._waiting:
            changes, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(_write, self._connection, changes)
            except sqlite3.Error as error:
                self._take_back([*changes, *self._waiting], f"{self._path} cannot be written: {error}")
            else:
                self._saved = changes[-1].revision
            self._progress.set()

    def _take_back(self, changes: Sequence[StoredChange], why: str) -> None:
        """Reverts the store to the state of the file, so that reads continue and the next write tries again.

        Queued changes may depend on the failed ones and are reverted too.
        """
        log.error("%s; the pending writes are rejected", why)
        self._waiting = []
        self._lost.append(LostChanges(changes[0].revision, changes[-1].revision, why))
        self._saved = self.store.undo(changes)


# -- in a thread -------------------------------------------------------------------------------------------------------


def _write(connection: sqlite3.Connection, changes: Sequence[StoredChange]) -> None:
    """Writes all changes in one transaction; they are on disk when this returns."""
    newest = {change.new.key: change for change in changes}
    gone = [key for key, change in newest.items() if change.kind is StoredChangeKind.DELETED]
    there = [
        (*key, change.new.revision, change.new.data)
        for key, change in newest.items()
        if change.kind is not StoredChangeKind.DELETED
    ]
    if connection.in_transaction:  # left by a failed write whose rollback also failed
        connection.rollback()
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?", gone)
        connection.executemany("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)", there)
        connection.execute("UPDATE state SET revision = ?", (changes[-1].revision,))


def _open_file(path: Path) -> sqlite3.Connection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=private_files.DIRECTORY_MODE)
        private_files.create_file(path)
        for end in _BESIDE:
            private_files.restrict_access(path.with_name(path.name + end))
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.OperationalError) as error:
        raise InvalidInput(str(path), [f"cannot be opened: {error}"]) from None
    try:
        # The process holds the lock until it ends in any way: two labs never share a file.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        _check(path, connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        _lay_out(connection)
    except sqlite3.OperationalError as error:
        connection.close()
        if "locked" in str(error):
            raise Unavailable(f"{path} is in use by another lab") from None
        raise InvalidInput(str(path), [f"cannot be used: {error}"]) from None
    except sqlite3.DatabaseError as error:
        connection.close()
        raise _damage_error(path, str(error)) from None
    except BaseException:
        connection.close()
        raise
    return connection


def _check(path: Path, connection: sqlite3.Connection) -> None:
    """InvalidInput if the file is foreign, of an unknown version, or damaged. Never changes the file."""
    application, version = _number(connection, "PRAGMA application_id"), _number(connection, "PRAGMA user_version")
    tables = _number(connection, "SELECT count(*) FROM sqlite_master")
    if application != _APPLICATION and (application or version or tables):
        raise InvalidInput(str(path), ["is a database of another program: choose another directory"])
    if version > _VERSION:
        raise InvalidInput(
            str(path), [f"has format {version}; this version of lastcall supports formats up to {_VERSION}"]
        )
    [(found,)] = connection.execute("PRAGMA quick_check(1)").fetchall()
    if found != "ok":
        raise _damage_error(path, str(found))


def _lay_out(connection: sqlite3.Connection) -> None:
    """Creates the tables in an empty file."""
    if _number(connection, "PRAGMA application_id") == _APPLICATION:
        return
    with connection:
        connection.execute("BEGIN EXCLUSIVE")
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_VERSION}")


def _load_store(path: Path, connection: sqlite3.Connection) -> Store:
    try:
        revision = _number(connection, "SELECT revision FROM state")
        rows = connection.execute("SELECT resource, namespace, name, revision, data FROM objects").fetchall()
        store = Store()
        store.load(revision, ((StorageKey(*names), at, data) for *names, at, data in rows))
    except (sqlite3.DatabaseError, msgspec.DecodeError, TypeError) as error:
        raise _damage_error(path, str(error)) from None
    return store


def _number(connection: sqlite3.Connection, query: str) -> int:
    return int(connection.execute(query).fetchone()[0])


def _damage_error(path: Path, why: str) -> InvalidInput:
    return InvalidInput(str(path), [f"is damaged, or no database at all ({why}): move it away to begin anew"])
