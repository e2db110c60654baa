"""Admission webhooks: whom the API server asks, and what a configuration may say."""

import pytest
from support.conformance.api_client import causes, unique
from support.conformance.objects import config_map, meta, pod, running, workload
from support.conformance.webhooks import deny, patched

from lastcall.adapters.kube.resources import (
    CONFIG_MAPS,
    EVENTS,
    MUTATING_WEBHOOKS,
    PODS,
    REPLICA_SETS,
    VALIDATING_WEBHOOKS,
)

source = pytest.mark.source
DOC = "https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/"
RULES = "staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules/rules.go"
CONDITIONS = "https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/3716-admission-webhook-match-conditions"
RULE_VALIDATION = "pkg/apis/admissionregistration/validation/validation.go"
NOBODY = {"url": "https://127.0.0.1:1/nobody"}


@source(DOC + "#matching-requests-objectselector")
async def test_objects_are_selected_by_labels(api, hooks):
    """An update concerns the webhook if the old or the new object matches."""
    selector = {"matchLabels": {"watched": "yes"}}
    await hooks.answer(hooks.said("see", operations=["CREATE", "UPDATE"], objectSelector=selector))
    await api.create(CONFIG_MAPS, config_map("a"))
    assert hooks.reviews("see") == []
    await api.create(CONFIG_MAPS, config_map("b", labels={"watched": "yes"}))
    await api.patch(CONFIG_MAPS, "b", {"metadata": {"labels": None}})
    assert [review["operation"] for review in hooks.reviews("see")] == ["CREATE", "UPDATE"]


@source(DOC + "#matching-requests-namespaceselector")
async def test_namespaces_are_selected_by_labels(api, hooks):
    """A webhook for other namespaces is not asked."""
    selector = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["other"]}]}
    await hooks.answer(hooks.said("no", namespaceSelector=selector), no=deny())
    await api.create(CONFIG_MAPS, config_map())


@source(CONDITIONS)
async def test_a_match_condition(api, hooks):
    """A CEL expression over the request decides whether a webhook is asked."""
    condition = {"name": "only-x", "expression": "object.metadata.name.startsWith('x')"}
    await hooks.answer(hooks.said("no", matchConditions=[condition]), no=deny("no", code=403))
    await api.create(CONFIG_MAPS, config_map("a"))
    assert (await api.create(CONFIG_MAPS, config_map("x")).reply()).status == 403


@source(CONDITIONS)
async def test_all_match_conditions_must_hold(api, hooks):
    """One that is false is enough, also if another cannot be evaluated."""
    conditions = [
        {"name": "broken", "expression": "object.data.missing == 'x'"},
        {"name": "never", "expression": "request.operation == 'DELETE'"},
    ]
    await hooks.answer(hooks.said("no", matchConditions=conditions), no=deny())
    await api.create(CONFIG_MAPS, config_map())


@source(CONDITIONS)
async def test_a_match_condition_that_fails(api, hooks):
    """With failurePolicy Fail the request is refused, without asking the webhook."""
    expression = "object.metadata.name == 'm' && object.data.missing == 'x'"
    await hooks.answer(hooks.said("no", matchConditions=[{"name": "broken", "expression": expression}]))
    reply = await api.create(CONFIG_MAPS, config_map()).reply()
    assert reply.status == 403
    assert hooks.reviews("no") == []


@source(RULES)
async def test_a_rule_for_a_resource_is_not_for_its_subresources(api, hooks):
    """pods is not pods/status."""
    await hooks.answer(hooks.said("no", operations=["UPDATE"], resources=["pods"]), no=deny())
    await running(api, "p")
    assert hooks.reviews("no") == []


@source(RULES)
async def test_a_rule_for_a_subresource(api, hooks):
    """pods/* and pods/status are asked for a status."""
    await api.create(PODS, pod())
    await hooks.answer(
        hooks.said("all", operations=["UPDATE"], resources=["pods/*"]),
        hooks.said("one", operations=["UPDATE"], resources=["pods/status"]),
    )
    await api.patch(PODS, "p", {"status": {"message": "x"}}, sub="status")
    for name in ("all", "one"):
        (review,) = hooks.reviews(name)
        assert review["subResource"] == "status"


@source(RULES)
async def test_an_eviction_is_the_creation_of_a_subresource(api, hooks):
    """This is how drains are guarded; a denial keeps the pod."""
    await running(api, "p")
    await hooks.answer(hooks.said("no", resources=["pods/eviction"]), no=deny("stay", code=429))
    body = {"apiVersion": "policy/v1", "kind": "Eviction", **meta("p")}
    reply = await api.ask("POST", api.at(PODS, "p", "eviction"), body).reply()
    assert (reply.status, "retry-after" in reply.headers) == (429, False)
    (review,) = hooks.reviews("no")
    assert (review["kind"]["kind"], review["subResource"], review["name"]) == ("Eviction", "eviction", "p")
    assert "deletionTimestamp" not in (await api.get(PODS, "p"))["metadata"]


