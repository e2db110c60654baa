"""Files of volumes change under a real process; what it was given at its start does not."""

import asyncio
import base64

import pytest
from support.lab.real_node import RealNode, ready, restarted

from lastcall.adapters.kube.resources import CONFIG_MAPS, PODS
from lastcall_lab.kubelet.cluster.config_sources import SECRETS

CONF = {"name": "conf", "configMap": {"name": "conf"}}
LABELS = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}


@pytest.fixture
async def node(tmp_path):
    node = RealNode(tmp_path, sync=0.2)
    await node.begin()
    secret = {"metadata": {"name": "key"}, "stringData": {"token": "old"}}
    await node.client.create(SECRETS, secret, namespace="default")
    await node.client.create(
        CONFIG_MAPS, {"metadata": {"name": "conf"}, "data": {"a": "1", "b": "1"}}, namespace="default"
    )
    try:
        yield node
    finally:
        await node.end()


async def change(node, **data):
    await node.client.patch(CONFIG_MAPS, "conf", {"data": data}, namespace="default")


async def says(node, command, words):
    """Waits until a program in the pod says it."""
    async with asyncio.timeout(60):
        while (said := (await node.execute(["sh", "-c", command]))[0].decode()) != words:
            await asyncio.sleep(0.1)
    return said


async def test_a_process_sees_new_files_and_keeps_its_variables(node):
    reads = [{"name": name, "mountPath": f"/{name}"} for name in ("conf", "key", "down")]
    variable = {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "a"}}}
    down = {"name": "down", "downwardAPI": {"items": [LABELS]}}
    await node.create(
        "web",
        "while :; do sleep 0.1; done",
        container={"volumeMounts": reads, "env": [variable]},
        volumes=[CONF, {"name": "key", "secret": {"secretName": "key"}}, down],
    )
    await node.until(ready)
    assert await says(node, 'cat "$VOLUME_CONF/a" "$VOLUME_KEY/token"', "1old")
    await change(node, a="2", b=None, c="3")
    await says(node, 'cat "$VOLUME_CONF"/*', "23")
    new = base64.b64encode(b"new").decode()
    await node.client.patch(SECRETS, "key", {"data": {"token": new}}, namespace="default")
    await says(node, 'cat "$VOLUME_KEY/token"', "new")
    await node.client.patch(PODS, "web", {"metadata": {"labels": {"tier": "x"}}}, namespace="default")
    await says(node, 'cat "$VOLUME_DOWN/labels"', 'tier="x"')
    assert await says(node, 'echo "$A"', "1\n")
    assert not restarted((await node.pod("web"))["status"])


async def test_a_reader_never_sees_one_file_new_and_another_old(node):
    look = 'd=$(readlink "$VOLUME_CONF/..data"); cat "$VOLUME_CONF/$d/a" "$VOLUME_CONF/$d/b" && echo; sleep 0.01'
    mount = {"volumeMounts": [{"name": "conf", "mountPath": "/c"}]}
    await node.create("web", f"while :; do {look}; done", container=mount, volumes=[CONF])
    await node.until(ready)
    for turn in "23456":
        await change(node, a=turn, b=turn)
        await says(node, 'cat "$VOLUME_CONF/a"', turn)
    async with asyncio.timeout(60):
        while b"\n66\n" not in await node.logs():
            await asyncio.sleep(0.1)
    pairs = {line for line in (await node.logs()).splitlines() if len(line) == 2 and line.isdigit()}
    assert pairs >= {b"11", b"66"}
    assert all(pair[0] == pair[1] for pair in pairs)


async def test_a_part_of_a_volume_stays_until_the_container_starts_again(node):
    mounts = [
        {"name": "conf", "mountPath": "/a", "subPath": "a"},
        {"name": "all", "mountPath": "/all"},
        {"name": "tmp", "mountPath": "/tmp"},
    ]
    volumes = [CONF, {**CONF, "name": "all"}, {"name": "tmp", "emptyDir": {}}]
    wait = 'while [ ! -e "$VOLUME_TMP/go" ]; do sleep 0.1; done; rm "$VOLUME_TMP/go"; exit 1'
    script = f'cat "$VOLUME_CONF"; echo; {wait}'
    await node.create("web", script, container={"volumeMounts": mounts}, volumes=volumes)
    await node.until(ready)
    await change(node, a="2")
    await says(node, 'cat "$VOLUME_ALL/a"', "2")
    assert await says(node, 'cat "$VOLUME_CONF"', "1")
    await node.execute(["sh", "-c", 'touch "$VOLUME_TMP/go"'])
    await node.until(lambda status: restarted(status) and ready(status))
    assert await says(node, 'cat "$VOLUME_CONF"', "2")
