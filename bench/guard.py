"""The guard under load: reviews a second, how long they take, CPU and memory, beside a minimal webhook in Go.

The guard is ``lastcall guard run`` in a process of its own beside a lab. It shares a core with the Go program, which is idle
while the guard is asked, and the other way round; the lab and the load (``guard_load``) have the other one.
"""

import asyncio
import contextlib
import json
import os
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import go_peer
import guard_roll
from figures import Figures
from guard_ground import BYPASSED, FREE, HELD, Ground, each_differs
from lab import Target, alone, judged
from programs import Program
from rest import cpu_seconds, rss

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.https_transport import HttpsTransport

SIZES = {"rates": [100, 500, 2000], "seconds": 10, "once": 500, "live": 100, "warm": 1000, "roll": 500}
QUICK = {"rates": [20], "seconds": 1, "once": 20, "live": 10, "warm": 20, "roll": 0}

P99, AT = 0.005, 500
"""Seconds at most of 99 in 100 answers at so many reviews a second."""
MEMORY = 60
"""MiB at most."""
KEPT = 0.99
"""Of the rate at which reviews are due, so much has to be answered."""
LATE, BUSY = 0.001, 0.9
"""Seconds by which one in a hundred questions may be late, and the part of a core that the load may use."""

REFUSED, ALLOWED = '"allowed":false', '"allowed":true'

HEAD = ["what", "by", "guard", "Go net/http", "the load", "target", "verdict"]


@dataclass(frozen=True)
class GuardRow:
    """A line of the guard's table, judged by the median of the guard's."""

    what: str
    by: str
    figures: Figures
    peer: Figures | None = None
    load: str = ""
    target: Target | None = None

    @property
    def met(self):
        """None without a target."""
        return judged(self.target, self.figures)[0]

    def cells(self):
        _, said, verdict = judged(self.target, self.figures)
        return [self.what, self.by, str(self.figures), str(self.peer or ""), self.load, said, verdict]


@dataclass(frozen=True)
class Server:
    """Whom the load asks, and about what."""

    pid: int
    asked: dict


