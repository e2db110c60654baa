"""Machines of the lab with real processes or containers, a control plane, and pods that write down what reaches them."""

import asyncio
import contextlib
import time
from random import Random
from typing import NamedTuple

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.informer import Informer
from lastcall.adapters.kube.resources import NODES, PODS
from lastcall.aio import cancel_and_wait, wait_first
from lastcall.graceful import config as configuration
from lastcall_lab.apiserver.values.request import ADMIN
from lastcall_lab.control_plane.control_plane import ControlPlane, ControlPlaneLocation
from lastcall_lab.machines.redfish_service import RedfishService
from lastcall_lab.up.failover_controller import LabFailoverController
from lastcall_lab.up.lab_pages import LabPages
from lastcall_lab.up.lab_process import CONFIG
from lastcall_lab.up.local_host import LabInfrastructure
from lastcall_lab.up.local_machines import LocalMachines
from lastcall_lab.volumes.storage import Storage
from lastcall_lab.volumes.volume_store import DirectoryVolumes

CLOCK = SystemClock()
IMAGE = "localhost/lastcall/busybox:lab"
SCRIPT = """\
say() { read up rest </proc/uptime; echo "$up $POD_NAME CONTAINER $1" >>TRUTH; }
trap 'say TERM; sleep TAKES & wait $!; say exit; exit 0' TERM
say start
while :; do sleep 1 & wait $!; done
"""


class Saw(NamedTuple):
    """What a container wrote: CLOCK_BOOTTIME seconds (to the hundredth), its pod, its name, what happened."""

    at: float
    pod: str
    container: str
    what: str


