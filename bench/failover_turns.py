"""The turns of a measurement: nodes that are gone, and who clears them; each is a process of its own."""

import asyncio
import contextlib
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from failover_ground import EACH, NAME, Ground
from programs import Program
from real_control_plane import RealControlPlane
from rest import cpu_seconds

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.resources import LEASES
from lastcall.aio import timeout
from lastcall.failover.controller.failover_controller import CONCURRENCY

HERE = Path(__file__).parent

CONTROLLER, BARE, UPSTREAM, QUICKER = "controller", "bare calls", "kube-controller-manager", "500 requests a second"
"""Who clears the nodes; the last is kube-controller-manager again."""
LETTERS = {CONTROLLER: "c", BARE: "b", UPSTREAM: "u", QUICKER: "q"}
"""In the names of their nodes; ``failover_noticed`` knows the controller's."""

SETTINGS = {UPSTREAM: (), QUICKER: ("--kube-api-qps=500", "--kube-api-burst=500")}
"""Arguments of kube-controller-manager."""
SETTLED = 10
"""Seconds until it rests, after it has noticed that the nodes are silent."""

APART = 0.5
"""Seconds between two nodes of which it is said one after the other that they are gone."""

PATIENCE = {CONTROLLER: 900, BARE: 900, UPSTREAM: 300, QUICKER: 300}
"""Seconds until a turn ends, though not all have gone. Then the controller and the bare calls have failed."""


@dataclass(frozen=True)
class Place:
    """An API server: what the table calls it, the kubeconfigs of the bench and of who is measured, the server's processes."""

    name: str
    admin: Path
    access: Path
    pids: tuple = ()
    real: RealControlPlane | None = None


@dataclass(frozen=True)
class Case:
    """What has gone: so many nodes and pods; ``terminating``: somebody has deleted the pods before. Who clears them, how often."""

    nodes: int
    pods: int
    terminating: bool = False
    among: int = 0
    """Of so many nodes; 0: there are no others."""
    turns: int = 1
    upstream: bool = False
    """kube-controller-manager clears them too, once with each of its settings."""

    @property
    def attachments(self):
        return self.pods // EACH

    @property
    def short(self):
        """In the names of its nodes."""
        return f"{'many' if self.among else self.pods}{'t' if self.terminating else ''}"

    def __str__(self):
        among = f"{self.nodes} of {self.among} nodes" if self.among else f"{self.nodes} nodes"
        return f"{self.pods} {'terminating ' if self.terminating else ''}pods of {among}"


@dataclass(frozen=True)
class Turn:
    """Seconds from the first taint until all pods and all attachments had gone (None: that was not awaited).

    ``first``: from the answer to the first taint until a pod had gone. The CPU seconds of who cleared them and of the server,
    and how often the server has answered 429; None where nobody knows.
    """

    pods: float | None
    attachments: float | None
    gone: int
    detached: int
    first: float | None
    cpu: float
    served: float | None
    refused: int | None

    @property
    def seconds(self):
        """Until nothing was left."""
        return max(self.pods, self.attachments)


