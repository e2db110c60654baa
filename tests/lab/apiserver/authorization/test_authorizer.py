"""RBAC and the Node authorizer: who may do what, in the words of a kube-apiserver 1.36.2."""

import json
from random import Random

import pytest

from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.authentication.authenticator import ANONYMOUS
from lastcall_lab.apiserver.authorization import bootstrap
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.apiserver.authorization.policy_rules import rules_of
from lastcall_lab.apiserver.storage.store import Store
from lastcall_lab.apiserver.values.request import ADMIN, Request, UserInfo
from lastcall_lab.control_plane import identities
from lastcall_lab.control_plane.identities import kubelet_identity

GROUP = "rbac.authorization.k8s.io"
RBAC, CORE = f"/apis/{GROUP}/v1", "/api/v1/namespaces/default"
ALICE = UserInfo("alice", ("developers", "system:authenticated"))
ROBOT = UserInfo("system:serviceaccount:default:robot", ("system:serviceaccounts", "system:authenticated"))
READ_PODS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log"]}
REVIEWS = "/apis/authorization.k8s.io/v1"


class World:
    def __init__(self, store=None):
        self.server = ApiServer(virtual.VirtualClock(), Random(1), store=store, authorization=AuthorizationMode.RBAC)

    async def ask(self, user, method, path, body=None, kind="application/json"):
        data = json.dumps(body).encode() if body else b""
        request = Request.of(method, path, headers={"content-type": kind}, body=data, user=user)
        answer = await self.server.handle(request)
        said = answer.body
        return answer.status, json.loads(said) if isinstance(said, bytes) and said[:1] == b"{" else said

    async def make(self, path, body, user=ADMIN):
        status, said = await self.ask(user, "POST", path, body)
        assert status == 201, said
        return said

    async def may(self, user, method, path, body=None):
        return (await self.ask(user, method, path, body))[0] != 403

    async def role(self, *rules, name="given", namespace=""):
        await self.make(*role(name, *rules, namespace=namespace))

    async def bind(self, *subjects, name="given", namespace="", to="", kind=""):
        await self.make(*binding(name, *subjects, namespace=namespace, to=to, kind=kind))


def role(name, *rules, namespace="", **more):
    kind = "Role" if namespace else "ClusterRole"
    body = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, "rules": [*rules], **more}
    return place(kind, namespace), body


def binding(name, *subjects, namespace="", to="", kind=""):
    own = "Role" if namespace else "ClusterRole"
    reference = {"apiGroup": GROUP, "kind": kind or own, "name": to or name}
    body = {"apiVersion": f"{GROUP}/v1", "kind": f"{own}Binding", "metadata": {"name": name}, "roleRef": reference}
    return place(f"{own}Binding", namespace), body | {"subjects": [*subjects]}


def place(kind, namespace):
    return f"{RBAC}/namespaces/{namespace}/{kind.lower()}s" if namespace else f"{RBAC}/{kind.lower()}s"


def user(name):
    return {"kind": "User", "apiGroup": GROUP, "name": name}


def in_virtual_time(test):
    async def main():
        await test(World())

    def run():
        virtual.run(main())

    run.__name__ = test.__name__
    return run


# -- rules and bindings ------------------------------------------------------------------------------------------------

