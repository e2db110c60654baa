"""Objects of custom resources: what their schema makes of them, and how they are served."""

import pytest
from support.conformance.api_client import JSON_PATCH, STRATEGIC, causes
from support.conformance.custom_resources import GROUP, widget
from support.conformance.objects import changed
from support.conformance.webhooks import patched

source = pytest.mark.source
DOC = "https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/"
RULES = "https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/2876-crd-validation-expression-language"
STRATEGY = "staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresource/strategy.go"
SERVING = "staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go"


@source(DOC)
async def test_an_object_is_made_and_read(api, widgets):
    """With generation, defaults and identity as any other."""
    made = await api.create(widgets[0], widget(widgets))
    assert (made["metadata"]["generation"], made["spec"]["color"]) == (1, "red")
    assert made == await api.get(widgets[0], "w")


@source(DOC + "#defaulting")
async def test_defaults_within_lists(api, widgets):
    """Each item has its own."""
    made = await api.create(widgets[0], widget(widgets, parts=[{"name": "a"}, {"name": "b", "n": 5}]))
    assert made["spec"]["parts"] == [{"name": "a", "n": 1}, {"name": "b", "n": 5}]


@source(DOC + "#field-pruning")
async def test_unknown_fields_are_pruned(api, widgets):
    """With a warning; where the schema preserves them they stay."""
    reply = await api.create(widgets[0], widget(widgets, other=1, free={"any": [1, {"x": None}]})).reply()
    assert "other" not in reply.good()["spec"]
    assert reply.headers["warning"] == '299 - "unknown field \\"spec.other\\""'
    assert reply.body["spec"]["free"] == {"any": [1, {"x": None}]}


@source(DOC + "#field-pruning")
async def test_unknown_fields_are_refused_if_asked(api, widgets):
    """Strict field validation."""
    call = api.create(widgets[0], widget(widgets, other=1), fieldValidation="Strict")
    assert 'unknown field "spec.other"' in (await call.refused(400, "BadRequest"))["message"]


@source(DOC + "#validation")
@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        ({"size": 0}, ("FieldValueInvalid", "spec.size")),
        ({"size": 10}, ("FieldValueInvalid", "spec.size")),
        ({"size": None}, ("FieldValueRequired", "spec.size")),
        ({"size": "3"}, ("FieldValueTypeInvalid", "spec.size")),
        ({"color": "green"}, ("FieldValueNotSupported", "spec.color")),
        ({"nick": "UP"}, ("FieldValueInvalid", "spec.nick")),
        ({"nick": "toolong"}, ("FieldValueTooLong", "spec.nick")),
        ({"when": "yesterday"}, ("FieldValueTypeInvalid", "spec.when")),
        ({"tags": ["a", "a"]}, ("FieldValueDuplicate", "spec.tags[1]")),
        ({"parts": [{"name": "a"}, {"name": "a"}]}, ("FieldValueDuplicate", "spec.parts[1]")),
        ({"parts": [{}]}, ("FieldValueRequired", "spec.parts[0].name")),
        ({"port": 1.5}, ("FieldValueTypeInvalid", "spec.port")),
        ({"low": 2, "high": 1}, ("FieldValueInvalid", "spec")),
    ],
)
async def test_a_schema_is_kept(api, widgets, spec, cause):
    """422 with the field that is wrong."""
    status = await api.create(widgets[0], widget(widgets, **spec)).refused(422, "Invalid")
    assert cause in causes(status)


@source(DOC + "#validation")
@pytest.mark.parametrize("port", [80, "http"])
async def test_a_number_or_text(api, widgets, port):
    """x-kubernetes-int-or-string."""
    assert (await api.create(widgets[0], widget(widgets, port=port)))["spec"]["port"] == port


@source(DOC + "#defaulting-and-nullable")
async def test_null_where_it_may_be(api, widgets):
    """Kept where the schema says nullable, else dropped before defaults."""
    made = await api.create(widgets[0], widget(widgets, maybe=None, color=None))
    assert made["spec"] == {"size": 3, "maybe": None, "color": "red"}


