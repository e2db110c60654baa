"""Admission webhooks: which writes their rules and conditions mean, and how reviews and answers are read."""

import pytest
from support.lab.scripted_webhooks import RULE, Hooks, World, hook
from support.virtual_time.worker import in_virtual_time

from lastcall_lab import virtual
from lastcall_lab.apiserver.admission import admission_reviews, webhook_matching
from lastcall_lab.apiserver.admission.chain import AdmissionAttributes
from lastcall_lab.apiserver.admission.policies.expressions import PolicyScope
from lastcall_lab.apiserver.responses import warning_headers
from lastcall_lab.apiserver.values.api_errors import ApiError
from lastcall_lab.apiserver.values.request import UserInfo


def attributes(world, **rest):
    group, plural = rest.pop("group", ""), rest.pop("plural", "pods")
    values = {
        "operation": "CREATE",
        "resource": world.server.scheme.find(group, "v1", plural),
        "subresource": "",
        "namespace": "default",
        "name": "a",
        "user": UserInfo("bob", ("g",)),
        "obj": {"kind": "Pod", "apiVersion": "v1", "metadata": {}},
        "old": None,
        "dry_run": False,
        "options": {},
        **rest,
    }
    return AdmissionAttributes(**values)


RULES = [
    ({}, {}, True),
    ({"resources": ["*"]}, {}, True),
    ({"resources": ["*"]}, {"subresource": "status"}, False),
    ({"resources": ["*/*"]}, {"subresource": "status"}, True),
    ({"resources": ["*/*"]}, {}, True),
    ({"resources": ["pods/*"]}, {"subresource": "eviction"}, True),
    ({"resources": ["*/status"]}, {"subresource": "status"}, True),
    ({"resources": ["*/status"]}, {}, False),
    ({"resources": ["services", "pods/eviction"]}, {"subresource": "eviction"}, True),
    ({"operations": ["DELETE", "UPDATE"]}, {}, False),
    ({"operations": ["*"]}, {"operation": "CONNECT"}, True),
    ({"apiGroups": ["apps"]}, {}, False),
    ({"apiGroups": ["*"], "apiVersions": ["*"]}, {}, True),
    ({"apiVersions": ["v2"]}, {}, False),
    ({"scope": "Namespaced"}, {}, True),
    ({"scope": "Cluster"}, {}, False),
    ({"scope": "Cluster", "resources": ["nodes"]}, {"plural": "nodes", "namespace": ""}, True),
    ({"scope": "Namespaced", "resources": ["nodes"]}, {"plural": "nodes", "namespace": ""}, False),
    ({"scope": "Cluster", "resources": ["namespaces"]}, {"plural": "namespaces", "namespace": "default"}, True),
    ({"scope": "Namespaced", "resources": ["namespaces"]}, {"plural": "namespaces", "namespace": "default"}, False),
]


@pytest.mark.parametrize(("rule", "write", "asked"), RULES)
def test_rules(rule, write, asked):
    async def test():
        world = World(Hooks())
        one = {**RULE, "operations": ["CREATE"], "resources": ["pods"], **rule}
        [parsed] = webhook_matching.webhooks_of({"metadata": {"name": "c"}, "webhooks": [hook("h", rules=[one])]})
        found = webhook_matching.matching_resource(parsed.criteria, attributes(world, **write), {"metadata": {}}, ())
        assert (found is not None) is asked

    virtual.run(test())


@in_virtual_time
async def test_conditions():
    world = World(Hooks())

    def met(*expressions, **rest):
        conditions = [{"name": str(number), "expression": one} for number, one in enumerate(expressions)]
        [parsed] = webhook_matching.webhooks_of(
            {"metadata": {"name": "c"}, "webhooks": [hook("h", matchConditions=conditions, **rest)]}
        )
        write = attributes(world)
        request = admission_reviews.admission_request(write, write.resource, "u")
        variables = {"object": request.pop("object"), "oldObject": request.pop("oldObject"), "request": request}
        return webhook_matching.conditions_met(parsed, write, PolicyScope(variables, {}, None))

    assert met("request.userInfo.username == 'bob'", "object.kind == 'Pod'")
    assert not met("'x' in request.userInfo.groups")
    assert met("oldObject == null", "request.operation == 'CREATE' && !request.dryRun")
    assert not met("object.spec.a == 1", "false")  # one that is false decides
    assert not met("object.spec.a == 1", "true", failurePolicy="Ignore")
    with pytest.raises(ApiError) as caught:
        met("oldObject.spec.a == 1", "object.spec.b == 1")
    assert caught.value.message == (
        "pods \"a\" is forbidden: [expression 'oldObject.spec.a == 1' resulted in error: no such key: spec,"
        " expression 'object.spec.b == 1' resulted in error: no such key: spec]"
    )