RULES = {
    "the verb": ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}, "GET", f"{CORE}/pods/p", True),
    "another verb": ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}, "GET", f"{CORE}/pods", False),
    "any verb": ({"verbs": ["*"], "apiGroups": [""], "resources": ["pods"]}, "DELETE", f"{CORE}/pods/p", True),
    "another group": ({"verbs": ["*"], "apiGroups": ["apps"], "resources": ["pods"]}, "GET", f"{CORE}/pods/p", False),
    "no subresource": ({"verbs": ["*"], "apiGroups": [""], "resources": ["pods"]}, "GET", f"{CORE}/pods/p/log", False),
    "a subresource": (
        {"verbs": ["*"], "apiGroups": [""], "resources": ["pods/log"]},
        "GET",
        f"{CORE}/pods/p/log",
        True,
    ),
    "of any": ({"verbs": ["*"], "apiGroups": [""], "resources": ["*/log"]}, "GET", f"{CORE}/pods/p/log", True),
    "everything": ({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, "GET", f"{CORE}/pods/p/log", True),
    "the name": (
        {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"]},
        "GET",
        f"{CORE}/secrets/s",
        True,
    ),
    "another name": (
        {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"]},
        "GET",
        f"{CORE}/secrets/t",
        False,
    ),
    "a list by name": (
        {"verbs": ["list"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"]},
        "GET",
        f"{CORE}/secrets?fieldSelector=metadata.name%3Ds",
        True,
    ),
    "a list of all": (
        {"verbs": ["list"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"]},
        "GET",
        f"{CORE}/secrets",
        False,
    ),
    "a path": ({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}, "GET", "/metrics", True),
    "another path": ({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}, "GET", "/metrics/x", False),
    "paths below": ({"verbs": ["get"], "nonResourceURLs": ["/lab/*"]}, "GET", "/lab/status", True),
    "a namespace": (
        {"verbs": ["get"], "apiGroups": [""], "resources": ["namespaces"]},
        "GET",
        "/api/v1/namespaces/default",
        True,
    ),
}


@pytest.mark.parametrize(("rule", "method", "path", "allowed"), RULES.values(), ids=RULES)
def test_what_a_rule_allows(rule, method, path, allowed):
    async def main():
        world = World()
        assert not await world.may(ALICE, method, path)
        await world.role(rule)
        await world.bind(user("alice"))
        assert await world.may(ALICE, method, path) == allowed

    virtual.run(main())


SUBJECTS = {
    "a user": (user("alice"), ALICE, True),
    "another user": (user("bob"), ALICE, False),
    "a group": ({"kind": "Group", "apiGroup": GROUP, "name": "developers"}, ALICE, True),
    "a user's name is no group": ({"kind": "Group", "apiGroup": GROUP, "name": "alice"}, ALICE, False),
    "an account": ({"kind": "ServiceAccount", "name": "robot", "namespace": "default"}, ROBOT, True),
    "an account of the namespace": ({"kind": "ServiceAccount", "name": "robot"}, ROBOT, True),
    "an account elsewhere": ({"kind": "ServiceAccount", "name": "robot", "namespace": "kube-system"}, ROBOT, False),
}


@pytest.mark.parametrize(("subject", "who", "allowed"), SUBJECTS.values(), ids=SUBJECTS)
def test_whom_a_binding_is_for(subject, who, allowed):
    async def main():
        world = World()
        await world.role(READ_PODS, namespace="default")
        await world.bind(subject, namespace="default")
        assert await world.may(who, "GET", f"{CORE}/pods") == allowed
        assert not await world.may(who, "GET", "/api/v1/namespaces/kube-system/pods")
        assert not await world.may(who, "GET", "/api/v1/pods")

    virtual.run(main())


@in_virtual_time
async def test_a_cluster_role_counts_where_it_is_bound(world):
    await world.bind(user("alice"), namespace="default", to="view", kind="ClusterRole")
    await world.role({"verbs": ["list"], "apiGroups": ["apps"], "resources": ["deployments"]}, name="more")
    await world.bind(user("alice"), name="more")
    assert not await world.may(ALICE, "GET", f"{CORE}/pods"), "view has no rules before they are aggregated"
    assert await world.may(ALICE, "GET", "/apis/apps/v1/deployments")


@in_virtual_time
async def test_a_change_counts_at_once(world):
    await world.role(READ_PODS)
    await world.bind(user("alice"))
    assert await world.may(ALICE, "GET", "/api/v1/pods")
    await world.ask(ADMIN, "PATCH", f"{RBAC}/clusterroles/given", {"rules": []}, "application/merge-patch+json")
    assert not await world.may(ALICE, "GET", "/api/v1/pods")
    await world.ask(
        ADMIN, "PATCH", f"{RBAC}/clusterroles/given", {"rules": [READ_PODS]}, "application/merge-patch+json"
    )
    assert await world.may(ALICE, "GET", "/api/v1/pods")
    await world.ask(ADMIN, "DELETE", f"{RBAC}/clusterrolebindings/given")
    assert not await world.may(ALICE, "GET", "/api/v1/pods")


@in_virtual_time
async def test_a_binding_without_its_role_is_the_reason(world):
    await world.bind(user("alice"), to="nonesuch")
    status, said = await world.ask(ALICE, "GET", "/api/v1/pods")
    assert (status, said["message"]) == (
        403,
        (
            'pods is forbidden: User "alice" cannot list resource "pods" in API group "" at the cluster scope:'
            f' RBAC: clusterrole.{GROUP} "nonesuch" not found'
        ),
    )


@in_virtual_time
async def test_everybody_may_ask_for_the_api_and_for_oneself(world):
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    for path in ("/api", "/apis", "/openapi/v3", "/version", "/healthz"):
        assert await world.may(ALICE, "GET", path), path
    assert await world.may(ALICE, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    assert not await world.may(ANONYMOUS, "GET", "/api")
    assert await world.may(ANONYMOUS, "GET", "/version")
    assert not await world.may(ALICE, "GET", "/metrics")


# -- who gives rights away ---------------------------------------------------------------------------------------------

MANAGES = {"verbs": ["create", "update", "patch"], "apiGroups": [GROUP], "resources": ["*"]}
HELD = (
    'user "alice" (groups=["developers" "system:authenticated"]) is attempting to grant RBAC permissions not currently'
    " held:\n"
)
MISSING = '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}\n{APIGroups:[""], Resources:["pods/log"], Verbs:["get" "list"]}'
GIVES = {
    "nothing": ([], role("new"), 201, ""),
    "what the user has": ([READ_PODS], role("new", READ_PODS), 201, ""),
    "more": ([], role("new", READ_PODS), 403, HELD + MISSING),
    "a path": (
        [],
        role("new", {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}),
        403,
        HELD + '{NonResourceURLs:["/metrics"], Verbs:["get"]}',
    ),
    "by the verb escalate": (
        [{"verbs": ["escalate"], "apiGroups": [GROUP], "resources": ["clusterroles"]}],
        role("new", READ_PODS),
        201,
        "",
    ),
    "an aggregation": (
        [],
        role("new", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}),
        403,
        "must have cluster-admin privileges to use the aggregationRule",
    ),
    "a role that the user has": ([READ_PODS], binding("new", user("bob"), to="pods"), 201, ""),
    "a role with more": ([], binding("new", user("bob"), to="pods"), 403, HELD + MISSING),
    "by the verb bind": (
        [{"verbs": ["bind"], "apiGroups": [GROUP], "resources": ["clusterroles"], "resourceNames": ["pods"]}],
        binding("new", user("bob"), to="pods"),
        201,
        "",
    ),
    "by the verb bind another": (
        [{"verbs": ["bind"], "apiGroups": [GROUP], "resources": ["clusterroles"], "resourceNames": ["others"]}],
        binding("new", user("bob"), to="pods"),
        403,
        HELD + MISSING,
    ),
    "a role that is not there": (
        [],
        binding("new", user("bob"), to="nonesuch"),
        404,
        f'clusterroles.{GROUP} "nonesuch" not found',
    ),
}


@pytest.mark.parametrize(("rights", "made", "code", "message"), GIVES.values(), ids=GIVES)
def test_who_gives_rights_away_must_have_them(rights, made, code, message):
    async def main():
        world = World()
        await world.role(READ_PODS, name="pods")
        await world.role(MANAGES, *rights)
        await world.bind(user("alice"))
        status, said = await world.ask(ALICE, "POST", *made)
        assert status == code, said
        if message:
            assert said["message"].endswith(message)

    virtual.run(main())


@in_virtual_time
async def test_a_change_of_a_role_is_looked_at_too(world):
    await world.role(MANAGES)
    await world.bind(user("alice"))
    path = f"{RBAC}/clusterroles/given"
    merge = "application/merge-patch+json"
    status, _ = await world.ask(ALICE, "PATCH", path, {"rules": [MANAGES, READ_PODS]}, merge)
    assert status == 403
    assert (await world.ask(ALICE, "PATCH", path, {"metadata": {"finalizers": ["a.b/c"]}}, merge))[0] == 200


# -- access reviews ----------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_reviews_say_what_is_allowed_and_why(world):
    await world.role(READ_PODS, namespace="default")
    await world.bind(user("alice"), namespace="default")
    asked = {"verb": "list", "resource": "pods", "namespace": "default"}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    said = await world.make(
        f"{REVIEWS}/subjectaccessreviews", body | {"spec": {"user": "alice", "resourceAttributes": asked}}
    )
    why = 'RBAC: allowed by RoleBinding "given/default" of Role "given" to User "alice"'
    assert said["status"] == {"allowed": True, "reason": why}
    other = {**asked, "verb": "delete"}
    said = await world.make(
        f"{REVIEWS}/subjectaccessreviews", body | {"spec": {"user": "alice", "resourceAttributes": other}}
    )
    assert said["status"] == {"allowed": False}
    own = body | {"kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": asked}}
    assert (await world.make(f"{REVIEWS}/selfsubjectaccessreviews", own, ALICE))["status"]["allowed"]
    path = body | {"spec": {"user": "x", "groups": ["system:authenticated"], "nonResourceAttributes": {}}}
    path["spec"]["nonResourceAttributes"] = {"verb": "get", "path": "/version"}
    said = await world.make(f"{REVIEWS}/subjectaccessreviews", path)
    why = 'RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" to Group'
    assert said["status"] == {"allowed": True, "reason": f'{why} "system:authenticated"'}


@in_virtual_time
async def test_a_review_of_rules_names_them(world):
    await world.role(READ_PODS, namespace="default")
    await world.bind(user("alice"), namespace="default")
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "default"}}
    said = await world.make(f"{REVIEWS}/selfsubjectrulesreviews", body, ALICE)
    assert READ_PODS in said["status"]["resourceRules"]
    assert {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"]} in said[
        "status"
    ]["nonResourceRules"]
    said = await world.make(f"{REVIEWS}/selfsubjectrulesreviews", body, kubelet_identity("n1"))
    assert said["status"]["incomplete"]
    assert said["status"]["evaluationError"] == "node authorizer does not support user rule resolution"


# -- nodes -------------------------------------------------------------------------------------------------------------

RELATED = {
    "a secret of a volume": {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
    "a secret of a variable": {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
    "a secret of variables": {"envFrom": [{"secretRef": {"name": "s"}}]},
    "a secret of the registry": {"imagePullSecrets": [{"name": "s"}]},
    "a projected secret": {
        "volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}],
    },
}


def pod(name="p", node="n1", env=(), envFrom=(), **spec):  # noqa: N803  (a field)
    container = {"name": "main", "image": "i", "env": [*env], "envFrom": [*envFrom]}
    spec = {"containers": [container], "nodeName": node, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def with_account(world):
    await world.make(
        f"{CORE}/serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    )
    for name in ("n1", "n2"):
        await world.make("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})


@pytest.mark.parametrize("spec", RELATED.values(), ids=RELATED)
def test_a_node_reads_what_its_pods_refer_to(spec):
    async def main():
        world = World()
        await with_account(world)
        await world.make(f"{CORE}/secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})
        status, said = await world.ask(kubelet_identity("n1"), "GET", f"{CORE}/secrets/s")
        assert (status, said["message"]) == (
            403,
            (
                'secrets "s" is forbidden: User "system:node:n1" cannot get resource "secrets" in API group "" in the'
                " namespace \"default\": no relationship found between node 'n1' and this object"
            ),
        )
        await world.make(f"{CORE}/pods", pod(**spec))
        assert (await world.ask(kubelet_identity("n1"), "GET", f"{CORE}/secrets/s"))[0] == 200
        assert await world.may(kubelet_identity("n1"), "GET", f"{CORE}/secrets?watch=1&fieldSelector=metadata.name%3Ds")
        for method in ("PATCH", "PUT", "DELETE"):
            assert not await world.may(kubelet_identity("n1"), method, f"{CORE}/secrets/s"), method
        assert not await world.may(kubelet_identity("n1"), "GET", "/api/v1/namespaces/other/secrets/s"), (
            "a name in its namespace"
        )
        for who, path in (
            (kubelet_identity("n2"), "secrets/s"),
            (kubelet_identity("n1"), "secrets/t"),
            (kubelet_identity("n1"), "secrets"),
        ):
            assert not await world.may(who, "GET", f"{CORE}/{path}"), (who.name, path)
        await world.ask(ADMIN, "DELETE", f"{CORE}/pods/p?gracePeriodSeconds=0")
        assert not await world.may(kubelet_identity("n1"), "GET", f"{CORE}/secrets/s")

    virtual.run(main())


@in_virtual_time
async def test_a_mirror_pod_gives_its_node_no_rights(world):
    await with_account(world)
    mirror = pod(volumes=[{"name": "v", "configMap": {"name": "s"}}])
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    await world.make(f"{CORE}/pods", mirror)
    assert not await world.may(kubelet_identity("n1"), "GET", f"{CORE}/configmaps/s")
    assert await world.may(kubelet_identity("n1"), "GET", f"{CORE}/pods/p")


@in_virtual_time
async def test_a_node_reads_the_volumes_of_its_pods(world):
    await with_account(world)
    await world.make(f"{CORE}/pods", pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]))
    csi = {"driver": "d", "volumeHandle": "h", "nodePublishSecretRef": {"name": "key", "namespace": "kube-system"}}
    claim = {"namespace": "default", "name": "c"}
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "csi": csi, "claimRef": claim}
    await world.make(
        "/api/v1/persistentvolumes",
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": spec},
    )
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "pv"}
    await world.make(
        f"{CORE}/persistentvolumeclaims",
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": asked},
    )
    secret = "/api/v1/namespaces/kube-system/secrets/key"
    for path in (f"{CORE}/persistentvolumeclaims/c", "/api/v1/persistentvolumes/pv", secret):
        assert await world.may(kubelet_identity("n1"), "GET", path), path
        assert not await world.may(kubelet_identity("n2"), "GET", path), path
    assert not await world.may(kubelet_identity("n1"), "GET", "/api/v1/persistentvolumes")
    assert not await world.may(kubelet_identity("n1"), "DELETE", "/api/v1/persistentvolumes/pv")
    assert not await world.may(kubelet_identity("n1"), "DELETE", f"{CORE}/persistentvolumeclaims/c")
    assert not await world.may(kubelet_identity("n1"), "GET", f"{CORE}/persistentvolumeclaims/c/status")
    await world.make(
        f"{CORE}/pods", pod("thief", "n2", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "d"}}])
    )
    await world.make(
        f"{CORE}/persistentvolumeclaims",
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "d"}, "spec": asked},
    )
    assert await world.may(kubelet_identity("n2"), "GET", f"{CORE}/persistentvolumeclaims/d")
    assert not await world.may(kubelet_identity("n2"), "GET", secret), "the volume is bound to another claim"


