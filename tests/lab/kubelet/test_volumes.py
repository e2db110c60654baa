"""Volumes, logs and programs on the lab's kubelet, in virtual time."""

import base64
import json

import pytest
from support.lab.held_watches import HeldWatches
from support.lab.virtual_node import on_node

from lastcall.adapters.kube.resources import CLAIMS, CONFIG_MAPS, NODES, VOLUMES
from lastcall.errors import InvalidInput, Unavailable
from lastcall_lab.apiserver.subresources.kubelet_api import LogOptions
from lastcall_lab.fakes.actor_runtime import ContainerScript
from lastcall_lab.kubelet.cluster.config_sources import SECRETS

HANDLE = "kubernetes.io/csi/toy.example.com^v1"


class Driver:
    """Says what it is asked; ``broken`` is why it fails."""

    def __init__(self):
        self.asked, self.broken = [], ""

    async def mount(self, pod, claim, path):
        self._check()
        self.asked.append(("mount", pod["metadata"]["name"], claim["metadata"]["name"]))
        self.path = path

    async def unmount(self, pod, claim, path):
        self._check()
        self.asked.append(("unmount", pod["metadata"]["name"], claim["metadata"]["name"]))
        assert path == self.path

    def _check(self):
        if self.broken:
            raise Unavailable(self.broken)


