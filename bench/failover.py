"""How quick the failover controller is, beside the same calls made bare; and what it costs in a cluster of 5,000 nodes.

The controller is ``lastcall controller`` as an administrator starts it, a process of its own that reaches the API server over
TLS: ``lastcall lab up`` without its controllers, or the server of a kubeconfig.
"""

import asyncio
import contextlib
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import failover_noticed
import lab
from failover_ground import LEASE, NAME, Ground
from figures import Figures
from lab import LabRow, Target
from programs import Program
from rest import cpu_seconds, rss

from lastcall.adapters.clock import SystemClock
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.http import Http
from lastcall.adapters.kube.resources import LEASES
from lastcall.failover.doing.controller import CONCURRENCY

HEAD = ["what", "by", "lastcall", "beside it", "target", "verdict"]
HERE = Path(__file__).parent

SIZES = {"nodes": 20, "pods": (1000, 3000), "turns": (7, 3), "fleet": 5000, "each": 30, "rest": 60}
QUICK = {"nodes": 5, "pods": (50, 100), "turns": (1, 1), "fleet": 200, "each": 30, "rest": 5}

UPSTREAM = {1000: "100 s; 10.4 s with 500 requests a second", 3000: "305 s; 75 to 132 s with 500 requests a second"}
"""kube-controller-manager 1.36.2 at a kube-apiserver on two cores, measured on another day: by default and at its best."""

RATE, LINEAR, MEMORY = 80, 120, 150
"""Percent of the bare calls' rate at least; of the time for a pod among few, at most; MiB."""

APART = 0.5
"""Seconds between two nodes of which it is said one after the other that they are gone."""

PATIENCE = 900
"""Seconds until who is measured has failed."""


