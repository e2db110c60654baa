"""The lab's API server: what it does in a second, how long it takes, and what it weighs, beside what limits it.

The figures of one run come from four programs: the load in one process with the server (``inprocess``), the load beside
``lastcall lab up`` over HTTPS, the same with ``--data``, and what ``lab_peers`` serves. No node and no controller takes
part but the one that makes service accounts.
"""

import asyncio
import contextlib
import json
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import lab_peers as peers
from figures import Figures
from lab_work import Crowd, rate
from programs import Program
from rest import cpu_seconds, rss

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.errors import LastcallError
from lastcall_lab.control_plane.controller_set import make_controllers

SIZES = {
    "turns": 3,  # of everything but the 10,000 pods
    "clients": [1, 16, 64],
    "few": 500,  # requests of one client
    "many": 1000,  # requests of several clients together
    "pods": 10_000,
    "watchers": [10, 100, 500],
    "events": 100_000,  # that all watchers together hear
    "starts": 5,
    "rest": 20,  # seconds
    "parts": ["writes", "full"],  # of the load, each on a fresh server
}
QUICK = {"turns": 1, "clients": [1, 16], "few": 30, "many": 60, "pods": 100, "watchers": [10], "events": 500}
QUICK |= {"starts": 1, "rest": 0.5, "parts": ["writes,full"]}

_NEEDED = "serviceaccount"
"""The controller without which no pod is let in."""


@dataclass(frozen=True)
class Target:
    """``least`` or ``most``, in the unit of the figures."""

    least: float | None = None
    most: float | None = None


@dataclass(frozen=True)
class LabRow:
    """A line of the lab's table, judged by the median. ``beside`` is what limits it, measured in the same run."""

    what: str
    by: str
    figures: Figures
    beside: str = ""
    target: Target | None = None

    @property
    def met(self):
        """None without a target."""
        return judged(self.target, self.figures)[0]

    def cells(self):
        _, said, verdict = judged(self.target, self.figures)
        return [self.what, self.by, str(self.figures), self.beside, said, verdict]


def judged(target, figures):
    """Whether the median meets it (None without a target), and the cells that say the target and the verdict."""
    if target is None:
        return None, "", ""
    value, least, most = figures.median, target.least, target.most
    met = value >= least if least is not None else value <= most
    said = (
        f"at least {Figures((least,), figures.unit)}"
        if least is not None
        else f"at most {Figures((most,), figures.unit)}"
    )
    return met, said, "met" if met else "MISSED"


HEAD = ["what", "by", "lab", "beside it", "target", "verdict"]


