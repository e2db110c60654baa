"""Admission webhooks: what the API server shows, and what their answers do."""

import pytest
from support.conformance.api_client import STRATEGIC, causes
from support.conformance.objects import config_map, meta
from support.conformance.webhooks import deny, patched

from lastcall.adapters.kube.resources import CONFIG_MAPS, LEASES, NAMESPACES

source = pytest.mark.source
DOC = "https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/"
VALIDATING = "staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go"
MUTATING = "staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go"
REQUEST = "staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/request/admissionreview.go"
ERRORS = "staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go"
_FORBIDDEN = (
    b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not for you","reason":"Forbidden","code":403}'
)
NOBODY = {"url": "https://127.0.0.1:1/nobody"}


@source(DOC + "#response")
async def test_a_denial(api, hooks):
    """403 if nothing else is said, with the webhook's name and message; nothing is created."""
    await hooks.answer(hooks.said("no"), no=deny("not today"))
    reply = await api.create(CONFIG_MAPS, config_map()).reply()
    assert reply.status in (400, 403)
    message = 'admission webhook "no.conformance.example.com" denied the request: not today'
    assert reply.body["message"] == message
    assert await api.gone(CONFIG_MAPS, "m")


@source(ERRORS)
@pytest.mark.parametrize(("code", "seen"), [(403, 403), (409, 409), (422, 422), (429, 429), (503, 503), (200, 400)])
async def test_the_code_of_a_denial(api, hooks, code, seen):
    """It is passed on if it is an error's."""
    await hooks.answer(hooks.said("no"), no=deny("no", code=code))
    assert (await api.create(CONFIG_MAPS, config_map()).reply()).status == seen


@source(ERRORS)
async def test_the_reason_of_a_denial(api, hooks):
    """It is passed on too."""
    await hooks.answer(hooks.said("no"), no=deny("no", code=409, reason="Conflict"))
    await api.create(CONFIG_MAPS, config_map()).refused(409, "Conflict")


@source(DOC + "#response")
async def test_warnings_of_webhooks(api, hooks):
    """They become Warning headers, of what is allowed too."""
    await hooks.answer(hooks.said("warn"), warn={"warnings": ["be careful"]})
    reply = await api.create(CONFIG_MAPS, config_map()).reply()
    assert (reply.status, reply.headers["warning"]) == (201, '299 - "be careful"')