class Turns:
    """The turns at one place; ``directory`` is for logs."""

    def __init__(self, place, client, *, lease, directory, tell):
        self._place = place
        self._client = client
        self._directory = directory
        self._tell = tell
        self.ground = Ground(client, lease=lease)

    async def of(self, case):
        """The turns by who; the controller and the bare calls take turns."""
        found = {}
        for number in range(case.turns):
            for who in (BARE, CONTROLLER):
                found.setdefault(who, []).append(await self._turn(case, number, who))
        for who in SETTINGS if case.upstream else ():
            found[who] = [await self._turn(case, 0, who)]
        return found

    async def one_by_one(self, nodes):
        """A node with a pod after the other, so that nobody waits for the failover of another one: for ``failover_noticed``."""
        case = Case(nodes=nodes, pods=nodes)
        async with self._controller() as (_, ready, _):
            await self.ground.make(f"{os.getpid()}-alone", case)
            await ready()
            async with self.ground.deletions() as gone, timeout(PATIENCE[CONTROLLER]):
                for number in range(nodes):
                    await self.ground.say_of(number)
                    await asyncio.sleep(APART)
                await gone.all(case)
        await self.ground.remove()

    async def _turn(self, case, number, who):
        name = f"{os.getpid()}-{number}-{case.short}-{LETTERS[who]}"
        makers = {BARE: self._bare, CONTROLLER: self._controller}
        if who in makers:
            async with makers[who]() as (process, ready, start):
                await self.ground.make(name, case)
                await ready()
                turn = await self._measured(case, who, process(), start)
        else:
            await self.ground.make(name, case)
            async with self._controller_manager(who) as (process, ready, start):
                await ready()
                turn = await self._measured(case, who, process(), start)
        await self.ground.remove()
        self._tell(f"  {self._place.name}: {case}, {who}: {_told(turn)}")
        return turn

    async def _measured(self, case, who, process, start):
        """From the first taint until the last has gone, as a watch tells it."""
        async with self.ground.deletions() as gone:
            refused, served, used = await self._refused(), self._served(), cpu_seconds(process)
            began = time.perf_counter()
            said = await self.ground.say()
            start()
            with contextlib.suppress(TimeoutError):
                async with timeout(PATIENCE[who] - (time.perf_counter() - began)):
                    await gone.all(case)
            used, served = cpu_seconds(process) - used, (self._served() - served) if self._place.pids else None
            refused = None if refused is None else await self._refused() - refused
            pods, attachments = gone.pods.times, gone.attachments.times
        left = case.pods - len(pods) + case.attachments - len(attachments)
        assert who in SETTINGS or left <= 0, f"{who}: {left} of {case} and their attachments are left"
        return Turn(
            pods=pods[case.pods - 1] - began if len(pods) >= case.pods else None,
            attachments=attachments[case.attachments - 1] - began if len(attachments) >= case.attachments else None,
            gone=len(pods),
            detached=len(attachments),
            first=pods[0] - said if pods else None,
            cpu=used,
            served=served,
            refused=refused,
        )

    def _served(self):
        return sum(map(cpu_seconds, self._place.pids))

    async def _refused(self):
        return await self._place.real.refused() if self._place.real else None

    # -- who is measured: its process, what makes it ready when the nodes are there, and what it is told after the taints --

    @contextlib.asynccontextmanager
    async def _bare(self):
        program, pipe = str(HERE / "failover_bare.py"), asyncio.subprocess.PIPE
        process = None

        async def ready():
            nonlocal process
            said = (sys.executable, program, str(self._place.access), NAME, str(CONCURRENCY))
            process = await asyncio.create_subprocess_exec(*said, stdin=pipe, stdout=pipe)
            assert await process.stdout.readline() == b"ready\n"

        try:
            yield lambda: process.pid, ready, lambda: process.stdin.write(b"go\n")
        finally:
            if process:
                process.stdin.close()
                assert await process.wait() == 0

    @contextlib.asynccontextmanager
    async def _controller(self):
        """It leads, and has seen no sign of life for so long that a person's word counts."""
        program = await controller(self._place.access, self._directory / "controller.log")

        async def ready():
            silent = time.monotonic() - self.ground.silent_since
            await asyncio.sleep(max(2, self.ground.lease / 2 + 2 - silent))

        try:
            await leads(self._client, program)
            yield lambda: program.process.pid, ready, lambda: None
        finally:
            await program.stop()

    @contextlib.asynccontextmanager
    async def _controller_manager(self, who):
        """It has found all as it is now, as if it had run for long."""
        async with self._place.real.controller_manager(*SETTINGS[who]) as pid:

            async def ready():
                async with timeout(PATIENCE[who]):
                    await self.ground.all_unreachable()
                await asyncio.sleep(SETTLED)

            yield lambda: pid, ready, lambda: None


@contextlib.asynccontextmanager
async def connected(access):
    """A client with this kubeconfig."""
    known = kubeconfig.load_kubeconfig([access], SystemClock())
    with contextlib.closing(HttpsTransport(known.endpoint, known.credentials)) as http:
        yield Client(http, manager="bench")


async def controller(access, log):
    """``lastcall controller`` as an administrator starts it."""
    said = (f"--kubeconfig={access}", "--metrics-bind-address=0", "--attach-detach=own")
    return await Program.lastcall("controller", *said, log=log, bus="")


async def leads(client, program):
    """Until the controller's lease says so."""
    while True:
        assert program.process.returncode is None, program.log.read_text()
        lease = await client.get(LEASES, "lastcall-controller", namespace="lastcall-system")
        if lease.get("spec", {}).get("holderIdentity"):
            return
        await asyncio.sleep(0.1)


def _told(turn):
    first = "" if turn.first is None else f", the first pod after {turn.first:.2f} s"
    until = [
        f"{count} {what}" + ("" if seconds is None else f" in {seconds:.2f} s")
        for what, seconds, count in (
            ("pods", turn.pods, turn.gone),
            ("attachments", turn.attachments, turn.detached),
        )
    ]
    return f"{' and '.join(until)}{first}, CPU {turn.cpu:.2f} s"
