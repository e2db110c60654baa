"""The demo: a shop under load on three nodes. One node is shut down by its button, another one loses its power."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from random import SystemRandom
from typing import Any

from rich.console import Console

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import NAMESPACES, NODES, PODS, Object, dict_resource
from lastcall.adapters.state.journal_files import JournalFiles
from lastcall.aio import OrderedTaskGroup, cancel_and_wait, wait_any, wait_first
from lastcall.errors import TimedOut
from lastcall.graceful import config as configuration
from lastcall.model import decoding
from lastcall.model.pods import Pod
from lastcall.model.shutdown import ShutdownRecord, from_lines
from lastcall.model.shutdown_fold import fold_events
from lastcall.report.html_report import Chapter, render_html
from lastcall.report.text_report import render_text
from lastcall.report.timeline import Timeline, build_timeline
from lastcall_lab.apiserver.values.request import ADMIN
from lastcall_lab.control_plane.control_plane import ControlPlane, ControlPlaneLocation
from lastcall_lab.control_plane.create_objects import create_object
from lastcall_lab.demo.guarded_drain import GuardedDrainAct
from lastcall_lab.demo.power_loss import SUSPECT_AFTER, PowerLossAct
from lastcall_lab.demo.request_load import RequestLoad
from lastcall_lab.demo.view import DemoView
from lastcall_lab.machines.power import PowerSwitch
from lastcall_lab.machines.redfish_service import RedfishService
from lastcall_lab.traffic.listen_addresses import ListenAddress
from lastcall_lab.up.failover_controller import LabFailoverController
from lastcall_lab.up.guard import LabGuard
from lastcall_lab.up.lab_pages import LabPages
from lastcall_lab.up.local_host import LabInfrastructure
from lastcall_lab.up.local_machines import LocalMachines
from lastcall_lab.volumes.storage import Storage
from lastcall_lab.volumes.volume_store import DirectoryVolumes

HERE = Path(__file__).parent
RATE = 40.0
"""Requests per second."""
PATIENCE = 240.0
"""Seconds after which the demo counts as hung, even on a very busy machine; it usually takes two minutes."""


class ClusterDemo:
    """One demo with its own directory; ``node`` is the one that is shut down."""

    def __init__(self, directory: Path, *, console: Console) -> None:
        self._directory = directory
        self._console = console
        self._clock = SystemClock()
        self._load = RequestLoad(self._shop_doors, self._clock, rate=RATE)
        self._view = DemoView(console, self._clock.boottime, self._footer_text)
        self.node = "lab-2"
        self._page = directory

    async def run(self) -> Path:
        """Runs all of it; returns the path of the HTML report. Raises TimedOut if something hangs."""
        logging.getLogger("lastcall").setLevel(logging.CRITICAL)
        random = SystemRandom()
        storage = Storage(DirectoryVolumes(self._directory / "volumes"), self._clock)
        place = ControlPlaneLocation(self._directory / "control-plane", self._directory / "kubeconfig")
        self._plane = ControlPlane(place, self._clock, random, storage=storage)
        await self._plane.prepare()
        site = LabInfrastructure(
            clock=self._clock,
            random=random,
            directory=self._directory / "machines",
            storage=storage,
            config=configuration.parse_config((HERE / "agent.yaml").read_bytes(), "agent.yaml"),
            listeners=lambda name: [self._view.show_event] if name == self.node else [],
        )
        self._machines = LocalMachines(self._plane, site, count=3)
        bmcs = RedfishService(self._machines, self._plane.bmc_password)
        self._plane.pages = LabPages(
            self._plane.server,
            self._plane.server.access.permit,
            self._machines,
            self._plane.stop,
            bmcs,
            self._plane.join_node,
        )
        self._client = self._plane.client(ADMIN)
        controller = LabFailoverController(self._plane, place.directory, self._clock, suspect_after=SUSPECT_AFTER)
        try:
            what = wait_first(
                self._plane.run(),
                self._machines.run(),
                controller.run(),
                self._run_acts(storage),
                self._clock.sleep(PATIENCE),
            )
            if await what == 4:
                raise TimedOut(f"the demo hangs; its files are in {self._directory}")
        finally:
            await self._machines.clean_up()
        return self._page

    # -- what happens --------------------------------------------------------------------------------------------------

    async def _run_acts(self, storage: Storage) -> None:
        await self._run_shutdown()
        await self._show_results()
        down = self._shutdown_timeline()
        self._print_line("\n" + render_text(down))
        gone = await self._run_power_loss(storage)
        drained = await self._run_guarded_drain()
        self._page = self._directory / "report.html"
        self._page.write_text(render_html(down, gone, drained))

    async def _run_power_loss(self, storage: Storage) -> Chapter:
        """The second act: a power loss."""
        self._print_line(f"\nThe second act: {self.node} is switched on again ...")
        await self._machines.switch(self.node, PowerSwitch.ON.value)
        await self._machines.wait_until_ready()
        node = next(
            pod["spec"]["nodeName"] for pod in await self._list_pods() if pod["metadata"]["name"] == "database-0"
        )
        self._print_line(f"the plug of {node} is pulled, where database-0 runs: nothing on it says goodbye")
        self._print_line(
            "Kubernetes alone would leave database-0 there until a person says that the node is off; lastcall finds out:"
        )
        gone = PowerLossAct(
            self._machines, self._client, storage, self._directory / "volumes", self._clock, self._print_line
        )
        return await gone.run(node)

    async def _run_guarded_drain(self) -> Chapter:
        """The third act: an eviction that has to wait for the application."""
        self._print_line(
            "\nThe third act: a database of three members acknowledges orders before all of them have them"
        )
        act = GuardedDrainAct(self._client, self._directory, self._clock, self._print_line)
        playing = asyncio.ensure_future(act.run())
        try:
            await wait_first(wait_any(playing), LabGuard(self._plane, self._directory).run())
            return playing.result()
        finally:
            await cancel_and_wait(playing)

    async def _run_shutdown(self) -> None:
        """The first act: a shutdown."""
        self._view.show_text(
            "three acts, two minutes: a node shuts down, a node loses its power, a database is drained"
        )
        self._view.show_text("starting three nodes and a shop on them ...")
        await self._machines.wait_until_ready()
        await self._create_objects(self._client)
        await self._wait_until_complete()
        for pod in await self._list_pods(self.node):
            self._view.add_pod(decoding.convert(pod, Pod, "pod"), pod["status"]["phase"])
        here, all_pods = len(await self._list_pods(self.node)), len(await self._list_pods())
        customers = OrderedTaskGroup()
        customers.start(self._load.run(), "customers")
        if self._view.is_terminal:
            self._view.live.start()
        try:
            self._view.show_text(
                f"{all_pods} pods run on three nodes, {here} of them on {self.node};"
                f" its power button is pressed in 3 seconds. {RATE:g} requests a second come in"
            )
            await self._clock.sleep(3)
            self._view.show_text(
                f"the power button of {self.node} was pressed: it shuts down as soon as its pods have ended"
            )
            await self._machines.switch(self.node, PowerSwitch.BUTTON.value)
            await self._wait_until_off()
            self._view.show_text(f"{self.node} is off. Its pods come up elsewhere ...")
            await self._wait_until_complete()
            await self._clock.sleep(1)
            self._view.show_text("everything runs again, on two nodes")
        finally:
            await customers.cancel()
            if self._view.is_terminal:
                self._view.live.stop()

    async def _create_objects(self, client: Client) -> None:
        await client.create(NAMESPACES, {"metadata": {"name": "shop"}})
        objects = [one for path in sorted((HERE / "objects").glob("*.yaml")) for one in _read_documents(path)]
        for obj in sorted(objects, key=lambda obj: obj["kind"] != "PriorityClass"):
            await create_object(client, obj)

    async def _wait_until_complete(self) -> None:
        """Waits until every workload has as many ready pods as it wants."""
        while not await self._is_complete():
            await self._clock.sleep(0.1)

    async def _is_complete(self) -> bool:
        for kind, wanted, ready in _WORKLOADS:
            for obj in (await self._client.list(dict_resource("apps", "v1", kind))).items:
                status = obj.get("status") or {}
                count = obj["spec"].get("replicas") if wanted is None else status.get(wanted)
                if count is None or status.get(ready, 0) < count - self._count_lost_pods(kind):
                    return False
        return True

    def _count_lost_pods(self, kind: str) -> int:
        """Pods that cannot be running, since their node is off."""
        off = any(one["name"] == self.node and one["power"] == "off" for one in self._machines.status())
        return int(off and kind == "daemonsets")

    async def _wait_until_off(self) -> None:
        while next(one for one in self._machines.status() if one["name"] == self.node)["power"] != "off":
            await self._clock.sleep(0.05)

    async def _list_pods(self, node: str = "") -> list[Object]:
        fields = f"spec.nodeName={node}" if node else ""
        return list((await self._client.list(PODS, fields=fields)).items)

    def _shop_doors(self) -> list[ListenAddress]:
        """The addresses of the shop for clients on the remaining nodes."""
        return [
            door
            for name, host in self._machines.hosts.items()
            if name != self.node
            for door, target in host.proxy.listen_targets.items()
            if target.service == "web"
        ]

    # -- what is said --------------------------------------------------------------------------------------------------

    def _footer_text(self) -> str:
        counts = self._load.counts
        return f"requests: {counts.good} answered, {counts.lost_requests} lost" if counts.sent else ""

    async def _show_results(self) -> None:
        counts = self._load.counts
        lost = ", ".join(f"{number} ({why})" for why, number in sorted(counts.lost.items())) or "none"
        self._print_line(f"requests answered: {counts.good}, lost: {lost}")
        for pod in await self._list_pods():
            status = pod["status"]
            if status["phase"] == "Running" and pod["metadata"]["namespace"] == "shop":
                self._print_line(f"  {pod['metadata']['name']:32} runs on {pod['spec']['nodeName']}")
        for node in (await self._client.list(NODES)).items:
            ready = next(one for one in node["status"]["conditions"] if one["type"] == "Ready")
            self._print_line(f"  node {node['metadata']['name']}: Ready={ready['status']}, {ready['message']}")

    def _print_line(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _shutdown_timeline(self) -> Timeline:
        """The timeline of the shutdown from the agent's journal."""
        journals = JournalFiles(self._directory / "machines" / self.node / "agent")
        latest = journals.latest()
        if latest is None:
            raise TimedOut(f"no shutdown was journalled in {self._directory}")
        record: ShutdownRecord = fold_events(from_lines(latest[1]))
        return build_timeline(record)


_WORKLOADS = (
    ("deployments", None, "availableReplicas"),
    ("statefulsets", None, "readyReplicas"),
    ("daemonsets", "desiredNumberScheduled", "numberReady"),
)
"""Resource, path of the desired number of pods in the status (None: in the spec), and of the ready number."""


def _read_documents(path: Path) -> Iterator[dict[str, Any]]:
    yield from decoding.parse_documents(path.read_bytes(), path.name)