@source(REQUEST)
async def test_the_review_of_a_creation(api, hooks):
    """What a webhook is shown."""
    await hooks.answer(hooks.said("see"))
    await api.create(CONFIG_MAPS, config_map(), fieldManager="me")
    (review,) = hooks.reviews("see")
    assert review["operation"] == "CREATE"
    assert review["kind"] == review["requestKind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert review["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert (review["name"], review["namespace"]) == ("m", api.namespace)
    assert review["object"]["data"] == {"k": "v"}
    assert review["oldObject"] is None
    assert review["dryRun"] is False
    assert review["options"]["kind"] == "CreateOptions"
    assert review["options"]["fieldManager"] == "me"
    assert "system:authenticated" in review["userInfo"]["groups"]


@source(REQUEST)
async def test_the_review_of_an_update(api, hooks):
    """The old object and the new."""
    await api.create(CONFIG_MAPS, config_map())
    await hooks.answer(hooks.said("see", operations=["UPDATE"]))
    await api.patch(CONFIG_MAPS, "m", {"data": {"k": "w"}})
    (review,) = hooks.reviews("see")
    assert (review["oldObject"]["data"], review["object"]["data"]) == ({"k": "v"}, {"k": "w"})
    assert review["options"]["kind"] == "UpdateOptions"


@source(REQUEST)
async def test_the_review_of_a_deletion(api, hooks):
    """Only the old object."""
    await api.create(CONFIG_MAPS, config_map())
    await hooks.answer(hooks.said("see", operations=["DELETE"]))
    await api.delete(CONFIG_MAPS, "m")
    review = hooks.reviews("see")[0]
    assert review["object"] is None
    assert review["oldObject"]["data"] == {"k": "v"}
    assert review["options"]["kind"] == "DeleteOptions"


@source(VALIDATING)
async def test_a_deletion_can_be_denied(api, hooks):
    """The object stays."""
    await api.create(CONFIG_MAPS, config_map())
    await hooks.answer(hooks.said("no", operations=["DELETE"]), no=deny("keep it", code=403))
    status = (await api.delete(CONFIG_MAPS, "m").reply()).body
    assert "keep it" in status["message"]
    assert not await api.gone(CONFIG_MAPS, "m")


@source(MUTATING)
async def test_a_patch_of_a_webhook(api, hooks):
    """A JSON patch changes the object before it is stored."""
    patch = patched({"op": "add", "path": "/data/added", "value": "x"})
    await hooks.answer(hooks.said("add"), mutating=True, add=patch)
    assert (await api.create(CONFIG_MAPS, config_map()))["data"] == {"k": "v", "added": "x"}


@source(MUTATING)
async def test_webhooks_of_one_configuration_come_in_order(api, hooks):
    """The second is shown what the first has made."""
    await hooks.answer(
        hooks.said("one"),
        hooks.said("two"),
        mutating=True,
        one=patched({"op": "add", "path": "/data/one", "value": "1"}),
        two=lambda review: patched({"op": "add", "path": "/data/two", "value": review["object"]["data"]["one"]}),
    )
    assert (await api.create(CONFIG_MAPS, config_map()))["data"] == {"k": "v", "one": "1", "two": "1"}


@source(DOC + "#what-are-admission-webhooks")
async def test_validating_webhooks_see_what_was_made(api, hooks):
    """All mutation is before all validation."""
    patch = patched({"op": "add", "path": "/data/added", "value": "x"})
    await hooks.answer(hooks.said("see"))
    await hooks.answer(hooks.said("add"), mutating=True, add=patch)
    await api.create(CONFIG_MAPS, config_map())
    (review,) = hooks.reviews("see")
    assert review["object"]["data"] == {"k": "v", "added": "x"}


@source(DOC + "#reinvocation-policy")
async def test_a_webhook_is_asked_again(api, hooks):
    """If a later one has changed the object, and its policy says so."""
    await hooks.answer(
        hooks.said("one", reinvocationPolicy="IfNeeded"),
        hooks.said("two"),
        mutating=True,
        two=patched({"op": "add", "path": "/data/two", "value": "2"}),
    )
    await api.create(CONFIG_MAPS, config_map())
    assert [sorted(review["object"]["data"]) for review in hooks.reviews("one")] == [["k"], ["k", "two"]]
    assert len(hooks.reviews("two")) == 1


@source(MUTATING)
async def test_a_patch_that_cannot_be_applied(api, hooks):
    """500; nothing is created."""
    patch = patched({"op": "remove", "path": "/data/missing"})
    await hooks.answer(hooks.said("bad"), mutating=True, bad=patch)
    assert (await api.create(CONFIG_MAPS, config_map()).reply()).status == 500
    assert await api.gone(CONFIG_MAPS, "m")


@source(MUTATING)
async def test_what_a_webhook_makes_is_validated(api, hooks):
    """Validation of the kind comes after mutation."""
    patch = patched({"op": "add", "path": "/metadata/labels", "value": {"a b": "c"}})
    await hooks.answer(hooks.said("bad"), mutating=True, bad=patch)
    status = await api.create(CONFIG_MAPS, config_map()).refused(422, "Invalid")
    assert causes(status)[0][1] == "metadata.labels"


@source(DOC + "#side-effects")
async def test_a_dry_run_is_told(api, hooks):
    """dryRun is true in the review."""
    await hooks.answer(hooks.said("see"))
    await api.create(CONFIG_MAPS, config_map(), dryRun="All")
    assert [review["dryRun"] for review in hooks.reviews("see")] == [True]


@source(DOC + "#side-effects")
async def test_a_webhook_with_side_effects_forbids_dry_runs(api, hooks):
    """400, without being asked. NoneOnDryRun allows them."""
    await hooks.answer(hooks.said("quiet", sideEffects="NoneOnDryRun"))
    await api.create(CONFIG_MAPS, config_map(), dryRun="All")
    assert len(hooks.reviews("quiet")) == 1


@source(DOC + "#failure-policy")
async def test_a_webhook_that_is_not_there_fails_the_request(api, hooks):
    """failurePolicy Fail: 500 that names the webhook."""
    await hooks.answer(hooks.said("dead", clientConfig=NOBODY))
    status = await api.create(CONFIG_MAPS, config_map()).refused(500, "InternalError")
    assert 'failed calling webhook "dead.conformance.example.com"' in status["message"]


@source(DOC + "#failure-policy")
async def test_a_webhook_that_is_not_there_may_be_ignored(api, hooks):
    """failurePolicy Ignore."""
    await hooks.answer(hooks.said("dead", clientConfig=NOBODY, failurePolicy="Ignore"))
    await api.create(CONFIG_MAPS, config_map())


@source(DOC + "#timeouts")
async def test_a_webhook_that_takes_too_long(api, hooks):
    """timeoutSeconds; then the failure policy decides."""
    await hooks.answer(hooks.said("slow", timeoutSeconds=1), slow={"sleep": 2})
    status = await api.create(CONFIG_MAPS, config_map()).refused(500, "InternalError")
    assert "context deadline exceeded" in status["message"]


@source(REQUEST)
@pytest.mark.parametrize(
    "raw",
    [
        b"no JSON",
        b"{}",
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}',
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"other","allowed":true}}',
        b'{"apiVersion":"admission.k8s.io/v9","kind":"AdmissionReview","response":{"uid":"other","allowed":true}}',
    ],
    ids=["text", "empty", "no-response", "other-uid", "other-version"],
)
async def test_an_answer_that_is_none(api, hooks, raw):
    """It counts as a failed call."""
    await hooks.answer(hooks.said("odd"), odd={"raw": raw})
    await api.create(CONFIG_MAPS, config_map()).refused(500, "InternalError")


