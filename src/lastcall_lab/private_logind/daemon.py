"""The machine's own systemd-logind on a private bus, with a recorder in place of systemd."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from lastcall.adapters.host.clock import SystemClock
from lastcall.ports.node import Clock
from lastcall_lab.private_logind import sandbox
from lastcall_lab.private_logind.commands import LogindCommands
from lastcall_lab.private_logind.programs import BUS_PID, LOGIND_PID, kill_program

_START_SECONDS = 60.0
_END_SECONDS = 20.0


class PrivateLogind(LogindCommands):
    """A context manager; up in some 0.2 s, down in some 20 ms. It can power off nothing:

    - its bus is a private one that starts nothing, and whose systemd1 records and does not act;
    - logind does not call reboot(2) itself: it only asks systemd1 for poweroff.target;
    - it runs in a sandbox (see ``sandbox.sandbox_command``).

    ``root`` has the layout of the machine's root for logind's configuration (etc/systemd, run/systemd,
    usr/lib/systemd): what LogindConf(root) writes there is what this logind reads. The methods that start and end
    processes block for that long; the verbs, which go over the bus, are coroutines.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        # Short, since a unix socket's path has 107 bytes at most; not in /run, which the sandbox covers.
        self.root = Path(tempfile.mkdtemp(prefix="lastcall-", dir="/tmp"))
        self.address = f"unix:path={self.root}/bus"
        super().__init__(self.address, clock or SystemClock())
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._write_root()

    @staticmethod
    def why_not() -> str | None:
        """Why a private logind cannot run here, for people; None if it can."""
        return sandbox.unavailable_reason()

    @property
    def version(self) -> int:
        """The version of systemd."""
        return sandbox.systemd_version()

    @property
    def drop_ins(self) -> Path:
        """The directory of the administrator's drop-ins."""
        return self.root / "etc/systemd/logind.conf.d"

    @property
    def logind_pid(self) -> int:
        """The pid of the sandboxed logind in our namespace."""
        return int((self.root / LOGIND_PID).read_text())

    def write_drop_in(self, name: str, text: str, directory: str = "etc/systemd") -> Path:
        """Writes a drop-in; it takes effect when logind reloads its configuration (LogindSession.reload)."""
        path = self.root / directory / "logind.conf.d" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def start_bus(self) -> None:
        """Starts the bus. A running logind does not reconnect by itself."""
        (self.root / "bus").unlink(missing_ok=True)
        process = self._start_program(
            "dbus-daemon", "dbus-daemon", f"--config-file={self.root}/bus.conf", "--nofork", "--print-address=1"
        )
        (self.root / BUS_PID).write_text(str(process.pid))
        self._wait_until_ready("dbus-daemon")

    def stop_bus(self) -> None:
        """Stops the bus; all clients lose their connections."""
        self._end_program("dbus-daemon")

    def start_logind(self) -> None:
        """Starts logind with its earlier locks and schedule; returns when it serves. The bus must be running."""
        process = self._start_program("logind", *sandbox.sandbox_command(self.root, str(sandbox.LOGIND)))
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            pid = next(filter(_handles_hangup, _descendant_pids(process.pid)), None)
            if pid and self._is_serving():
                (self.root / LOGIND_PID).write_text(str(pid))
                return
            time.sleep(0.005)
        raise RuntimeError(f"logind did not start:\n{self._read_log('logind')}")

    def stop_logind(self, number: int = signal.SIGTERM) -> None:
        """Ends logind; the locks stay."""
        if kill_program(self.root, LOGIND_PID, "systemd-logind", number):
            (self.root / LOGIND_PID).unlink()
        self._end_program("logind")

    def restart_logind(self, number: int = signal.SIGTERM) -> None:
        """As `systemctl restart systemd-logind`."""
        self.stop_logind(number)
        self.start_logind()

    def run_caged(self, *program: str) -> "subprocess.CompletedProcess[str]":
        """Runs a program in a sandbox like logind's, where reboot(2) is refused too; waits for its end."""
        line = sandbox.sandbox_command(self.root, *program)
        return subprocess.run(line, env=self._bus_environment(), capture_output=True, text=True, check=False)

    def __enter__(self) -> Self:
        try:
            self.start_bus()
            polkit = ["--polkit"] if os.geteuid() else []
            module = "lastcall_lab.private_logind.recorder"
            self._start_program("recorder", sys.executable, "-m", module, str(self.root), *polkit)
            self._wait_until_ready("recorder")
            self.start_logind()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop_logind()
        self._end_program("recorder")
        self._end_program("dbus-daemon")
        shutil.rmtree(self.root, ignore_errors=True)

    def _write_root(self) -> None:
        self.root.chmod(0o755)
        for directory in ("run/systemd", "run/udev", *(f"{d}/logind.conf.d" for d in ("etc/systemd", "run/systemd"))):
            (self.root / directory).mkdir(parents=True, exist_ok=True)
        for prefix in ("usr/lib", "usr/local/lib"):
            (self.root / prefix / "systemd/logind.conf.d").mkdir(parents=True)
        (self.root / "etc/systemd/logind.conf").write_text("[Login]\nNAutoVTs=0\nReserveVT=0\n")
        configuration = Path(__file__).with_name("bus.conf.in").read_text()
        (self.root / "bus.conf").write_text(configuration.replace("@SOCKET@", f"{self.root}/bus"))

    def _bus_environment(self) -> dict[str, str]:
        return {
            "PATH": sandbox.SEARCH_PATH,
            "LANG": "C",
            "DBUS_SYSTEM_BUS_ADDRESS": self.address,
            "SYSTEMD_LOG_TARGET": "console",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }

    def _start_program(self, name: str, *line: str) -> "subprocess.Popen[bytes]":
        """Starts a program; the end of its standard input, a pipe, tells the recorder that this process has ended."""
        environment = self._bus_environment()
        log: IO[bytes]
        with (self.root / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                line, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )
        self._processes[name] = process
        return process

    def _wait_until_ready(self, name: str) -> None:
        """Waits until a program reports that it is ready."""
        output = self._processes[name].stdout
        assert output is not None
        if not output.readline():
            raise RuntimeError(f"{name} did not start:\n{self._read_log(name)}")

    def _is_serving(self) -> bool:
        """Whether logind owns its name on the bus."""
        driver = ["org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus"]
        question = ["call", *driver, "NameHasOwner", "s", "org.freedesktop.login1"]
        line = ["busctl", f"--address={self.address}", *question]
        return "true" in subprocess.run(line, capture_output=True, text=True, check=False).stdout

    def _read_log(self, name: str) -> str:
        return (self.root / f"{name}.log").read_text()[-3000:]

    def _end_program(self, name: str) -> None:
        process = self._processes.pop(name, None)
        if not process:
            return
        if name != "logind":
            process.terminate()
        try:
            process.communicate(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _descendant_pids(pid: int) -> list[int]:
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:
        return []
    return [*children, *(further for child in children for further in _descendant_pids(child))]


def _handles_hangup(pid: int) -> bool:
    """Whether it is the logind process that blocks SIGHUP, as it does once it reads signals from a descriptor."""
    try:
        if Path(f"/proc/{pid}/comm").read_text() != "systemd-logind\n":
            return False
        blocked = re.search(r"^SigBlk:\s*(\w+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except OSError:
        return False
    return bool(blocked and int(blocked[1], 16) >> (signal.SIGHUP - 1) & 1)
