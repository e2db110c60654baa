"""Who may do what: RBAC, impersonation, escalation, the Node authorizer and NodeRestriction."""

import pytest
from support.conformance.api_client import unique
from support.conformance.objects import meta, pod

from lastcall.adapters.kube.resources import NODES, PODS, SECRETS, dict_resource

source = pytest.mark.source
GROUP = "rbac.authorization.k8s.io"
ROLES, BINDINGS = dict_resource(GROUP, "v1", "roles"), dict_resource(GROUP, "v1", "rolebindings")
CLUSTER_ROLES = dict_resource(GROUP, "v1", "clusterroles")
TOKENS = "/api/v1/namespaces/{}/serviceaccounts/default/token"
REVIEW = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
RBAC = "https://kubernetes.io/docs/reference/access-authn-authz/rbac/"
ESCALATION = "pkg/registry/rbac/validation/rule.go"
NODE = "plugin/pkg/auth/authorizer/node/node_authorizer.go"
RESTRICTION = "plugin/pkg/admission/noderestriction/admission.go"
IMPERSONATION = "staging/src/k8s.io/apiserver/pkg/endpoints/filters/impersonation/constrained_impersonation.go"
READ = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}
JANE = "jane"


def acting(user=JANE, group="system:authenticated"):
    """Headers by which another user asks."""
    return {"impersonate-user": user, "impersonate-group": group}


def kubelet(node):
    return acting(f"system:node:{node}", "system:nodes")


async def grant(api, *rules, name="given"):
    """JANE may do what these rules allow in the case's namespace."""
    await api.create(ROLES, {**meta(name), "rules": [*rules]})
    reference = {"apiGroup": GROUP, "kind": "Role", "name": name}
    subject = {"kind": "User", "apiGroup": GROUP, "name": JANE}
    await api.create(BINDINGS, {**meta(name), "roleRef": reference, "subjects": [subject]})


async def message(api, method, path, body=None, headers=None, **query):
    said = await api.ask(method, path, body, headers=headers or acting(), **query).refused(403, "Forbidden")
    return said["message"]


async def allowed(api, method, path, headers=None, **query):
    """By and by: a real server hears of new roles a moment later."""

    async def asked():
        return (await api.ask(method, path, headers=headers or acting(), **query).reply()).status != 403

    return await api.until(asked)


# -- RBAC --------------------------------------------------------------------------------------------------------------


@source(RBAC)
async def test_nobody_has_rights_without_a_role(api):
    """The message names user, verb, resource, group and place."""
    said = await message(api, "GET", api.at(PODS))
    assert said == (
        f'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "{api.namespace}"'
    )
    said = await message(api, "DELETE", "/api/v1/nodes/n")
    assert (
        said
        == 'nodes "n" is forbidden: User "jane" cannot delete resource "nodes" in API group "" at the cluster scope'
    )
    assert await message(api, "GET", "/metrics") == 'forbidden: User "jane" cannot get path "/metrics"'


@source(RBAC)
async def test_a_role_gives_rights_in_its_namespace(api):
    """And nowhere else, and to its verbs alone."""
    await grant(api, READ)
    await allowed(api, "GET", api.at(PODS))
    await message(api, "DELETE", api.at(PODS, "p"))
    await message(api, "GET", "/api/v1/namespaces/default/pods")
    await message(api, "GET", api.at(PODS, "p", "log"))


