"""Each right of each identity of an agent: without it the request is refused, and what is beyond it is refused too.

The ServiceAccount is played by impersonation, as ``kubectl --as`` does, so that one suite asks the lab and any cluster:
the claim of a token that is bound to a Node or a pod arrives in the same field.
"""

import pytest
import pytest_asyncio
from support.conformance.api_client import MERGE, STRATEGIC, unique
from support.conformance.objects import meta, pod, workload

from lastcall import names
from lastcall.adapters.kube.resources import (
    BUDGETS,
    ENDPOINT_SLICES,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    dict_resource,
)
from lastcall.manifests.agent import agent_grants
from lastcall.manifests.own_node import CLAIM, own_node_spec
from lastcall.manifests.resource_definitions import node_shutdown_definition
from lastcall.manifests.role_bindings import role_objects

RBAC = "rbac.authorization.k8s.io"
CLUSTER_ROLES, CLUSTER_BINDINGS = (
    dict_resource(RBAC, "v1", "clusterroles"),
    dict_resource(RBAC, "v1", "clusterrolebindings"),
)
ROLES, BINDINGS = dict_resource(RBAC, "v1", "roles"), dict_resource(RBAC, "v1", "rolebindings")
KINDS = {
    "ClusterRole": CLUSTER_ROLES,
    "ClusterRoleBinding": CLUSTER_BINDINGS,
    "Role": ROLES,
    "RoleBinding": BINDINGS,
}
DEFINITIONS = dict_resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
VAP = "admissionregistration.k8s.io"
POLICIES = dict_resource(VAP, "v1", "validatingadmissionpolicies")
POLICY_BINDINGS = dict_resource(VAP, "v1", "validatingadmissionpolicybindings")
REPLICA_SETS = dict_resource("apps", "v1", "replicasets")
REPLICATION_CONTROLLERS = dict_resource("", "v1", "replicationcontrollers")
SHUTDOWNS = "/apis/lastcall.dev/v1alpha1/nodeshutdowns"
LEASE = "kube-node-lease"
NOT_READY = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "KubeletNotReady"}]}}
ANNOTATION = {"metadata": {"annotations": {names.NODE_SHUTDOWN_MARK: "{}"}}}
RESTRICTED_LABEL = {"metadata": {"labels": {"node-restriction.kubernetes.io/a": "b"}}}
OUT_OF_SERVICE = {"spec": {"taints": [{"key": names.OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}]}}


class Scene:
    """Two Nodes with a pod and a Lease each, in a namespace of the case's own."""

    def __init__(self, api, user):
        self.api, self.user = api, user
        self.own, self.other = unique("node"), unique("node")
        self.role = unique("agent")

    async def begin(self):
        for node in (self.own, self.other):
            await self.api.create(NODES, meta(node))
            await self.api.create(PODS, pod(f"on-{node}", node=node))
            await self.put(LEASES.path(LEASE), meta(node), f"{LEASES.path(LEASE)}/{node}")

    async def put(self, path, body, at):
        self.api.doomed.append(at)
        await self.api.ask("POST", path, body)

    def pod(self, node, sub=""):
        return self.api.at(PODS, f"on-{node}", sub)

    def node(self, node, sub=""):
        return self.api.at(NODES, node, sub)

    def lease(self, node, namespace=LEASE):
        return LEASES.path(namespace, node)


class Identity:
    """A user of the scene, by impersonation."""

    def __init__(self, scene, headers):
        self._scene, self._headers = scene, headers

    async def ask(self, method, path, body=None, kind=MERGE):
        """The reply to a request."""
        said = kind if method == "PATCH" else "application/json"
        return await self._scene.api.ask(method, path, body, kind=said, headers=self._headers).reply()


def kubelet(scene):
    return Identity(scene, {"impersonate-user": f"system:node:{scene.own}", "impersonate-group": "system:nodes"})


def account(scene):
    claim = f"impersonate-extra-{CLAIM.replace('/', '%2F')}"
    groups = {"impersonate-group": "system:serviceaccounts"}
    return Identity(scene, {"impersonate-user": scene.user, **groups, claim: scene.own})


# The requests of an agent, by its rights: adapters/kube/node_objects.py, own_pods.py, pod_endpoints.py,
# node_shutdown_recorder.py, watchdog_lease.py. (resource, verb) -> request.


def shutdown(node):
    return {
        "apiVersion": "lastcall.dev/v1alpha1",
        "kind": "NodeShutdown",
        "metadata": {"name": node},
        "spec": {"nodeName": node, "bootID": "b"},
        "status": {"startTime": "2026-01-01T00:00:00Z", "deadlineTime": "2026-01-01T00:00:01Z"},
    }


