"""``lastcall lab up`` as a process, as a user starts it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.kube.kubectl import Kubectl


class LabProcess:
    """One lab without nodes; ``stop``, ``end`` or ``kill`` ends it."""

    def __init__(self, directory, *arguments, kubeconfig=None, temporary=None):
        directory.mkdir(parents=True, exist_ok=True)
        self.kubeconfig = kubeconfig or directory / "kubeconfig"
        self.temporary = temporary or directory / "temporary"
        self.temporary.mkdir(exist_ok=True)
        self._log = directory / "log"
        self._arguments = ["--nodes=0", f"--kubeconfig={self.kubeconfig}", *arguments]
        self.process = None

    def start(self):
        """Until it says that it is up."""
        began = time.monotonic()
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                lastcall("up", *self._arguments),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | {"TMPDIR": str(self.temporary)},
            )
        try:
            while "The lab is up" not in self.said:
                assert self.process.poll() is None, self.said
                assert time.monotonic() - began < 150, self.said
                time.sleep(0.01)
        except BaseException:
            self.end()
            raise

    @property
    def said(self):
        """What it has printed."""
        return self._log.read_text()

    def stop(self, number=signal.SIGINT):
        """Its exit code."""
        self.process.send_signal(number)
        return self.process.wait(60)

    def end(self):
        """SIGTERM, so that none of its pods lives on; SIGKILL if that does not end it."""
        if self.process and self.process.poll() is None:
            try:
                self.stop(signal.SIGTERM)
                assert not self.left(), "processes of its pods"
            finally:
                self.kill()

    def left(self):
        """The command lines that name its files."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                found.append(path.read_bytes())
        return [line for line in found if os.fsencode(self.temporary) in line]

    def kill(self):
        """SIGKILL: its pods live on. Nothing if it has ended."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def lastcall(*arguments):
    """The command line of ``lastcall lab``."""
    return [sys.executable, "-m", "lastcall", "lab", *map(str, arguments)]


def run(*arguments, temporary=None):
    """``lastcall lab`` to its end."""
    environment = os.environ | ({"TMPDIR": str(temporary)} if temporary else {})
    done = subprocess.run(
        lastcall(*arguments), capture_output=True, text=True, timeout=90, check=False, env=environment
    )
    return done.stdout, done.stderr, done.returncode


@pytest.fixture(name="labs")
def labs_of_a_test(tmp_path):
    """Makes labs, which all end with the test."""
    made = []

    def make(name="lab", *arguments, **options):
        made.append(LabProcess(tmp_path / name, *arguments, **options))
        return made[-1]

    yield make
    for lab in made:
        lab.end()


def kubectl(lab, home):
    """For this lab, with a home of its own."""
    home.mkdir(exist_ok=True)
    return Kubectl(lab.kubeconfig, home)
