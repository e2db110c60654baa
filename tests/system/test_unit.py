"""The unit as it is delivered, under a real service manager: it starts, is hardened, and keeps the lock when killed."""

import asyncio
import os
import re
import signal
import socket
import stat
import sys
import tempfile
import time
from pathlib import Path

import pytest
from support.host import service_manager
from support.host.logind import private_logind  # noqa: F401  (fixtures)

from lastcall.adapters.logind.session import SystemLogind

pytestmark = pytest.mark.timeout(180)

UNIT = Path(__file__).parents[2] / "deploy/systemd/lastcall-agent.service"
CONFIG = """\
apiVersion: lastcall.dev/v1alpha1
kind: AgentConfiguration
shutdownGracePeriod: 4s
shutdownGracePeriodCriticalPods: 2s
"""


def as_delivered(directory, state):
    """The unit with other places: those of the test, which PrivateTmp= and ProtectHome= would hide."""
    options = f"--config={directory}/agent.yaml --state-dir={directory}/state --metrics-bind-address=0"
    settings = {
        "ExecStart": f"{sys.executable} -m lastcall agent {options} --container-runtime-endpoint=unix://{directory}/none",
        "StateDirectory": "",
        "PrivateTmp": "no",
        "ProtectHome": "no",
        "ReadWritePaths": f"/etc/systemd {directory} {state}",
    }
    unit = UNIT.read_text()
    for name, value in settings.items():
        unit, found = re.subn(rf"^{name}=.*$", lambda _, line=f"{name}={value}": line, unit, flags=re.MULTILINE)
        assert found == 1, name
    return unit + f"\n[Service]\nStandardError=append:{directory}/log\n"


def share_the_bus(address, state):
    """The private logind's bus is where the agent looks for the system's: another name of the same socket."""
    (state / "run/dbus").mkdir()
    os.link(address.removeprefix("unix:path="), state / "run/dbus/system_bus_socket")


def make_inaccessible(state):
    """What the manager puts over what a service must not see; in a cage it cannot make these by itself."""
    for place in ("run/systemd/inaccessible", "run/user/systemd/inaccessible"):
        directory = state / place
        directory.mkdir(parents=True, exist_ok=True)
        for name, kind in (("reg", stat.S_IFREG), ("fifo", stat.S_IFIFO), ("chr", stat.S_IFCHR), ("blk", stat.S_IFBLK)):
            if not (directory / name).exists():
                os.mknod(directory / name, kind)
        (directory / "dir").mkdir(mode=0, exist_ok=True)
        if not (directory / "sock").exists():
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(directory / "sock"))


def locks(logind):
    """Whose they are, and which process took them."""

    async def ask():
        session = await SystemLogind(logind.address).open()
        try:
            return [(inhibitor.who, inhibitor.pid) for inhibitor in await session.list_inhibitors()]
        finally:
            session.close()

    return asyncio.run(ask())


def until(condition, what, log):
    for _ in range(1800):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(f"waited in vain for {what}: {log.read_text() if log.exists() else 'no log'}")


@pytest.fixture
def cage():
    """Near the root: a unix socket's path has 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="lc-unit-", dir="/tmp", ignore_cleanup_errors=True) as directory:
        yield Path(directory) / "cage"


def test_the_unit_as_it_is_delivered(private_logind, tmp_path, cage):  # noqa: F811
    if reason := service_manager.why_not():
        pytest.skip(reason)
    state, log = cage, tmp_path / "log"
    (tmp_path / "agent.yaml").write_text(CONFIG)

    def lives():
        return log.read_text().count("armed: 4s") if log.exists() else 0

    units = {UNIT.name: as_delivered(tmp_path, state)}
    with service_manager.service_manager(state, units, start=UNIT.name):
        make_inaccessible(state)
        share_the_bus(private_logind.address, state)
        until(lambda: lives() == 1, "the agent", log)
        [(who, taker)] = locks(private_logind)
        assert who == "lastcall"
        assert "would not survive" not in log.read_text(), "systemd has taken the lock"
        pid = agent_pid(tmp_path)
        status = Path(f"/proc/{pid}/status").read_text()
        assert re.search(r"^CapBnd:\s*0+$", status, re.MULTILINE), "no capabilities"
        assert re.search(r"^NoNewPrivs:\s*1$", status, re.MULTILINE)
        os.kill(pid, signal.SIGKILL)
        time.sleep(0.2)
        assert locks(private_logind) == [("lastcall", taker)], "systemd holds it"
        until(lambda: lives() == 2, "the agent's next life", log)
        [(who, taker)] = locks(private_logind)
        assert who == "lastcall", "one lock, which may be a new one: an earlier life's may have a deadline"
        asyncio.run(private_logind.power_off())
        assert asyncio.run(private_logind.wait_for_start()).arguments[0] == "poweroff.target"


def agent_pid(directory):
    """As seen from outside of its cage."""
    return next(int(path.name) for path in Path("/proc").glob("[0-9]*") if is_agent(path, directory))


def is_agent(path, directory):
    try:
        return f"--state-dir={directory}/state" in (path / "cmdline").read_text()
    except OSError:
        return False
