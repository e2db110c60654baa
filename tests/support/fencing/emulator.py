"""A program that emulates what a fence talks to: a module of this package, which says its port when it listens."""

import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

TESTS = Path(__file__).resolve().parents[2]


class Emulator:
    """It runs until ``close``; ``module`` is its program, and ``directory`` has its log."""

    def __init__(self, module, directory, *arguments, env=None):
        command = [sys.executable, "-W", "ignore", "-m", module, *map(str, arguments)]
        with (directory / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, cwd=TESTS, env=env)
        line = self._process.stdout.readline()
        if not line:
            self.close()
            raise RuntimeError((directory / "log").read_text())
        self.port = int(line)

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
def running(kind, **how):
    """One that runs, and is ended."""
    with TemporaryDirectory(prefix=kind.__name__) as directory:
        emulator = kind(Path(directory), **how)
        try:
            yield emulator
        finally:
            emulator.close()


def listens(port):
    """What the program says."""
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
