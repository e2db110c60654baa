"""A containerd of one's own leaves its machine as it was."""

import asyncio
import os
import signal
from pathlib import Path

import msgspec
import pytest
from support.runtimes.containerd_world import why_not

from lastcall.adapters.host.clock import SystemClock
from lastcall.errors import Unavailable
from lastcall.model.pods import Pod
from lastcall_lab import containerd as lab
from lastcall_lab.containerd import BUSYBOX, LabCriRuntime, PrivateContainerd, leftovers

pytestmark = pytest.mark.xdist_group("containerd-private")


@pytest.fixture
def containerd():
    if why_not():
        pytest.skip(why_not())
    containerd = PrivateContainerd()
    yield containerd
    containerd.clean_up()


def shim_sockets(containerd):
    """Where the shims of its pods listen; they are not in its directory."""
    return {Path(file.read_text().removeprefix("unix://")) for file in containerd.directory.rglob("address")}


async def run_pod(containerd):
    pod = msgspec.convert(
        {
            "metadata": {"name": "web", "uid": "1"},
            "spec": {"containers": [{"name": "main", "image": BUSYBOX, "command": ["sleep", "1000"]}]},
        },
        Pod,
    )
    runtime = LabCriRuntime(
        containerd.endpoint, SystemClock(), directory=containerd.directory, cgroup=containerd.cgroup
    )
    await runtime.start_pod(pod)
    await runtime.close()


def assert_gone(containerd, sockets):
    assert leftovers.shim_processes(containerd.socket) == []
    assert leftovers.mount_points(containerd.directory) == []
    assert leftovers.cgroup_paths(containerd.cgroup) == []
    assert not containerd.directory.exists()
    assert [path for path in sockets if path.exists()] == []


def test_everything_is_gone_after_the_clean_up(containerd):
    containerd.start()
    asyncio.run(run_pod(containerd))
    sockets = shim_sockets(containerd)
    assert sockets
    assert len(leftovers.shim_processes(containerd.socket)) == 1
    assert leftovers.mount_points(containerd.directory)
    assert leftovers.cgroup_paths(containerd.cgroup)
    assert containerd.clean_up() == []
    assert_gone(containerd, sockets)


def test_everything_is_gone_after_containerd_was_killed(containerd):
    containerd.start()
    asyncio.run(run_pod(containerd))
    sockets = shim_sockets(containerd)
    assert sockets
    os.kill(containerd.pid, signal.SIGKILL)
    killed = containerd.clean_up()
    assert len(killed) == 3  # the shim, the sandbox's process and the container's
    assert_gone(containerd, sockets)


def test_pods_live_on_when_containerd_is_restarted(containerd):
    containerd.start()
    asyncio.run(run_pod(containerd))
    (shim,) = leftovers.shim_processes(containerd.socket)
    containerd.restart()
    assert leftovers.shim_processes(containerd.socket) == [shim]


def test_one_that_does_not_start_shows_its_log(containerd):
    (containerd.directory / "config.toml").write_text("version = 2\n[grpc\n")
    with pytest.raises(Unavailable, match=r"containerd does not start: (.|\n)*toml"):
        containerd.start()


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", "/nowhere")
    missing = lab.unavailable_reason()
    assert missing.startswith("not installed: containerd (package containerd)")


def test_it_needs_root(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert lab.unavailable_reason() == "a private containerd needs root"