NODE = {
    "its own pods": ("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", True),
    "pods of another node": ("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn2", False),
    "all pods": ("GET", "/api/v1/pods", False),
    "all pods but": ("GET", "/api/v1/pods?fieldSelector=spec.nodeName!%3Dn1", False),
    "pods by another field": ("GET", "/api/v1/pods?fieldSelector=spec.schedulerName%3Dn1", False),
    "its pod": ("GET", f"{CORE}/pods/p", True),
    "a pod of another node": ("GET", f"{CORE}/pods/q", False),
    "its attachment": ("GET", "/apis/storage.k8s.io/v1/volumeattachments/own", True),
    "another's attachment": ("GET", "/apis/storage.k8s.io/v1/volumeattachments/other", False),
    "its Node": ("GET", "/api/v1/nodes/n1", True),
    "its Node in a list": ("GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dn1", True),
    "another Node": ("GET", "/api/v1/nodes/n2", False),
    "all Nodes": ("GET", "/api/v1/nodes", False),
    "no Node is deleted": ("DELETE", "/api/v1/nodes/n1", False),
    "exec": ("POST", f"{CORE}/pods/p/exec?command=ls", False),
    "logs": ("GET", f"{CORE}/pods/p/log", False),
    "its Lease": ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1", True),
    "another Lease": ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n2", False),
    "a Lease elsewhere": ("GET", "/apis/coordination.k8s.io/v1/namespaces/default/leases/n1", False),
    "Leases": ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", False),
    "its CSINode": ("GET", "/apis/storage.k8s.io/v1/csinodes/n1", True),
    "another CSINode": ("GET", "/apis/storage.k8s.io/v1/csinodes/n2", False),
    "services": ("GET", "/api/v1/services", True),
    "its service account": ("GET", f"{CORE}/serviceaccounts/default", True),
    "another service account": ("GET", f"{CORE}/serviceaccounts/robot", False),
    "no service account is changed": ("PATCH", f"{CORE}/serviceaccounts/default", False),
    "nor its parts": ("POST", f"{CORE}/serviceaccounts/default/other", False),
    "a token that is read": ("GET", f"{CORE}/serviceaccounts/default/token", False),
    "a token": ("POST", f"{CORE}/serviceaccounts/default/token", True),
    "another's token": ("POST", f"{CORE}/serviceaccounts/robot/token", False),
    "deployments": ("GET", "/apis/apps/v1/deployments", False),
    "roles": ("GET", f"{RBAC}/clusterroles", False),
}


