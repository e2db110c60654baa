"""Each right of the guard's two ServiceAccounts: without it the request is refused, and what is beyond it is refused too.

They are played by impersonation, as in ``test_agent_rights``. The guard's own namespace is the case's own, and another one is
a guarded namespace.
"""

import pytest
import pytest_asyncio
from support.conformance.api_client import MERGE, STRATEGIC, unique
from support.conformance.objects import config_map, meta, pod

from lastcall import names
from lastcall.adapters.kube.resources import (
    BUDGETS,
    CRON_JOBS,
    DAEMON_SETS,
    DEFINITIONS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    EVENTS,
    GUARD_POLICIES,
    JOBS,
    LEASES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    VALIDATING_WEBHOOKS,
    dict_resource,
)
from lastcall.manifests import settle_webhook
from lastcall.manifests.guard_grants import NAME, RELEASER, access_grants, guard_grants, releaser_grants
from lastcall.manifests.guard_policy_definition import guard_policy_definition
from lastcall.manifests.guard_webhooks import CONFIGURATION
from lastcall.manifests.rbac import ANYWHERE
from lastcall.manifests.role_bindings import role_objects
from lastcall.manifests.settle_webhook import settle_webhook_grants

RBAC = "rbac.authorization.k8s.io"
KINDS = {
    f"{scope}{what}": dict_resource(RBAC, "v1", f"{scope}{what}s".lower())
    for scope in ("Cluster", "")
    for what in ("Role", "RoleBinding")
}
SERVICE_ACCOUNTS = dict_resource("", "v1", "serviceaccounts")
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
SECRET = f"{NAME}-tls"
LEADS = {"spec": {"holderIdentity": "guard-1"}}
EVENT = {**meta("e"), "involvedObject": {"kind": "Pod", "name": "p", "uid": "u"}, "reason": "R", "message": "m"}


def policy(name):
    """A GuardPolicy that selects no pods."""
    head = {"apiVersion": names.API_VERSION, "kind": names.GUARD_POLICY}
    return {**head, **meta(name), "spec": {"provider": {"http": {}}}}


class Scene:
    """The guard's own namespace and a guarded one, with what the guard reads and writes there."""

    def __init__(self, api):
        self.api = api
        self.own, self.shop, self.other = api.namespace, unique("shop"), unique("other")
        self.role, self.node = unique("guard"), unique("node")
        self.configuration = self.settling = None

    async def begin(self):
        for name in (self.shop, self.other):
            await self.api.create(NAMESPACES, meta(name))
            await self.make(SERVICE_ACCOUNTS, meta("default"), name)
            await self.make(PODS, pod("p"), name)
            await self.make(SECRETS, {**meta("auth"), "data": {}}, name)
        await self.api.create(NODES, meta(self.node))
        await self.make(GUARD_POLICIES, policy("g"), self.shop)
        await self.make(LEASES, meta(NAME), self.own)
        await self.make(SECRETS, {**meta(SECRET), "data": {}}, self.own)
        for name in (NAME, RELEASER):
            await self.make(SERVICE_ACCOUNTS, meta(name), self.own)
        self.configuration = await self.make_configuration(VALIDATING_WEBHOOKS, CONFIGURATION)
        self.settling = await self.make_configuration(MUTATING_WEBHOOKS, settle_webhook.CONFIGURATION)

    async def make_configuration(self, resource, name):
        path = resource.path(name=name)
        if (await self.api.ask("POST", resource.path(), {**meta(name), "webhooks": []}).reply()).status == 201:
            self.api.doomed.append(path)
        return await self.api.ask("GET", path)

    async def make(self, resource, obj, namespace):
        reply = await self.api.ask("POST", resource.path(namespace), obj).reply()
        assert reply.status in (201, 409), reply

    def user(self, account):
        return f"system:serviceaccount:{self.own}:{account}"

    async def ask(self, account, method, path, body=None, kind=MERGE):
        """The reply to a request of a ServiceAccount."""
        said = kind if method == "PATCH" else "application/json"
        headers = {"impersonate-user": self.user(account), "impersonate-group": "system:serviceaccounts"}
        return await self.api.ask(method, path, body, kind=said, headers=headers).reply()

    async def may_impersonate(self, name, namespace):
        """What the API server says about the guard's right: nobody impersonates from within an impersonation."""
        wanted = {"verb": "impersonate", "resource": "serviceaccounts", "namespace": namespace, "name": name}
        spec = {"user": self.user(NAME), "groups": ["system:serviceaccounts"], "resourceAttributes": wanted}
        found = await self.api.ask("POST", REVIEWS, {"spec": spec})
        return found["status"]["allowed"]


