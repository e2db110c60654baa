"""Pods for tests, whose containers tell what happens to them by appending lines to files.

Every container has the variable ``OUT``: the file ``<directory of the world>/<pod>.<container>``. Scripts use only what
busybox has too.
"""

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from support.runtimes.runtime_world import World

from lastcall.model.pods import ExecAction, LifecycleHandler, Pod
from lastcall.ports.node import RunningPod

READY = 'echo ready >> "$OUT"; '

OBEDIENT = f"""trap 'echo TERM >> "$OUT"; exit 7' TERM; {READY} sleep 1000 & wait"""
"""Ends at SIGTERM with exit code 7."""

STUBBORN = f"""trap 'echo TERM >> "$OUT"' TERM; {READY} while :; do sleep 1000 & wait $!; done"""
"""Counts SIGTERMs and goes on."""

GATED = f"""{READY} while ! [ -e "$OUT.gate" ]; do sleep 0.05; done; echo bye >> "$OUT"; exit """
"""Ends by itself when its gate is opened; the exit code is to be appended."""


SOON = 60.0
"""Seconds that nothing here takes unless it hangs."""


def container(name: str, script: str, **fields: Any) -> dict[str, Any]:
    """A container of a manifest, under the API's field names."""
    return {"name": name, "command": ["sh", "-c", script], **fields}


def pod(
    world: World, name: str, *containers: dict[str, Any], init: Sequence[dict[str, Any]] = (), **metadata: Any
) -> Pod:
    """A pod that the world's runtime accepts; its grace is 5 seconds."""
    return msgspec.convert(manifest(world, name, *containers, init=init, **metadata), Pod)


def manifest(
    world: World, name: str, *containers: dict[str, Any], init: Sequence[dict[str, Any]] = (), **metadata: Any
) -> dict[str, Any]:
    """The same as it stands in a file."""

    def complete(one: dict[str, Any]) -> dict[str, Any]:
        env = [{"name": "OUT", "value": str(world.directory / f"{name}.{one['name']}")}, *one.get("env", [])]
        mounts = [{"name": "shared", "mountPath": str(world.directory)}]
        return {"image": world.image, **one, "env": env, "volumeMounts": mounts}

    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": str(uuid.uuid4()), **metadata},
        "spec": {
            "hostNetwork": True,
            "terminationGracePeriodSeconds": 5,
            "initContainers": [complete(one) for one in init],
            "containers": [complete(one) for one in containers],
            "volumes": [{"name": "shared", "hostPath": {"path": str(world.directory)}}],
        },
    }


def told(world: World, name: str) -> list[str]:
    """The lines that ``<pod>.<container>`` has written so far."""
    file = world.directory / name
    return file.read_text().splitlines() if file.exists() else []


def open_gate(world: World, name: str) -> None:
    """Lets a GATED container end."""
    Path(f"{world.directory / name}.gate").touch()


def shell(script: str) -> LifecycleHandler:
    """A preStop hook that runs a script in the container."""
    return LifecycleHandler(exec=ExecAction(command=("sh", "-c", script)))


async def eventually(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Waits until it holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "not within its time"
        await asyncio.sleep(0.02)


async def says(world: World, name: str, *lines: str) -> None:
    """Waits until ``<pod>.<container>`` has written exactly these lines."""
    try:
        await eventually(lambda: told(world, name) == list(lines))
    except AssertionError:
        raise AssertionError(f"{name} wrote {told(world, name)}, not {list(lines)}") from None


async def started(world: World, name: str = "web", script: str = OBEDIENT, **fields: Any) -> tuple[RunningPod, str]:
    """A pod of one container ``main`` that has said that it is ready, and the container's id."""
    live = await world.runtime.start_pod(pod(world, name, container("main", script, **fields)))
    await says(world, f"{name}.main", "ready")
    return live, live.containers["main"]


async def stop(world: World, container_id: str, grace: float) -> int | None:
    return await asyncio.wait_for(world.runtime.stop_container(container_id, grace), SOON)
