"""The lab's kubelet with containers behind the CRI."""

import asyncio

import pytest
from support.lab.real_node import RealNode, ready, restarted
from support.runtimes.containerd_world import containerd_world, why_not

from lastcall.adapters.kube.resources import CONFIG_MAPS, PODS
from lastcall_lab.containerd import BUSYBOX

pytestmark = [pytest.mark.xdist_group("containerd-kubelet"), pytest.mark.timeout(270)]


class ContainerNode(RealNode):
    """With another runtime."""

    def __init__(self, directory, world):
        super().__init__(directory, sync=0.5)
        self.world = world

    def make_runtime(self):
        return self.world.runtime

    def close_runtime(self):
        """The world does that."""


@pytest.fixture
async def node(tmp_path):
    if why := why_not():
        pytest.skip(why)
    async with containerd_world(tmp_path) as world:
        node = ContainerNode(tmp_path, world)
        await node.begin()
        try:
            yield node
        finally:
            await node.kill()


OBEDIENT = "trap 'exit 0' TERM; echo hello; while :; do sleep 0.1; done"


async def create(node, name, script, **spec):
    container = {"image": BUSYBOX, **spec.pop("container", {})}
    return await node.create(name, script, container=container, **spec)


async def test_a_container_runs_as_a_pod_and_ends(node):
    await node.client.create(CONFIG_MAPS, {"metadata": {"name": "conf"}, "data": {"a": "1"}}, namespace="default")
    mounts = [{"name": "conf", "mountPath": "/etc/conf"}, {"name": "data", "mountPath": "/data"}]
    await create(
        node,
        "web",
        f"cat /etc/conf/a; echo; echo kept > /data/file; cat /data/file; {OBEDIENT}",
        container={
            "volumeMounts": mounts,
            "readinessProbe": {"exec": {"command": ["test", "-e", "/data/file"]}, "periodSeconds": 1},
        },
        volumes=[{"name": "conf", "configMap": {"name": "conf"}}, {"name": "data", "emptyDir": {}}],
    )
    await node.until(ready, seconds=60)
    async with asyncio.timeout(60):
        while await node.logs() != b"1\nkept\nhello\n":
            await asyncio.sleep(0.1)
    said = b"".join([data async for _, data in (await execution(node, ["sh", "-c", "echo $POD_NAME"])).output()])
    assert said == b"web\n"
    await node.client.delete(PODS, "web", namespace="default")
    await node.gone()


async def test_its_files_change_but_for_those_that_it_has_one_by_one(node):
    await node.client.create(CONFIG_MAPS, {"metadata": {"name": "conf"}, "data": {"a": "1"}}, namespace="default")
    mounts = [
        {"name": "conf", "mountPath": "/etc/conf"},
        {"name": "conf", "mountPath": "/etc/one", "subPath": "a"},
    ]
    volumes = [{"name": "conf", "configMap": {"name": "conf"}}]
    await create(node, "web", OBEDIENT, container={"volumeMounts": mounts}, volumes=volumes)
    await node.until(ready, seconds=60)
    await node.client.patch(CONFIG_MAPS, "conf", {"data": {"a": "2"}}, namespace="default")
    async with asyncio.timeout(60):
        while await said(node, "cat /etc/conf/a") != b"2":
            await asyncio.sleep(0.1)
    assert await said(node, "cat /etc/one") == b"1"


async def said(node, command):
    return b"".join([data async for _, data in (await execution(node, ["sh", "-c", command])).output()])


async def test_a_container_that_ends_is_started_again(node):
    await create(node, "web", "echo run; exit 3")
    status = await node.until(restarted, seconds=60)
    assert status["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 3
    assert await node.logs(previous=True) == b"run\n"


async def test_a_new_kubelet_takes_containers_over(node):
    await create(node, "web", OBEDIENT)
    before = await node.until(ready, seconds=60)
    await node.kill()
    await node.world.restarted()
    node.boot()
    await asyncio.sleep(3)
    assert (await node.until(ready))["containerStatuses"] == before["containerStatuses"]


async def execution(node, command):
    return await node.kubelet.api.execute(await node.pod("web"), "main", command, stdin=False, tty=False)
