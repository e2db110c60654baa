"""Small objects for the conformance suite. No controller, scheduler or kubelet acts on them in a way that matters."""

import copy

from lastcall.adapters.kube.resources import BUDGETS, PODS

NOBODY = "nobody-schedules-this"
"""A scheduler that does not exist: such a pod stays where it is, in every cluster."""

NOWHERE = "no-such-node.conformance.invalid"
"""A node that does not exist: a pod bound to it has no kubelet that would touch it."""

CONTAINER = {"name": "c", "image": "registry.invalid/nothing:1"}


def meta(name, **more):
    """Only a name, and what else is said."""
    return {"metadata": {"name": name, **more}}


def config_map(name="m", data=None, **metadata):
    """A ConfigMap."""
    return {**meta(name, **metadata), "data": {"k": "v"} if data is None else data}


def pod(name="p", *, node="", metadata=None, **spec):
    """A pod that nobody schedules; with ``node`` it is bound from the beginning."""
    settings = {"schedulerName": NOBODY, "automountServiceAccountToken": False, "containers": [dict(CONTAINER)]}
    if node:
        settings["nodeName"] = node
    return {**meta(name, **(metadata or {})), "spec": {**settings, **spec}}


def template(labels, **spec):
    """A pod template whose pods nobody schedules."""
    return {"metadata": {"labels": labels}, "spec": {"schedulerName": NOBODY, "containers": [dict(CONTAINER)], **spec}}


def workload(name, *, labels=None, **spec):
    """A Deployment, ReplicaSet or StatefulSet without replicas; DaemonSets need another ``replicas`` (None)."""
    labels = labels or {"app": name}
    whole = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template(labels), **spec}
    return {**meta(name), "spec": {key: value for key, value in whole.items() if value is not None}}


def job(name, **spec):
    """A suspended Job."""
    inner = {"schedulerName": NOBODY, "containers": [dict(CONTAINER)], "restartPolicy": "Never"}
    return {**meta(name), "spec": {"suspend": True, "template": {"spec": inner}, **spec}}


def service(name="s", **spec):
    """A Service with one port."""
    return {**meta(name), "spec": {"ports": [{"port": 80}], "selector": {"app": "x"}, **spec}}


def changed(obj, path, value):
    """A copy with another value at a path such as ``spec.replicas``; None takes it away."""
    new = copy.deepcopy(obj)
    *before, last = path.split(".")
    inner = new
    for part in before:
        inner = inner[int(part)] if isinstance(inner, list) else inner.setdefault(part, {})
    if value is None:
        inner.pop(last, None)
    else:
        inner[last] = value
    return new


async def running(api, name, labels=None, *, ready=True, phase="Running"):
    """A pod bound to a node that is not there, with the status that a kubelet would have written."""
    await api.create(PODS, pod(name, node=NOWHERE, metadata={"labels": labels or {"app": "x"}}))
    conditions = [{"type": "Ready", "status": str(ready)}]
    return await api.patch(PODS, name, {"status": {"phase": phase, "conditions": conditions}}, sub="status")


async def budget(api, name, *, healthy, desired, expected, labels=None, **spec):
    """A budget with the status that the disruption controller computes as well, if one runs."""
    selector = {"matchLabels": labels or {"app": "x"}}
    made = await api.create(BUDGETS, {**meta(name), "spec": {"selector": selector, "minAvailable": desired, **spec}})
    status = {
        "observedGeneration": made["metadata"]["generation"],
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "disruptionsAllowed": max(0, healthy - desired),
    }

    async def settled():
        await api.patch(BUDGETS, name, {"status": status}, sub="status").reply()
        found = (await api.get(BUDGETS, name))["status"]
        return all(found.get(key) == value for key, value in status.items()) and found

    return await api.until(settled)
