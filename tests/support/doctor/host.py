"""A host of files below a directory for ``lastcall doctor`` to look at, and what it said."""

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from lastcall.adapters.logind.session import SystemLogind
from lastcall.adapters.systemd.bus import Bus

KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nstaticPodPath: /manifests\n"
ASKS = "shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n"
AGENT = f"apiVersion: lastcall.dev/v1alpha1\nkind: AgentConfiguration\n{ASKS}"
BOOTED = 1_700_000_000


class Said:
    """What one run printed."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __getitem__(self, name):
        [check] = [check for check in json.loads(self.out)["checks"] if check["name"] == name]
        return check

    def verdict(self, name):
        return self[name]["verdict"]

    def text(self, name):
        return f"{self[name]['message']}; {self[name]['fix']}"

    @property
    def not_ok(self):
        return {check["name"] for check in json.loads(self.out)["checks"] if check["verdict"] != "ok"}


class Host:
    """A host's files below ``root``, and the command to look at it."""

    def __init__(self, root, address):
        self.root, self.address = root, address
        self.state = root / "state"
        self.config = self.write("agent.yaml", AGENT)
        self.endpoint = f"unix://{root}/none.sock"
        self.program = ["-m", "lastcall"]

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def start_kubelet(self, config=KUBELET, *, arguments=(), started=100):
        """A kubelet in a proc of our own, so that no other test's doctor sees it. ``started`` is seconds after boot."""
        self.write("etc/kubelet.yaml", config)
        self.write("proc/stat", f"cpu 1 2 3\nbtime {BOOTED}\nprocesses 7\n")
        self.write("proc/31/comm", "kubelet-wrapper\n")
        self.write("proc/4711/comm", "kubelet\n")
        self.write("proc/4711/cmdline", "\0".join(["kubelet", "--config", "/etc/kubelet.yaml", *arguments, ""]))
        ticks = started * os.sysconf("SC_CLK_TCK")
        self.write("proc/4711/stat", f"4711 (a ) name) S {' '.join(['0'] * 18)} {ticks} 0 0\n")

    def write_kubelet_state(self, start, end=None, directory="var/lib/kubelet"):
        """Seconds after boot."""
        times = [datetime.fromtimestamp(BOOTED + t, UTC) if t else datetime(1, 1, 1, tzinfo=UTC) for t in (start, end)]
        state = {key: time.isoformat() for key, time in zip(("startTime", "endTime"), times, strict=True)}
        self.write(f"{directory}/graceful_node_shutdown_state", json.dumps(state))

    async def doctor(self, *arguments, config=True, output="json"):
        line = [sys.executable, *self.program, "doctor", "--state-dir", self.state, "--logind-root", self.root]
        line += ["--container-runtime-endpoint", self.endpoint, "-o", output, *arguments]
        line += ["--config", self.config] if config else []
        process = await asyncio.create_subprocess_exec(
            *map(str, line),
            env={**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": self.address},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), 60)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise
        assert b"Traceback" not in err, err.decode()
        return Said(process.returncode, out.decode(), err.decode())

    @asynccontextmanager
    async def lock(self, who, mode="delay"):
        """A lock on shutdown that somebody holds."""
        bus = await Bus.open(self.address)
        path, interface = "/org/freedesktop/login1", "org.freedesktop.login1.Manager"
        what = ("shutdown", who, "a reason", mode)
        reply = await bus.call("org.freedesktop.login1", path, interface, "Inhibit", "ssss", *what)
        try:
            yield
        finally:
            os.close(reply.unix_fds[0])
            bus.close()

    async def reload(self):
        session = await SystemLogind(self.address).open()
        try:
            await session.reload()
            await asyncio.sleep(0.1)
        finally:
            session.close()


@pytest.fixture(name="host")
def a_host(private_logind):
    host = Host(private_logind.root, private_logind.address)
    host.version = private_logind.version
    return host


@pytest.fixture(name="without_bus")
def a_host_without_bus(tmp_path):
    return Host(tmp_path, f"unix:path={tmp_path}/bus")
