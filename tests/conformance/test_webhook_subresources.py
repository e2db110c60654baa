"""Admission webhooks for what is posted and not stored: bindings, evictions, reviews, tokens, connections."""

import pytest
from support.conformance.api_client import SERVICE_ACCOUNTS
from support.conformance.objects import config_map, meta, pod, running
from support.conformance.webhooks import deny

from lastcall.adapters.kube.resources import CONFIG_MAPS, PODS

source = pytest.mark.source
CREATE = "staging/src/k8s.io/apiserver/pkg/endpoints/handlers/create.go"
CONNECT = "staging/src/k8s.io/apiserver/pkg/endpoints/handlers/rest.go"
STORE = "staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go"
CONDITIONS = "staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go"
ACCESS, IDENTITY = "authorization.k8s.io", "authentication.k8s.io"
QUESTION = {"resourceAttributes": {"verb": "get", "resource": "pods"}}


def binding(name="p"):
    """To a node that is not there."""
    return {"apiVersion": "v1", "kind": "Binding", **meta(name), "target": {"kind": "Node", "name": "nope"}}


def managed(review, *parts):
    """The fields that the reviewed object says the client manages."""
    (entry,) = review["object"]["metadata"]["managedFields"]
    assert entry["operation"] == "Update"
    fields = entry["fieldsV1"]
    for part in parts:
        fields = fields[part]
    return fields


@source(CREATE)
async def test_the_review_of_a_binding(api, hooks):
    """A creation of the subresource, with who manages which field; a denial keeps the pod unbound."""
    await api.create(PODS, pod())
    await hooks.answer(hooks.said("no", resources=["pods/binding"]), no=deny("stay", code=403))
    await api.ask("POST", api.at(PODS, "p", "binding"), binding()).refused(403)
    (review,) = hooks.reviews("no")
    assert (review["kind"]["kind"], review["resource"]["resource"], review["subResource"]) == (
        "Binding",
        "pods",
        "binding",
    )
    assert managed(review) == {"f:target": {}}
    assert "nodeName" not in (await api.get(PODS, "p"))["spec"]


@source(CREATE)
async def test_the_older_way_to_bind_is_another_resource(api, hooks):
    """A rule for pods/binding does not mean it."""
    await api.create(PODS, pod())
    await hooks.answer(
        hooks.said("old", resources=["bindings"]), hooks.said("no", resources=["pods/binding"]), no=deny()
    )
    await api.ask("POST", f"/api/v1/namespaces/{api.namespace}/bindings", binding())
    assert hooks.reviews("no") == []
    (review,) = hooks.reviews("old")
    assert (review["resource"]["resource"], "subResource" in review) == ("bindings", False)


@source("pkg/registry/core/pod/storage/eviction.go")
async def test_the_review_of_a_dry_eviction(api, hooks):
    """The options of the deletion say that it is one."""
    await running(api, "p")
    await hooks.answer(hooks.said("see", resources=["pods/eviction"]))
    body = {"apiVersion": "policy/v1", "kind": "Eviction", **meta("p"), "deleteOptions": {"gracePeriodSeconds": 5}}
    await api.ask("POST", api.at(PODS, "p", "eviction"), body, dryRun="All")
    (review,) = hooks.reviews("see")
    assert review["object"]["deleteOptions"] == {"gracePeriodSeconds": 5, "dryRun": ["All"]}
    assert managed(review) == {"f:deleteOptions": {".": {}, "f:gracePeriodSeconds": {}}}


@source("pkg/registry/authorization/localsubjectaccessreview/rest.go")
async def test_the_review_of_an_access_review(api, hooks):
    """Webhooks are shown the question, and may refuse it."""
    await hooks.answer(hooks.said("no", resources=["localsubjectaccessreviews"], group=ACCESS), no=deny())
    spec = {"resourceAttributes": {**QUESTION["resourceAttributes"], "namespace": api.namespace}, "user": "jane"}
    body = {"metadata": {"namespace": api.namespace}, "spec": spec}
    path = f"/apis/{ACCESS}/v1/namespaces/{api.namespace}/localsubjectaccessreviews"
    await api.ask("POST", path, body).refused(400)
    (review,) = hooks.reviews("no")
    assert (review["object"]["spec"], review["object"]["status"]) == (spec, {"allowed": False})
    assert managed(review, "f:spec", "f:user") == {}