def read(resource, name="x"):
    return lambda s: ("GET", resource.path(s.shop, name))


def listed(resource):
    return lambda s: ("GET", resource.path(s.shop))


def watched(resource):
    return lambda s: ("GET", resource.path() + "?watch=true&timeoutSeconds=1")


OWN, ACCESS, FREE = "own", "access", "releaser"
RIGHTS = {
    (OWN, "pods", "get"): read(PODS, "p"),
    (OWN, "pods", "list"): listed(PODS),
    (OWN, "namespaces", "get"): lambda s: ("GET", NAMESPACES.path(name=s.shop)),
    (OWN, "nodes", "get"): lambda s: ("GET", NODES.path(name=s.node)),
    (OWN, "nodes", "list"): lambda s: ("GET", NODES.path()),
    (OWN, "nodes", "watch"): watched(NODES),
    (OWN, "replicationcontrollers", "get"): read(REPLICATION_CONTROLLERS),
    (OWN, "statefulsets", "list"): listed(STATEFUL_SETS),
    (OWN, "replicasets", "list"): listed(REPLICA_SETS),
    (OWN, "deployments", "list"): listed(DEPLOYMENTS),
    (OWN, "daemonsets", "get"): read(DAEMON_SETS),
    (OWN, "jobs", "get"): read(JOBS),
    (OWN, "cronjobs", "get"): read(CRON_JOBS),
    (OWN, "poddisruptionbudgets", "list"): listed(BUDGETS),
    (OWN, "guardpolicies", "get"): read(GUARD_POLICIES, "g"),
    (OWN, "guardpolicies", "list"): lambda s: ("GET", GUARD_POLICIES.path()),
    (OWN, "guardpolicies", "watch"): watched(GUARD_POLICIES),
    (OWN, "guardpolicies/status", "patch"): lambda s: (
        "PATCH",
        GUARD_POLICIES.path(s.shop, "g", "status"),
        {"status": {"heldPods": 1}},
    ),
    (OWN, "events", "create"): lambda s: (
        "POST",
        EVENTS.path(s.shop),
        {**EVENT, "involvedObject": {**EVENT["involvedObject"], "namespace": s.shop}},
    ),
    (OWN, "endpointslices", "list"): lambda s: ("GET", ENDPOINT_SLICES.path("default")),
    (OWN, "validatingwebhookconfigurations", "get"): lambda s: ("GET", VALIDATING_WEBHOOKS.path(name=CONFIGURATION)),
    (OWN, "validatingwebhookconfigurations", "update"): lambda s: (
        "PUT",
        VALIDATING_WEBHOOKS.path(name=CONFIGURATION) + "?dryRun=All",
        s.configuration,
    ),
    (OWN, "services", "list"): listed(SERVICES),
    (OWN, "mutatingwebhookconfigurations", "get"): lambda s: (
        "GET",
        MUTATING_WEBHOOKS.path(name=settle_webhook.CONFIGURATION),
    ),
    (OWN, "mutatingwebhookconfigurations", "update"): lambda s: (
        "PUT",
        MUTATING_WEBHOOKS.path(name=settle_webhook.CONFIGURATION) + "?dryRun=All",
        s.settling,
    ),
    (OWN, "leases", "get"): lambda s: ("GET", LEASES.path(s.own, NAME)),
    (OWN, "leases", "patch"): lambda s: ("PATCH", LEASES.path(s.own, NAME), LEADS),
    (OWN, "leases", "create"): lambda s: ("POST", LEASES.path(s.own), meta("another")),
    (OWN, "secrets", "get"): lambda s: ("GET", SECRETS.path(s.own, SECRET)),
    (OWN, "secrets", "update"): lambda s: ("PUT", SECRETS.path(s.own, SECRET), {**meta(SECRET), "data": {"a": "YQ=="}}),
    (ACCESS, "secrets", "get"): read(SECRETS, "auth"),
    (ACCESS, "pods/exec", "get"): lambda s: ("GET", PODS.path(s.shop, "p", "exec") + "?command=true&stdout=true"),
    (ACCESS, "pods/exec", "create"): lambda s: ("POST", PODS.path(s.shop, "p", "exec") + "?command=true&stdout=true"),
    (ACCESS, "pods/status", "patch"): lambda s: (
        "PATCH",
        PODS.path(s.shop, "p", "status"),
        {"status": {"conditions": [{"type": "lastcall.dev/GuardReady", "status": "False"}]}},
        STRATEGIC,
    ),
    (FREE, "pods", "delete"): lambda s: ("DELETE", PODS.path(s.shop, "p"), {"gracePeriodSeconds": 0}),
}
"""Whose right, which, and a request that needs it."""
IMPERSONATION = (OWN, "serviceaccounts", "impersonate")
MISSING = ("replicationcontrollers", "daemonsets", "jobs", "cronjobs")
"""Objects that are not there: the request is not forbidden, and nothing is found."""

