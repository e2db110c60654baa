"""The controller asks for nothing beyond the roles of ``lastcall manifests controller``, and they allow nothing beyond that.

The real program fails a node over in a lab, as the ServiceAccount that the manifests make; the lab's audit tells what it
asked for.
"""

import asyncio
import base64
import itertools
import json

import pytest
import yaml
from support.failover.controller_process import ControllerProcess, install_agent
from support.lab.up_client import client_of, served
from support.lab.up_process import LabProcess

from lastcall.adapters.kube import resources
from lastcall.adapters.kube.client import STRATEGIC
from lastcall.aio import cancel_and_wait
from lastcall.errors import AlreadyExists
from lastcall.manifests.controller import NAMESPACE, ControllerChoices, controller_objects
from lastcall.manifests.controller_grants import all_grants
from lastcall.manifests.guard_webhooks import guard_webhook_configuration, service_client
from lastcall.manifests.labels import NAME
from lastcall.manifests.rbac import AuditedRequest, ungranted_requests, unused_grants
from lastcall.model.watchdog import WatchdogTiming
from lastcall.model.watchdog_lease import WatchdogPromise, to_annotations
from lastcall.names import NODES_NAMESPACE
from lastcall_lab.control_plane.create_objects import create_object

pytestmark = pytest.mark.timeout(360)

NAMES = ("n1", "n2", "n3")
ACCOUNTS = resources.dict_resource("", "v1", "serviceaccounts")
READY = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
CONTROL_PLANE = {"node-role.kubernetes.io/control-plane": ""}


def thing(kind, name, api="v1", namespace=None, metadata=(), **parts):
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **where, **dict(metadata)}, **parts}


def disk(name, *, claim):
    """A volume, bound to the claim and attached to n1."""
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "claimRef": {"namespace": "default", "name": claim},
        "csi": {"driver": "d.example", "volumeHandle": name},
    }
    attached = {"attacher": "d.example", "nodeName": "n1", "source": {"persistentVolumeName": name}}
    yield thing("PersistentVolume", name, spec=spec)
    yield thing("VolumeAttachment", name, "storage.k8s.io/v1", spec=attached)


FENCER = {
    "name": "f",
    "agent": {"program": "fence_test", "secretParameters": {"plug": {"name": "bmc", "key": "{node}"}}},
    "targetCheck": "Disabled",
}
POD = {
    "nodeName": "n1",
    "containers": [{"name": "c", "image": "i"}],
    "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
}
SET = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "db-1", "controller": True}
STAYS = {
    "tolerations": [{"operator": "Exists"}],
    "volumes": [{"name": "kept", "persistentVolumeClaim": {"claimName": "kept"}}],
}
SCENE = [
    thing(
        "Secret", "bmc", namespace=NAMESPACE, data={name: base64.b64encode(name.encode()).decode() for name in NAMES}
    ),
    *(thing("Node", name, metadata={"labels": CONTROL_PLANE}) for name in NAMES),
    thing("Pod", "p", namespace="default", spec=POD),
    thing("Pod", "db-0", namespace="default", metadata={"ownerReferences": [SET]}, spec=POD),
    thing("Pod", "stays", namespace="default", spec=POD | STAYS),
    *disk("v", claim="data"),
    *disk("w", claim="kept"),
    thing(
        "Lease",
        "n1",
        "coordination.k8s.io/v1",
        NODES_NAMESPACE,
        metadata={
            "annotations": to_annotations(
                WatchdogPromise.from_timing("b1", WatchdogTiming(lease=600, pet=10, timeout=60, drift=0.1))
            ),
        },
    ),
    thing(
        "NodeShutdown",
        "n1",
        "lastcall.dev/v1alpha1",
        spec={"nodeName": "n1", "bootID": "b1"},
        status={"startTime": "2026-01-01T00:00:00Z", "deadlineTime": "2026-01-01T00:00:01Z"},
    ),
    guard_webhook_configuration(service_client(NAMESPACE)),
    thing(
        "FencePolicy",
        "p",
        "lastcall.dev/v1alpha1",
        spec={
            "mode": "Enforce",
            "suspectAfter": "10s",
            "limits": {"minHealthy": 0, "settle": "1s"},
            "fencers": [FENCER],
        },
    ),
]


