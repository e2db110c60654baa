"""How quick the failover controller is, beside others in the same run; and what it costs in a cluster of 5,000 nodes.

The controller is ``lastcall controller`` as an administrator starts it, a process of its own that reaches the API server over
TLS. Beside it stand the same calls made bare and, at a real kube-apiserver, kube-controller-manager. The servers: ``lastcall
lab up`` without its controllers, and a private kube-apiserver where its programs are; or the server of a kubeconfig.
"""

import asyncio
import contextlib
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

import failover_noticed
import failover_table
import lab
import real_control_plane
from failover_living import Living
from failover_table import HEAD, FailoverRow
from failover_turns import Case, Place, Turns, connected, controller, leads
from figures import Figures
from lab import Target
from programs import Program
from real_control_plane import RealControlPlane
from rest import cpu_seconds, rss

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.https_transport import HttpsTransport

__all__ = ["HEAD", "Failover"]

HERE = Path(__file__).parent

SIZES = {"nodes": 20, "pods": (1000, 3000), "lease": 40, "upstream": (False, True)}
SIZES |= {"many": (200, 5000), "fleet": 5000, "each": 30, "rest": 60}
QUICK = {"nodes": 5, "pods": (50,), "lease": 10, "upstream": (False,)}
QUICK |= {"many": (10, 50), "fleet": 200, "each": 30, "rest": 5}
"""``upstream``: kube-controller-manager clears the fewest pods, not terminating yet, and terminating already. ``many``: so many
nodes are gone of so many, with ten pods each."""

MEMORY = 150
"""MiB."""


