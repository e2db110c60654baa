"""pyghmi's BMC as a process of its own, on a free port of the loopback: what ipmitool and fence_ipmilan are tried against.

Power changes ``delay`` seconds after it was asked for, and every answer takes ``latency`` seconds. ``pause`` makes a dead
BMC of it. This file is also the program that each emulator runs.
"""

import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

USER, PASSWORD = "admin", "pass word'1"


class IpmiEmulator:
    """One BMC with one machine, which is on at first."""

    def __init__(self, directory, *, delay=0.0, latency=0.0):
        self._delay, self._latency, self._power = directory / "delay", directory / "latency", directory / "power"
        self._power.write_text("on")
        self.slow(delay=delay, latency=latency)
        command = [sys.executable, "-W", "ignore", str(Path(__file__)), str(directory)]
        with (directory / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        line = self._process.stdout.readline()
        if not line:
            self.close()
            raise RuntimeError((directory / "log").read_text())
        self.port = int(line)

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

    def pause(self):
        """Nothing is answered any more."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self._process.send_signal(signal.SIGCONT)

    def close(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


@contextmanager
def ipmi_emulator(**how):
    """One that runs, and is ended."""
    with TemporaryDirectory(prefix="ipmi") as directory:
        emulator = IpmiEmulator(Path(directory), **how)
        try:
            yield emulator
        finally:
            emulator.close()


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
    sys.stdout.write(f"{bmc.port}\n")
    sys.stdout.flush()
    bmc.listen()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
