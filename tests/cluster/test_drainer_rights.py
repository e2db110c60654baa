"""Each right of the ClusterRole and the Role ``lastcall-drainer``: without it the request is refused, and what is beyond it too.

Who drains is played by impersonation, as in ``test_agent_rights``.
"""

import pytest
import pytest_asyncio
from support.conformance.api_client import MERGE, STRATEGIC, unique
from support.conformance.objects import meta, pod

from lastcall import names
from lastcall.adapters.kube.resources import (
    BUDGETS,
    CLAIMS,
    CSI_NODES,
    DAEMON_SETS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    EVENTS,
    GUARD_POLICIES,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    VOLUMES,
    dict_resource,
)
from lastcall.manifests.drainer import drainer_grants, drainer_objects
from lastcall.manifests.rbac import ANYWHERE

RBAC = "rbac.authorization.k8s.io"
KINDS = {kind: dict_resource(RBAC, "v1", f"{kind.lower()}s") for kind in ("ClusterRole", "Role")}
BINDINGS = {kind: dict_resource(RBAC, "v1", f"{kind.lower()}bindings") for kind in KINDS}
DRAINS = names.DRAINS_NAMESPACE
EVENT = {**meta("e"), "involvedObject": {"kind": "Pod", "name": "p", "uid": "u"}, "reason": "R", "message": "m"}
AUTOSCALERS = dict_resource("autoscaling", "v2", "horizontalpodautoscalers")
MAINTENANCES = dict_resource("nodemaintenance.medik8s.io", "v1beta1", "nodemaintenances")
CORDON = {"spec": {"unschedulable": True}}
DRAINED = {"status": {"conditions": [{"type": "Drained", "status": "True", "reason": "R"}]}}
LISTED = {
    "services": SERVICES,
    "persistentvolumes": VOLUMES,
    "persistentvolumeclaims": CLAIMS,
    "replicationcontrollers": REPLICATION_CONTROLLERS,
    "daemonsets": DAEMON_SETS,
    "deployments": DEPLOYMENTS,
    "replicasets": REPLICA_SETS,
    "statefulsets": STATEFUL_SETS,
    "horizontalpodautoscalers": AUTOSCALERS,
    "poddisruptionbudgets": BUDGETS,
    "endpointslices": ENDPOINT_SLICES,
    "csinodes": CSI_NODES,
    "guardpolicies": GUARD_POLICIES,
    "nodemaintenances": MAINTENANCES,
    "namespaces": NAMESPACES,
    "nodes": NODES,
    "pods": PODS,
}


class Scene:
    """A node with a pod."""

    def __init__(self, api):
        self.api, self.own = api, api.namespace
        self.user, self.role, self.node = unique("drainer"), unique("drainer"), unique("node")

    async def begin(self):
        await self.api.create(NODES, meta(self.node))
        made = await self.api.ask("POST", NAMESPACES.path(), meta(DRAINS)).reply()
        assert made.status in (201, 409)
        await self.api.ask("POST", PODS.path(self.own), pod("p")).reply()
        await self.api.ask("POST", LEASES.path(DRAINS), meta(self.node)).reply()

    async def ask(self, method, path, body=None, kind=MERGE):
        said = kind if method == "PATCH" else "application/json"
        return await self.api.ask(method, path, body, kind=said, headers={"impersonate-user": self.user}).reply()

    async def grant(self, without=None):
        """All rights, but for one; made or changed."""
        for obj in drainer_objects({})[1:]:
            kind, namespace = obj["kind"], obj["metadata"].get("namespace", "")
            rules = [
                {**rule, "verbs": [verb for verb in rule["verbs"] if (rule["resources"][0], verb) != without]}
                for rule in obj["rules"]
            ]
            body = {"metadata": {"name": self.role}, "rules": [rule for rule in rules if rule["verbs"]]}
            await self._write(KINDS[kind].path(namespace), body)
            subject = {"kind": "User", "apiGroup": RBAC, "name": self.user}
            to = {"apiGroup": RBAC, "kind": kind, "name": self.role}
            await self._write(
                BINDINGS[kind].path(namespace), {"metadata": {"name": self.role}, "roleRef": to, "subjects": [subject]}
            )

    async def _write(self, path, body):
        reply = await self.api.ask("POST", path, body).reply()
        if reply.status == 201:
            self.api.doomed.append(f"{path}/{self.role}")
        elif "rules" in body:
            await self.api.ask("PATCH", f"{path}/{self.role}", {"rules": body["rules"]}, kind=MERGE)