@source(RULES)
async def test_a_scale_is_reviewed_as_a_scale(api, hooks):
    """Its kind is autoscaling/v1 Scale."""
    await api.create(REPLICA_SETS, workload("r"))
    await hooks.answer(hooks.said("see", operations=["UPDATE"], resources=["replicasets/scale"], group="apps"))
    await api.patch(REPLICA_SETS, "r", {"spec": {"replicas": 0}}, sub="scale")
    (review,) = hooks.reviews("see")
    assert review["kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}


@source(DOC + "#matching-requests-matchpolicy")
@pytest.mark.parametrize(("policy", "asked"), [("Equivalent", 1), ("Exact", 0)])
async def test_one_resource_in_two_groups(api, hooks, policy, asked):
    """By default a webhook is asked for the same object by another path, converted to what it asked for."""
    await hooks.answer(hooks.said("see", resources=["events"], group="events.k8s.io", matchPolicy=policy))
    about = {"kind": "Pod", "name": "p", "namespace": api.namespace}
    await api.create(EVENTS, {**meta("e"), "involvedObject": about, "reason": "R"})
    reviews = hooks.reviews("see")
    assert len(reviews) == asked
    for review in reviews:
        assert review["kind"]["group"] == "events.k8s.io"
        assert review["requestKind"]["group"] == ""
        assert review["object"]["regarding"]["name"] == "p"


@source(DOC + "#matching-requests-matchpolicy")
async def test_a_patch_of_an_object_that_was_converted(api, hooks):
    """It is a patch of what the webhook was shown."""
    patch = patched({"op": "replace", "path": "/note", "value": "patched"})
    await hooks.answer(hooks.said("add", resources=["events"], group="events.k8s.io"), mutating=True, add=patch)
    about = {"kind": "Pod", "name": "p", "namespace": api.namespace}
    made = await api.create(EVENTS, {**meta("e"), "involvedObject": about, "message": "M"})
    assert (made["apiVersion"], made["message"]) == ("v1", "patched")


@source("pkg/apis/admissionregistration/v1/defaults.go")
async def test_defaults_of_configurations(api, hooks):
    """Fail, ten seconds, equivalent requests, everything selected."""
    name = unique("hooks")
    hook = hooks.said("x", resources=["nothings"], clientConfig=NOBODY)
    del hook["timeoutSeconds"], hook["namespaceSelector"]
    made = await api.create(MUTATING_WEBHOOKS, {**meta(name), "webhooks": [hook]})
    (found,) = made["webhooks"]
    assert (found["failurePolicy"], found["matchPolicy"], found["timeoutSeconds"]) == ("Fail", "Equivalent", 10)
    assert found["reinvocationPolicy"] == "Never"
    assert found["namespaceSelector"] == found["objectSelector"] == {}
    assert found["rules"][0]["scope"] == "*"


@source(RULE_VALIDATION)
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "short"}, "webhooks[0].name"),
        ({"sideEffects": "Some"}, "webhooks[0].sideEffects"),
        ({"admissionReviewVersions": ["v9"]}, "webhooks[0].admissionReviewVersions"),
        ({"timeoutSeconds": 31}, "webhooks[0].timeoutSeconds"),
        ({"failurePolicy": "Maybe"}, "webhooks[0].failurePolicy"),
        ({"clientConfig": {"url": "http://x.example.com"}}, "webhooks[0].clientConfig.url"),
        ({"clientConfig": {}}, "webhooks[0].clientConfig"),
        ({"matchConditions": [{"name": "a", "expression": "1 +"}]}, "webhooks[0].matchConditions[0].expression"),
        ({"matchPolicy": "Vague"}, "webhooks[0].matchPolicy"),
    ],
)
async def test_configurations_that_are_refused(api, hooks, change, field):
    """Each with the field that is wrong."""
    hook = {**hooks.said("x", resources=["nothings"], clientConfig=NOBODY), **change}
    status = await api.create(VALIDATING_WEBHOOKS, {**meta(unique("hooks")), "webhooks": [hook]}).refused(
        422, "Invalid"
    )
    assert field in [found for _, found in causes(status)]


@source(CONDITIONS)
async def test_match_conditions_are_of_type_bool(api, hooks):
    """An expression that has another type, or none that is known, is refused."""
    for expression in ("1", "request.name", "object.metadata.name"):
        condition = {"name": "a", "expression": expression}
        hook = hooks.said("x", resources=["nothings"], clientConfig=NOBODY, matchConditions=[condition])
        body = {**meta(unique("hooks")), "webhooks": [hook]}
        status = await api.create(VALIDATING_WEBHOOKS, body).refused(422, "Invalid")
        assert "must evaluate to bool" in status["message"]


@source(RULE_VALIDATION)
async def test_names_of_webhooks_are_told_apart(api, hooks):
    """Two of one name in a configuration are refused."""
    hook = hooks.said("x", resources=["nothings"], clientConfig=NOBODY)
    status = await api.create(VALIDATING_WEBHOOKS, {**meta(unique("hooks")), "webhooks": [hook, hook]}).refused(
        422, "Invalid"
    )
    assert ("FieldValueDuplicate", "webhooks[1].name") in causes(status)
