"""Asks a webhook as kube-apiserver does: over kept TLS connections, at a fixed rate whatever the answers take.

As a program it reads one JSON object from standard input (see ``Load``) and prints one with the figures. The time of an
answer counts from the moment at which its question was due, not from that at which it was sent: a server that stalls is
not asked more slowly, and does not look quick.
"""

import asyncio
import contextlib
import functools
import json
import re
import selectors
import ssl
import sys
import time
from collections import deque

MOST_CONNECTIONS = 16
"""A question that is due while all of them wait for answers waits for the first that is free."""
PATIENCE = 20.0
"""Seconds after the last question was due; what is not answered by then is lost."""
UID = "00000000-0000-0000-0000-000000000000"
"""Stands in the body for the uid, which differs in each question."""

_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)


class Connection(asyncio.Protocol):
    """One question at a time; ``done`` is called with the answer's body."""

    def __init__(self, done):
        self._done = done
        self._data = b""

    def connection_made(self, transport):
        self._transport = transport

    def ask(self, question):
        self._transport.write(question)

    def data_received(self, data):
        self._data += data
        head, found, body = self._data.partition(b"\r\n\r\n")
        if found and len(body) >= int(_LENGTH.search(head)[1]):
            assert head.startswith(b"HTTP/1.1 200 "), self._data[:500]
            self._data = b""
            self._done(self, body)

    def connection_lost(self, exc):
        self._transport = None


class Load:
    """``host``, ``port``, ``name`` (of the certificate), ``authority`` (PEM), ``path``, ``body`` (JSON text that holds
    ``UID``), ``rate`` (a second), ``count``, ``expect`` (a text that all answers hold).
    """

    def __init__(self, asked):
        self._asked = asked
        self._loop = asyncio.get_running_loop()
        head = (
            f"POST {asked['path']}?timeout=5s HTTP/1.1\r\nHost: {asked['name']}:443\r\n"
            f"User-Agent: kube-apiserver-admission\r\nContent-Length: {len(asked['body'].encode())}\r\n"
            "Accept: application/json, */*\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n"
        )
        self._parts = (head + asked["body"]).encode().split(UID.encode())
        self._expect = asked["expect"].encode()
        self._free = []
        self._waiting = deque()
        self._due = {}
        self._late = []
        self._times = []
        self._wrong = 0
        self._all = asyncio.Event()

    async def run(self):
        """The figures; times are seconds."""
        await self._connect()
        used, begun = time.process_time(), self._loop.time() + 0.05
        for number in range(self._asked["count"]):
            due = begun + number / self._asked["rate"]
            if (left := due - self._loop.time()) > 0:
                await asyncio.sleep(left)
            self._late.append(self._loop.time() - due)
            self._waiting.append((number, due))
            self._ask_next()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._all.wait(), PATIENCE)
        seconds = self._loop.time() - begun
        return self._figures(seconds, time.process_time() - used)

    async def _connect(self):
        context = ssl.create_default_context(cadata=self._asked["authority"])
        for _ in range(MOST_CONNECTIONS):
            where = (self._asked["host"], self._asked["port"])
            name = self._asked["name"]
            make = functools.partial(Connection, self._take)
            _, made = await self._loop.create_connection(make, *where, ssl=context, server_hostname=name)
            self._free.append(made)

    def _ask_next(self):
        """The connection that was free last is asked first, as Go's client does."""
        while self._waiting and self._free:
            number, due = self._waiting.popleft()
            connection = self._free.pop()
            self._due[connection] = due
            connection.ask(f"{number:036d}".encode().join(self._parts))

    def _take(self, connection, body):
        self._times.append(self._loop.time() - self._due.pop(connection))
        self._wrong += self._expect not in body
        self._free.append(connection)
        self._ask_next()
        if len(self._times) == self._asked["count"]:
            self._all.set()

    def _figures(self, seconds, used):
        answered = len(self._times)
        return {
            "answered": answered,
            "lost": self._asked["count"] - answered,
            "wrong": self._wrong,
            "rate": answered / seconds,
            "p50": _portion(self._times, 0.5),
            "p99": _portion(self._times, 0.99),
            "late": _portion(self._late, 0.99),
            "busy": used / seconds,
        }


def _portion(values, part):
    """The least value that so many of all do not exceed."""
    return sorted(values)[min(len(values) - 1, int(part * len(values)))] if values else 0.0


async def main():
    print(json.dumps(await Load(json.load(sys.stdin)).run()), flush=True)


if __name__ == "__main__":
    # epoll waits whole milliseconds, select(2) microseconds.
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        runner.run(main())