class Guard:
    """Measures in a directory of its own; ``rows`` is the table, ``left_out`` says why a part of it is missing."""

    def __init__(self, *, quick, turns, tell):
        self._sizes = QUICK if quick else SIZES
        self._turns = turns
        self._tell = tell
        self._directory = Path(tempfile.mkdtemp(prefix="lc-bench-"))
        self._go = None
        self._quick = quick
        self.left_out = []
        self.told = []

    async def rows(self):
        """Guard and Go program take turns, ``turns`` times."""
        try:
            await asyncio.to_thread(self._find_go)
            mine, theirs = [], []
            for turn in range(self._turns):
                self._tell(f"guard: turn {turn + 1}")
                found, peer = await self._measure_turn()
                mine.append(found)
                theirs += [peer] if peer else []
            return [*_rows(mine, theirs, self._sizes), *await self._measure_roll(self._sizes["roll"])]
        finally:
            shutil.rmtree(self._directory)

    def _find_go(self):
        """Builds the Go program, or says why there is none."""
        try:
            self._tell("guard: the Go program")
            found = go_peer.compiler(fetch=not self._quick)
            self._go = go_peer.build(found, self._directory)
            self.told.append(f"Go net/http: {go_peer.version(found)}, built from {go_peer.SOURCE.parent.name}")
        except go_peer.NoGo as why:
            self.left_out.append(f"guard beside Go: {why}")

    async def _measure_turn(self):
        """The figures of the guard, and of the Go program if there is one: they are asked in turn at each rate."""
        async with self._lab() as ground, self._guard_run() as (program, port), self._go_serving() as serving:
            name, path, authority = await ground.webhook()
            where = {"host": "127.0.0.1", "port": port, "name": name, "path": path, "authority": authority}
            held, bypassed, free = [await ground.review(one) for one in (HELD, BYPASSED, FREE)]
            guard = Server(program.process.pid, where | {"body": held, "expect": REFUSED})
            peers = [Server(serving[0], serving[1] | {"body": held, "expect": REFUSED})] if serving else []
            found, *others = await self._ask_all([guard, *peers])
            found["rss"] = rss(guard.pid)
            for one, server in zip([found, *others], [guard, *peers], strict=True):
                asked = server.asked | {"body": each_differs(held)}
                one["once"] = await self._ask(Server(server.pid, asked), self._sizes["once"])
            for key, body in (("live", bypassed), ("free", free)):
                asked = where | {"body": body, "expect": ALLOWED}
                found[key] = await self._ask(Server(guard.pid, asked), self._sizes["live"])
            found["rss live"] = rss(guard.pid)
            for peer, other in zip(peers, others, strict=True):
                other["rss"] = rss(peer.pid)
            return found, next(iter(others), None)

    @contextlib.asynccontextmanager
    async def _go_serving(self):
        """The Go program's process and where it is asked; None without one."""
        if not self._go:
            yield None
            return
        with _only(_cores()[0]):
            serving = go_peer.serving(self._go, self._directory)
            process, port, authority = await serving.__aenter__()
        try:
            where = {"host": "127.0.0.1", "port": port, "name": "127.0.0.1", "path": "/review", "authority": authority}
            yield process.pid, where
        finally:
            await serving.__aexit__(None, None, None)

    async def _measure_roll(self, rate):
        """The rows of a roll at that rate; none for 0, since a test does the same."""
        if not rate:
            return []
        self._tell(f"guard: its replicas roll at {rate}/s")
        directory = self._directory / "roll"
        directory.mkdir()
        found = await asyncio.to_thread(guard_roll.measure_roll, directory, rate=rate)
        self._tell("  " + ", ".join(f"{name} {value:.4g}" for name, value in found.items()))
        return list(_roll_rows(found, rate))

    async def _ask_all(self, servers):
        """The figures of a held pod by rate, of each server: one after the other at each rate, so that both meet the same
        machine.
        """
        for server in servers:
            await self._ask(server, 200, self._sizes["warm"])
        found = [{} for _ in servers]
        for rate in self._sizes["rates"]:
            for one, server in zip(found, servers, strict=True):
                one[rate] = await self._ask(server, rate)
        return found

    async def _ask(self, server, rate, count=0):
        count = count or rate * self._sizes["seconds"]
        used = cpu_seconds(server.pid)
        found = await _load(server.asked | {"rate": rate, "count": count})
        assert not found["wrong"], f"{found['wrong']} of {count} answers were not {server.asked['expect']}"
        found["cpu"] = 1e6 * (cpu_seconds(server.pid) - used) / max(1, found["answered"])
        self._tell(f"  {rate}/s: " + ", ".join(f"{name} {value:.4g}" for name, value in found.items()))
        return found

    @contextlib.asynccontextmanager
    async def _lab(self):
        access = self._directory / "kubeconfig"
        access.unlink(missing_ok=True)
        said = ("lab", "up", "--nodes=0", f"--kubeconfig={access}", *alone())
        with _only(_cores()[1]):
            program = await Program.lastcall(*said, log=self._directory / "up.log", bus="")
        try:
            while not access.exists():
                assert program.process.returncode is None, program.log.read_text()
                await asyncio.sleep(0.02)
            known = kubeconfig.load_kubeconfig([access], SystemClock())
            with contextlib.closing(HttpsTransport(known.endpoint, known.credentials)) as http:
                ground = Ground(Client(http, manager="bench"))
                await ground.install()
                yield ground
        finally:
            await program.stop()

    @contextlib.asynccontextmanager
    async def _guard_run(self):
        """The program, as soon as it leads, and its port."""
        said = [f"--kubeconfig={self._directory / 'kubeconfig'}", "--webhook-bind-address=127.0.0.1:0"]
        said += ["--metrics-bind-address=0", "--drain-seconds=0"]
        with _only(_cores()[0]):
            program = await Program.lastcall("guard", "run", *said, log=self._directory / "guard.log", bus="")
        try:
            await program.until_says("the webhook is at ")
            port = re.search(r"the webhook is at https://127\.0\.0\.1:(\d+)/", program.log.read_text())[1]
            yield program, int(port)
        finally:
            await program.stop()


async def _load(asked):
    program = Path(__file__).with_name("guard_load.py")
    pipe = asyncio.subprocess.PIPE
    with _only(_cores()[1]):
        process = await asyncio.create_subprocess_exec(sys.executable, program, stdin=pipe, stdout=pipe)
    said, _ = await process.communicate(json.dumps(asked).encode())
    assert process.returncode == 0, f"the load ended with exit code {process.returncode}"
    return json.loads(said)


