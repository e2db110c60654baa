"""Custom resources: their definitions, their schemas, and what is served."""

import pytest
import pytest_asyncio
from support.cluster_api import JSON_PATCH, STRATEGIC, causes, unique
from support.cluster_objects import changed, meta

from lastcall.adapters.kube.resources import DEFINITIONS, resource

source = pytest.mark.source
DOC = "https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/"
VALIDATION = "staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go"
STRUCTURAL = "staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/validation.go"
RULES = "https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/2876-crd-validation-expression-language"
STRATEGY = "staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresource/strategy.go"
SERVING = "staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go"
GROUP = "conformance.example.com"

SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "nick": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
        "when": {"type": "string", "format": "date-time"},
        "port": {"x-kubernetes-int-or-string": True},
        "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is fixed"}]},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "n": {"type": "integer", "default": 1}},
            },
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "maybe": {"type": "string", "nullable": True},
        "low": {"type": "integer"},
        "high": {"type": "integer"},
    },
    "x-kubernetes-validations": [
        {"rule": "!has(self.low) || !has(self.high) || self.low <= self.high", "message": "low must not exceed high"}
    ],
}
STATUS = {"type": "object", "properties": {"phase": {"type": "string"}, "replicas": {"type": "integer"}}}


def definition(plural, kind, *, version="v1", **more):
    """A definition with the schema above, a status and printer columns."""
    schema = {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "priority": 1},
    ]
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale},
        "additionalPrinterColumns": columns,
        "selectableFields": [{"jsonPath": ".spec.color"}],
    }
    names = {"plural": plural, "singular": plural[:-1], "kind": kind, "shortNames": [plural[:-1] + "x"]}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [served], **more}
    return {**meta(f"{plural}.{GROUP}"), "spec": spec}


def letters():
    """A plural that no other case has."""
    return unique("w").replace("-", "") + "s"


async def served(api, body):
    """Makes a definition and waits until its resource is served."""
    await api.create(DEFINITIONS, body)
    name, spec = body["metadata"]["name"], body["spec"]

    async def established():
        found = (await api.get(DEFINITIONS, name))["status"].get("conditions") or []
        if {one["type"]: one["status"] for one in found}.get("Established") != "True":
            return False
        path = f"/apis/{GROUP}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
        return (await api.ask("GET", path).reply()).status == 200

    await api.until(established)
    return resource(GROUP, spec["versions"][0]["name"], spec["names"]["plural"])


@pytest_asyncio.fixture(loop_scope="session")
async def widgets(api):
    """A resource of this case, and its kind."""
    plural = letters()
    made = await served(api, definition(plural, plural.title()))
    yield made, plural.title()


def widget(widgets, name="w", status=None, **spec):
    """An object of it."""
    made, kind = widgets
    head = {"apiVersion": f"{made.group}/{made.version}", "kind": kind}
    whole = {**head, **meta(name), "spec": {"size": 3, **spec}}
    return {**whole, **({"status": status} if status else {})}


# -- objects -----------------------------------------------------------------------------------------------------------


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


# -- definitions -------------------------------------------------------------------------------------------------------


@source(DOC)
async def test_a_definition_is_established(api, widgets):
    """Conditions NamesAccepted and Established, and the names that are accepted."""
    found = (await api.get(DEFINITIONS, f"{widgets[0].plural}.{GROUP}"))["status"]
    conditions = {one["type"]: one["status"] for one in found["conditions"]}
    assert (conditions["NamesAccepted"], conditions["Established"]) == ("True", "True")
    assert found["acceptedNames"]["listKind"] == f"{widgets[1]}List"
    assert found["storedVersions"] == ["v1"]


@source("staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_discovery_controller.go")
async def test_a_resource_is_discovered(api, widgets):
    """With its verbs, names and subresources."""

    async def found():
        listed = (await api.ask("GET", f"/apis/{GROUP}/v1").reply()).body.get("resources") or []
        return {one["name"]: one for one in listed if one["name"].startswith(widgets[0].plural)}

    names = await api.until(found)
    assert set(names) == {widgets[0].plural, f"{widgets[0].plural}/status", f"{widgets[0].plural}/scale"}
    assert "deletecollection" in names[widgets[0].plural]["verbs"]
    assert names[widgets[0].plural]["shortNames"] == [widgets[0].plural[:-1] + "x"]


@source(DOC)
async def test_an_instance_goes_with_its_definition(api):
    """The definition waits for the deletion of its objects, then its path is gone."""
    plural = letters()
    made = await served(api, definition(plural, plural.title()))
    await api.create(made, widget((made, plural.title())))
    await api.delete(DEFINITIONS, f"{plural}.{GROUP}")

    async def gone():
        return (await api.ask("GET", f"/apis/{GROUP}/v1/{plural}").reply()).status == 404

    await api.until(gone)


