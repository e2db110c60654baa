"""How far admission policies reach: other names of a resource, scopes, parameters elsewhere, and their latest version."""

import asyncio

import pytest
from support.conformance.admission_policies import VALIDATING, VALIDATING_BINDINGS, holds, on, rule
from support.conformance.api_client import FORBIDDEN, MERGE, SECONDS, causes, unique
from support.conformance.objects import config_map, meta

from lastcall.adapters.kube.resources import CONFIG_MAPS, EVENTS, NAMESPACES, VOLUMES, dict_resource

source = pytest.mark.source
MATCHING = "staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/matching/matching.go"
RULES = "staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules/rules.go"
SOURCE = "staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_source.go"
GENERIC = "staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go"
ACCESS = "pkg/registry/admissionregistration/validatingadmissionpolicybinding/authz.go"
RBAC = "rbac.authorization.k8s.io"
ACCOUNTS = dict_resource("", "v1", "serviceaccounts")
ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount"}


@source(MATCHING)
@pytest.mark.parametrize("match", ["Equivalent", "Exact"])
async def test_the_same_objects_by_another_group(api, policies, match):
    """By default they concern the policy, and are shown as it asks for them; with Exact they do not."""
    constraints = on(rule("events", group="events.k8s.io", operations=["CREATE"]), matchPolicy=match)
    await policies.validate(holds("object.regarding.name != 'p'", message="p"), matchConstraints=constraints)
    about = {"kind": "Pod", "name": "p", "namespace": api.namespace}
    asked = api.create(EVENTS, {**meta("e"), "involvedObject": about, "reason": "R"})
    if match == "Exact":
        await asked
        return
    status = await asked.refused(422, "Invalid")
    assert status["message"].endswith("denied request: p")


def volume(labels):
    """Something that lies in no namespace."""
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/nowhere"}}
    return {**meta(unique("pv"), labels=labels), "spec": spec}


@source(RULES)
@pytest.mark.parametrize(("scope", "denied"), [("Namespaced", [422, 201]), ("Cluster", [201, 422]), ("*", [422, 422])])
async def test_the_scope_of_a_rule(api, policies, scope, denied):
    """Of two resources that a rule names it concerns the one in namespaces, the other, or both."""
    mark = {"mark": unique("scope")}
    rules = rule("configmaps", "persistentvolumes", operations=["CREATE"], scope=scope)
    await policies.validate(holds("false"), matchConstraints=on(rules, objectSelector={"matchLabels": mark}))
    inside = await api.create(CONFIG_MAPS, config_map(labels=mark), dryRun="All").reply()
    outside = await api.create(VOLUMES, volume(mark), dryRun="All").reply()
    assert [inside.status, outside.status] == denied


async def answered(api, code):
    """Waits until a config map is answered so: a real server hears of changed policies a moment later."""
    async with asyncio.timeout(SECONDS):
        while (reply := await api.create(CONFIG_MAPS, config_map(), dryRun="All").reply()).status != code:
            await asyncio.sleep(0.1)
    return reply


@source(SOURCE)
async def test_a_policy_that_is_changed(api, policies):
    """Its latest version judges, and so does that of its binding."""
    name = await policies.validate(holds("false", message="first"))
    assert (await answered(api, 422)).body["message"].endswith("first")
    await api.patch(VALIDATING, name, {"spec": {"validations": [holds("true")]}})
    await answered(api, 201)
    await api.patch(VALIDATING, name, {"spec": {"validations": [holds("false", message="third")]}})
    assert (await answered(api, 422)).body["message"].endswith("third")
    await api.patch(VALIDATING_BINDINGS, name, {"spec": {"validationActions": ["Warn"]}})
    assert len((await answered(api, 201)).warnings) == 1


@source(GENERIC)
@pytest.mark.parametrize("elsewhere", [True, False])
@pytest.mark.parametrize("reference", [{"name": "limits"}, {"selector": {"matchLabels": {"limits": "yes"}}}])
async def test_the_namespace_of_a_parameter(api, policies, elsewhere, reference):
    """That of the binding's ``paramRef``, if it says one; else that of the request, and never both."""
    other = unique("other")
    await api.create(NAMESPACES, meta(other))
    try:
        for namespace in (api.namespace, other):
            said = {**meta("limits", labels={"limits": "yes"}), **ACCOUNT}
            said["metadata"]["annotations"] = {"only": "v" if namespace == api.namespace else "w"}
            await api.ask("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", said)
        reference = {**reference, "parameterNotFoundAction": "Deny", **({"namespace": other} if elsewhere else {})}
        only = holds("object.data.k == params.metadata.annotations.only")
        await policies.validate(only, paramKind=ACCOUNT, binding={"paramRef": reference})
        good, bad = ("w", "v") if elsewhere else ("v", "w")
        await api.create(CONFIG_MAPS, config_map("a", data={"k": good}))
        await api.create(CONFIG_MAPS, config_map("b", data={"k": bad})).refused(422, "Invalid")
    finally:
        await api.delete(NAMESPACES, other)