@source(RULES)
async def test_a_rule_over_two_fields(api, widgets):
    """Its own message is told."""
    status = await api.create(widgets[0], widget(widgets, low=2, high=1)).refused(422, "Invalid")
    assert "low must not exceed high" in status["message"]


@source(RULES)
async def test_a_rule_about_the_change(api, widgets):
    """oldSelf: asked at updates only."""
    await api.create(widgets[0], widget(widgets, fixed="a"))
    await api.patch(widgets[0], "w", {"spec": {"size": 4}})
    status = await api.patch(widgets[0], "w", {"spec": {"fixed": "b"}}).refused(422, "Invalid")
    assert causes(status) == [("FieldValueInvalid", "spec.fixed")]
    assert "is fixed" in status["message"]


@source(STRATEGY)
async def test_an_update_needs_a_revision(api, widgets):
    """Custom resources are not overwritten blindly."""
    made = await api.create(widgets[0], widget(widgets))
    status = await api.update(widgets[0], widget(widgets)).refused(422, "Invalid")
    assert causes(status) == [("FieldValueInvalid", "metadata.resourceVersion")]
    await api.update(widgets[0], changed(made, "spec.size", 4))


@source(STRATEGY)
async def test_generations_count_the_spec(api, widgets):
    """Not metadata, not the status."""
    await api.create(widgets[0], widget(widgets))
    labelled = await api.patch(widgets[0], "w", {"metadata": {"labels": {"a": "b"}}})
    sized = await api.patch(widgets[0], "w", {"spec": {"size": 4}})
    status = await api.patch(widgets[0], "w", {"status": {"phase": "x"}}, sub="status")
    assert [one["metadata"]["generation"] for one in (labelled, sized, status)] == [1, 2, 2]


@source(DOC + "#status-subresource")
async def test_a_status_is_written_at_its_path_alone(api, widgets):
    """Neither creation nor update write it; its path writes nothing else."""
    made = await api.create(widgets[0], widget(widgets, status={"phase": "x"}))
    assert "status" not in made
    found = await api.patch(widgets[0], "w", {"status": {"phase": "y"}, "spec": {"size": 9}}, sub="status")
    assert (found["status"], found["spec"]["size"]) == ({"phase": "y"}, 3)


@source(DOC + "#scale-subresource")
async def test_a_custom_scale(api, widgets):
    """By the paths of the definition."""
    await api.create(widgets[0], widget(widgets))
    assert (await api.get(widgets[0], "w", "scale"))["spec"] == {"replicas": 3}
    await api.patch(widgets[0], "w", {"spec": {"replicas": 5}}, sub="scale")
    assert (await api.get(widgets[0], "w"))["spec"]["size"] == 5


@source(SERVING)
async def test_no_strategic_patches(api, widgets):
    """415: a schema has no patch strategies. Merge and JSON patches work."""
    await api.create(widgets[0], widget(widgets))
    await api.patch(widgets[0], "w", {}, kind=STRATEGIC).refused(415, "UnsupportedMediaType")
    operation = [{"op": "replace", "path": "/spec/size", "value": 7}]
    assert (await api.patch(widgets[0], "w", operation, JSON_PATCH))["spec"]["size"] == 7


@source("https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy")
async def test_apply_merges_lists_by_their_keys(api, widgets):
    """As the schema says: a map by name, a set by value."""
    await api.apply(widgets[0], "w", widget(widgets, parts=[{"name": "a"}], tags=["x"]))
    body = widget(widgets, parts=[{"name": "b", "n": 2}], tags=["y"])
    del body["spec"]["size"]
    found = await api.apply(widgets[0], "w", body, "m2")
    assert [part["name"] for part in found["spec"]["parts"]] == ["a", "b"]
    assert found["spec"]["tags"] == ["x", "y"]


@source("https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy")
async def test_apply_of_an_item_without_its_key(api, widgets):
    """500: a key field has no default unless the schema gives it one."""
    status = await api.apply(widgets[0], "w", widget(widgets, parts=[{"n": 2}])).refused(500)
    assert 'has an element that omits all key fields ["name"]' in status["message"]


