"""Asks a webhook as kube-apiserver does: over kept TLS connections, at a fixed rate whatever the answers take.

As a program it reads one JSON object from standard input (see ``Load``) and prints one with the figures. What a server
closes is opened again, as the API server's client does: ``broken`` counts the questions that were under way on a
connection that was closed (EOF), ``refused`` the connections that could not be opened. The time of an
answer counts from the moment at which its question was due, not from that at which it was sent: a server that stalls is
not asked more slowly, and does not look quick.
"""

import asyncio
import contextlib
import functools
import json
import re
import selectors
import signal
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
    """One question at a time; ``done`` is called with the answer's body, and ``closed`` when it is closed."""

    def __init__(self, done, closed):
        self._done = done
        self._closed = closed
        self._data = b""
        self.is_closed = False

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
            is_last = b"\r\nconnection: close" in head.lower()
            if is_last:
                self._transport.close()
            self._done(self, body, is_last=is_last)

    def connection_lost(self, exc):
        self.is_closed = True
        self._closed(self)


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
        self._context = ssl.create_default_context(cadata=asked["authority"])
        self._free = []
        self._waiting = deque()
        self._due = {}
        self._late = []
        self._times = []
        self._wrong = self._broken = self._refused = self._opened = self._asked_for = 0
        self._all = asyncio.Event()
        self._stopped = self._all_asked = False
        self._opening = set()

    async def run(self):
        """The figures; times are seconds. SIGTERM ends it before its time."""
        self._loop.add_signal_handler(signal.SIGTERM, setattr, self, "_stopped", True)
        await asyncio.gather(*(self._open() for _ in range(MOST_CONNECTIONS)))
        used, begun = time.process_time(), self._loop.time() + 0.05
        for number in range(self._asked["count"]):
            if self._stopped:
                break
            due = begun + number / self._asked["rate"]
            if (left := due - self._loop.time()) > 0:
                await asyncio.sleep(left)
            self._late.append(self._loop.time() - due)
            self._waiting.append((number, due))
            self._asked_for += 1
            self._ask_next()
        self._all_asked = True
        self._check_end()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._all.wait(), PATIENCE)
        seconds = self._loop.time() - begun
        return self._figures(seconds, time.process_time() - used)

    async def _open(self):
        """One connection, as often as it takes: each refusal would be a failed call of an API server."""
        where, name = (self._asked["host"], self._asked["port"]), self._asked["name"]
        make = functools.partial(Connection, self._take, self._lose)
        while not self._all.is_set():
            try:
                _, made = await self._loop.create_connection(make, *where, ssl=self._context, server_hostname=name)
            except OSError:
                self._refused += 1
                await asyncio.sleep(0.05)
                continue
            self._opened += 1
            if not made.is_closed:  # otherwise ``_lose`` opens another one
                self._free.append(made)
                self._ask_next()
            return

    def _ask_next(self):
        """The connection that was free last is asked first, as Go's client does."""
        while self._waiting and self._free:
            number, due = self._waiting.popleft()
            connection = self._free.pop()
            self._due[connection] = due
            connection.ask(f"{number:036d}".encode().join(self._parts))

    def _take(self, connection, body, *, is_last):
        self._times.append(self._loop.time() - self._due.pop(connection))
        self._wrong += self._expect not in body
        if not is_last:
            self._free.append(connection)
        self._ask_next()
        self._check_end()

    def _lose(self, connection):
        """It is closed: another one takes its place. A question that is under way on it is not answered."""
        if connection in self._free:
            self._free.remove(connection)
        if self._due.pop(connection, None) is not None:
            self._broken += 1
            self._check_end()
        if not self._all.is_set():
            opening = self._loop.create_task(self._open())
            self._opening.add(opening)
            opening.add_done_callback(self._opening.discard)

    def _check_end(self):
        if self._all_asked and len(self._times) + self._broken == self._asked_for:
            self._all.set()

    def _figures(self, seconds, used):
        answered = len(self._times)
        return {
            "answered": answered,
            "lost": self._asked_for - answered,
            "broken": self._broken,
            "refused": self._refused,
            "opened": self._opened,
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