OF_THE_NODE = {
    ("nodes", "get"): lambda s, n: ("GET", s.node(n)),
    ("nodes", "patch"): lambda s, n: ("PATCH", s.node(n), {**ANNOTATION, "spec": {"unschedulable": True}}),
    ("nodes/status", "patch"): lambda s, n: ("PATCH", s.node(n, "status"), NOT_READY, STRATEGIC),
    ("pods/status", "patch"): lambda s, n: ("PATCH", s.pod(n, "status"), NOT_READY, STRATEGIC),
    ("pods", "delete"): lambda s, n: ("DELETE", s.pod(n), {"gracePeriodSeconds": 5}),
    ("kube-node-lease", "patch"): lambda s, n: ("PATCH", s.lease(n), {"spec": {"leaseDurationSeconds": 40}}),
}
"""What either identity may: the first argument of a request is the scene, the second the node that it is about."""

OF_THE_ACCOUNT = {
    ("nodeshutdowns", "create"): lambda s, n: ("POST", SHUTDOWNS, shutdown(n)),
    ("nodeshutdowns", "get"): lambda s, n: ("GET", f"{SHUTDOWNS}/{n}"),
    ("nodeshutdowns", "patch"): lambda s, n: ("PATCH", f"{SHUTDOWNS}/{n}", {"status": {"outcome": "Cancelled"}}),
    ("lastcall-nodes", "create"): lambda s, n: ("POST", LEASES.path(names.NODES_NAMESPACE), meta(n)),
    ("lastcall-nodes", "get"): lambda s, n: ("GET", s.lease(n, names.NODES_NAMESPACE)),
    ("lastcall-nodes", "patch"): lambda s, n: ("PATCH", s.lease(n, names.NODES_NAMESPACE), ANNOTATION),
}
READS = {
    ("pods", "list"): lambda s, n: ("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3D" + n),
    ("pods", "watch"): lambda s, n: (
        "GET",
        f"/api/v1/pods?watch=true&timeoutSeconds=1&fieldSelector=spec.nodeName%3D{n}",
    ),
    ("endpointslices", "list"): lambda s, n: ("GET", s.api.at(ENDPOINT_SLICES)),
    ("replicasets", "get"): lambda s, n: ("GET", s.api.at(REPLICA_SETS, "r")),
    ("replicationcontrollers", "get"): lambda s, n: ("GET", s.api.at(REPLICATION_CONTROLLERS, "r")),
    ("endpointslices", "watch"): lambda s, n: ("GET", s.api.at(ENDPOINT_SLICES) + "?watch=true&timeoutSeconds=1"),
}
RIGHTS = {**OF_THE_NODE, **OF_THE_ACCOUNT, **READS}
LAST = OF_THE_NODE["kube-node-lease", "patch"]
UNSCOPED = {("nodes", "get"), ("nodeshutdowns", "get"), ("lastcall-nodes", "get")}
"""Reads of single objects, which RBAC cannot restrict to a node and admission does not see."""

BEYOND = {
    "the out-of-service taint": lambda s: ("PATCH", s.node(s.own), OUT_OF_SERVICE),
    "labels by which pods choose nodes": lambda s: ("PATCH", s.node(s.own), RESTRICTED_LABEL),
    "deletes its Node": lambda s: ("DELETE", s.node(s.own)),
    "creates a Node": lambda s: ("POST", s.api.at(NODES), meta(f"{s.own}-x")),
    "lists all Nodes": lambda s: ("GET", s.api.at(NODES)),
    "a pod's spec": lambda s: ("PATCH", s.pod(s.own), ANNOTATION),
    "a pod's labels through its status": lambda s: (
        "PATCH",
        s.pod(s.own, "status"),
        {"metadata": {"labels": {"a": "b"}}},
    ),
    "creates a pod": lambda s: ("POST", s.api.at(PODS), pod("new", node=s.own)),
    "deletes all pods": lambda s: ("DELETE", s.api.at(PODS)),
    "runs a command in a pod": lambda s: ("POST", s.pod(s.own, "exec") + "?command=sh"),
    "a Lease outside its two namespaces": lambda s: ("POST", s.api.at(LEASES), meta(s.own)),
    "deletes its Lease": lambda s: ("DELETE", s.lease(s.own, names.NODES_NAMESPACE)),
    "reads budgets": lambda s: ("GET", s.api.at(BUDGETS)),
    "creates a budget": lambda s: ("POST", s.api.at(BUDGETS), {**meta("b"), "spec": {"selector": {}}}),
    "changes an EndpointSlice": lambda s: ("POST", s.api.at(ENDPOINT_SLICES), {**meta("e"), "addressType": "IPv4"}),
    "reads Secrets": lambda s: ("GET", f"/api/v1/namespaces/{s.api.namespace}/secrets"),
    "reads lastcall's Secrets": lambda s: ("GET", f"/api/v1/namespaces/{names.SYSTEM_NAMESPACE}/secrets"),
    "reads FencePolicies": lambda s: ("GET", "/apis/lastcall.dev/v1alpha1/fencepolicies"),
}