@source("https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/")
async def test_two_versions_of_one_object(api):
    """An object made in one is read in the other; nothing but its version differs."""
    plural = letters()
    body = definition(plural, plural.title())
    (first,) = body["spec"]["versions"]
    body["spec"]["versions"] = [first, {**first, "name": "v2", "storage": False}]
    made = await served(api, body)
    await api.create(made, widget((made, plural.title())))
    found = await api.get(resource(GROUP, "v2", plural), "w")
    assert (found["apiVersion"], found["spec"]["size"]) == (f"{GROUP}/v2", 3)


@source("https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/")
async def test_a_deprecated_version_is_warned_of(api):
    """deprecationWarning in each answer."""
    plural = letters()
    body = definition(plural, plural.title())
    body["spec"]["versions"][0] |= {"deprecated": True, "deprecationWarning": "old"}
    made = await served(api, body)
    assert (await api.list(made).reply()).headers["warning"] == '299 - "old"'


@source(DOC)
async def test_resources_of_the_cluster(api):
    """scope: Cluster."""
    plural = letters()
    body = definition(plural, plural.title(), scope="Cluster")
    made = await served(api, body)
    path = f"/apis/{GROUP}/{made.version}/{plural}"
    found = await api.ask("POST", path, widget((made, plural.title())))
    assert "namespace" not in found["metadata"]
    assert (await api.ask("GET", api.at(made)).reply()).status == 404


def _version(**more):
    return {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}, **more}


def _schema(**properties):
    return _version(schema={"openAPIV3Schema": {"type": "object", "properties": properties}})


@source(VALIDATION)
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"scope": "Everywhere"}, "spec.scope"),
        ({"group": "nodots"}, "spec.group"),
        ({"versions": []}, "spec.versions"),
        ({"versions": [_version(), _version()]}, "spec.versions"),
        ({"versions": [_version(storage=False)]}, "spec.versions"),
        ({"versions": [_version(name="V1")]}, "spec.versions[0].name"),
        ({"versions": [_version(schema=None)]}, "spec.versions[0].schema.openAPIV3Schema"),
        ({"preserveUnknownFields": True}, "spec.preserveUnknownFields"),
        ({"conversion": {"strategy": "Magic"}}, "spec.conversion.strategy"),
        (
            {"versions": [_version(additionalPrinterColumns=[{"name": "A", "type": "color", "jsonPath": ".a"}])]},
            "additionalPrinterColumns[0].type",
        ),
        ({"versions": [_schema(a={})]}, "openAPIV3Schema.properties[a].type"),
        (
            {"versions": [_schema(a={"type": "array"})]},
            "openAPIV3Schema.properties[a].items",
        ),
        (
            {"versions": [_schema(a={"type": "string", "default": 1})]},
            "openAPIV3Schema.properties[a].default",
        ),
        (
            {"versions": [_schema(a={"type": "object", "x-kubernetes-validations": [{"rule": "self.b == 1"}]})]},
            "openAPIV3Schema.properties[a].x-kubernetes-validations[0].rule",
        ),
    ],
)
async def test_definitions_that_are_refused(api, change, field):
    """422 with the field; of what all versions share, Kubernetes names no version."""
    plural = letters()
    body = definition(plural, plural.title())
    body["spec"].update(change)
    if "group" in change:
        body["metadata"]["name"] = f"{plural}.{change['group']}"
    status = await api.create(DEFINITIONS, body).refused(422, "Invalid")
    assert any(found.endswith(field) for _, found in causes(status)), status["message"]


@source(VALIDATION)
async def test_a_definitions_name_is_made_of_its_names(api):
    """plural.group."""
    body = definition(letters(), "Thing")
    body["metadata"]["name"] = f"others.{GROUP}"
    status = await api.create(DEFINITIONS, body).refused(422, "Invalid")
    assert causes(status) == [("FieldValueInvalid", "metadata.name")]


@source(VALIDATION)
async def test_scope_and_group_stay(api, widgets):
    """They are immutable once established."""
    name = f"{widgets[0].plural}.{GROUP}"
    status = await api.patch(DEFINITIONS, name, {"spec": {"scope": "Cluster"}}).refused(422, "Invalid")
    assert ("FieldValueInvalid", "spec.scope") in causes(status)


@source("staging/src/k8s.io/apiextensions-apiserver/pkg/controller/status/naming_controller.go")
async def test_a_kind_that_is_taken(api, widgets):
    """The second definition is not accepted, and says why."""
    plural = letters()
    await api.create(DEFINITIONS, definition(plural, widgets[1]))

    async def judged():
        found = (await api.get(DEFINITIONS, f"{plural}.{GROUP}"))["status"].get("conditions") or []
        return {one["type"]: one for one in found}.get("NamesAccepted")

    condition = await api.until(judged)
    assert (condition["status"], condition["reason"]) == ("False", "ListKindConflict")


@source(SERVING)
async def test_the_schema_may_grow(api, widgets):
    """A changed definition is served soon."""
    name = f"{widgets[0].plural}.{GROUP}"
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/added"
    await api.patch(DEFINITIONS, name, [{"op": "add", "path": path, "value": {"type": "string"}}], JSON_PATCH)

    async def kept():
        return (await api.create(widgets[0], widget(widgets, added="x"), dryRun="All"))["spec"].get("added")

    assert await api.until(kept) == "x"
