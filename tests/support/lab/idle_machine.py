"""A machine of the lab in virtual time, on which nothing runs."""

import asyncio

from support.lab.replayed_server import LabApi

from lastcall.aio import wait_first
from lastcall_lab import virtual
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.machines.power import LabMachine, NetworkCable


class Host:
    """Notes what is done to it; ``going_down`` is how long its shutdown takes, ``late`` whether nobody can call it off."""

    def __init__(self, clock, going_down=20.0):
        self.clock, self.going_down, self.done = clock, going_down, []
        self.late = False

    async def boot(self):
        self.done.append("boot")

    async def die(self):
        self.done.append("die")

    async def press(self):
        self.done.append("press")
        self.called_off = asyncio.Event()
        return await wait_first(self.called_off.wait(), self.clock.sleep(self.going_down)) == 1

    async def call_off_shutdown(self):
        self.done.append("call off")
        if not self.late:
            self.called_off.set()
        return not self.late

    async def cut_storage(self, *, cut):
        self.done.append("cut storage" if cut else "mend storage")

    async def stop_kubelet(self):
        self.done.append("stop kubelet")

    async def start_kubelet(self):
        self.done.append("start kubelet")


def machine():
    """It is off; and its clock."""
    clock = virtual.VirtualClock()
    return LabMachine("lab-1", Host(clock), NetworkCable(InProcessTransport(LabApi(clock).server))), clock