CHANGED = ("volumeattachments", "*", "get")
"""An attachment is read only if it has changed since the watch has shown it (``test_failover_detach``)."""


@pytest.fixture
def lab(tmp_path):
    process = LabProcess(tmp_path / "lab", f"--audit-log={tmp_path / 'audit'}")
    process.start()
    yield process
    process.kill()


@pytest.fixture
async def client(lab):
    with client_of(lab) as client:
        yield client


async def prepare(client, attach_detach):
    """What is applied, and then the scene; a kind is served a moment after its definition was made."""
    for obj in [*controller_objects(ControllerChoices(replicas=0, attach_detach=attach_detach)), *SCENE]:
        await served(lambda obj=obj: create_object(client, obj))
    for name in NAMES:
        info = {"bootID": f"b{name[1:]}", "systemUUID": f"11111111-2222-4333-8444-55555555550{name[1:]}"}
        status = {"nodeInfo": info, "conditions": [READY]}
        await client.patch(resources.NODES, name, {"status": status}, subresource="status", kind=STRATEGIC)


async def as_the_controller(client, lab, directory):
    """A kubeconfig with a token of its ServiceAccount."""
    found = await client.create_subresource(ACCOUNTS, NAME, "token", {"spec": {}}, namespace=NAMESPACE)
    config = yaml.safe_load(lab.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": found["status"]["token"]}
    path = directory / "controller.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


async def beat(client):
    """All but n1 renew their Leases."""
    for number in itertools.count():
        for name in NAMES[1:]:
            renewed = {"spec": {"renewTime": f"2026-01-01T00:{number // 60:02}:{number % 60:02}.000000Z"}}
            try:
                await client.create(
                    resources.LEASES, {"metadata": {"name": name}, **renewed}, namespace="kube-node-lease"
                )
            except AlreadyExists:
                await client.patch(resources.LEASES, name, renewed, namespace="kube-node-lease")
        await asyncio.sleep(0.5)


def asked(path):
    """What the controller's ServiceAccount asked for, as the audit has it by now."""
    records = (json.loads(one) for one in path.read_text().splitlines(keepends=True) if one.endswith("\n"))
    return [
        AuditedRequest(**{field: one[field] for field in AuditedRequest._fields})
        for one in records
        if one["user"] == f"system:serviceaccount:{NAMESPACE}:{NAME}"
    ]


def named(path):
    """What was asked for of objects by their names."""
    return {(one.verb, one.resource, one.name) for one in asked(path)}


@pytest.mark.parametrize("attach_detach", ["external", "own"])
async def test_every_request_is_within_the_roles_and_every_rule_is_used(lab, client, tmp_path, attach_detach):
    agents = install_agent(tmp_path / "agents")
    await prepare(client, attach_detach)
    access = await as_the_controller(client, lab, tmp_path)
    hearts = asyncio.create_task(beat(client))
    controller = ControllerProcess(
        tmp_path, access, f"--fence-agents={agents}", f"--attach-detach={attach_detach}", "--guard-withdrawal=10s"
    )
    try:
        await asyncio.to_thread(controller.until, lambda: controller.audit("force-delete"))
        if attach_detach == "own":
            await asyncio.to_thread(controller.until, lambda: controller.audit("detach"))
        await asyncio.to_thread(controller.until, lambda: ("get", "pods", "db-0") in named(tmp_path / "audit"))
        withdrawn = ("update", "validatingwebhookconfigurations", "lastcall-guard")
        await asyncio.to_thread(controller.until, lambda: withdrawn in named(tmp_path / "audit"))
        lease = ("lastcall-controller", NAMESPACE)
        await client.delete(resources.LEASES, lease[0], namespace=lease[1])
        await served(lambda: client.get(resources.LEASES, lease[0], namespace=lease[1]))
        assert await asyncio.to_thread(controller.stop) == 0
    finally:
        controller.kill()
        await cancel_and_wait(hearts)
    grants, requests = all_grants(NAMESPACE, detach=attach_detach == "own"), asked(tmp_path / "audit")
    assert ungranted_requests(grants, requests) == []
    not_used = {(grant.resource, grant.namespace, verb) for grant, verb in unused_grants(grants, requests)}
    assert not_used <= ({CHANGED} if attach_detach == "own" else set())
