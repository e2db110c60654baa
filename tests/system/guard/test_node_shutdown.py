"""A lab's node with a guarded pod shuts down: the guard prepares the application, and the pod waits for it."""

import asyncio
import functools

import pytest
from support.guard.guarded_jobs import POLICY, stateful_set
from support.lab.real_machines import Lab

from lastcall.adapters.kube.resources import DEFINITIONS, NAMESPACES, NODE_SHUTDOWNS
from lastcall.errors import NotFound
from lastcall.manifests.guard import guarded_namespace_objects
from lastcall.manifests.resource_definitions import node_shutdown_definition
from lastcall.model.node_shutdown_object import NodeShutdown
from lastcall.model.shutdown import PodOutcome
from lastcall.names import GUARD_READY
from lastcall_lab.control_plane.create_objects import create_object
from lastcall_lab.up.guard import LabGuard

pytestmark = pytest.mark.timeout(270)
CONFIG = b"""\
apiVersion: lastcall.dev/v1alpha1
kind: AgentConfiguration
shutdownGracePeriod: 250s
shutdownGracePeriodCriticalPods: 5s
"""


@pytest.fixture
async def lab(tmp_path):
    for path in (tmp_path, tmp_path.parent):
        path.chmod(0o755)
    lab = Lab(tmp_path, "processes", config=CONFIG, count=1)
    async with lab.up():
        (tmp_path / "guard").mkdir()
        running = asyncio.create_task(LabGuard(lab.plane, tmp_path / "guard").run())
        try:
            yield lab
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_a_guarded_pod_ends_when_its_application_is_ready(lab, tmp_path):
    books = tmp_path / "books"
    books.mkdir()
    books.chmod(0o777)
    await lab.client.create(DEFINITIONS, node_shutdown_definition())
    namespace, *rights = guarded_namespace_objects("default")
    await lab.client.patch(NAMESPACES, "default", {"metadata": {"labels": namespace["metadata"]["labels"]}})
    for obj in (*rights, stateful_set(books), POLICY):
        await lab.until(functools.partial(make, lab, obj))
    [pod] = await lab.running("jobs", 1)
    uid = pod["metadata"]["uid"]
    await lab.until(functools.partial(is_guarded, lab))
    await lab.machines.switch("lab-1", "button")

    calls = books / "calls"

    async def was_told():
        return calls.exists() and "prepare" in calls.read_text().split()

    await lab.until(was_told)
    assert (await lab.pod("jobs-0"))["status"]["phase"] == "Running", "it waits"
    (books / "ready").touch()
    await lab.until_off()
    said = await lab.client.get(NODE_SHUTDOWNS.with_shape(NodeShutdown), "lab-1")
    [found] = [one for one in said.status.pods if one.uid == uid]
    assert (found.application_ready, found.outcome) == (True, PodOutcome.GRACEFUL)


async def make(lab, obj):
    """Whether the object is made: its kind is served a moment after the guard has defined it."""
    try:
        await create_object(lab.client, {**obj, "metadata": {**obj["metadata"], "namespace": "default"}})
    except NotFound:
        return False
    return True


async def is_guarded(lab):
    conditions = (await lab.pod("jobs-0"))["status"].get("conditions", ())
    return any(one["type"] == GUARD_READY for one in conditions)