class Lab:
    """Measures everything in a directory of its own; ``rows`` is the table."""

    def __init__(self, *, quick, tell):
        self._sizes = QUICK if quick else SIZES
        self._tell = tell
        self._directory = Path(tempfile.mkdtemp(prefix="lc-bench-"))

    async def rows(self):
        try:
            return [row async for row in self._rows()]
        finally:
            shutil.rmtree(self._directory)

    async def _rows(self):
        sizes = self._sizes
        self._tell("lab: up")
        async for row in self._starts():
            yield row
        self._tell("lab: bare HTTPS")
        bare = await self._bare()
        self._tell("lab: in-process")
        for row in rows_of("in-process", await self._in_process(), {}, sizes):
            yield row
        self._tell("lab: HTTPS")
        for row in rows_of("HTTPS", await self._served(sizes["parts"]), bare, sizes):
            yield row
        self._tell("lab: the disk")
        disk = await self._disk()
        self._tell("lab: HTTPS with --data")
        for row in rows_of(
            "--data", await self._served(["creates"], f"--data={self._directory / 'data'}"), disk, sizes
        ):
            yield row

    # -- the lab -------------------------------------------------------------------------------------------------------

    async def _in_process(self):
        """The values of all parts."""
        found = {}
        for part in self._sizes["parts"]:
            found |= await self._load("inprocess", part)
        return found

    async def _load(self, where, what, server=0):
        """The values of one part, which is a process of its own."""
        program = str(Path(__file__).with_name("lab_load.py"))
        command = [sys.executable, program, str(where), what, json.dumps(self._sizes), str(server)]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        said, _ = await process.communicate()
        assert process.returncode == 0, f"the load ended with exit code {process.returncode}"
        return json.loads(said)

    async def _served(self, what, *arguments):
        """The same of a server that is fresh for each part."""
        found = {}
        for part in what:
            async with self._up(*arguments, *alone()) as (program, access):
                found |= await self._load(access, part, program.process.pid)
        return found

    @contextlib.asynccontextmanager
    async def _up(self, *arguments, nodes=0):
        """The program, and its kubeconfig, as soon as the file is there."""
        access = self._directory / "kubeconfig"
        said = ("lab", "up", f"--nodes={nodes}", f"--kubeconfig={access}", *arguments)
        program = await Program.lastcall(*said, log=self._directory / "up.log", bus="")
        try:
            while not access.exists():
                assert program.process.returncode is None, program.log.read_text()
                await asyncio.sleep(0.005)
            yield program, access
        finally:
            await program.stop()

    async def _starts(self):
        """From the start of the process until it can be used; then what it costs while nothing happens."""
        times, used = await self._times(0)
        yield LabRow("lab up --nodes 0, until it answers", "", times, used, Target(most=2))
        times, used = await self._times(3)
        yield LabRow("lab up --nodes 3, until its nodes are ready", "", times, used, Target(most=2))
        async with self._up() as (program, access):
            await _usable(access, 0)
            percent, size = await _idle(program.process.pid, self._sizes["rest"])
        yield LabRow("its CPU at rest, of a core", "", Figures((percent,), "%"), target=Target(most=1))
        yield LabRow("its RSS at rest", "", Figures((size,), "MiB"))

    async def _times(self, nodes):
        """How long it takes, and what CPU that costs in the process."""
        times, used = [], []
        for _ in range(self._sizes["starts"]):
            began = time.perf_counter()
            async with self._up(nodes=nodes) as (program, access):
                await _usable(access, nodes)
                times.append(time.perf_counter() - began)
                used.append(cpu_seconds(program.process.pid))
        return Figures(tuple(times)), f"CPU: {Figures((statistics.median(used),))}"

    # -- beside it -----------------------------------------------------------------------------------------------------

    async def _bare(self):
        """HTTPS without us, by what it is compared with."""
        sizes, found = self._sizes, {}
        async with peers.bare_https(self._directory) as http:
            for clients in sizes["clients"]:
                count = 4 * (sizes["few"] if clients == 1 else sizes["many"])
                found[f"create {clients}"] = f"bare HTTPS: {await peers.posts(http, clients, count):.0f}/s"
            for watchers in sizes["watchers"]:
                lines = await peers.lines(http, Crowd, watchers, sizes["events"] // watchers)
                found[f"fan-out {watchers}"] = f"bare HTTPS: {lines:.0f}/s"
        return found

    async def _disk(self):
        """The disk, SQLite's commits on it and etcd, by what they are compared with."""
        few, directory, found = self._sizes["few"], self._directory, {}
        syncs = await asyncio.to_thread(peers.syncs, directory, few)
        for clients in self._sizes["clients"]:
            rows = await asyncio.to_thread(peers.commits, directory, clients, few * clients)
            found[f"create {clients}"] = f"disk: {syncs:.0f} syncs/s; SQLite: {rows:.0f}/s, {clients} in a commit"
        if version := peers.etcd_version():
            async with peers.etcd(directory) as http:
                for clients in self._sizes["clients"]:
                    count = few if clients == 1 else 2 * self._sizes["many"]
                    puts = await rate(clients, count, lambda number: peers.put(http, number))
                    found[f"create {clients}"] += f"; etcd {version}: {puts:.0f}/s"
        return found


def alone():
    """Arguments that switch all controllers off but the one that is needed."""
    return [f"--without={one.name}" for one in make_controllers("") if one.name != _NEEDED]


async def _usable(access, nodes):
    """Until the server answers, and so many nodes are ready."""
    known = kubeconfig.load_kubeconfig([access], SystemClock())
    with contextlib.closing(HttpsTransport(known.endpoint, known.credentials)) as http:
        while not await _answers(http):
            await asyncio.sleep(0.005)
        while nodes and await _ready(http) < nodes:
            await asyncio.sleep(0.02)  # every look costs the server time that it needs itself


async def _answers(http):
    with contextlib.suppress(LastcallError):
        return (await http.request("GET", "/readyz", {}, b"")).status == 200
    return False


async def _ready(http):
    """How many nodes are."""
    listed = json.loads((await http.request("GET", "/api/v1/nodes", {}, b"")).body)["items"]
    said = (one for node in listed for one in node.get("status", {}).get("conditions", ()))
    return sum(one["type"] == "Ready" and one["status"] == "True" for one in said)


async def _idle(pid, seconds):
    """The CPU in percent, and the memory in MiB."""
    await asyncio.sleep(min(seconds, 3))  # what belongs to the start is over
    used, began = cpu_seconds(pid), time.monotonic()
    await asyncio.sleep(seconds)
    return 100 * (cpu_seconds(pid) - used) / (time.monotonic() - began), rss(pid)


# -- the table ---------------------------------------------------------------------------------------------------------

TARGETS = {
    "in-process": {"create": 1000, "patch": 1000, "delete": 1000, "fan-out": 50_000, "own node": 500},
    "HTTPS": {"create": 500, "patch": 500, "delete": 500, "fan-out": 20_000, "own node": 300},
    "--data": {"create": 300},
}
"""Per second at least, with 16 clients or more and 100 watchers or more; the reasons are in docs/performance.md."""

_SECONDS = {"list": 1, "pages": 1, "table": 3}
_HEARD = {100: 0.05, 500: 0.2}
_MEMORY = 150


def rows_of(way, values, beside, sizes):
    """The rows of one load; what was not measured has none."""
    targets = TARGETS[way]
    for verb, what in (("create", "pods created"), ("patch", "statuses patched"), ("delete", "pods deleted by force")):
        for clients in sizes["clients"]:
            key = f"{verb} {clients}"
            if key in values:
                least = Target(least=targets[verb]) if clients > 1 else None
                figures = Figures(tuple(values[key]), "/s")
                yield LabRow(f"{way}: {what}", _many(clients, "client"), figures, _beside(key, values, beside), least)
    if "get" in values:
        yield from _reads(way, values, sizes["pods"])
        yield from _watches(way, values, beside, sizes["watchers"])
        yield from _memory(way, values, sizes["pods"])


def _reads(way, values, pods):
    yield LabRow(f"{way}: one pod read", "1 client", Figures(tuple(values["get"]), "/s"))
    for key, what in (("list", "listed whole"), ("pages", "listed in pages of 500"), ("table", "listed as a table")):
        most = Target(most=_SECONDS[key])
        yield LabRow(f"{way}: {pods} pods {what}", "1 client", Figures(tuple(values[key])), target=most)


def _watches(way, values, beside, counts):
    targets = TARGETS[way]
    for watchers in counts:
        by, big = _many(watchers, "watcher"), watchers >= 100
        key = f"fan-out {watchers}"
        least = Target(least=targets["fan-out"]) if big else None
        figures = Figures(tuple(values[key]), "/s")
        yield LabRow(f"{way}: events, each to all", by, figures, _beside(key, values, beside), least)
        least = Target(least=targets["own node"]) if big else None
        figures = Figures(tuple(values[f"own node {watchers}"]), "/s")
        yield LabRow(f"{way}: changes, each to its node's watcher", by, figures, target=least)
        most = Target(most=_HEARD[watchers]) if watchers in _HEARD else None
        figures = Figures(tuple(values[f"last heard {watchers}"]))
        yield LabRow(f"{way}: from a write to the last watcher's event", by, figures, target=most)


def _beside(key, values, beside):
    """What the server's process has used for each, which other work on the machine hardly changes; then the limits."""
    cpu = f"CPU: {1e6 * statistics.median(values[f'{key}: CPU']):.0f} us each"
    return f"{cpu}; {beside[key]}" if key in beside else cpu


def _memory(way, values, pods):
    [empty], [full], [changed] = values["rss empty"], values["rss"], values["rss after changes"]
    each = f"{1024 * (full - empty) / pods:.1f} KiB a pod"
    # In-process the load's own memory counts too.
    most = Target(most=_MEMORY) if way == "HTTPS" else None
    yield LabRow(f"{way}: RSS with {pods} pods", "", Figures((full,), "MiB"), each, most)
    yield LabRow(f"{way}: RSS with them and a full history of changes", "", Figures((changed,), "MiB"))


def _many(count, what):
    return f"{count} {what}" + ("" if count == 1 else "s")