@source("pkg/registry/authorization/selfsubjectaccessreview/rest.go")
@pytest.mark.parametrize(
    ("group", "plural", "spec"),
    [
        (ACCESS, "subjectaccessreviews", {**QUESTION, "user": "jane"}),
        (ACCESS, "selfsubjectaccessreviews", QUESTION),
        (ACCESS, "selfsubjectrulesreviews", {"namespace": "default"}),
        (IDENTITY, "tokenreviews", {"token": "x"}),
        (IDENTITY, "selfsubjectreviews", None),
    ],
)
async def test_webhooks_see_reviews_without_a_namespace(api, hooks, group, plural, spec):
    """A namespace selector does not exempt what is in no namespace."""
    manager = "request.options.?fieldManager.orValue('')"  # nobody else's reviews are denied
    chosen = {"name": "mine", "expression": f"{manager} == '{api.namespace}'"}
    await hooks.answer(hooks.said("no", resources=[plural], group=group, matchConditions=[chosen]), no=deny("unasked"))
    body = {} if spec is None else {"spec": spec}
    status = await api.ask("POST", f"/apis/{group}/v1/{plural}", body, fieldManager=api.namespace).refused(400)
    assert status["message"].endswith("denied the request: unasked")


@source(CREATE)
async def test_an_access_review_says_who_manages_its_fields(api):
    """As every other object that has been posted."""
    made = await api.ask("POST", f"/apis/{ACCESS}/v1/selfsubjectaccessreviews", {"spec": QUESTION}, fieldManager="me")
    (entry,) = made["metadata"]["managedFields"]
    assert (entry["manager"], entry["apiVersion"]) == ("me", f"{ACCESS}/v1")


@source("pkg/registry/core/serviceaccount/storage/token.go")
async def test_the_review_of_a_request_for_a_token(api, hooks):
    """With the account's name and UID and the time that the token lives; a denial gives none."""
    await hooks.answer(hooks.said("no", resources=["serviceaccounts/token"]), no=deny("none", code=403))
    account = await api.get(SERVICE_ACCOUNTS, "default")
    await api.ask("POST", api.at(SERVICE_ACCOUNTS, "default", "token"), {"spec": {"audiences": ["a"]}}).refused(403)
    (review,) = hooks.reviews("no")
    assert (review["kind"]["kind"], review["subResource"], review["name"]) == ("TokenRequest", "token", "default")
    assert review["object"]["metadata"]["uid"] == account["metadata"]["uid"]
    assert review["object"]["spec"] == {"audiences": ["a"], "expirationSeconds": 3600, "boundObjectRef": None}
    assert managed(review, "f:spec") == {"f:audiences": {}, "f:expirationSeconds": {}}


@source(CONNECT)
@pytest.mark.parametrize(
    ("part", "query", "kind", "shown"),
    [
        ("exec", {"command": ["ls", "-l"], "stdout": "1", "tty": "false"}, "PodExecOptions", {"command": ["ls", "-l"]}),
        ("attach", {"container": "c", "stdout": "true"}, "PodAttachOptions", {"container": "c"}),
        ("portforward", {"ports": "80"}, "PodPortForwardOptions", {"ports": [80]}),
    ],
)
async def test_the_review_of_a_connection(api, hooks, part, query, kind, shown):
    """Its object is what the query says; a denial comes before the pod is looked at."""
    await hooks.answer(hooks.said("no", ["CONNECT"], [f"pods/{part}"]), no=deny("closed", code=403))
    await api.ask("POST", api.at(PODS, "missing", part), **query).refused(403)
    (review,) = hooks.reviews("no")
    output = {"stdout": True} if "stdout" in query else {}
    assert review["object"] == {"kind": kind, "apiVersion": "v1", **shown, **output}
    assert (review["operation"], review["options"], review["name"]) == ("CONNECT", None, "missing")


@source(STORE)
async def test_an_update_that_names_no_version(api, hooks):
    """Webhooks are shown the version that it replaces."""
    version = (await api.create(CONFIG_MAPS, config_map()))["metadata"]["resourceVersion"]
    await hooks.answer(hooks.said("see", operations=["UPDATE"]))
    await api.update(CONFIG_MAPS, config_map(data={"k": "w"}))
    (review,) = hooks.reviews("see")
    assert review["object"]["metadata"]["resourceVersion"] == version


@source(CONDITIONS)
async def test_a_match_condition_that_asks_for_rights(api, hooks):
    """``authorizer`` is the user who sends the request."""
    may = "authorizer.group('').resource('pods').check('get').allowed()"
    await hooks.answer(
        hooks.said("yes", matchConditions=[{"name": "may", "expression": may}]),
        hooks.said("no", matchConditions=[{"name": "may-not", "expression": f"!{may}"}]),
    )
    await api.create(CONFIG_MAPS, config_map())
    assert (len(hooks.reviews("yes")), len(hooks.reviews("no"))) == (1, 0)
