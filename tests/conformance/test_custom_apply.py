"""Server-side apply of custom resources: null, and values of types that their schema does not say."""

import pytest
from support.conformance.api_client import causes
from support.conformance.custom_resources import widget

source = pytest.mark.source
SMD = "https://github.com/kubernetes-sigs/structured-merge-diff/blob/master/typed/merge.go"
NULLS = "staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting/prune.go"
SCHEMA = "staging/src/k8s.io/kube-openapi/pkg/schemaconv/openapi.go"
WRONG = "FieldValueTypeInvalid"


@source(SMD)
@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"nick": None}, "spec.nick"),
        ({"port": None}, "spec.port"),
        ({"tags": None}, "spec.tags"),
        ({"free": None}, "spec.free"),
        ({"parts": [{"name": None}]}, "spec.parts[0].name"),
    ],
)
async def test_apply_of_null(api, widgets, spec, field):
    """An apply keeps it, and the schema refuses it; other writes drop it."""
    status = await api.apply(widgets[0], "w", widget(widgets, **spec)).refused(422, "Invalid")
    assert field in [place for _, place in causes(status)]


@source(SMD)
async def test_apply_of_null_over_a_value(api, widgets):
    """It is refused as well."""
    await api.create(widgets[0], widget(widgets, nick="abc"))
    status = await api.apply(widgets[0], "w", widget(widgets, nick=None), force="true").refused(422, "Invalid")
    assert causes(status)[0] == (WRONG, "spec.nick")


@source(NULLS)
async def test_apply_of_null_that_is_taken(api, widgets):
    """Where null may be, where a default comes in its place, and where no type is said: there it is dropped."""
    found = await api.apply(widgets[0], "w", widget(widgets, maybe=None, color=None, anything=None))
    assert found["spec"] == {"size": 3, "maybe": None, "color": "red"}


@source(SCHEMA)
@pytest.mark.parametrize(("value", "said"), [("x", "x"), (1, "1"), (["x"], "[x]")])
async def test_apply_of_what_is_no_object(api, widgets, value, said):
    """A field of type object is one whatever is in it: 500."""
    status = await api.apply(widgets[0], "w", widget(widgets, free=value)).refused(500)
    assert status["message"].endswith(f".spec.free: expected map, got &{{{said}}}")


@source(SCHEMA)
async def test_apply_of_fields_that_an_object_cannot_have(api, widgets):
    """They are dropped without a warning if the schema names no fields at all."""
    reply = await api.apply(widgets[0], "w", widget(widgets, closed={"x": 1})).reply()
    assert (reply.status, reply.warnings) == (201, [])
    assert reply.body["spec"]["closed"] == {}


@source(SMD)
@pytest.mark.parametrize("value", ["x", [1]])
async def test_apply_of_another_type(api, widgets, value):
    """What was in the object that it replaces belongs to nobody any more."""
    await api.create(widgets[0], widget(widgets, anything={"a": 1}))
    found = await api.apply(widgets[0], "w", widget(widgets, anything=value), force="true")
    (before,) = [entry for entry in found["metadata"]["managedFields"] if entry["operation"] == "Update"]
    assert "f:anything" not in before["fieldsV1"]["f:spec"]