@source(ERRORS)
async def test_a_denial_with_a_time(api, hooks):
    """retryAfterSeconds becomes Retry-After."""
    await hooks.answer(hooks.said("no"), no=deny("later", code=429, details={"retryAfterSeconds": 7}))
    reply = await api.create(CONFIG_MAPS, config_map()).reply()
    assert (reply.status, reply.headers["retry-after"]) == (429, "7")


@source(VALIDATING)
async def test_each_object_of_a_collection_is_reviewed(api, hooks):
    """A deletecollection asks for each."""
    for name in "ab":
        await api.create(LEASES, meta(name))
    await hooks.answer(
        hooks.said("see", operations=["DELETE"], resources=["leases"], group="coordination.k8s.io"),
    )
    await api.ask("DELETE", api.at(LEASES))
    assert {review["oldObject"]["metadata"]["name"] for review in hooks.reviews("see")} == {"a", "b"}


@source(VALIDATING)
async def test_a_patch_is_reviewed_as_an_update(api, hooks):
    """With the whole new object."""
    await api.create(CONFIG_MAPS, config_map(data={"a": "1", "b": "2"}))
    await hooks.answer(hooks.said("see", operations=["UPDATE"]))
    await api.patch(CONFIG_MAPS, "m", {"data": {"a": "3"}}, STRATEGIC)
    (review,) = hooks.reviews("see")
    assert (review["operation"], review["object"]["data"]) == ("UPDATE", {"a": "3", "b": "2"})


@source(MUTATING)
async def test_a_patch_with_a_wrong_type(api, hooks):
    """500 with the words of the decoder; nothing is created."""
    await hooks.answer(hooks.said("set"), mutating=True, set=patched({"op": "add", "path": "/data/x", "value": 5}))
    status = await api.create(CONFIG_MAPS, config_map()).refused(500, "InternalError")
    assert "cannot unmarshal number into Go struct field ConfigMap.data of type string" in status["message"]
    assert await api.gone(CONFIG_MAPS, "m")


@source(MUTATING)
async def test_a_patch_with_an_unknown_field(api, hooks):
    """The field is dropped."""
    await hooks.answer(hooks.said("set"), mutating=True, set=patched({"op": "add", "path": "/nope", "value": 1}))
    assert "nope" not in await api.create(CONFIG_MAPS, config_map())