async def claim(node, *, bound=True):
    """A claim ``data``, bound to a volume of the toy driver."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "v1"}
    made = await node.client.create(
        CLAIMS, {"metadata": {"name": "data"}, "spec": {**spec, "storageClassName": ""}}, namespace="default"
    )
    about = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": made["metadata"]["uid"]}
    volume = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "csi": {"driver": "toy.example.com", "volumeHandle": "v1"},
        "claimRef": about,
    }
    await node.client.create(VOLUMES, {"metadata": {"name": "v1"}, "spec": volume})
    if bound:
        await bind(node)


async def bind(node):
    await node.client.patch(CLAIMS, "data", {"status": {"phase": "Bound"}}, namespace="default", subresource="status")


async def attach(node, *, detached=False):
    attached = [] if detached else [{"name": HANDLE, "devicePath": ""}]
    await node.client.patch(NODES, "n1", {"status": {"volumesAttached": attached}}, subresource="status")


def with_driver(**options):
    """A node whose driver is ``node.driver``."""

    def decorate(test):
        driver = Driver()

        async def run(node):
            node.driver = driver
            await test(node)

        run.__name__ = test.__name__
        return on_node(volumes=driver, **options)(run)

    return decorate


DATA = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
MOUNT = {"name": "main", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}


async def running(node):
    """The pod ``db`` with its volume."""
    await claim(node)
    await attach(node)
    await node.create("db", MOUNT, **DATA)
    await node.until(lambda: node.ready("db"), 30)


@with_driver()
async def test_a_volume_is_mounted_when_it_is_attached(node):
    await claim(node)
    await node.create("db", MOUNT, **DATA)
    await node.clock.sleep(5)
    assert node.node()["status"]["volumesInUse"] == [HANDLE]
    assert node.driver.asked == []
    assert node.phase("db") == "Pending"
    await attach(node)
    await node.until(lambda: node.ready("db"), 10)
    assert node.driver.asked == [("mount", "db", "data")]
    await node.delete("db")
    await node.until(lambda: node.pod("db") is None)
    assert node.driver.asked[1:] == [("unmount", "db", "data")]
    await node.clock.sleep(1)
    assert not node.node()["status"].get("volumesInUse")


@with_driver()
async def test_a_volume_that_was_detached_unheard_is_not_mounted(node):
    """What the watch has told counts for nothing then: the controller may have decided to detach it long ago."""
    watches = node.line.transport = HeldWatches(node.line.transport, of="/nodes")
    await node.stop()
    node.boot()
    await node.clock.sleep(1)
    await claim(node)
    await attach(node)
    await node.clock.sleep(1)
    watches.held = True
    await attach(node, detached=True)
    await node.create("db", MOUNT, **DATA)
    await node.clock.sleep(20)
    assert node.node()["status"]["volumesInUse"] == [HANDLE]
    assert node.driver.asked == []
    await attach(node)
    watches.held = False
    await node.until(lambda: node.ready("db"), 30)


@with_driver()
async def test_one_that_is_never_attached_is_told_after_two_minutes(node):
    await claim(node)
    await node.create("db", MOUNT, **DATA)
    await node.clock.sleep(100)
    assert "FailedMount" not in node.reasons("db")
    await node.clock.sleep(60)
    assert any("Unable to attach or mount volumes" in message for _, message in node.events("db"))
    await attach(node)
    await node.until(lambda: node.ready("db"), 30)


@with_driver()
async def test_a_claim_that_is_not_bound_is_waited_for(node):
    await claim(node, bound=False)
    await node.create("db", MOUNT, **DATA)
    await attach(node)
    await node.clock.sleep(3)
    assert any("PVC is not bound" in message for _, message in node.events("db"))
    await bind(node)
    await node.until(lambda: node.ready("db"), 30)


@with_driver()
async def test_a_pod_stays_until_its_volume_is_unmounted(node):
    await running(node)
    node.driver.broken = "the storage is cut off"
    await node.delete("db")
    await node.clock.sleep(120)
    assert node.pod("db")
    assert node.phase("db") in ("Succeeded", "Failed"), "its containers have ended"
    assert node.node()["status"]["volumesInUse"] == [HANDLE]
    node.driver.broken = ""
    await node.until(lambda: node.pod("db") is None, 10)


@with_driver()
async def test_a_new_kubelet_unmounts_what_was_deleted_meanwhile(node):
    await running(node)
    await node.stop()
    await node.delete("db", grace=0)
    node.boot()
    await node.until(lambda: node.driver.asked[1:] == [("unmount", "db", "data")], 20)
    assert node.runtime.running() == []


@with_driver()
async def test_a_new_kubelet_never_says_that_volumes_are_free_while_pods_use_them(node):
    await running(node)
    await node.stop()
    node.boot()
    for _ in range(300):
        assert node.node()["status"]["volumesInUse"] == [HANDLE]
        await node.clock.sleep(0.1)


@with_driver()
async def test_nor_while_it_cannot_find_out_which_pods_run(node):
    await running(node)
    await node.stop()
    node.runtime.away = True
    node.boot()
    await node.until(lambda: node.node_condition()["status"] == "False", 30)
    assert node.node()["status"]["volumesInUse"] == [HANDLE]


# -- other kinds -------------------------------------------------------------------------------------------------------


@on_node()
async def test_volumes_with_files(node):
    await node.client.create(
        CONFIG_MAPS, {"metadata": {"name": "conf"}, "data": {"a": "1", "b": "2"}}, namespace="default"
    )
    secret = {"metadata": {"name": "key"}, "data": {"token": base64.b64encode(b"s3cret").decode()}}
    await node.client.create(SECRETS, secret, namespace="default")
    label = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
    volumes = [
        {"name": "all", "configMap": {"name": "conf"}},
        {"name": "some", "configMap": {"name": "conf", "items": [{"key": "b", "path": "deep/b.txt"}]}},
        {"name": "key", "secret": {"secretName": "key"}},
        {"name": "down", "downwardAPI": {"items": [label]}},
        {"name": "maybe", "configMap": {"name": "none", "optional": True}},
        {"name": "both", "projected": {"sources": [{"configMap": {"name": "conf"}}, {"secret": {"name": "key"}}]}},
        {"name": "empty", "emptyDir": {}},
    ]
    await node.started("web", volumes=volumes, metadata={"labels": {"app": "x"}})
    assert node.files("web") == {
        "all/a": "1",
        "all/b": "2",
        "both/a": "1",
        "both/b": "2",
        "both/token": "s3cret",
        "down/labels": 'app="x"',
        "key/token": "s3cret",
        "some/deep/b.txt": "2",
    }
    await node.delete("web")
    await node.until(lambda: node.pod("web") is None)
    assert node.files() == {}


@on_node()
async def test_the_service_accounts_token(node):
    await node.client.create(
        CONFIG_MAPS, {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": "CA"}}, namespace="default"
    )
    await node.started("web", automountServiceAccountToken=True)
    found = node.files("web")
    named = {name.partition("/")[2]: text for name, text in found.items()}
    assert named["namespace"] == "default"
    assert named["ca.crt"] == "CA"
    payload = named["token"].split(".")[1] if named["token"].count(".") == 2 else ""
    if payload:
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        assert claims["sub"] == "system:serviceaccount:default:default"


# -- logs --------------------------------------------------------------------------------------------------------------


async def logged(node, name="web", **options):
    lines = node.kubelet.api.logs(node.pod(name), LogOptions("main", **options))
    return [line async for line in lines]


@on_node({"main": [ContainerScript(lives=5, code=1), ContainerScript()]})
async def test_logs(node):
    await node.started("web")
    assert await logged(node) == [b"start\n"]
    with pytest.raises(InvalidInput, match='previous terminated container "main" in pod "web" not found'):
        await logged(node, previous=True)
    await node.until(lambda: node.container("web")["restartCount"] == 1, 30)
    assert await logged(node) == [b"start\n"]
    assert await logged(node, previous=True) == [b"start\n", b"exit\n"]
    assert await logged(node, previous=True, tail=1) == [b"exit\n"]
    assert await logged(node, previous=True, limit_bytes=8) == [b"start\n", b"ex"]
    assert await logged(node, previous=True, since=node.clock.wall() + 1) == []
    (line,) = await logged(node, timestamps=True)
    assert line.startswith(b"2027-01-15T08:00:")
    assert line.endswith(b"Z start\n")


@on_node({"main": ContainerScript(lives=20)})
async def test_a_log_is_followed_until_the_container_has_ended(node):
    await node.started("web", restartPolicy="Never")
    assert await logged(node, follow=True) == [b"start\n", b"exit\n"]
    assert node.clock.boottime() >= 20


@on_node({"main": ContainerScript(takes=60)})
async def test_what_has_not_started_has_no_log(node):
    await node.create("web")
    await node.clock.sleep(1)
    with pytest.raises(InvalidInput, match='container "main" in pod "web" is waiting to start: ContainerCreating'):
        await logged(node)
    with pytest.raises(InvalidInput, match="container not found"):
        await node.kubelet.api.execute(node.pod("web"), "main", ["true"], stdin=False, tty=False)
