"""Every kind of fence before a device that can be slow or dead: what the contract suite of fences runs on."""

import asyncio
import os
import shutil
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.fencing import ec2_emulator as ec2
from support.fencing import ipmi_emulator as ipmi
from support.fencing import redfish_emulator as redfish

from lastcall.adapters.fencing.fence_agent import FenceAgents
from lastcall.adapters.host.clock import SystemClock
from lastcall.model.fence_node import FenceNode
from lastcall_lab.fakes.fence import FakeFence
from lastcall_lab.machines.bmc import Bmc, BmcFaults
from lastcall_lab.machines.power import PowerSwitch

LONG = 60.0
"""Seconds for what is expected to go well."""


class Bench:
    """A fence and the device behind it; ``on`` is what is true of its machine."""

    password = ""
    """What its device lets one in by; empty: it asks for nothing."""
    lag = True
    """Its machine can be told to take its time."""
    node = FenceNode(name="worker-1")
    """What the Node of its machine shows; without identifiers where the device does not say which machine it is."""

    async def fence(self, *, patience=LONG, password=None):
        raise NotImplementedError

    @property
    def on(self):
        raise NotImplementedError

    def switch_on(self):
        raise NotImplementedError

    def slow(self, *, delay=0.0, latency=0.0):
        """``delay``: until it has switched; ``latency``: until it answers."""
        raise NotImplementedError

    @contextmanager
    def dead(self):
        """It answers nobody."""
        raise NotImplementedError
        yield


class Agent(Bench):
    program = ""

    def parameters(self):
        raise NotImplementedError

    async def fence(self, *, patience=LONG, password=None):
        secrets = {"password": self.password if password is None else password} if self.password else {}
        return await FenceAgents()("bmc", self.program, self.parameters(), secrets, patience=patience)


class Dummy(Agent):
    """Debian's fence_dummy: its device is a file, a dead one a pipe that nobody writes to."""

    program, lag = "fence_dummy", False

    def __init__(self, stack):
        self.file = Path(stack.enter_context(TemporaryDirectory(prefix="dummy"))) / "status"
        self.switch_on()

    def parameters(self):
        return {"type": "file", "status_file": str(self.file)}

    @property
    def on(self):
        return self.file.read_text() == "on"

    def switch_on(self):
        self.file.write_text("on")

    def slow(self, *, delay=0.0, latency=0.0):
        assert (delay, latency) == (0, 0)

    @contextmanager
    def dead(self):
        kept = self.file.with_name("kept")
        self.file.rename(kept)
        os.mkfifo(self.file)
        try:
            yield
        finally:
            kept.rename(self.file)


class Emulated(Bench):
    """Before one of the emulators."""

    def slow(self, *, delay=0.0, latency=0.0):
        self.emulator.slow(delay=delay, latency=latency)

    @contextmanager
    def dead(self):
        self.emulator.pause()
        try:
            yield
        finally:
            self.emulator.go_on()


class Redfish(Emulated):
    password = redfish.PASSWORD
    machine = "worker-1"

    def __init__(self, stack):
        self.emulator = stack.enter_context(redfish.redfish_emulator())

    @property
    def on(self):
        return self.emulator.power(self.machine) == "On"

    def switch_on(self):
        if not self.on:
            self.emulator.switch(self.machine)


class RedfishAgent(Redfish, Agent):
    program = "fence_redfish"

    def parameters(self):
        return {
            "ip": "127.0.0.1",
            "ipport": str(self.emulator.port),
            "username": redfish.USER,
            "ssl_insecure": "1",
            "systems_uri": f"/redfish/v1/Systems/{redfish.MACHINES[self.machine]}",
        }


class IpmiAgent(Emulated, Agent):
    program, password = "fence_ipmilan", ipmi.PASSWORD

    def __init__(self, stack):
        self.emulator = stack.enter_context(ipmi.ipmi_emulator())

    def parameters(self):
        return {
            "ip": "127.0.0.1",
            "ipport": str(self.emulator.port),
            "username": ipmi.USER,
            "lanplus": "1",
            "power_wait": "0",
        }

    @property
    def on(self):
        return self.emulator.power() == "on"

    def switch_on(self):
        self.emulator.switch("on")