@source(MUTATING)
@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [("/kind", "Pod", ""), ("/kind", "Nope", "InternalError"), ("/apiVersion", "v2", "InternalError")],
)
async def test_a_patch_to_something_else(api, hooks, path, value, reason):
    """500: the object has the kind and version that the request says."""
    operation = {"op": "replace", "path": path, "value": value}
    await hooks.answer(hooks.said("set"), mutating=True, set=patched(operation))
    await api.create(CONFIG_MAPS, config_map()).refused(500, reason)
    assert await api.gone(CONFIG_MAPS, "m")


@source("staging/src/k8s.io/apiserver/pkg/registry/rest/create.go")
async def test_a_patch_to_another_namespace(api, hooks):
    """400, for a creation and for a change."""
    await api.create(CONFIG_MAPS, config_map("old"))
    operation = {"op": "replace", "path": "/metadata/namespace", "value": "other"}
    both = hooks.said("set", operations=["CREATE", "UPDATE"])
    await hooks.answer(both, mutating=True, set=patched(operation))
    for write in (api.create(CONFIG_MAPS, config_map()), api.patch(CONFIG_MAPS, "old", {"data": {"k": "w"}})):
        status = await write.refused(400, "BadRequest")
        assert "namespace of the provided object does not match" in status["message"]


@source("staging/src/k8s.io/apiserver/pkg/registry/rest/create.go")
async def test_a_patch_that_removes_the_metadata(api, hooks):
    """422: the name is required."""
    await hooks.answer(hooks.said("set"), mutating=True, set=patched({"op": "remove", "path": "/metadata"}))
    status = await api.create(CONFIG_MAPS, config_map()).refused(422, "Invalid")
    assert causes(status) == [("FieldValueRequired", "metadata.name")]


@source(REQUEST)
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"allowed": "true"}, "string into Go struct field AdmissionResponse.response.allowed of type bool"),
        ({"warnings": "x"}, "string into Go struct field AdmissionResponse.response.warnings of type []string"),
        (deny(code="x"), "string into Go struct field Status.response.status.code of type int32"),
        ({"raw": b""}, "0-length response with status code: 200 and content type: application/json"),
        ({"raw": b"null"}, "received invalid webhook response: webhook response was absent"),
        ({"raw": _FORBIDDEN, "status": 403}, "failed to call webhook: not for you"),
        ({"raw": b'{"kind":"AdmissionReview","response":{}}'}, "received invalid webhook response: expected"),
    ],
    ids=["allowed", "warnings", "code", "empty", "null", "status", "no version"],
)
async def test_an_answer_of_another_type(api, hooks, answer, why):
    """It is a failed call: 500 with the reason by failurePolicy Fail, no matter by Ignore."""
    await hooks.answer(hooks.said("strict"), strict=answer)
    status = await api.create(CONFIG_MAPS, config_map()).refused(500, "InternalError")
    assert 'failed calling webhook "strict.conformance.example.com"' in status["message"]
    assert why in status["message"]


@source(DOC + "#failure-policy")
async def test_an_answer_of_another_type_that_does_not_matter(api, hooks):
    """failurePolicy Ignore: the request goes on."""
    await hooks.answer(hooks.said("lax", failurePolicy="Ignore"), lax={"allowed": "true"})
    await api.create(CONFIG_MAPS, config_map())


@source("staging/src/k8s.io/apiserver/pkg/endpoints/handlers/create.go")
async def test_the_namespace_in_the_review_of_a_namespace(api, hooks):
    """It is the object's own name."""
    label = {"matchLabels": {"kubernetes.io/metadata.name": api.namespace}}
    await hooks.answer(hooks.said("see", operations=["UPDATE"], resources=["namespaces"], namespaceSelector=label))
    await api.patch(NAMESPACES, api.namespace, {"metadata": {"labels": {"a": "b"}}}, dryRun="All")
    (review,) = hooks.reviews("see")
    assert (review["name"], review["namespace"]) == (api.namespace, api.namespace)