def _cores():
    """The server's core, and that of the load; the same one where there is no other."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[0], cores[-1]


@contextlib.contextmanager
def _only(core):
    """What is started within runs on this core alone."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


# -- the table ---------------------------------------------------------------------------------------------------------


def _rows(mine, theirs, sizes):
    for rate in sizes["rates"]:
        yield from _held_rows(rate, [one[rate] for one in mine], [one[rate] for one in theirs])
    yield from _once_rows(f"{sizes['once']}/s", [one["once"] for one in mine], [one["once"] for one in theirs])
    for key, what in (("live", "a pod with a bypass"), ("free", "a pod that no policy guards")):
        yield from _live_rows(what, f"{sizes['live']}/s", [one[key] for one in mine])
    peer = _figures(theirs, "rss", "MiB")
    yield GuardRow("RSS after the held pod's", "", _figures(mine, "rss", "MiB"), peer, target=Target(most=MEMORY))
    yield GuardRow("RSS after all", "", _figures(mine, "rss live", "MiB"), target=Target(most=MEMORY))


def _held_rows(rate, mine, theirs):
    by = f"{rate}/s"
    least = Target(least=KEPT * rate)
    said = _load_cell(mine)
    yield GuardRow(
        "a held pod: answered", by, _figures(mine, "rate", "/s"), _figures(theirs, "rate", "/s"), said, least
    )
    for key in ("p50", "p99"):
        target = Target(most=P99) if (key, rate) == ("p99", AT) else None
        yield GuardRow(f"a held pod: {key}", by, _figures(mine, key), _figures(theirs, key), target=target)
    yield from _cpu_rows("a held pod", by, mine, theirs)


def _once_rows(by, mine, theirs):
    what = "a held pod, no review twice"
    yield GuardRow(f"{what}: p99", by, _figures(mine, "p99"), _figures(theirs, "p99"), _load_cell(mine))
    yield from _cpu_rows(what, by, mine, theirs)


def _cpu_rows(what, by, mine, theirs):
    yield GuardRow(f"{what}: CPU of a review", by, _figures(mine, "cpu", "us"), _figures(theirs, "cpu", "us"))
    if theirs:
        part = tuple(100 * one["cpu"] / other["cpu"] for one, other in zip(mine, theirs, strict=True))
        yield GuardRow(f"{what}: CPU, of Go's", by, Figures(part, "%"), target=Target(most=100))


def _live_rows(what, by, turns):
    yield GuardRow(f"{what}, live: answered", by, _figures(turns, "rate", "/s"), load=_load_cell(turns))
    for key in ("p50", "p99"):
        yield GuardRow(f"{what}, live: {key}", by, _figures(turns, key))
    yield GuardRow(f"{what}, live: CPU of a review", by, _figures(turns, "cpu", "us"))


def _roll_rows(found, rate):
    """An answer that is lost is one that a client waited for in vain: EOF, a reset, or nobody to connect to."""
    by, what = f"{rate}/s", "two replicas roll"
    none = Target(most=0)
    said = _load_cell([found])
    yield GuardRow(f"{what}: answered", by, Figures((found["answered"],), "reviews"), load=said)
    yield GuardRow(f"{what}: EOF or reset", by, Figures((found["broken"],), "reviews"), target=none)
    yield GuardRow(f"{what}: not connected", by, Figures((found["refused"],), "times"), target=none)
    yield GuardRow(f"{what}: connections opened", by, Figures((found["opened"],), "times"))
    yield GuardRow(f"{what}: p99", by, _figures([found], "p99"))


def _figures(turns, key, unit="ms"):
    return Figures(tuple(one[key] for one in turns), unit) if turns else None


def _load_cell(turns):
    """How busy the load was and how late it asked; that it was the limit, if it was."""
    worst = max(turns, key=lambda one: one["late"])
    lost = sum(one["lost"] for one in turns)
    said = f"{100 * max(one['busy'] for one in turns):.0f} % of its core, {1000 * worst['late']:.1f} ms late"
    limit = ", LIMITS THE FIGURES" if worst["late"] > LATE or worst["busy"] > BUSY else ""
    return said + limit + (f", {lost} unanswered" if lost else "")