class Lab:
    """A control plane and machines, lab-1 and others, within this process.

    ``config`` is their agents'; ``without`` names controllers that do not run; ``suspect_after`` is the policy's of a
    failover controller, None for none; ``site`` is what else is not as usual.
    """

    def __init__(self, directory, runtime, *, config=None, without=(), count=2, suspect_after=None, **site):
        random = Random(7)
        self.truth = directory / "truth" / "truth"
        self.storage = Storage(DirectoryVolumes(directory / "volumes"), CLOCK)
        self.plane_directory = directory / "plane"
        self.plane = ControlPlane(
            ControlPlaneLocation(self.plane_directory, directory / "kubeconfig"),
            CLOCK,
            random,
            without=without,
            storage=self.storage,
        )
        self.count = count
        self.failover = None
        if suspect_after is not None:
            self.failover = LabFailoverController(self.plane, directory / "plane", CLOCK, suspect_after=suspect_after)
        self.site = LabInfrastructure(
            clock=CLOCK,
            random=random,
            directory=directory / "machines",
            storage=self.storage,
            config=configuration.parse_config(config or CONFIG.read_bytes(), "agent.yaml"),
            runtime=runtime,
            **site,
        )

    @contextlib.asynccontextmanager
    async def up(self):
        """Until it is left; both nodes are ready."""
        self.truth.parent.mkdir()
        await self.plane.prepare()
        self.machines = LocalMachines(self.plane, self.site, count=self.count)
        self.client = self.plane.client(ADMIN)
        programs = [self.plane.run(), self.machines.run()]
        if self.failover:
            bmcs = RedfishService(self.machines, self.plane.bmc_password)
            permitted = self.plane.server.access.permit
            pages = LabPages(self.plane.server, permitted, self.machines, self.plane.stop, bmcs, self.plane.join_node)
            self.plane.pages = pages
            programs.append(self.failover.run())
        running = asyncio.gather(*programs)
        try:
            assert (
                await wait_first(asyncio.shield(running), self.machines.wait_until_ready(), asyncio.sleep(90)) == 1
            ), "it is not up"
            yield self
        finally:
            await self.machines.clean_up()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    @property
    def host(self):
        """What runs on lab-1."""
        return self.machines.hosts["lab-1"]

    @property
    def power(self):
        """The position of lab-1's switch."""
        return self.machines.status()[0]["power"]

    # -- what the API says ---------------------------------------------------------------------------------------------

    async def pods(self, **labels):
        """Those with these labels."""
        chosen = ",".join(f"{key}={value}" for key, value in labels.items())
        return list((await self.client.list(PODS, namespace="default", labels=chosen)).items)

    async def pod(self, name):
        """One of them."""
        return await self.client.get(PODS, name, namespace="default")

    async def node(self, name="lab-1"):
        """A node."""
        return await self.client.get(NODES, name)

    async def running(self, app, count):
        """The pods of an app as soon as so many of them are ready."""

        async def check():
            return len([pod for pod in await self.pods(app=app) if ready(pod)]) == count

        await self.until(check)
        return [pod for pod in await self.pods(app=app) if ready(pod)]

    async def until(self, condition, seconds=120):
        """Waits until it holds: an asynchronous function."""
        async with asyncio.timeout(seconds):
            while not await condition():
                await asyncio.sleep(0.05)

    async def until_off(self):
        """lab-1 has gone down."""

        async def off():
            return self.power == "off"

        await self.until(off)

    async def until_ready(self, *pods):
        """All these are."""

        async def check():
            return all([ready(await self.pod(name)) for name in pods])

        await self.until(check)

    @contextlib.asynccontextmanager
    async def told(self):
        """The finished pods and the readiness of lab-1, in the order in which the API server has told them."""
        heard = []

        async def listed():
            names = {name for name, _ in heard}
            return "lab-1" in names and len(names) > 1

        watches = [asyncio.ensure_future(self._hear(kind, heard)) for kind in (PODS, NODES)]
        try:
            await self.until(listed)
            yield heard
        finally:
            await cancel_and_wait(*watches)

    async def _hear(self, kind, heard):
        async for change in Informer(self.client, kind, clock=CLOCK, random=Random(1)).changes():
            if change.new is None:
                continue
            name = change.new["metadata"]["name"]
            said = change.new["status"].get("phase") if kind is PODS else f"Ready {ready(change.new)}"
            if (kind is PODS or name == "lab-1") and (name, said) not in heard:
                heard.append((name, said))

    # -- what the pods say ---------------------------------------------------------------------------------------------

    def saw(self, pod, what, container="main"):
        """When these happened in a container."""
        lines = [line.split() for line in self.truth.read_text().splitlines()] if self.truth.exists() else []
        all_ = [Saw(float(at), *rest) for at, *rest in lines]
        return [one.at for one in all_ if (one.pod, one.container, one.what) == (pod, container, what)]

    def when(self, pod, what, container="main"):
        """When it happened, which it did once."""
        [at] = self.saw(pod, what, container)
        return at

    async def until_saw(self, pod, what, container="main"):
        """Waits for it."""

        async def seen():
            return bool(self.saw(pod, what, container))

        await self.until(seen)

    # -- pods ----------------------------------------------------------------------------------------------------------

    def spec(self, *, takes=1, hook=None, sidecar=None, **spec):
        """Of a pod that needs ``takes`` seconds after SIGTERM; ``hook`` are the seconds of its preStop hook,
        ``sidecar`` those that its sidecar needs after SIGTERM.
        """
        main = self._container("main", takes)
        if hook is not None:
            say = 'read up rest </proc/uptime; echo "$up $POD_NAME main'
            command = f'{say} hook" >>{self.truth}; sleep {hook}; {say} hook-over" >>{self.truth}'
            main["lifecycle"] = {"preStop": {"exec": {"command": ["sh", "-c", command]}}}
        beside = [] if sidecar is None else [self._container("sidecar", sidecar) | {"restartPolicy": "Always"}]
        return {
            "terminationGracePeriodSeconds": 20,
            "containers": [main],
            "initContainers": beside,
            "volumes": [{"name": "truth", "hostPath": {"path": str(self.truth.parent)}}],
            **spec,
        }

    def _container(self, name, takes):
        script = SCRIPT.replace("CONTAINER", name).replace("TAKES", str(takes)).replace("TRUTH", str(self.truth))
        mount = {"name": "truth", "mountPath": str(self.truth.parent)}
        return {"name": name, "image": IMAGE, "command": ["sh", "-c", script], "volumeMounts": [mount]}

    async def add(self, name, **spec):
        """A pod on lab-1."""
        pod = {"metadata": {"name": name}, "spec": self.spec(nodeName="lab-1", **spec)}
        await self.client.create(PODS, pod, namespace="default")

    def template(self, app, **spec):
        """For the pods of a controller."""
        return {"metadata": {"labels": {"app": app}}, "spec": self.spec(**spec)}


def condition(obj, kind):
    """A condition of an object, or an empty one."""
    found = [one for one in (obj.get("status") or {}).get("conditions") or () if one["type"] == kind]
    return found[0] if found else {}


def ready(obj):
    """Whether a pod or a node is."""
    return condition(obj, "Ready").get("status") == "True"


def boottime(wall):
    """A wall clock's seconds as CLOCK_BOOTTIME."""
    return wall - time.time() + time.clock_gettime(time.CLOCK_BOOTTIME)