@pytest_asyncio.fixture(loop_scope="session")
async def scene(api):
    """With the definition and the namespaces that the manifests bring."""
    found = Scene(api, f"system:serviceaccount:{api.namespace}:lastcall-agent")
    definition = node_shutdown_definition()
    await api.ask("POST", DEFINITIONS.path(), definition).reply()
    for namespace in (LEASE, names.NODES_NAMESPACE):
        await api.ask("POST", NAMESPACES.path(), meta(namespace)).reply()
    await found.begin()

    async def served():
        return (await api.ask("GET", SHUTDOWNS).reply()).status == 200

    await api.until(served)
    api.doomed += [f"{SHUTDOWNS}/{node}" for node in (found.own, found.other)]
    api.doomed += [found.lease(node, names.NODES_NAMESPACE) for node in (found.own, found.other)]
    return found


def key_of(one):
    """Leases by their namespace, others by their resource."""
    return one.namespace if one.resource == "leases" else one.resource


def roles(scene, without=None):
    """The roles and bindings of the manifests for the case's own ServiceAccount; one right may be missing."""
    grants = agent_grants(own_node=True)
    left = [one._replace(verbs=tuple(v for v in one.verbs if (key_of(one), v) != without)) for one in grants]
    for obj in role_objects(left, to="lastcall-agent", of=scene.api.namespace, labels={}):
        where = obj["metadata"].get("namespace", "")
        body = {**obj, "metadata": {"name": scene.role}}
        if "rules" in obj:
            body["rules"] = [rule for rule in obj["rules"] if rule["verbs"]]
        else:
            body["roleRef"] = {**obj["roleRef"], "name": scene.role}
        yield KINDS[obj["kind"]].path(where), body


async def grant(scene, without=None):
    """All rights, but for one; made or changed."""
    for path, body in roles(scene, without):
        reply = await scene.api.ask("POST", path, body).reply()
        if reply.status == 201:
            scene.api.doomed.append(f"{path}/{scene.role}")
        elif "rules" in body:
            await scene.api.ask("PATCH", f"{path}/{scene.role}", {"rules": body["rules"]}, kind=MERGE)


async def bind_to_node(scene, policies):
    """The admission policy for the case's own ServiceAccount, in force."""
    name = unique("own-node")
    await scene.api.create(POLICIES, {**meta(name), "spec": own_node_spec(scene.user)})
    await scene.api.create(POLICY_BINDINGS, {**meta(name), "spec": {"policyName": name, "validationActions": ["Deny"]}})
    await policies._in_force(POLICIES, POLICY_BINDINGS)


async def until_status(scene, who, request, *codes):
    """The answer, as soon as it has one of these codes: caches of a real server follow by and by."""

    async def answered():
        reply = await who.ask(*request)
        return reply if reply.status in codes else None

    return await scene.api.until(answered)


async def prepare(scene, right, node):
    """Makes, as an administrator, the object that a request is about."""
    resource, verb = right
    if resource == "replicasets":
        await scene.api.create(REPLICA_SETS, workload("r"))
    if resource == "replicationcontrollers":
        await scene.api.create(REPLICATION_CONTROLLERS, workload("r", selector={"app": "r"})).reply()
    if verb != "create" and resource == "nodeshutdowns":
        await scene.api.ask("POST", SHUTDOWNS, shutdown(node))
    if verb != "create" and resource == names.NODES_NAMESPACE:
        await scene.api.ask("POST", LEASES.path(names.NODES_NAMESPACE), meta(node))


async def test_the_table_has_every_right_of_the_manifests():
    assert {(key_of(one), verb) for one in agent_grants(own_node=True) for verb in one.verbs} == set(RIGHTS)


