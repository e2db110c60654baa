"""The demo: a shop on three nodes under load. One is shut down by its button, later another's plug is pulled."""

import logging
from collections.abc import Iterator
from pathlib import Path
from random import SystemRandom
from typing import Any

from rich.console import Console

from lastcall.adapters.clock import SystemClock
from lastcall.adapters.journal_files import JournalFiles
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import NAMESPACES, NODES, PODS, Object, resource
from lastcall.aio import Group, first
from lastcall.errors import TimedOut
from lastcall.graceful import config as configuration
from lastcall.lab.apiserver.request import ADMIN
from lastcall.lab.control_plane import ControlPlane, Place
from lastcall.lab.demo.gone import SUSPECT_AFTER, Gone
from lastcall.lab.demo.load import Load
from lastcall.lab.demo.view import View
from lastcall.lab.failover import Failover
from lastcall.lab.host import Site
from lastcall.lab.machines import LocalMachines
from lastcall.lab.making import make
from lastcall.lab.pages import Pages
from lastcall.lab.power import Switch
from lastcall.lab.redfish import Redfish
from lastcall.lab.traffic.addresses import Door
from lastcall.lab.volumes.shelf import Directories
from lastcall.lab.volumes.storage import Storage
from lastcall.model import decode
from lastcall.model.pods import Pod
from lastcall.model.record import fold
from lastcall.model.shutdown import Shutdown, from_lines
from lastcall.report.html import Chapter, html
from lastcall.report.text import text
from lastcall.report.timeline import Timeline, timeline

HERE = Path(__file__).parent
RATE = 40.0
"""Requests in a second."""
PATIENCE = 170.0
"""Seconds after which it hangs, also on a machine that is very busy; usually it takes one minute."""