@source(DOC + "#additional-printer-columns")
async def test_the_columns_of_a_table(api, widgets):
    """Name first, then those of the definition, each with its priority."""
    await api.create(widgets[0], widget(widgets))
    table = await api.ask("GET", api.at(widgets[0]), accept="application/json;as=Table;g=meta.k8s.io;v=v1")
    assert [(one["name"], one["priority"]) for one in table["columnDefinitions"]] == [
        ("Name", 0),
        ("Size", 0),
        ("Phase", 1),
    ]
    assert table["rows"][0]["cells"][:2] == ["w", 3]


@source(
    "https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/4358-custom-resource-field-selectors"
)
async def test_selectable_fields(api, widgets):
    """Only those of the definition."""
    await api.create(widgets[0], widget(widgets, "a"))
    await api.create(widgets[0], widget(widgets, "b", color="blue"))
    assert await api.names(widgets[0], fieldSelector="spec.color=blue") == ["b"]
    await api.list(widgets[0], fieldSelector="spec.size=3").refused(400, "BadRequest")


@source(SERVING)
async def test_custom_resources_are_watched(api, widgets):
    """As all others."""
    since = (await api.list(widgets[0]))["metadata"]["resourceVersion"]
    await api.create(widgets[0], widget(widgets))
    await api.delete(widgets[0], "w")
    async with api.watch(widgets[0], resourceVersion=since) as events:
        assert await events.names(2) == [("ADDED", "w"), ("DELETED", "w")]


@source(SERVING)
async def test_items_of_custom_lists_say_what_they_are(api, widgets):
    """Unlike those of built-in lists."""
    await api.create(widgets[0], widget(widgets))
    found = await api.list(widgets[0])
    assert found["kind"] == f"{widgets[1]}List"
    assert (found["items"][0]["kind"], found["items"][0]["apiVersion"]) == (widgets[1], f"{GROUP}/v1")


@source(SERVING)
async def test_a_body_of_another_custom_kind(api, widgets):
    """422: the field kind is wrong."""
    status = await api.create(widgets[0], {**widget(widgets), "kind": "Other"}).refused(422, "Invalid")
    assert ("FieldValueInvalid", "kind") in causes(status)


@source(SERVING)
async def test_only_metadata_of_custom_resources(api, widgets):
    """For clients that know no schema."""
    await api.create(widgets[0], widget(widgets))
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    found = await api.ask("GET", api.at(widgets[0], "w"), accept=accept)
    assert set(found) == {"kind", "apiVersion", "metadata"}


@source("https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/")
async def test_finalizers_of_custom_resources(api, widgets):
    """They hold, and free names of one word are allowed with a warning."""
    body = widget(widgets)
    body["metadata"]["finalizers"] = ["example.com/x"]
    await api.create(widgets[0], body)
    await api.delete(widgets[0], "w")
    assert not await api.gone(widgets[0], "w")
    await api.patch(widgets[0], "w", {"metadata": {"finalizers": None}})
    assert await api.gone(widgets[0], "w")


@source(SERVING)
async def test_an_object_that_does_not_say_its_version(api, widgets):
    """400: custom resources are not given the version of the path."""
    body = {name: value for name, value in widget(widgets).items() if name != "apiVersion"}
    status = await api.create(widgets[0], body).refused(400, "BadRequest")
    assert "the API version in the data () does not match the expected API version" in status["message"]


@source(STRATEGY)
async def test_an_object_of_another_kind(api, widgets):
    """422, in the name of the kind that it says."""
    status = await api.create(widgets[0], {**widget(widgets), "kind": "Zebra"}).refused(422, "Invalid")
    assert status["message"] == f'Zebra.{GROUP} "w" is invalid: kind: Invalid value: "Zebra": must be {widgets[1]}'


@source("staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresource/validator.go")
@pytest.mark.parametrize(
    ("size", "why"),
    [
        ("x", ".spec.size accessor error: x is of the type string, expected int64"),
        ([1], ".spec.size accessor error: [1] is of the type []interface {}, expected int64"),
    ],
)
async def test_a_number_of_replicas_that_is_none(api, widgets, size, why):
    """The schema refuses it, and so does the scale."""
    status = await api.create(widgets[0], widget(widgets, size=size)).refused(422, "Invalid")
    found = {cause["field"]: cause["message"] for cause in status["details"]["causes"]}
    assert found[".spec.size"] == f"Invalid value: 0: {why}"