BEYOND = {
    "secrets of a namespace that is not guarded": lambda s: ("GET", SECRETS.path(s.other, "auth")),
    "all secrets of a guarded namespace": lambda s: ("GET", SECRETS.path(s.shop)),
    "other secrets of its own namespace": lambda s: ("GET", SECRETS.path(s.own, "another")),
    "commands in a namespace that is not guarded": lambda s: (
        "POST",
        PODS.path(s.other, "p", "exec") + "?command=true",
    ),
    "a pod's deletion": lambda s: ("DELETE", PODS.path(s.shop, "p")),
    "a pod's eviction": lambda s: (
        "POST",
        PODS.path(s.shop, "p", "eviction"),
        {"apiVersion": "policy/v1", "kind": "Eviction", **meta("p")},
    ),
    "a pod's spec": lambda s: ("PATCH", PODS.path(s.shop, "p"), {"metadata": {"labels": {"a": "b"}}}),
    "the status of a pod that is not guarded": lambda s: ("PATCH", PODS.path(s.other, "p", "status"), {"status": {}}),
    "a new pod": lambda s: ("POST", PODS.path(s.shop), pod("q")),
    "a policy's spec": lambda s: ("PATCH", GUARD_POLICIES.path(s.shop, "g"), {"spec": {"onLimit": "Allow"}}),
    "a new policy": lambda s: ("POST", GUARD_POLICIES.path(s.shop), policy("h")),
    "a Namespace": lambda s: ("PATCH", NAMESPACES.path(name=s.shop), {"metadata": {"labels": {"a": "b"}}}),
    "a Node": lambda s: ("PATCH", NODES.path(name=s.node), {"spec": {"unschedulable": True}}),
    "a workload": lambda s: ("PATCH", STATEFUL_SETS.path(s.shop, "x"), {"spec": {"replicas": 0}}),
    "all webhook configurations": lambda s: ("GET", VALIDATING_WEBHOOKS.path()),
    "another webhook configuration": lambda s: (
        "PUT",
        VALIDATING_WEBHOOKS.path(name="another"),
        {**meta("another"), "webhooks": []},
    ),
    "all webhook configurations that change objects": lambda s: ("GET", MUTATING_WEBHOOKS.path()),
    "another webhook configuration that changes objects": lambda s: (
        "PUT",
        MUTATING_WEBHOOKS.path(name="another"),
        {**meta("another"), "webhooks": []},
    ),
    "a Service": lambda s: ("DELETE", SERVICES.path(s.shop, "x")),
    "a new webhook configuration": lambda s: ("POST", VALIDATING_WEBHOOKS.path(), {**meta(s.role), "webhooks": []}),
    "its webhook configuration's end": lambda s: ("DELETE", VALIDATING_WEBHOOKS.path(name=CONFIGURATION)),
    "its Lease's end": lambda s: ("DELETE", LEASES.path(s.own, NAME)),
    "another Lease": lambda s: ("PATCH", LEASES.path(s.own, "another"), LEADS),
    "a ConfigMap": lambda s: ("POST", dict_resource("", "v1", "configmaps").path(s.shop), config_map()),
}
BEYOND_RELEASE = {
    "a pod's deletion in a namespace that is not guarded": lambda s: ("DELETE", PODS.path(s.other, "p")),
    "pods": lambda s: ("GET", PODS.path(s.shop)),
    "all pods' deletion": lambda s: ("DELETE", PODS.path(s.shop)),
    "a pod's eviction": BEYOND["a pod's eviction"],
    "a policy's status": RIGHTS[OWN, "guardpolicies/status", "patch"],
}


@pytest_asyncio.fixture(loop_scope="session")
async def scene(api):
    """With the definition that the manifests bring."""
    await api.ask("POST", DEFINITIONS.path(), guard_policy_definition()).reply()

    async def served():
        return (await api.ask("GET", GUARD_POLICIES.path()).reply()).status == 200

    await api.until(served)
    found = Scene(api)
    await found.begin()
    return found


def account_of(right):
    return RELEASER if right[0] == FREE else NAME