@source(RBAC)
async def test_a_role_may_name_objects(api):
    """Also for a list by that name."""
    await grant(api, {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"]})
    await allowed(api, "GET", api.at(SECRETS, "s"))
    await allowed(api, "GET", api.at(SECRETS), fieldSelector="metadata.name=s")
    await message(api, "GET", api.at(SECRETS, "t"))
    await message(api, "GET", api.at(SECRETS))


@source("pkg/registry/authorization/subjectaccessreview/rest.go")
async def test_a_review_says_why(api):
    """The binding, the role and the subject."""
    await grant(api, READ)
    await allowed(api, "GET", api.at(PODS))
    asked = {"verb": "get", "resource": "pods", "namespace": api.namespace}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    found = await api.ask("POST", REVIEW, body | {"spec": {"user": JANE, "resourceAttributes": asked}})
    why = f'RBAC: allowed by RoleBinding "given/{api.namespace}" of Role "given" to User "jane"'
    assert found["status"] == {"allowed": True, "reason": why}
    found = await api.ask(
        "POST", REVIEW, body | {"spec": {"user": JANE, "resourceAttributes": {**asked, "verb": "delete"}}}
    )
    assert found["status"] == {"allowed": False}


@source(ESCALATION)
async def test_nobody_gives_rights_away_that_are_not_held(api):
    """The message names those that are missing."""
    await grant(api, {"verbs": ["create"], "apiGroups": [GROUP], "resources": ["roles", "rolebindings"]})
    await allowed(api, "POST", api.at(ROLES))
    said = await message(api, "POST", api.at(ROLES), {**meta("more"), "rules": [READ]})
    assert said == (
        f'roles.{GROUP} "more" is forbidden: user "jane" (groups=["system:authenticated"]) is attempting to grant RBAC'
        ' permissions not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}'
    )
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "cluster-admin"}
    body = {**meta("more"), "roleRef": reference, "subjects": [{"kind": "User", "apiGroup": GROUP, "name": JANE}]}
    assert "is attempting to grant RBAC permissions not currently held" in await message(
        api, "POST", api.at(BINDINGS), body
    )
    body["roleRef"] = {**reference, "name": unique("none")}
    await api.ask("POST", api.at(BINDINGS), body, headers=acting()).refused(404, "NotFound")


@source(RBAC)
@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("cluster-admin", {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
        (
            "system:node-proxier",
            {"verbs": ["list", "watch"], "apiGroups": [""], "resources": ["endpoints", "services"]},
        ),
        ("system:kube-scheduler", {"verbs": ["create"], "apiGroups": [""], "resources": ["bindings", "pods/binding"]}),
        (
            "system:aggregate-to-admin",
            {"verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": ["localsubjectaccessreviews"]},
        ),
    ],
)
async def test_the_roles_of_every_cluster(api, name, rule):
    """They are there, and say that they are mended at each start."""
    found = await api.get(CLUSTER_ROLES, name)
    assert rule in found["rules"]
    assert found["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
    assert found["metadata"]["annotations"] == {"rbac.authorization.kubernetes.io/autoupdate": "true"}


# -- impersonation -----------------------------------------------------------------------------------------------------


@source(IMPERSONATION)
async def test_groups_without_a_user(api):
    """The message shows what was asked for."""
    said = await api.ask("GET", api.at(PODS), headers={"impersonate-group": "g"}).refused(400, "BadRequest")
    assert said["message"] == (
        'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)} without'
        " impersonating a user name"
    )


# -- nodes -------------------------------------------------------------------------------------------------------------


async def node_with_pod(api, **spec):
    """The name of a Node that nobody runs, with a pod on it."""
    name = unique("node")
    await api.create(NODES, meta(name))
    await api.create(PODS, pod(node=name, **spec))
    return name


@source(NODE)
async def test_a_node_lists_its_own_pods_alone(api):
    """By a field selector for its own name."""
    name, all_pods = unique("node"), "/api/v1/pods"
    assert (await message(api, "GET", all_pods, headers=kubelet(name))).endswith(
        ": can only list/watch pods with spec.nodeName field selector"
    )
    await allowed(api, "GET", all_pods, kubelet(name), fieldSelector=f"spec.nodeName={name}")
    await message(api, "GET", all_pods, headers=kubelet(name), fieldSelector="spec.nodeName=other")
    said = await message(api, "GET", "/api/v1/nodes/other", headers=kubelet(name))
    assert said.endswith(f": node '{name}' cannot read 'other', only its own Node object")


@source(NODE)
async def test_a_node_reads_the_secrets_of_its_pods(api):
    """And no others, and runs nothing in them."""
    await api.create(SECRETS, meta("s"))
    await api.create(SECRETS, meta("t"))
    name = await node_with_pod(api, volumes=[{"name": "v", "secret": {"secretName": "s"}}])
    await allowed(api, "GET", api.at(SECRETS, "s"), kubelet(name))
    said = await message(api, "GET", api.at(SECRETS, "t"), headers=kubelet(name))
    assert said.endswith(f": no relationship found between node '{name}' and this object")
    assert (await message(api, "GET", api.at(SECRETS), headers=kubelet(name))).endswith(": No Object name found")
    await message(api, "POST", api.at(PODS, "p", "exec"), headers=kubelet(name), command="ls")


@source(RESTRICTION)
async def test_a_node_gets_tokens_of_its_own_pods_alone(api):
    """Bound to the pod, by its UID."""
    sources = [{"serviceAccountToken": {"path": "token"}}]
    name = await node_with_pod(api, volumes=[{"name": "v", "projected": {"sources": sources}}])
    path = TOKENS.format(api.namespace)
    await allowed(api, "POST", path, kubelet(name))
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    said = await message(api, "POST", path, body, kubelet(name))
    assert said.endswith(": node requested token not bound to a pod")
    found = await api.get(PODS, "p")
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
    body["spec"] = {"boundObjectRef": bound}
    assert (await message(api, "POST", path, body, kubelet(name))).endswith(
        ": node requested token with a pod binding without a uid"
    )
    body["spec"] = {"boundObjectRef": {**bound, "uid": found["metadata"]["uid"]}, "audiences": ["bank"]}
    assert 'audience "bank" not found in pod spec volume' in await message(api, "POST", path, body, kubelet(name))
    body["spec"].pop("audiences")
    reply = await api.ask("POST", path, body, headers=kubelet(name)).reply()
    assert reply.status == 201


@source(RESTRICTION)
async def test_a_token_for_what_a_missing_driver_might_ask(api):
    """It is refused with what is missing; an audience that the pod names is not."""
    sources = [{"serviceAccountToken": {"path": "token", "audience": "vault"}}]
    volumes = [
        {"name": "t", "projected": {"sources": sources}},
        {"name": "c", "csi": {"driver": "none.example.com"}},
        {"name": "p", "persistentVolumeClaim": {"claimName": "none"}},
    ]
    name = await node_with_pod(api, volumes=volumes)
    path = TOKENS.format(api.namespace)
    await allowed(api, "POST", path, kubelet(name))
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": (await api.get(PODS, "p"))["metadata"]["uid"]}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"boundObjectRef": bound}}
    missing = '[csidriver.storage.k8s.io "none.example.com" not found, persistentvolumeclaim "none" not found]'
    assert (await message(api, "POST", path, body, kubelet(name))).endswith(f'audience "": {missing}')
    body["spec"]["audiences"] = ["vault"]
    assert (await api.ask("POST", path, body, headers=kubelet(name)).reply()).status == 201


@source(RESTRICTION)
async def test_a_node_evicts_no_pod_that_is_not_there(api):
    """NodeRestriction looks for it before it is evicted."""
    name = await node_with_pod(api)
    path = api.at(PODS, "none", "eviction")
    body = {"apiVersion": "policy/v1", "kind": "Eviction", **meta("none")}
    said = await api.ask("POST", path, body, headers=kubelet(name)).refused(404, "NotFound")
    assert said["message"] == 'pod "none" not found'


@source(RESTRICTION)
async def test_a_node_changes_its_own_node_alone(api):
    """And neither its taints nor the labels of others."""
    name, merge = await node_with_pod(api), "application/merge-patch+json"
    path = f"/api/v1/nodes/{name}"

    async def refused(body, where=path):
        reply = await api.ask("PATCH", where, body, kind=merge, headers=kubelet(name)).reply()
        return reply.refused(403, "Forbidden")["message"]

    taints = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
    assert (await refused(taints)).endswith(f'node "{name}" is not allowed to modify taints')
    labels = {"metadata": {"labels": {"node-role.kubernetes.io/x": ""}}}
    assert (await refused(labels)).endswith("is not allowed to modify labels: node-role.kubernetes.io/x")
    other = unique("node")
    await api.create(NODES, meta(other))
    own = {"metadata": {"labels": {"example.com/a": "b"}}}
    assert (await refused(own, f"/api/v1/nodes/{other}")).endswith(
        f'node "{name}" is not allowed to modify node "{other}"'
    )
    reply = await api.ask("PATCH", path, own, kind=merge, headers=kubelet(name)).reply()
    assert reply.status == 200