@pytest.mark.parametrize("mode", AuthorizationMode)
@pytest.mark.parametrize(("method", "path", "allowed"), NODE.values(), ids=NODE)
def test_what_a_node_may_do(method, path, allowed, mode):
    async def main():
        world = World()
        world.server.authorizer.mode = mode
        await with_account(world)
        await world.make(f"{CORE}/pods", pod())
        await world.make(f"{CORE}/pods", pod("q", "n2"))
        for name, node in (("own", "n1"), ("other", "n2")):
            spec = {"attacher": "d", "nodeName": node, "source": {"persistentVolumeName": "v"}}
            attachment = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": name}}
            await world.make("/apis/storage.k8s.io/v1/volumeattachments", {**attachment, "spec": spec})
        assert await world.may(kubelet_identity("n1"), method, path) == allowed

    virtual.run(main())


# -- the roles of every cluster ----------------------------------------------------------------------------------------


@in_virtual_time
async def test_what_is_missing_comes_back_at_the_next_start_and_what_was_added_stays(world):
    merge = "application/merge-patch+json"
    path = f"{RBAC}/clusterroles/system:node-proxier"
    await world.ask(ADMIN, "PATCH", path, {"rules": [READ_PODS], "metadata": {"labels": {"mine": "yes"}}}, merge)
    alone = f"{RBAC}/clusterroles/system:heapster"
    await world.ask(
        ADMIN, "PATCH", alone, {"rules": [], "metadata": {"annotations": {bootstrap.AUTO_UPDATE: "false"}}}, merge
    )
    await world.ask(ADMIN, "DELETE", f"{RBAC}/clusterrolebindings/system:discovery")
    store = world.server.store
    again = World(store)
    found = (await again.ask(ADMIN, "GET", path))[1]
    proxier = next(one for one in bootstrap.cluster_roles() if one["metadata"]["name"] == "system:node-proxier")
    assert found["rules"][0] == READ_PODS
    assert found["metadata"]["labels"]["mine"] == "yes"
    assert {part for rule in rules_of(proxier) for part in rule.resources} <= {
        part for rule in rules_of(found) for part in rule.resources
    }
    assert not (await again.ask(ADMIN, "GET", alone))[1]["rules"]
    assert (await again.ask(ADMIN, "GET", f"{RBAC}/clusterrolebindings/system:discovery"))[0] == 200