@in_virtual_time
async def test_another_version_of_a_resource_is_shown_as_the_one_the_rules_name():
    world = World(Hooks(one={}))
    resource = world.server.scheme.find("autoscaling", "v2", "horizontalpodautoscalers")
    write = attributes(world, resource=resource, obj={"kind": resource.kind, "apiVersion": "autoscaling/v2"})
    rule = {**RULE, "apiGroups": ["autoscaling"], "apiVersions": ["v1"], "resources": ["*"]}
    older = type(resource)("autoscaling", "v1", resource.plural, resource.kind, resource.behaviour)
    configuration = {"metadata": {"name": "c"}, "webhooks": [hook("h", rules=[rule])]}
    [parsed] = webhook_matching.webhooks_of(configuration)
    assert webhook_matching.matching_resource(parsed.criteria, write, {"metadata": {}}, (older,)) is older
    shown = admission_reviews.admission_request(write, older, "u")
    assert shown["kind"]["version"] == shown["resource"]["version"] == "v1"
    assert shown["requestKind"]["version"] == shown["requestResource"]["version"] == "v2"
    assert shown["object"]["apiVersion"] == "autoscaling/v1"
    configuration["webhooks"][0]["matchPolicy"] = "Exact"
    [parsed] = webhook_matching.webhooks_of(configuration)
    assert webhook_matching.matching_resource(parsed.criteria, write, {"metadata": {}}, (older,)) is None


ANSWERS = {
    "a list": (b"[]", "failed to call webhook: couldn't get version/kind; json parse error"),
    "blank": (b"  ", "received invalid webhook response: webhook response was absent"),
    "broken": (
        b"{",
        "failed to call webhook: couldn't get version/kind; json parse error: unexpected end of JSON input",
    ),
    "another kind": (b'{"apiVersion":"v1","kind":"Pod"}', 'failed to call webhook: no kind "Pod" is registered'),
    "no response": (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}', "webhook response was absent"),
    "another uid": (
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"v"}}',
        'received invalid webhook response: expected response.uid="u", got "v"',
    ),
}


@pytest.mark.parametrize(("body", "said"), ANSWERS.values(), ids=ANSWERS)
def test_an_answer_that_does_not_count(body, said):
    with pytest.raises(admission_reviews.WebhookCallFailed) as caught:
        admission_reviews.parse_answer(body, "u", mutating=False)
    assert said in str(caught.value)


DENIALS = [
    ({}, 400, "", "without explanation"),
    ({"code": 200, "message": "odd"}, 400, "", "denied the request: odd"),
    ({"code": 403, "reason": "Forbidden"}, 403, "Forbidden", "denied the request: Forbidden"),
    ({"code": 429, "details": {"retryAfterSeconds": 7}}, 429, "", "without explanation"),
]


@pytest.mark.parametrize(("status", "code", "reason", "said"), DENIALS)
def test_denials(status, code, reason, said):
    denied = admission_reviews.WebhookDenial("h", status)
    assert (denied.code, denied.reason) == (code, reason)
    assert denied.message.endswith(said)
    assert denied.retry_after == status.get("details", {}).get("retryAfterSeconds", 0)


def test_warnings_are_quoted_once_and_cut_when_they_are_many():
    assert warning_headers.warning_headers(["a", "", "a", "b\nc", 'say "ü"\\']) == [
        '299 - "a"',
        '299 - "say \\"' + "ü".encode().decode("latin-1") + '\\"\\\\"',
    ]
    many = warning_headers.warning_headers([str(number) * 1000 for number in range(5)])
    assert [len(header) for header in many] == [len('299 - ""') + 256] * 5
