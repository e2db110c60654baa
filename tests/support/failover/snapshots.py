"""Objects of a cluster for ``lastcall failover plan``, with short words for what the rules read."""

import json
from datetime import datetime, timedelta

from lastcall.failover.upstream.plan import build_plan, to_json
from lastcall.failover.upstream.plan_rules import PlanRules
from lastcall.model.state_file import read_state

NOW = datetime.fromisoformat("2026-11-21T12:00:00Z")
OUT = "node.kubernetes.io/out-of-service"
UNREACHABLE = "node.kubernetes.io/unreachable"


def ago(seconds):
    """A time before NOW, as the API writes it."""
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def taint(key, effect="NoExecute", **fields):
    return {"key": key, "effect": effect, **fields}


def node(name, ready="True", *taints, heard=None, in_use=(), attached=()):
    """``ready`` None: it has no such condition; ``heard``: seconds since the heartbeat of that condition."""
    condition = {"type": "Ready", "status": ready, **({} if heard is None else {"lastHeartbeatTime": ago(heard)})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": {"taints": list(taints)},
        "status": {
            "conditions": [] if ready is None else [condition],
            "volumesInUse": list(in_use),
            "volumesAttached": [{"name": one, "devicePath": ""} for one in attached],
        },
    }


def out(name, ready="Unknown", **fields):
    """A node that somebody has declared to be out of service."""
    return node(name, ready, taint(OUT, value="nodeshutdown"), **fields)


def pod(
    name,
    on="",
    *,
    terminating=False,
    phase="Running",
    reason="",
    age=3600,
    tolerates=(),
    claim="",
    states=("running",),
    namespace="shop",
    annotations=None,
):
    metadata = {"name": name, "namespace": namespace, "creationTimestamp": ago(age), "annotations": annotations or {}}
    if terminating:
        metadata["deletionTimestamp"] = ago(10)
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}] if claim else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": on, "tolerations": list(tolerates), "volumes": volumes},
        "status": {"phase": phase, "reason": reason, "containerStatuses": [{"state": {state: {}}} for state in states]},
    }


def volume(name, claim="", *, phase="Bound", namespace="shop"):
    spec = {"csi": {"driver": "disk.example.com", "volumeHandle": f"handle-{name}"}}
    if claim:
        spec["claimRef"] = {"namespace": namespace, "name": claim}
    metadata = {"name": name}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": phase},
    }


def unique(name):
    """As nodes call the volume."""
    return f"kubernetes.io/csi/disk.example.com^handle-{name}"


def attachment(name, volume, on):
    spec = {"attacher": "disk.example.com", "nodeName": on, "source": {"persistentVolumeName": volume}}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": name}, "spec": spec}


def lease(name, renewed, namespace="kube-node-lease"):
    """``renewed``: so many seconds ago."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"renewTime": ago(renewed)},
    }


def exists(key="", effect="", seconds=None):
    """A toleration."""
    fields = {"key": key, "effect": effect, "tolerationSeconds": seconds}
    return {"operator": "Exists", **{name: value for name, value in fields.items() if value not in ("", None)}}


def state(*objects):
    """The file."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}).encode()


def planned(*objects, now=NOW, **rules):
    """The document, by lastcall's rules; ``upstream=True`` for the others."""
    return json.loads(to_json(build_plan(read_state(state(*objects), "state").snapshot, PlanRules(**rules), now)))


def removed(*objects, **rules):
    return {one["name"]: one["reason"] for one in planned(*objects, **rules)["forceDelete"]}


def detached(*objects, **rules):
    return {one["volumeAttachment"]: one["reason"] for one in planned(*objects, **rules)["forceDetach"]}


def evicted(*objects, **rules):
    """Seconds from NOW."""
    found = planned(*objects, **rules)["evict"]
    return {one["name"]: (datetime.fromisoformat(one["at"]) - NOW).total_seconds() for one in found}


def kept(*objects, **rules):
    return {one["name"]: one["why"] for one in planned(*objects, **rules)["keep"]}