@pytest.mark.parametrize("right", RIGHTS, ids=" ".join)
async def test_the_account_needs_each_right(scene, policies, right):
    """Without it the request is refused, with it the same request succeeds."""
    await prepare(scene, right, scene.own)
    await bind_to_node(scene, policies)
    await grant(scene, without=right)
    who, asked = account(scene), RIGHTS[right](scene, scene.own)
    other = next(key for key in reversed(RIGHTS) if key[0] == right[0] and key != right) if right[0] in MORE else SEEN
    await until_status(scene, who, RIGHTS[other](scene, scene.own), 200)
    refused = (await who.ask(*asked)).refused(403, "Forbidden")
    assert f'User "{scene.user}" cannot {right[1]} resource' in refused["message"]
    await grant(scene)
    missing = [404] if right[0] == "replicationcontrollers" else []  # the lab has no such kind: it is not forbidden
    await until_status(scene, who, asked, 200, 201, *missing)


SEEN = ("pods", "list")
MORE = ("pods",)


@pytest.mark.parametrize("right", {**OF_THE_NODE, **OF_THE_ACCOUNT}, ids=" ".join)
async def test_no_right_reaches_another_node(scene, policies, right):
    """But for reads of single objects."""
    await prepare(scene, right, scene.other)
    await grant(scene)
    await bind_to_node(scene, policies)
    await until_status(scene, account(scene), LAST(scene, scene.own), 200)
    asked = {**OF_THE_NODE, **OF_THE_ACCOUNT}[right](scene, scene.other)
    reply = await account(scene).ask(*asked)
    if right in UNSCOPED:
        assert reply.status == 200
        return
    assert "an agent writes of its own node alone" in reply.refused(403, "Forbidden")["message"]
    unbound = Identity(scene, {"impersonate-user": scene.user, "impersonate-group": "system:serviceaccounts"})
    own = {**OF_THE_NODE, **OF_THE_ACCOUNT}[right](scene, scene.own)
    if right[0] != "nodeshutdowns":  # its own object does not exist yet
        assert (await unbound.ask(*own)).status in (403, 404), "a token that names no node has no node"


@pytest.mark.parametrize("who", [account, kubelet])
@pytest.mark.parametrize("what", BEYOND)
async def test_what_is_beyond_is_refused(scene, policies, what, who):
    """Also to the kubelet's identity, by the Node authorizer and NodeRestriction."""
    await grant(scene)
    await bind_to_node(scene, policies)
    await until_status(scene, account(scene), LAST(scene, scene.own), 200)
    reply = await who(scene).ask(*BEYOND[what](scene))
    reply.refused(403, "Forbidden")


@pytest.mark.parametrize("right", OF_THE_NODE, ids=" ".join)
async def test_the_kubelets_identity_may_write_its_own_node(scene, right):
    """Without any role: by the Node authorizer."""
    await until_status(scene, kubelet(scene), OF_THE_NODE[right](scene, scene.own), 200)


@pytest.mark.parametrize("right", {**OF_THE_NODE, **OF_THE_ACCOUNT}, ids=" ".join)
async def test_the_kubelets_identity_may_nothing_else(scene, right):
    """No object of another node, and nothing of lastcall's own: that is what the agent's own identity is for."""
    await prepare(scene, right, scene.own)
    node = scene.other if right in OF_THE_NODE else scene.own
    (await kubelet(scene).ask(*{**OF_THE_NODE, **OF_THE_ACCOUNT}[right](scene, node))).refused(403, "Forbidden")


async def test_the_kubelets_identity_reads_its_own_pods_alone(scene):
    await until_status(scene, kubelet(scene), READS["pods", "list"](scene, scene.own), 200)
    for request in (READS["pods", "list"](scene, scene.other), ("GET", "/api/v1/pods")):
        (await kubelet(scene).ask(*request)).refused(403, "Forbidden")
    (await kubelet(scene).ask(*READS["endpointslices", "list"](scene, scene.own))).refused(403, "Forbidden")


async def test_reads_of_the_account_are_not_scoped(scene):
    """docs/known-limits.md says so: RBAC has no field selectors, and admission sees no reads."""
    await grant(scene)
    for request in (READS["pods", "list"](scene, scene.other), ("GET", "/api/v1/pods")):
        await until_status(scene, account(scene), request, 200)


async def test_the_account_may_not_evict(scene, policies):
    """An Eviction names no node, so no policy could restrict it to one."""
    await grant(scene)
    await bind_to_node(scene, policies)
    await until_status(scene, account(scene), LAST(scene, scene.own), 200)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", **meta(f"on-{scene.own}")}
    (await account(scene).ask("POST", scene.pod(scene.own, "eviction"), eviction)).refused(403, "Forbidden")