@source(GENERIC)
async def test_parameters_that_a_binding_cannot_mean(api, policies):
    """A namespace for a kind that lies in none; and none for a kind that needs one, where the request has none either."""
    denied = {"name": "x", "parameterNotFoundAction": "Allow"}
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    await policies.validate(holds("true"), paramKind=kind, binding={"paramRef": {**denied, "namespace": "default"}})
    status = await api.create(CONFIG_MAPS, config_map()).refused(422, "Invalid")
    why = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
    assert status["message"].endswith(f"denied request: failed to configure binding: {why}")
    mark = {"mark": unique("volume")}
    constraints = on(rule("persistentvolumes", operations=["CREATE"]), objectSelector={"matchLabels": mark})
    await policies.validate(
        holds("true"), matchConstraints=constraints, paramKind=ACCOUNT, binding={"paramRef": denied}
    )
    status = await api.create(VOLUMES, volume(mark), dryRun="All").refused(422, "Invalid")
    why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
    assert status["message"].endswith(f"denied request: failed to configure binding: {why}")


@source(ACCESS)
async def test_which_parameters_one_must_be_allowed_to_read(api):
    """Those of the namespace that the binding says; to select them takes the right to list them."""
    user, name = unique("user"), unique("role")
    subjects = [{"kind": "User", "name": user, "apiGroup": RBAC}]
    secrets = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    bindings = {
        "apiGroups": [VALIDATING.group],
        "resources": [VALIDATING_BINDINGS.plural],
        "verbs": ["create"],
    }
    for kind, plural, rules in (("Role", "roles", secrets), ("ClusterRole", "clusterroles", bindings)):
        role = {"kind": kind, "name": name, "apiGroup": RBAC}
        await api.create(dict_resource(RBAC, "v1", plural), {**meta(name), "rules": [rules]})
        bound = {**meta(name), "subjects": subjects, "roleRef": role}
        await api.create(dict_resource(RBAC, "v1", f"{plural.removesuffix('s')}bindings"), bound)
    kind = {"apiVersion": "v1", "kind": "Secret"}
    spec = {"matchConstraints": on(), "validations": [holds("true")], "paramKind": kind}
    await api.create(VALIDATING, {**meta(name), "spec": spec})
    headers = {"impersonate-user": user}

    def bind(**reference):
        reference = {"parameterNotFoundAction": "Deny", **reference}
        body = {**meta(name), "spec": {"policyName": name, "validationActions": ["Deny"], "paramRef": reference}}
        return api.ask("POST", api.at(VALIDATING_BINDINGS), body, headers=headers, dryRun="All")

    async with asyncio.timeout(SECONDS):  # a real server hears of roles a moment later
        while (await bind(name="x", namespace=api.namespace).reply()).status != 201:
            await asyncio.sleep(0.1)
    for reference, verb in (
        ({"name": "x", "namespace": "default"}, "get"),
        ({"name": "x"}, "get"),
        ({"selector": {}, "namespace": api.namespace}, "list"),
    ):
        status = await bind(**reference).refused(422, "Invalid")
        assert causes(status) == [(FORBIDDEN, "spec.paramRef")]
        assert f'does not have "{verb}" permission on the object' in status["message"]


@source(ACCESS)
async def test_a_changed_binding_is_checked_again(api):
    """Whatever is changed, a label too: ``paramRef`` is compared with the old one by the addresses of its parts."""
    user, name = unique("user"), unique("role")
    rules = [{"apiGroups": [VALIDATING.group], "resources": [VALIDATING_BINDINGS.plural], "verbs": ["patch"]}]
    await api.create(dict_resource(RBAC, "v1", "clusterroles"), {**meta(name), "rules": rules})
    bound = {"subjects": [{"kind": "User", "name": user, "apiGroup": RBAC}]}
    bound["roleRef"] = {"kind": "ClusterRole", "name": name, "apiGroup": RBAC}
    await api.create(dict_resource(RBAC, "v1", "clusterrolebindings"), {**meta(name), **bound})
    reference = {"name": "x", "parameterNotFoundAction": "Allow"}
    for binding, more in (("with", {"paramRef": reference}), ("without", {})):
        spec = {"policyName": unique("none"), "validationActions": ["Warn"], **more}
        await api.create(VALIDATING_BINDINGS, {**meta(f"{name}-{binding}"), "spec": spec})

    def label(binding):
        body = {"metadata": {"labels": {"a": "b"}}}
        path = api.at(VALIDATING_BINDINGS, f"{name}-{binding}")
        return api.ask("PATCH", path, body, kind=MERGE, headers={"impersonate-user": user}, dryRun="All")

    async with asyncio.timeout(SECONDS):  # a real server hears of roles a moment later
        while (await label("without").reply()).status != 200:
            await asyncio.sleep(0.1)
    status = await label("with").refused(422, "Invalid")
    assert causes(status) == [(FORBIDDEN, "spec.paramRef")]
    assert "to determine minimum required permissions" in status["message"]
