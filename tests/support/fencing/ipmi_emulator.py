"""pyghmi's BMC as a process of its own, on a free port of the loopback: what ipmitool and fence_ipmilan are tried against.

Power changes ``delay`` seconds after it was asked for, and every answer takes ``latency`` seconds. ``pause`` makes a dead
BMC of it. This file is also the program that each emulator runs.
"""

import sys
import time
from pathlib import Path

from support.fencing.emulator import Emulator, listens, running

USER, PASSWORD = "admin", "pass word'1"


class IpmiEmulator(Emulator):
    """One BMC with one machine, which is on at first."""

    def __init__(self, directory, *, delay=0.0, latency=0.0):
        self._delay, self._latency, self._power = directory / "delay", directory / "latency", directory / "power"
        self._power.write_text("on")
        self.slow(delay=delay, latency=latency)
        super().__init__("support.fencing.ipmi_emulator", directory, directory)

    def slow(self, *, delay=0.0, latency=0.0):
        """From now on."""
        self._delay.write_text(str(delay))
        self._latency.write_text(str(latency))

    def power(self):
        """What the machine's power is."""
        return self._power.read_text()

    def switch(self, power="on"):
        """Without a fence, at once."""
        self._power.write_text(power)


def ipmi_emulator(**how):
    """One that runs, and is ended."""
    return running(IpmiEmulator, **how)


def _serve(directory):
    """The program: says its port on its standard output when it listens."""
    from pyghmi.ipmi.bmc import Bmc

    class Machine(Bmc):
        pending = None

        def get_power_state(self):
            time.sleep(float((directory / "latency").read_text()))
            if self.pending and time.monotonic() >= self.pending[0]:
                (directory / "power").write_text(self.pending[1])
                self.pending = None
            return (directory / "power").read_text()

        def power_off(self):
            self._switch("off")

        def power_on(self):
            self._switch("on")

        def _switch(self, power):
            time.sleep(float((directory / "latency").read_text()))
            self.pending = (time.monotonic() + float((directory / "delay").read_text()), power)

    bmc = Machine({USER: PASSWORD}, port=0, address="127.0.0.1")
    bmc.port = bmc.serversocket.getsockname()[1]  # it knows its sessions by the port
    listens(bmc.port)
    bmc.listen()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
