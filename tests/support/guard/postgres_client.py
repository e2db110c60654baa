"""A client of PostgreSQL that counts its acknowledged writes; one connection speaks just enough of the protocol."""

import contextlib
import secrets
import socket
import struct
import time
from pathlib import Path

from support.guard.writing_client import WritingClient

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


class PostgresWriter(WritingClient):
    """Writes rows to the primary; each value has ``size`` bytes."""

    def __init__(self, peers, *, pause=0.005, size=1):
        self._peers = peers
        self._table = f"writes_{time.monotonic_ns()}"
        self._value = secrets.token_hex(max(1, size // 2))
        super().__init__(self._find_primary, self._insert, pause=pause)

    def __enter__(self):
        [primary, *_] = find_primaries(self._peers, 10)
        primary.query(f"create table {self._table} (number int, value text)")
        primary.query(f"alter table {self._table} alter value set storage external")
        primary.close()
        return super().__enter__()

    def _find_primary(self):
        found, *others = [*find_primaries(self._peers), None]
        for other in filter(None, others):
            other.close()
        return found

    def _insert(self, connection, number):
        connection.query(f"insert into {self._table} values ({number}, '{self._value}')")
        return True

    def count_lost(self):
        """How many acknowledged writes the one primary does not have."""
        [primary] = find_primaries(self._peers, 20)
        try:
            there = {int(number) for [number] in primary.query(f"select number from {self._table}")}
        finally:
            primary.close()
        return len(set(self.acknowledged) - there)
