"""A node with a watchdog in virtual time, at the lab's API server, and a controller that looks at its Lease.

What is to hold at each moment: the Lease says ``timing_with`` only while the device runs or has fired, and what the controller
takes for proved has happened to the machine.
"""

import asyncio
import functools
from random import Random

from lastcall import names
from lastcall.adapters.host.watchdog_device import WatchdogDeviceFile
from lastcall.adapters.kube.client import MERGE, Client
from lastcall.adapters.kube.resources import LEASES, NAMESPACES
from lastcall.adapters.kube.watchdog_lease import KubeWatchdogLease
from lastcall.aio import cancel_and_wait
from lastcall.errors import NotFound, Unavailable
from lastcall.failover.evidence.assessment import BootState, assess
from lastcall.failover.evidence.facts import Boot
from lastcall.failover.evidence.watchdog_observation import Reachability, observe_lease, watchdog_evidence
from lastcall.model.watchdog import WatchdogSettings
from lastcall.model.watchdog_lease import AgentLease
from lastcall.watchdog.keeper import WatchdogKeeper
from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.fakes.watchdog import FakeWatchdog
from lastcall_lab.virtual import VirtualProcess

NODE = "n1"
SETTINGS = WatchdogSettings(device="/dev/watchdog0", lease_seconds=20, pet_seconds=4, timeout_seconds=10, drift=0.001)
BOUND = SETTINGS.timing_with().reset_bound
NODE_SETTINGS = WatchdogSettings(lease_seconds=30, pet_seconds=5, timeout_seconds=12)
"""Beside a controller, with clocks that may differ."""
_LEASES = LEASES.with_shape(AgentLease)


class Line:
    """A transport that can be cut: requests are refused, hang, or are carried out much later (``late`` seconds)."""

    def __init__(self, transport):
        self._transport = transport
        self.cut = False
        self.hangs = False
        self.deaf = False
        self.slow = 0.002
        self.late = {}
        self.asked, self.targets = [], []

    async def request(self, method, target, headers, body, *, stream=False):
        self.asked.append(method)
        self.targets.append((method, target.partition("?")[0]))
        if self.hangs:
            await asyncio.sleep(100_000)
        if self.cut:
            raise Unavailable("cut off")
        if self.late.get(method):
            return await self._much_later(method, target, headers, body)
        await asyncio.sleep(self.slow)
        answer = await self._transport.request(method, target, headers, body, stream=stream)
        if self.deaf:
            raise Unavailable("the answer was lost")
        return answer

    async def _much_later(self, *request):
        """The network has it; whoever sent it gives up."""

        async def deliver():
            await asyncio.sleep(self.late.pop(request[0]))
            await self._transport.request(*request)

        self._delivery = asyncio.get_running_loop().create_task(deliver())
        await asyncio.sleep(100_000)

    def close(self):
        self._transport.close()


class World:
    """One machine. ``rest`` is for its device."""

    def __init__(self, *, settings=SETTINGS, **rest):
        self.clock = virtual.VirtualClock()
        self.server = ApiServer(self.clock, Random(1))
        self.admin = Client(InProcessTransport(self.server), manager="kubectl")
        self.settings = settings
        self.dog = FakeWatchdog(self._reset, **rest)
        self.boots = 0
        self.resets = []
        self.proofs = {}
        self.rounds = []
        self.keeper = self.process = None
        self.restarts = True
        self.held = ""
        self.line = Line(InProcessTransport(self.server))

    @property
    def now(self):
        return asyncio.get_running_loop().time()

    @property
    def boot_id(self):
        return f"boot-{self.boots}"

    async def __aenter__(self):
        await self.admin.create(NAMESPACES, {"metadata": {"name": names.NODES_NAMESPACE}})
        self._looking = asyncio.create_task(self._look())
        return self

    async def __aexit__(self, *_):
        self.restarts = False
        if self.process:
            self.process.kill()
        await cancel_and_wait(self._looking)
        self.dog.cut_power()

    # -- the agent -----------------------------------------------------------------------------------------------------

    def agent(self, *, fuse=None, held=None):
        """A life of the agent begins; it holds back as a graceful agent would tell it to."""
        self.process = VirtualProcess("agent", fuse=fuse, on_death=self._agent_died)
        self.process.call(self._begin)
        if held is not None:
            self.held = held
        self.process.call(self.keeper.suspend, self.held)
        return self.keeper

    def _begin(self):
        self.keeper = WatchdogKeeper(
            self.settings,
            device=WatchdogDeviceFile(self.settings.device, self.dog),
            lease=KubeWatchdogLease(Client(self.line, manager="agent"), NODE, self.clock),
            clock=self.clock,
            boot_id=self.boot_id,
            on_round=self.rounds.append,
        )
        self.task = self.process.start(self.keeper.run(), "watchdog")

    def hold(self, why):
        self.held = why
        if self.process.alive:
            self.process.call(self.keeper.suspend, why)

    def leave(self):
        if self.process.alive:
            self.process.call(self.keeper.request_stop)

    def _agent_died(self):
        self.dog.kill_holder()
        if self.restarts:
            self._again = asyncio.get_running_loop().call_later(1, self._restart)

    def _restart(self):
        if self.restarts and not self.process.alive:
            self.agent()

    def _reset(self):
        self.resets.append(self.now)
        self.boots += 1
        self.held = ""
        restarts, self.restarts = self.restarts, False
        self.process.kill()
        self.dog.cut_power()
        self.restarts = restarts
        if restarts:
            asyncio.get_running_loop().call_later(30, self._restart)

    # -- the controller ------------------------------------------------------------------------------------------------

    async def lease(self):
        try:
            return await self.admin.get(_LEASES, NODE, namespace=names.NODES_NAMESPACE)
        except NotFound:
            return AgentLease()

    async def promise(self):
        return (await self.lease()).promise

    async def change(self, **metadata):
        await self.admin.patch(LEASES, NODE, {"metadata": metadata}, namespace=names.NODES_NAMESPACE, kind=MERGE)

    async def _look(self):
        watched = None
        contacts = [Reachability(at=0, reachable=3, nodes=3)]
        while True:
            asked = self.now
            lease = await self.lease()
            watched = observe_lease(
                watched, annotations=lease.metadata.annotations, renewed=lease.spec.renew_time or "", now=self.now
            )
            self._check(watched.promise)
            fact = watchdog_evidence(watched, read=asked, contacts=contacts)
            if fact:
                self._conclude(fact)
            await asyncio.sleep(0.4)

    def _check(self, promise):
        if promise and promise.armed and promise.boot_id == self.boot_id:
            assert self.dog.running, f"{self.now}: the Lease says that it is armed, and it does not run"

    def _conclude(self, fact):
        boot = Boot(id=fact.boot_id, system_uuid="m1", since=-1)
        if assess(boot, [fact], self.now).state is BootState.DEAD:
            assert self.boot_id != fact.boot_id, f"{self.now}: {fact.boot_id} is taken for dead, and lives"
            self.proofs.setdefault(fact.boot_id, self.now)

    def look(self):
        """Raises what was found not to hold."""
        if self._looking.done():
            self._looking.result()


def lives(scene, **rest):
    """Runs ``scene(world)`` in virtual time."""

    async def run():
        async with World(**rest) as world:
            result = await scene(world)
            world.look()
            return result

    return virtual.run(run())


def on_watchdog(**rest):
    """Runs an async test so, with the world of a node with a watchdog."""

    def decorate(test):
        @functools.wraps(test)
        def run():
            lives(test, **rest)

        del run.__wrapped__
        return run

    return decorate