class Failover:
    """``rows`` is the table. ``access`` is the kubeconfig of an API server for the failovers; None for a lab."""

    def __init__(self, *, quick, tell, access=None):
        self._sizes = QUICK if quick else SIZES
        self._tell = tell
        self._access = access
        self._directory = Path(tempfile.mkdtemp(prefix="lc-bench-"))

    async def rows(self):
        try:
            async with self._server() as (access, log, pid):
                found = await self._failovers(access, pid)
                rows = list(self._failed_over(found))
                rows += failover_noticed.rows(log) if log else ()
            return rows if self._access else [*rows, *await self._fleet()]
        finally:
            shutil.rmtree(self._directory)

    @property
    def _by(self):
        return "kube-apiserver" if self._access else "lab"

    @contextlib.asynccontextmanager
    async def _server(self):
        """The kubeconfig, the audit log if there is one, and the server's process if that is known."""
        if self._access:
            yield self._access, None, None
            return
        access, log = self._directory / "kubeconfig", self._directory / "audit"
        said = ("lab", "up", "--nodes=0", f"--kubeconfig={access}", f"--audit-log={log}", *lab.alone())
        program = await Program.lastcall(*said, log=self._directory / "up.log", bus="")
        try:
            await program.until_says("The lab is up")
            yield access, log, program.process.pid
        finally:
            await program.stop()

    # -- failovers -----------------------------------------------------------------------------------------------------

    async def _failovers(self, access, pid):
        """By number of pods and who: the seconds, and the CPU of who and of the server, of each turn."""
        known = kubeconfig.load([access], SystemClock())
        with contextlib.closing(Http(known.endpoint, known.credentials)) as http:
            client, found = Client(http, manager="bench"), {}
            ground = Ground(client, nodes=self._sizes["nodes"])
            await ground.install()
            for pods, turns in zip(self._sizes["pods"], self._sizes["turns"], strict=True):
                for turn in range(turns):
                    for who, make in (("bare", self._bare), ("controller", self._controller)):
                        unique = f"{os.getpid()}-{turn}-{pods}-{who[0]}"  # with the node's number: ``failover_noticed``
                        await ground.make(unique, pods)
                        async with make(client, access) as (process, start):
                            one = await self._measured(ground, pods, process, start, pid)
                        await ground.remove(pods)
                        found.setdefault((pods, who), []).append(one)
                        self._tell(f"  {self._by}: {pods} pods, {who}: {one[0]:.2f} s, CPU {one[1]:.2f} s")
            await self._one_by_one(ground, client, access)
            return found

    async def _one_by_one(self, ground, client, access):
        """A node with a pod after the other, so that nobody waits for the failover of another one: for ``failover_noticed``."""
        nodes = self._sizes["nodes"]
        await ground.make(f"{os.getpid()}-alone", nodes)
        async with self._controller(client, access), ground.until_gone(nodes) as wait:
            for number in range(nodes):
                await ground.say_of(number)
                await asyncio.sleep(APART)
            async with asyncio.timeout(PATIENCE):
                await wait()
        await ground.remove(nodes)

    @staticmethod
    async def _measured(ground, pods, process, start, pid):
        """From the first taint until the last has gone, as a watch tells it."""
        async with ground.until_gone(pods) as wait:
            used, served, began = cpu_seconds(process), cpu_seconds(pid) if pid else 0, time.perf_counter()
            await ground.say()
            start()
            async with asyncio.timeout(PATIENCE):
                seconds = await wait() - began
            return seconds, cpu_seconds(process) - used, (cpu_seconds(pid) - served) if pid else 0

    @contextlib.asynccontextmanager
    async def _bare(self, _, access):
        program = str(HERE / "failover_bare.py")
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, program, str(access), NAME, str(CONCURRENCY), stdin=pipe, stdout=pipe
        )
        assert await process.stdout.readline() == b"ready\n"
        try:
            yield process.pid, lambda: process.stdin.write(b"go\n")
        finally:
            process.stdin.close()
            assert await process.wait() == 0

    @contextlib.asynccontextmanager
    async def _controller(self, client, access):
        """It leads, and has seen no sign of life for so long that a person's word counts."""
        log = self._directory / "controller.log"
        said = (f"--kubeconfig={access}", "--metrics-bind-address=0", "--attach-detach=own")
        program = await Program.lastcall("controller", *said, log=log, bus="")
        try:
            await _leads(client, program)
            await asyncio.sleep(LEASE / 2 + 2)
            yield program.process.pid, lambda: None
        finally:
            await program.stop()

    def _failed_over(self, found):
        few, *_, many = self._sizes["pods"]
        for pods in self._sizes["pods"]:
            turns, bare = found[pods, "controller"], found[pods, "bare"]
            what = f"{pods} pods and {pods // 10} attachments of {self._sizes['nodes']} nodes"
            beside = f"bare calls: {Figures(tuple(one[0] for one in bare), 's')}"
            beside += f"; kube-controller-manager: {UPSTREAM[pods]}" if pods in UPSTREAM else ""
            yield LabRow(f"{what} gone", self._by, Figures(tuple(one[0] for one in turns), "s"), beside)
            rates = tuple(100 * other[0] / one[0] for one, other in zip(turns, bare, strict=True))
            yield LabRow("the rate, of the bare calls'", self._by, Figures(rates, "%"), target=Target(least=RATE))
            yield LabRow("the CPU of the controller", self._by, *_cpu(turns, bare, 1))
            if any(one[2] for one in turns):
                yield LabRow("the CPU of the server", self._by, *_cpu(turns, bare, 2))
        each = [statistics.median(one[0] for one in found[pods, "controller"]) / pods for pods in (few, many)]
        growth = Figures((100 * each[1] / each[0],), "%")
        what = f"the time for a pod of {many}, of that for one of {few}"
        yield LabRow(what, self._by, growth, target=Target(most=LINEAR))

    # -- a large cluster -----------------------------------------------------------------------------------------------

    async def _fleet(self):
        """What the controller weighs, uses and hears while nothing happens but heartbeats."""
        nodes, each, seconds = (self._sizes[key] for key in ("fleet", "each", "rest"))
        self._tell(f"failover: a cluster of {nodes} nodes and {nodes * each} pods")
        access = self._directory / "fleet.kubeconfig"
        program = str(HERE / "failover_fleet.py")
        process = await asyncio.create_subprocess_exec(
            sys.executable, program, str(access), str(nodes), str(each), stdout=asyncio.subprocess.PIPE
        )
        try:
            assert await process.stdout.readline() == b"ready\n"
            known = kubeconfig.load([access], SystemClock())
            with contextlib.closing(Http(known.endpoint, known.credentials)) as http:
                return [row async for row in self._at_rest(http, access, nodes, each, seconds)]
        finally:
            process.terminate()
            await process.wait()

    async def _at_rest(self, http, access, nodes, each, seconds):
        log, what = self._directory / "fleet.log", f"{nodes} nodes, {nodes * each} pods"
        said = (f"--kubeconfig={access}", "--metrics-bind-address=0", "--attach-detach=own")
        controller = await Program.lastcall("controller", *said, log=log, bus="")
        try:
            began = time.perf_counter()
            await _leads(Client(http), controller)
            pid, started = controller.process.pid, time.perf_counter() - began
            await asyncio.sleep(seconds / 3)
            listed, used, began = await _sent(http), cpu_seconds(pid), time.perf_counter()
            await asyncio.sleep(seconds)
            passed, heard = time.perf_counter() - began, await _sent(http)
            percent = 100 * (cpu_seconds(pid) - used) / passed
        finally:
            size = rss(controller.process.pid)
            await controller.stop()
        yield LabRow(f"{what}: until it leads", "fleet", Figures((started,), "s"), f"CPU until then: {used:.1f} s")
        yield LabRow(f"{what}: RSS", "fleet", Figures((size,), "MiB"), target=Target(most=MEMORY))
        events = (heard["events"] - listed["events"]) / passed
        yield LabRow("CPU at rest, of a core", "fleet", Figures((percent,), "%"), f"{events:.0f} watch events a second")
        for key, name in (("list", "listed at its start"), ("pods", "lists of pods")):
            yield LabRow(name, "fleet", Figures((heard[key] / 2**20,), "MiB"))
        watched = (heard["watch"] - listed["watch"]) / passed / 1024
        yield LabRow("heard by its watches", "fleet", Figures((watched,), "KiB/s"))


async def _leads(client, program):
    """Until the controller's lease says so."""
    while True:
        assert program.process.returncode is None, program.log.read_text()
        lease = await client.get(LEASES, "lastcall-controller", namespace="lastcall-system")
        if lease.get("spec", {}).get("holderIdentity"):
            return
        await asyncio.sleep(0.1)


async def _sent(http):
    """Bytes that the fleet's server has sent, and events."""
    return json.loads((await http.request("GET", "/bench", {}, b"")).body)


def _cpu(turns, bare, index):
    mine, theirs = (Figures(tuple(one[index] for one in found), "s") for found in (turns, bare))
    return mine, f"for the bare calls: {theirs}"
