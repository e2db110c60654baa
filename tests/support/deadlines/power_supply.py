"""A power supply that does not exist: Debian's own upsd with its driver dummy-ups, on a private port and directory."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

DRIVER, SERVER, CLIENT = Path("/lib/nut/dummy-ups"), Path("/lib/nut/upsd"), "/bin/upsc"


def why_not():
    """Why it cannot run here; None if it can."""
    if os.geteuid() != 0:
        return "dummy-ups and upsd become the user nut, or root: needs root"
    missing = [str(path) for path in (DRIVER, SERVER, Path(CLIENT)) if not path.exists()]
    return f"not installed: {', '.join(missing)} (nut-server, nut-client)" if missing else None


class DummySupply:
    """The context manager runs both; ``name`` is what upsc takes."""

    def __init__(self, directory):
        self._directory = directory
        self._processes = []
        self._said = int(time.time())
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.name = f"dummy@127.0.0.1:{self._port}"

    def __enter__(self):
        etc, run = self._directory / "etc", self._directory / "run"
        etc.mkdir(parents=True)
        run.mkdir(mode=0o700)
        self._device = etc / "dummy.dev"
        self.say("OL")
        (etc / "ups.conf").write_text(f"[dummy]\n driver = dummy-ups\n port = {self._device}\n pollinterval = 1\n")
        (etc / "upsd.conf").write_text(f"LISTEN 127.0.0.1 {self._port}\nMAXAGE 15\n")
        (etc / "upsd.users").write_text("")
        paths = {"NUT_CONFPATH": str(etc), "NUT_STATEPATH": str(run), "NUT_ALTPIDPATH": str(run)}
        self._environment = {**os.environ, **paths}
        self.start(DRIVER, "-a", "dummy")
        self.start_server()
        self.wait_for("OL")
        return self

    def __exit__(self, *_):
        for process in self._processes:
            process.kill()
            process.wait()

    def start(self, program, *arguments):
        with (self._directory / f"{program.name}.log").open("ab") as log:
            process = subprocess.Popen(
                [program, *arguments, "-D", "-u", "root"], env=self._environment, stdout=log, stderr=log
            )
        self._processes.append(process)

    def start_server(self):
        self.start(SERVER)

    def stop_server(self):
        server = self._processes.pop()
        server.kill()
        server.wait()

    def say(self, status, **variables):
        """What the device reports from now on."""
        values = {"ups.status": status, **{name.replace("_", "."): value for name, value in variables.items()}}
        temporary = self._device.with_suffix(".new")
        temporary.write_text("".join(f"{name}: {value}\n" for name, value in values.items()))
        self._said += 10  # the driver compares whole seconds to see that the file is another one
        os.utime(temporary, (self._said, self._said))
        shutil.move(temporary, self._device)

    def wait_for(self, status, seconds=60.0):
        end = time.monotonic() + seconds
        while True:
            said = subprocess.run([CLIENT, self.name, "ups.status"], capture_output=True, text=True, check=False).stdout
            if said.strip() == status:
                return
            assert time.monotonic() < end, f"upsd never said {status}, but {said!r}"
            time.sleep(0.1)