def grants_by_place(scene):
    """The grants of the manifests by whose they are, with the namespaces of the case."""
    bound = {ACCESS: access_grants(), FREE: releaser_grants()}
    return {
        OWN: [*guard_grants(scene.own), *settle_webhook_grants()],
        **{place: [one._replace(namespace=scene.shop) for one in grants] for place, grants in bound.items()},
    }


def roles(scene, without=None):
    """Path and body of each role and binding of the manifests; one right may be missing."""
    for place, grants in grants_by_place(scene).items():
        left = [
            one._replace(verbs=tuple(v for v in one.verbs if (place, one.resource, v) != without)) for one in grants
        ]
        for obj in role_objects(left, to=account_of((place,)), of=scene.own, labels={}):
            name = f"{scene.role}-{place}"
            body = {**obj, "metadata": {"name": name}}
            if "rules" in obj:
                body["rules"] = [rule for rule in obj["rules"] if rule["verbs"]]
            else:
                body["roleRef"] = {**obj["roleRef"], "name": name}
            yield KINDS[obj["kind"]].path(obj["metadata"].get("namespace", "")), name, body


async def grant(scene, without=None):
    """All rights, but for one; made or changed."""
    for path, name, body in roles(scene, without):
        reply = await scene.api.ask("POST", path, body).reply()
        if reply.status == 201:
            scene.api.doomed.append(f"{path}/{name}")
        elif "rules" in body:
            await scene.api.ask("PATCH", f"{path}/{name}", {"rules": body["rules"]}, kind=MERGE)


async def until_allowed(scene, right):
    """The reply of a request, as soon as it is not forbidden: caches of a real server follow by and by."""

    async def answered():
        reply = await scene.ask(account_of(right), *RIGHTS[right](scene))
        return reply if reply.status != 403 else None

    return await scene.api.until(answered)


SEEN = (OWN, "namespaces", "get")
ELSE_SEEN = (OWN, "pods", "list")


async def test_the_table_has_every_right_of_the_manifests(scene):
    found = {
        (place, one.resource, v) for place, all_ in grants_by_place(scene).items() for one in all_ for v in one.verbs
    }
    assert found == {*RIGHTS, IMPERSONATION}


@pytest.mark.parametrize("right", RIGHTS, ids=" ".join)
async def test_the_account_needs_each_right(scene, right):
    await grant(scene, without=right)
    await until_allowed(scene, SEEN if right != SEEN else ELSE_SEEN)
    refused = (await scene.ask(account_of(right), *RIGHTS[right](scene))).refused(403, "Forbidden")
    assert f'User "{scene.user(account_of(right))}" cannot {right[2]} resource' in refused["message"]
    await grant(scene)
    reply = await until_allowed(scene, right)
    if right[1] != "pods/exec":  # nobody runs the pod
        assert reply.status in ((404,) if right[1] in MISSING else (200, 201)), reply


async def test_it_impersonates_the_releaser_alone(scene):
    await grant(scene, without=IMPERSONATION)
    await until_allowed(scene, SEEN)
    assert not await scene.may_impersonate(RELEASER, scene.own)
    await grant(scene)
    await scene.api.until(lambda: scene.may_impersonate(RELEASER, scene.own))
    for name, namespace in ((NAME, scene.own), ("default", scene.shop), (RELEASER, scene.shop)):
        assert not await scene.may_impersonate(name, namespace)


@pytest.mark.parametrize("what", BEYOND)
async def test_what_is_beyond_the_guards_rights_is_refused(scene, what):
    await grant(scene)
    await until_allowed(scene, SEEN)
    (await scene.ask(NAME, *BEYOND[what](scene))).refused(403, "Forbidden")


@pytest.mark.parametrize("what", BEYOND_RELEASE)
async def test_what_is_beyond_the_releasers_rights_is_refused(scene, what):
    await grant(scene)
    await until_allowed(scene, SEEN)
    (await scene.ask(RELEASER, *BEYOND_RELEASE[what](scene))).refused(403, "Forbidden")


async def test_no_right_is_bound_in_all_namespaces_but_reads(scene):
    """And what is written of lastcall's own kind, and Events."""
    anywhere = [one for one in grants_by_place(scene)[OWN] if one.namespace == ANYWHERE]
    written = {(one.resource, verb) for one in anywhere for verb in one.verbs if verb not in ("get", "list", "watch")}
    assert written == {
        ("guardpolicies/status", "patch"),
        ("events", "create"),
        ("validatingwebhookconfigurations", "update"),
        ("mutatingwebhookconfigurations", "update"),
    }
    assert not {one.resource for one in anywhere} & {"secrets", "pods/exec"}