class Failover:
    """``rows`` is the table. ``turns``: how often each measurement is made. ``access`` is the kubeconfig of an API server for
    the failovers; None for a lab and, where there are the programs, a real control plane.

    ``only``: so many pods of 20 nodes at kube-apiserver, and nothing else, in a few minutes. ``left_out`` says what was not
    measured, and why.
    """

    def __init__(self, *, quick, turns, tell, access=None, only=None):
        self._sizes = QUICK if quick else SIZES
        self._only = only
        self._turns = turns
        self._tell = tell
        self._access = access
        self._directory = Path(tempfile.mkdtemp(prefix="lc-bench-"))
        self.left_out = []

    async def rows(self):
        try:
            if self._access:
                self.left_out.append("failover at the lab, and by kube-controller-manager: --api names the API server")
                place = Place("kube-apiserver", self._access, self._access)
                return list(failover_table.rows(place.name, await self._failovers(place)))
            if self._only:
                self.left_out.append(f"failover of other than {self._only} pods at kube-apiserver: --pods says so")
                return await self._at_real()
            return [*await self._at_lab(), *await self._at_real(), *await self._fleet()]
        finally:
            shutil.rmtree(self._directory)

    # -- failovers -----------------------------------------------------------------------------------------------------

    async def _at_lab(self):
        access, log = self._directory / "kubeconfig", self._directory / "audit"
        said = ("lab", "up", "--nodes=0", f"--kubeconfig={access}", f"--audit-log={log}", *lab.alone())
        program = await Program.lastcall(*said, log=self._directory / "up.log", bus="")
        try:
            await program.until_says("The lab is up", 120)
            found = await self._failovers(Place(failover_table.LAB, access, access, (program.process.pid,)), alone=True)
            return [*failover_table.rows(failover_table.LAB, found), *failover_noticed.rows(log)]
        finally:
            await program.stop()

    async def _at_real(self):
        if why := real_control_plane.why_not("etcd", "kube-apiserver"):
            self.left_out.append(f"failover at kube-apiserver, and by kube-controller-manager: {why}")
            return []
        if why := real_control_plane.why_not("kube-controller-manager"):
            self.left_out.append(f"failover by kube-controller-manager: {why}")
        directory = self._directory / "real"
        directory.mkdir()
        name = await asyncio.to_thread(real_control_plane.versions)
        async with RealControlPlane(directory).running() as real:
            place = Place(name, real.kubeconfig("admin"), real.kubeconfig("controller"), real.pids, real)
            return list(failover_table.rows(name, await self._failovers(place, upstream=not (why or self._only))))

    async def _failovers(self, place, *, upstream=False, alone=False):
        """The turns by case. ``alone``: nodes are lost one by one too, for who reads the server's audit log."""
        async with connected(place.admin) as client:
            turns = Turns(place, client, lease=self._sizes["lease"], directory=self._directory, tell=self._tell)
            await turns.ground.install()
            found = {case: await turns.of(case) for case in self._cases(upstream=upstream)}
            if alone:
                await turns.one_by_one(self._sizes["nodes"])
            if not (self._access or self._only):
                gone, among = self._sizes["many"]
                self._tell(f"  {place.name}: {gone} of {among} nodes")
                case = Case(nodes=gone, pods=10 * gone, among=among, turns=self._turns)
                async with Living(client, among - gone, tell=self._tell).renewed():
                    found[case] = await turns.of(case)
            return found

    def _cases(self, *, upstream):
        few = self._sizes["pods"][0]
        for terminating in (False, True):
            for pods in (self._only,) if self._only else self._sizes["pods"]:
                theirs = upstream and pods == few and terminating in self._sizes["upstream"]
                yield Case(self._sizes["nodes"], pods, terminating, turns=self._turns, upstream=theirs)

    # -- a large cluster -----------------------------------------------------------------------------------------------

    async def _fleet(self):
        """What the controller weighs, uses and hears while nothing happens but heartbeats."""
        nodes, each = self._sizes["fleet"], self._sizes["each"]
        self._tell(f"failover: a cluster of {nodes} nodes and {nodes * each} pods")
        access = self._directory / "fleet.kubeconfig"
        program = str(HERE / "failover_fleet.py")
        process = await asyncio.create_subprocess_exec(
            sys.executable, program, str(access), str(nodes), str(each), stdout=asyncio.subprocess.PIPE
        )
        try:
            assert await process.stdout.readline() == b"ready\n"
            known = kubeconfig.load_kubeconfig([access], SystemClock())
            with contextlib.closing(HttpsTransport(known.endpoint, known.credentials)) as http:
                return [row async for row in self._at_rest(http, access, f"{nodes} nodes, {nodes * each} pods")]
        finally:
            process.terminate()
            await process.wait()

    async def _at_rest(self, http, access, what):
        seconds = self._sizes["rest"]
        began = time.perf_counter()
        program = await controller(access, self._directory / "fleet.log")
        try:
            await leads(Client(http), program)
            pid, started = program.process.pid, time.perf_counter() - began
            await asyncio.sleep(seconds / 3)
            listed, used, began = await _sent(http), cpu_seconds(pid), time.perf_counter()
            await asyncio.sleep(seconds)
            passed, heard = time.perf_counter() - began, await _sent(http)
            percent = 100 * (cpu_seconds(pid) - used) / passed
        finally:
            size = rss(program.process.pid)
            await program.stop()
        yield _row(f"{what}: until it leads", started, "s")
        yield _row("its CPU until then", used, "s")
        yield _row("its RSS", size, "MiB", Target(most=MEMORY))
        yield _row("its CPU at rest, of a core", percent, "%")
        yield _row("watch events", (heard["events"] - listed["events"]) / passed, "/s")
        for key, name in (("list", "listed at its start"), ("pods", "lists of pods")):
            yield _row(name, heard[key] / 2**20, "MiB")
        yield _row("heard by its watches", (heard["watch"] - listed["watch"]) / passed / 1024, "KiB/s")


def _row(what, value, unit, target=None):
    return FailoverRow(what, "fleet", Figures((value,), unit), target=target)


async def _sent(http):
    """Bytes that the fleet's server has sent, and events."""
    return json.loads((await http.request("GET", "/bench", {}, b"")).body)