def eviction(scene):
    head = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": scene.own}}
    return "POST", f"{PODS.path(scene.own, 'p')}/eviction?dryRun=All", head


RIGHTS = {
    **{(name, "list"): lambda s, resource=resource: ("GET", resource.path()) for name, resource in LISTED.items()},
    ("nodes", "get"): lambda s: ("GET", NODES.path(name=s.node)),
    ("nodes", "watch"): lambda s: ("GET", NODES.path() + "?watch=true&timeoutSeconds=1"),
    ("nodes", "patch"): lambda s: ("PATCH", NODES.path(name=s.node), CORDON),
    ("nodes/status", "patch"): lambda s: ("PATCH", NODES.path(name=s.node) + "/status", DRAINED, STRATEGIC),
    ("pods", "watch"): lambda s: (
        "GET",
        PODS.path() + f"?watch=true&timeoutSeconds=1&fieldSelector=spec.nodeName={s.node}",
    ),
    ("poddisruptionbudgets", "watch"): lambda s: ("GET", BUDGETS.path() + "?watch=true&timeoutSeconds=1"),
    ("endpointslices", "watch"): lambda s: ("GET", ENDPOINT_SLICES.path(s.own) + "?watch=true&timeoutSeconds=1"),
    ("pods", "delete"): lambda s: ("DELETE", PODS.path(s.own, "p") + "?dryRun=All"),
    ("pods/eviction", "create"): eviction,
    ("namespaces", "get"): lambda s: ("GET", NAMESPACES.path(name=DRAINS)),
    ("events", "create"): lambda s: ("POST", EVENTS.path(s.own), EVENT),
    ("leases", "get"): lambda s: ("GET", LEASES.path(DRAINS, s.node)),
    ("leases", "create"): lambda s: ("POST", LEASES.path(DRAINS), meta(s.node)),
    ("leases", "update"): lambda s: ("PUT", LEASES.path(DRAINS, s.node), meta(s.node)),
    ("leases", "delete"): lambda s: ("DELETE", LEASES.path(DRAINS, "nosuch")),
}
BEYOND = {
    "the Lease of a node": lambda s: (
        "PATCH",
        LEASES.path("kube-node-lease", s.node),
        {"spec": {"holderIdentity": "x"}},
    ),
    "the Lease of an agent": lambda s: ("PATCH", LEASES.path(names.NODES_NAMESPACE, s.node), {}),
    "the Lease of a leader": lambda s: ("PATCH", LEASES.path(names.SYSTEM_NAMESPACE, "lastcall-controller"), {}),
    "a pod's content": lambda s: ("PATCH", PODS.path(s.own, "p"), {"metadata": {"labels": {"a": "b"}}}),
    "all pods' deletion": lambda s: ("DELETE", PODS.path(s.own)),
    "a Node's end": lambda s: ("DELETE", NODES.path(name=s.node)),
    "a budget": lambda s: ("PATCH", BUDGETS.path(s.own, "b"), {"spec": {"maxUnavailable": 9}}),
    "Secrets": lambda s: ("GET", SECRETS.path(s.own)),
    "a policy of the guard": lambda s: ("DELETE", GUARD_POLICIES.path(s.own, "g")),
}


@pytest_asyncio.fixture(loop_scope="session")
async def scene(api):
    found = Scene(api)
    await found.begin()
    return found


async def until_allowed(scene, right):
    async def answered():
        reply = await scene.ask(*RIGHTS[right](scene))
        return reply if reply.status != 403 else None

    return await scene.api.until(answered)


async def test_the_table_has_every_right_of_the_manifests():
    assert {(one.resource, verb) for one in drainer_grants() for verb in one.verbs} == {*RIGHTS}
    assert {one.namespace for one in drainer_grants()} == {ANYWHERE, DRAINS}


@pytest.mark.parametrize("right", RIGHTS, ids=" ".join)
async def test_who_drains_needs_each_right(scene, right):
    await scene.grant(without=right)
    await until_allowed(scene, ("nodes", "get") if right != ("nodes", "get") else ("nodes", "list"))
    refused = (await scene.ask(*RIGHTS[right](scene))).refused(403, "Forbidden")
    assert f'User "{scene.user}" cannot {right[1]} resource' in refused["message"]
    await scene.grant()
    await until_allowed(scene, right)


@pytest.mark.parametrize("what", BEYOND)
async def test_what_a_drain_does_not_need_is_refused(scene, what):
    await scene.grant()
    await until_allowed(scene, ("nodes", "get"))
    (await scene.ask(*BEYOND[what](scene))).refused(403, "Forbidden")