class Demo:
    """One demo in a directory of its own; ``node`` is the one that is shut down."""

    def __init__(self, directory: Path, *, console: Console) -> None:
        self._directory = directory
        self._console = console
        self._clock = SystemClock()
        self._load = Load(self._doors, self._clock, rate=RATE)
        self._view = View(console, self._clock.boottime, self._footer)
        self.node = "lab-2"
        self._page = directory

    async def run(self) -> Path:
        """Shows it all; the path of the HTML report. TimedOut if something hangs."""
        logging.getLogger("lastcall").setLevel(logging.CRITICAL)
        random = SystemRandom()
        storage = Storage(Directories(self._directory / "volumes"), self._clock)
        place = Place(self._directory / "control-plane", self._directory / "kubeconfig")
        self._plane = ControlPlane(place, self._clock, random, storage=storage)
        await self._plane.prepare()
        site = Site(
            clock=self._clock,
            random=random,
            directory=self._directory / "machines",
            storage=storage,
            config=configuration.read((HERE / "agent.yaml").read_bytes(), "agent.yaml"),
            listeners=lambda name: [self._view.event] if name == self.node else [],
        )
        self._machines = LocalMachines(self._plane, site, count=3)
        bmcs = Redfish(self._machines, self._plane.bmc_password)
        self._plane.pages = Pages(
            self._plane.server, self._plane.server.permitted, self._machines, self._plane.stop, bmcs
        )
        self._client = self._plane.client(ADMIN)
        controller = Failover(self._plane, place.directory, self._clock, suspect_after=SUSPECT_AFTER)
        try:
            what = first(
                self._plane.run(),
                self._machines.run(),
                controller.run(),
                self._show(storage),
                self._clock.sleep(PATIENCE),
            )
            if await what == 4:
                raise TimedOut(f"the demo hangs; its files are in {self._directory}")
        finally:
            await self._machines.clean_up()
        return self._page

    # -- what happens --------------------------------------------------------------------------------------------------

    async def _show(self, storage: Storage) -> None:
        await self._go_down()
        await self._tell()
        down = self._timeline()
        self._line("\n" + text(down))
        gone = await self._vanish(storage)
        self._page = self._directory / "report.html"
        self._page.write_text(html(down, gone))

    async def _vanish(self, storage: Storage) -> Chapter:
        """The second act."""
        self._line(f"\nThe second act: {self.node} is switched on again ...")
        await self._machines.switch(self.node, Switch.ON.value)
        await self._machines.up()
        node = next(pod["spec"]["nodeName"] for pod in await self._pods() if pod["metadata"]["name"] == "database-0")
        self._line(f"the plug of {node} is pulled, where database-0 runs: nothing on it says goodbye")
        self._line(
            "Kubernetes alone would leave database-0 there until a person says that the node is off; lastcall finds out:"
        )
        gone = Gone(self._machines, self._client, storage, self._directory / "volumes", self._clock, self._line)
        return await gone.show(node)

    async def _go_down(self) -> None:
        """The first act."""
        self._view.say("starting three nodes and a shop on them ...")
        await self._machines.up()
        await self._fill(self._client)
        await self._until_all_run()
        for pod in await self._pods(self.node):
            self._view.add(decode.convert(pod, Pod, "pod"), pod["status"]["phase"])
        here, all_pods = len(await self._pods(self.node)), len(await self._pods())
        customers = Group()
        customers.start(self._load.run(), "customers")
        if self._view.drawn:
            self._view.live.start()
        try:
            self._view.say(
                f"{all_pods} pods run on three nodes, {here} of them on {self.node};"
                f" its power button is pressed in 3 seconds. {RATE:g} requests a second come in"
            )
            await self._clock.sleep(3)
            self._view.say(f"the power button of {self.node} was pressed: it goes down as soon as its pods have ended")
            await self._machines.switch(self.node, Switch.BUTTON.value)
            await self._until_off()
            self._view.say(f"{self.node} is off. Its pods come up elsewhere ...")
            await self._until_all_run()
            await self._clock.sleep(1)
            self._view.say("everything runs again, on two nodes")
        finally:
            await customers.cancel()
            if self._view.drawn:
                self._view.live.stop()

    async def _fill(self, client: Client) -> None:
        await client.create(NAMESPACES, {"metadata": {"name": "shop"}})
        objects = [one for path in sorted((HERE / "objects").glob("*.yaml")) for one in _documents(path)]
        for obj in sorted(objects, key=lambda obj: obj["kind"] != "PriorityClass"):
            await make(client, obj)

    async def _until_all_run(self) -> None:
        """Every workload has as many ready pods as it wants."""
        while not await self._complete():
            await self._clock.sleep(0.1)

    async def _complete(self) -> bool:
        for kind, wanted, ready in _WORKLOADS:
            for obj in (await self._client.list(resource("apps", "v1", kind))).items:
                status = obj.get("status") or {}
                count = obj["spec"].get("replicas") if wanted is None else status.get(wanted)
                if count is None or status.get(ready, 0) < count - self._off(kind):
                    return False
        return True

    def _off(self, kind: str) -> int:
        """Pods that cannot be there, since their node is off."""
        off = any(one["name"] == self.node and one["power"] == "off" for one in self._machines.status())
        return int(off and kind == "daemonsets")

    async def _until_off(self) -> None:
        while next(one for one in self._machines.status() if one["name"] == self.node)["power"] != "off":
            await self._clock.sleep(0.05)

    async def _pods(self, node: str = "") -> list[Object]:
        fields = f"spec.nodeName={node}" if node else ""
        return list((await self._client.list(PODS, fields=fields)).items)

    def _doors(self) -> list[Door]:
        """The shop, as customers on the nodes that stay find it."""
        return [
            door
            for name, host in self._machines.hosts.items()
            if name != self.node
            for door, target in host.proxy.doors.items()
            if target.service == "web"
        ]

    # -- what is said --------------------------------------------------------------------------------------------------

    def _footer(self) -> str:
        counts = self._load.counts
        return f"requests: {counts.good} answered, {counts.failed} lost" if counts.sent else ""

    async def _tell(self) -> None:
        counts = self._load.counts
        lost = ", ".join(f"{number} ({why})" for why, number in sorted(counts.lost.items())) or "none"
        self._line(f"requests answered: {counts.good}, lost: {lost}")
        for pod in await self._pods():
            status = pod["status"]
            if status["phase"] == "Running" and pod["metadata"]["namespace"] == "shop":
                self._line(f"  {pod['metadata']['name']:32} runs on {pod['spec']['nodeName']}")
        for node in (await self._client.list(NODES)).items:
            ready = next(one for one in node["status"]["conditions"] if one["type"] == "Ready")
            self._line(f"  node {node['metadata']['name']}: Ready={ready['status']}, {ready['message']}")

    def _line(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _timeline(self) -> Timeline:
        """Of the shutdown, from what the agent has written."""
        journals = JournalFiles(self._directory / "machines" / self.node / "agent")
        latest = journals.latest()
        if latest is None:
            raise TimedOut(f"no shutdown was journalled in {self._directory}")
        record: Shutdown = fold(from_lines(latest[1]))
        return timeline(record)


_WORKLOADS = (
    ("deployments", None, "availableReplicas"),
    ("statefulsets", None, "readyReplicas"),
    ("daemonsets", "desiredNumberScheduled", "numberReady"),
)
"""Resource, where its status says how many pods it wants (None: in its spec), and how many are ready."""


def _documents(path: Path) -> Iterator[dict[str, Any]]:
    yield from decode.documents(path.read_bytes(), path.name)
