"""A client of PostgreSQL that counts its acknowledged writes; one connection speaks just enough of the protocol."""

import contextlib
import secrets
import socket
import struct
import threading
import time
from pathlib import Path

PORT = 5432


class PostgresConnection:
    """One connection of the user postgres, whom the server trusts. OSError for whatever goes wrong."""

    def __init__(self, address, seconds=1.0):
        self._socket = socket.create_connection((address, PORT), seconds)
        self._file = self._socket.makefile("rb")
        words = b"user\0postgres\0database\0postgres\0\0"
        try:
            self._socket.sendall(struct.pack("!ii", 8 + len(words), 196608) + words)
            self._read_rows()
        except BaseException:
            self.close()
            raise

    def query(self, statement):
        """The rows, of text."""
        text = statement.encode() + b"\0"
        self._socket.sendall(b"Q" + struct.pack("!i", 4 + len(text)) + text)
        return self._read_rows()

    def close(self):
        with contextlib.suppress(OSError):
            self._socket.close()
        with contextlib.suppress(OSError):
            self._file.close()

    def _read_rows(self):
        """Until the server is ready for a query."""
        rows, error = [], None
        while True:
            kind, size = self._read(1), struct.unpack("!i", self._read(4))[0]
            body = self._read(size - 4)
            if kind == b"D":
                rows.append(_read_columns(body))
            elif kind == b"E":
                error = body.decode(errors="replace").replace("\0", " ")
                if "SFATAL" in error:
                    raise ConnectionError(error)
            elif kind == b"Z":
                if error:
                    raise ConnectionError(error)
                return rows

    def _read(self, size):
        data = self._file.read(size)
        if len(data) < size:
            raise ConnectionError("the server has closed")
        return data


def _read_columns(body):
    [count] = struct.unpack("!h", body[:2])
    columns, at = [], 2
    for _ in range(count):
        [size] = struct.unpack("!i", body[at : at + 4])
        at += 4
        columns.append(None if size < 0 else body[at : at + size].decode())
        at += max(size, 0)
    return columns


def find_primaries(peers, seconds=0.5):
    """Connections to all servers that take writes."""
    found = []
    for path in sorted(Path(peers).iterdir()):
        with contextlib.suppress(OSError):
            connection = PostgresConnection(path.read_text().strip(), seconds)
            if connection.query("select pg_is_in_recovery()") == [["f"]]:
                found.append(connection)
            else:
                connection.close()
    return found


class WritingClient:
    """Writes to the primary, one row after the other, and remembers which were acknowledged.

    What is written to a frozen replica may still wait in the system's buffers, some megabytes, and is not lost: ``size``
    bytes in each row exceed them.
    """

    def __init__(self, peers, *, pause=0.005, size=1):
        self._peers = peers
        self._table = f"writes_{time.monotonic_ns()}"
        self._value = secrets.token_hex(max(1, size // 2))
        self._pause = pause
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.acknowledged = []
        self.times = []
        """When each was."""

    def __enter__(self):
        [primary, *_] = find_primaries(self._peers, 10)
        primary.query(f"create table {self._table} (number int, value text)")
        primary.query(f"alter table {self._table} alter value set storage external")
        primary.close()
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(30)

    def _run(self):
        number, connection = 0, None
        while not self._stop.is_set():
            try:
                if connection is None:
                    connection, *others = [*find_primaries(self._peers), None]
                    for other in filter(None, others):
                        other.close()
                if connection is None:
                    time.sleep(0.05)
                    continue
                number += 1
                connection.query(f"insert into {self._table} values ({number}, '{self._value}')")
                self.acknowledged.append(number)
                self.times.append(time.monotonic())
                time.sleep(self._pause)
            except OSError:
                if connection:
                    connection.close()
                connection = None
                time.sleep(0.05)
        if connection:
            connection.close()

    def count_lost(self):
        """How many acknowledged writes the one primary does not have."""
        [primary] = find_primaries(self._peers, 20)
        try:
            there = {int(number) for [number] in primary.query(f"select number from {self._table}")}
        finally:
            primary.close()
        return len(set(self.acknowledged) - there)