@pytest.mark.parametrize("roles", [bootstrap.bootstrap_objects, identities.cluster_roles])
def test_who_asks_for_the_first_roles_gets_copies_of_his_own(roles):
    first, second = roles(), roles()
    assert first == second
    first[0]["metadata"]["name"] = "mine"
    assert roles() == second


def test_the_store_of_a_lab_without_roles_opens():
    """As one of ``--data`` that an older version has written."""

    async def main():
        store = Store()
        old = ApiServer(virtual.VirtualClock(), Random(1), store=store)
        own = role("view", READ_PODS)[1]
        body = json.dumps(own).encode()
        request = Request.of("POST", f"{RBAC}/clusterroles", headers={"content-type": "application/json"}, body=body)
        assert (await old.handle(request)).status == 201
        new = World(store)
        found = (await new.ask(ADMIN, "GET", f"{RBAC}/clusterroles/view"))[1]
        assert (found["rules"], bool(found["aggregationRule"])) == ([READ_PODS], True)
        assert await new.may(ALICE, "GET", "/api")
        assert not await new.may(ALICE, "GET", "/api/v1/pods")

    virtual.run(main())


def test_a_second_start_writes_nothing():
    async def main():
        store = Store()
        World(store)
        before = store.revision
        World(store)
        assert store.revision == before

    virtual.run(main())


@in_virtual_time
async def test_a_binding_to_another_role_is_made_anew(world):
    path = f"{RBAC}/clusterrolebindings/system:discovery"
    await world.ask(ADMIN, "DELETE", path)
    await world.bind(user("alice"), name="system:discovery", to="view")
    before = (await world.ask(ADMIN, "GET", path))[1]
    after = (await World(world.server.store).ask(ADMIN, "GET", path))[1]
    assert after["roleRef"]["name"] == "system:discovery"
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