class Sushy(Redfish):
    node = FenceNode(name="worker-1", system_uuid=redfish.MACHINES[Redfish.machine])

    async def fence(self, *, patience=LONG, password=None):
        from lastcall.adapters.fencing.redfish import RedfishSettings, redfish_fence

        settings = RedfishSettings(
            address=self.emulator.address,
            system_id=self.node.system_uuid,
            username=redfish.USER,
            password=self.password if password is None else password,
            authority=self.emulator.certificate.read_text(),
        )
        return redfish_fence("bmc", settings, clock=SystemClock(), patience=patience)


class Ec2(Emulated):
    """boto3 before moto's server, which switches at once and takes any credentials."""

    lag = False

    def __init__(self, stack):
        self.emulator = stack.enter_context(ec2.ec2_emulator())
        self.node = FenceNode(name="worker-1", provider_id=self.emulator.instance())

    async def fence(self, *, patience=LONG, password=None):
        from lastcall.adapters.fencing.ec2 import ec2_fence, instance_settings

        found = instance_settings(
            self.node.provider_id, endpoint=self.emulator.endpoint, credentials=(ec2.KEY, ec2.SECRET)
        )
        return ec2_fence("bmc", found, clock=SystemClock(), environ={}, patience=patience)

    @property
    def on(self):
        return self.emulator.state(self.node.provider_id) == "running"

    def switch_on(self):
        if not self.on:
            self.emulator.start(self.node.provider_id)

    def slow(self, *, delay=0.0, latency=0.0):
        assert (delay, latency) == (0, 0)


class FakeMachine:
    """As much of the lab's ``Machine`` as a BMC needs."""

    name = "lab-1"

    def __init__(self):
        self.is_powered, self.delay = True, 0.0

    async def turn(self, switch):
        wanted = switch is PowerSwitch.ON
        if self.delay:
            self.later = asyncio.get_running_loop().call_later(self.delay, setattr, self, "is_powered", wanted)
        else:
            self.is_powered = wanted


class Fake(Bench):
    """The lab's own, in this process."""

    def __init__(self, stack):
        self.machine = FakeMachine()
        self.bmc = Bmc(self.machine, SystemClock())
        self.node = FenceNode(name="lab-1", system_uuid=self.bmc.uuid)

    async def fence(self, *, patience=LONG, password=None):
        return FakeFence("bmc", self.bmc, SystemClock(), patience=patience)

    @property
    def on(self):
        return self.machine.is_powered

    def switch_on(self):
        self.machine.is_powered = True

    def slow(self, *, delay=0.0, latency=0.0):
        self.machine.delay = delay
        self.bmc.faults = replace(BmcFaults(), late=latency)

    @contextmanager
    def dead(self):
        self.bmc.faults = BmcFaults(deaf=True)
        try:
            yield
        finally:
            self.bmc.faults = BmcFaults()


BENCHES = {
    "dummy": Dummy,
    "fence_redfish": RedfishAgent,
    "ipmilan": IpmiAgent,
    "sushy": Sushy,
    "ec2": Ec2,
    "fake": Fake,
}


def why_not(kind):
    """Why a bench cannot be had on this machine; empty if it can."""
    programs = [kind.program, "timeout"] if issubclass(kind, Agent) else []
    programs += ["ipmitool"] if kind is IpmiAgent else []
    missing = [name for name in programs if not shutil.which(name, path=f"/usr/sbin:{os.environ['PATH']}")]
    return f"there is no {missing[0]} (Debian: fence-agents, ipmitool)" if missing else ""


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=pytest.mark.xdist_group(f"fence-{name}")) for name in BENCHES]
)
def shared_bench(request):
    kind = BENCHES[request.param]
    if reason := why_not(kind):
        pytest.skip(reason)
    with ExitStack() as stack:
        yield kind(stack)


@pytest.fixture(name="bench")
def a_bench(shared_bench):
    """Its machine is on, and it answers at once."""
    shared_bench.slow()
    shared_bench.switch_on()
    return shared_bench
