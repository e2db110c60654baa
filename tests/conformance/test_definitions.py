"""Definitions of custom resources: what may be defined, and how it comes and goes."""

import pytest
from support.conformance.api_client import JSON_PATCH, causes
from support.conformance.custom_resources import GROUP, definition, letters, served, widget

from lastcall.adapters.kube.resources import DEFINITIONS, dict_resource

source = pytest.mark.source
DOC = "https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/"
VALIDATION = "staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go"
SERVING = "staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go"


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
    found = await api.get(dict_resource(GROUP, "v2", plural), "w")
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
        reply = await api.create(widgets[0], widget(widgets, added="x"), dryRun="All").reply()
        if reply.status == 503 and "retry-after" in reply.headers:
            return None  # it still held the old schema a second after a real server dropped that
        return reply.good()["spec"].get("added")

    assert await api.until(kept) == "x"
