"""Pods as plain processes, and what the kernel knows of them."""

import asyncio
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from support.runtimes import process_agent
from support.runtimes.pod_scripts import OBEDIENT, container, eventually, pod, told
from support.runtimes.process_world import processes_world


@pytest.fixture(name="world")
async def a_world(tmp_path):
    async with processes_world(tmp_path) as world:
        yield world


async def started(world, script=OBEDIENT, *, name="web", **fields):
    """A pod of one container ``main`` that is ready, and that container's id and pid."""
    live = await world.runtime.start_pod(pod(world, name, container("main", script, **fields)))
    await eventually(lambda: told(world, f"{name}.main")[:1] == ["ready"])
    return live, live.containers["main"], file_pid(world, live.pod, "main")


def directory(world, pod, name="main"):
    metadata = pod.metadata
    pods = world.directory.parent / "state" / "pods"
    return pods / f"{metadata.namespace}_{metadata.name}_{metadata.uid}" / name


def file_pid(world, pod, file, name="main"):
    return int((directory(world, pod, name) / file).read_text().split(" ", 1)[0])


def status(pid):
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())


def alive(pid):
    """Whether it runs: a zombie does not."""
    try:
        return not status(pid)["State"].startswith("Z")
    except (FileNotFoundError, ProcessLookupError):
        return False


def descriptors(pid):
    return {entry.name: str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()}


def environment(pid):
    return Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")[:-1]


def processes_of(uid):
    """The pids of all that runs with this pod's uid in its environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"POD_UID={uid}" in environment(entry.name):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


async def stop(world, container_id, grace=50.0):
    return await asyncio.wait_for(world.runtime.stop_container(container_id, grace), 60)


@contextmanager
def agent(world, verb, *pods):
    """Another process that has these pods; it gets SIGKILL at the end, or before by the caller."""
    file = world.directory / "pods.json"
    file.write_bytes(msgspec.json.encode(pods))
    command = [sys.executable, process_agent.__file__, str(world.directory.parent / "state"), str(file), verb]
    with subprocess.Popen(command) as running:
        try:
            yield running
        finally:
            running.kill()
