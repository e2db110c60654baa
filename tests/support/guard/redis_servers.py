"""Real Redis servers on loopback; the first is the master at the beginning."""

import shutil
import signal
import subprocess

import pytest
from support.guard.members import pod

NEEDS_REDIS = pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")


class Servers:
    """Processes by number; each has the address of the pod of its number."""

    net = "127.63.7"

    def __init__(self, port, directory):
        self.port, self.directory = port, directory
        self.processes = {}

    def address(self, number):
        return pod(number, net=self.net).status.pod_ip

    def start(self, number, *more, master=None):
        address = self.address(number)
        where = self.directory / str(number)
        where.mkdir(exist_ok=True)
        line = ["redis-server", "--bind", address, "--port", self.port, "--save", "", "--dir", where]
        line += ["--replica-announce-ip", address, "--repl-diskless-sync-delay", 0, "--repl-timeout", 5]
        line += [
            "--repl-ping-replica-period",
            1,
            *(["--replicaof", self.address(master), self.port] if master is not None else []),
        ]
        self.run(number, *line[1:], *more)

    def run(self, name, *arguments):
        """Another process of the same program."""
        line = ["redis-server", *map(str, arguments)]
        self.processes[name] = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end(self):
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