@source("staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresource/etcd.go")
@pytest.mark.parametrize("replicas", [0, 99, -1])
async def test_a_scale_that_the_schema_refuses(api, widgets, replicas):
    """The whole object is judged."""
    await api.create(widgets[0], widget(widgets))
    patch = {"spec": {"replicas": replicas}}
    status = await api.patch(widgets[0], "w", patch, sub="scale").refused(422, "Invalid")
    assert "spec.size in body should be" in status["message"]
    assert (await api.get(widgets[0], "w"))["spec"]["size"] == 3


@source("staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go")
async def test_a_word_for_field_validation_that_is_none(api, widgets):
    """Refused before the object is looked at."""
    status = await api.create(widgets[0], widget(widgets, size=0), fieldValidation="Nope").refused(422, "Invalid")
    assert status["message"].startswith('CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value')


@source("staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go")
@pytest.mark.parametrize("accept", ["application/vnd.kubernetes.protobuf", "text/plain"])
async def test_forms_that_custom_resources_do_not_have(api, widgets, accept):
    """406, which names all forms; the client may not read the Status."""
    for path in (api.at(widgets[0]), api.at(widgets[0], "w")):
        reply = await api.ask("GET", path, accept=accept).reply()
        assert reply.status == 406
        assert b"only the following media types are accepted: application/json, application/yaml" in reply.data


@source("staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go")
@pytest.mark.parametrize("accept", ["application/vnd.kubernetes.protobuf, application/json", "application/*"])
async def test_forms_of_which_one_is_there(api, widgets, accept):
    """JSON."""
    await api.create(widgets[0], widget(widgets))
    reply = await api.get(widgets[0], "w", accept=accept).reply()
    assert (reply.status, reply.body["kind"]) == (200, widgets[1])


@source("staging/src/k8s.io/apiserver/pkg/endpoints/handlers/response.go")
async def test_a_custom_resource_is_no_list(api, widgets):
    """500 for who asks for one object as a list of metadata."""
    await api.create(widgets[0], widget(widgets))
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    status = await api.get(widgets[0], "w", accept=accept).refused(500)
    assert status["message"] == "content is not a list"


def added(path, value):
    return patched({"op": "add", "path": path, "value": value})


@source("staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go")
@pytest.mark.parametrize("path", ["/spec/unknown", "/spec/anything"])
async def test_what_a_webhook_adds_to_a_custom_resource(api, widgets, hooks, path):
    """Unknown fields are dropped, and so is null where no type is said."""
    value = None if path == "/spec/anything" else 1
    rule = hooks.said("add", resources=[widgets[0].plural], group=widgets[0].group)
    await hooks.answer(rule, mutating=True, add=added(path, value))
    found = await api.create(widgets[0], widget(widgets))
    assert found["spec"] == {"size": 3, "color": "red"}


@source("staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go")
async def test_null_that_a_webhook_writes(api, widgets, hooks):
    """The schema refuses it where there can be none; a label that is null is empty."""
    rule = hooks.said("add", resources=[widgets[0].plural], group=widgets[0].group)
    bad = {"objectSelector": {"matchLabels": {"a": "bad"}}}
    good = {"objectSelector": {"matchLabels": {"a": "good"}}}
    one = {**rule, **bad}
    other = {**hooks.said("label", resources=[widgets[0].plural], group=widgets[0].group), **good}
    await hooks.answer(
        one, other, mutating=True, add=added("/spec/nick", None), label=added("/metadata/labels/x", None)
    )
    body = widget(widgets)
    body["metadata"]["labels"] = {"a": "bad"}
    assert causes(await api.create(widgets[0], body).refused(422, "Invalid"))[0][1] == "spec.nick"
    body["metadata"]["labels"] = {"a": "good"}
    assert (await api.create(widgets[0], body))["metadata"]["labels"] == {"a": "good", "x": ""}
