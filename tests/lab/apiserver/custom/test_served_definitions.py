"""CustomResourceDefinitions as the lab's API server serves them, and what becomes of the objects that they define."""

import copy
import json
from random import Random

from support.lab.custom_schemas import INTEGER, STRING, definition, objects, ruled
from support.virtual_time.worker import in_virtual_time

from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.values.request import Request

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/x.example.com/v1/namespaces/default/widgets"


class Api:
    def __init__(self, store=None):
        self.server = ApiServer(virtual.VirtualClock(), Random(1), store=store)

    async def ask(self, method, target, body=None, kind="application/json"):
        data = json.dumps(body).encode() if body is not None else b""
        request = Request.of(method, target, headers={"content-type": kind}, body=data)
        response = await self.server.handle(request)
        return response.status, json.loads(response.body) if response.body.startswith(b"{") else response.body

    async def good(self, method, target, body=None, kind="application/json"):
        code, said = await self.ask(method, target, body, kind)
        assert code in (200, 201), said
        return said

    async def patch(self, target, body):
        return await self.ask("PATCH", target, body, "application/merge-patch+json")


def widget(name="w", **parts):
    return {"apiVersion": "x.example.com/v1", "kind": "Widget", "metadata": {"name": name}, **parts}


@in_virtual_time
async def test_strict_validation_refuses_unknown_fields():
    api = Api()
    await api.good("POST", DEFINITIONS, definition(objects(a=INTEGER)))
    code, said = await api.ask("POST", f"{WIDGETS}?fieldValidation=Strict", widget(spec={"b": 1}))
    assert code == 400
    assert 'strict decoding error: unknown field "spec.b"' in said["message"]


@in_virtual_time
async def test_rules_are_not_judged_when_the_schema_refuses():
    api = Api()
    spec = {**objects(a=INTEGER), "required": ["a"], **ruled("self.a > 1", message="small")}
    await api.good("POST", DEFINITIONS, definition(spec))
    code, said = await api.ask("POST", WIDGETS, widget(spec={}))
    assert code == 422
    assert said["message"] == (
        'Widget.x.example.com "w" is invalid: [spec.a: Required value, <nil>: Invalid value: null: some validation rules'
        " were not checked because the object was invalid; correct the existing errors to complete validation]"
    )
    code, said = await api.ask("POST", WIDGETS, widget(spec={"a": 1}))
    assert said["message"] == 'Widget.x.example.com "w" is invalid: spec: Invalid value: small'


@in_virtual_time
async def test_generation_counts_everything_but_metadata_and_a_status_of_its_own():
    api = Api()
    await api.good("POST", DEFINITIONS, definition(objects(a=INTEGER), subresources={"status": {}}))
    made = await api.good("POST", WIDGETS, widget(spec={"a": 1}, status={}))
    assert (made["metadata"]["generation"], "status" in made) == (1, False)
    for body, generation in (({"metadata": {"labels": {"x": "y"}}}, 1), ({"spec": {"a": 2}}, 2)):
        _, said = await api.patch(f"{WIDGETS}/w", body)
        assert said["metadata"]["generation"] == generation


@in_virtual_time
async def test_a_status_is_judged_alone():
    api = Api()
    obj = definition({**objects(a=INTEGER), "required": ["a"]}, subresources={"status": {}})
    properties = obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    properties["status"] = objects(phase={**STRING, "enum": ["Ready"]}, n={**INTEGER, **ruled("self < 3", message="m")})
    await api.good("POST", DEFINITIONS, obj)
    await api.good("POST", WIDGETS, widget(spec={"a": 1}))
    _, said = await api.patch(f"{WIDGETS}/w/status", {"status": {"phase": 1}})
    assert [one["field"] for one in said["details"]["causes"]] == ["status.phase", "status.phase", "<nil>"]
    assert 'phase in body must be of type string: "integer"' in said["message"]
    _, said = await api.patch(f"{WIDGETS}/w/status", {"status": {"n": 5}})
    assert said["message"] == 'Widget.x.example.com "w" is invalid: status.n: Invalid value: 5: m'
    _, said = await api.patch(f"{WIDGETS}/w/status", {"status": {"phase": "Ready"}, "spec": {"a": 9}})
    assert (said["spec"], said["status"], said["metadata"]["generation"]) == ({"a": 1}, {"phase": "Ready"}, 1)


@in_virtual_time
async def test_all_versions_show_the_same_objects():
    api = Api()
    obj = definition(objects(a=INTEGER))
    obj["spec"]["versions"].append({**copy.deepcopy(obj["spec"]["versions"][0]), "name": "v2", "storage": False})
    obj["spec"]["versions"][1] |= {"deprecated": True}
    await api.good("POST", DEFINITIONS, obj)
    await api.good("POST", WIDGETS, widget(spec={"a": 1}))
    found = await api.good("GET", f"{WIDGETS.replace('/v1/', '/v2/')}/w")
    assert (found["apiVersion"], found["spec"]) == ("x.example.com/v2", {"a": 1})
    assert (await api.ask("GET", WIDGETS.replace("/v1/", "/v3/")))[0] == 404


@in_virtual_time
async def test_objects_go_with_their_definition():
    api = Api()
    await api.good("POST", DEFINITIONS, definition())
    await api.good("POST", WIDGETS, widget("plain"))
    await api.good("POST", WIDGETS, widget("held", metadata={"name": "held", "finalizers": ["x.example.com/hold"]}))
    await api.good("DELETE", f"{DEFINITIONS}/widgets.x.example.com")
    left = (await api.good("GET", WIDGETS))["items"]
    assert [(one["metadata"]["name"], "deletionTimestamp" in one["metadata"]) for one in left] == [("held", True)]
    code, said = await api.ask("POST", WIDGETS, widget("late"))
    assert code == 403
    assert "create not allowed while custom resource definition is terminating" in said["message"]
    await api.patch(f"{WIDGETS}/held", {"metadata": {"finalizers": None}})
    assert (await api.ask("GET", f"{DEFINITIONS}/widgets.x.example.com"))[0] == 404
    assert (await api.ask("GET", WIDGETS))[0] == 404


@in_virtual_time
async def test_a_name_that_becomes_free_is_accepted():
    api = Api()
    await api.good("POST", DEFINITIONS, definition())
    other = definition()
    other["metadata"]["name"], other["spec"]["names"] = "others.x.example.com", {"plural": "others", "kind": "Widget"}
    await api.good("POST", DEFINITIONS, other)
    assert (await api.ask("GET", WIDGETS.replace("widgets", "others")))[0] == 404
    await api.good("DELETE", f"{DEFINITIONS}/widgets.x.example.com")
    assert (await api.ask("GET", WIDGETS.replace("widgets", "others")))[0] == 200


@in_virtual_time
async def test_a_changed_definition_is_served_at_once():
    api = Api()
    await api.good("POST", DEFINITIONS, definition(objects(a=INTEGER)))
    await api.good("POST", WIDGETS, widget(spec={"a": 1}))
    now = await api.good("GET", f"{DEFINITIONS}/widgets.x.example.com")
    schema = now["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["b"] = {**STRING, "default": "x"}
    changed = await api.good("PUT", f"{DEFINITIONS}/widgets.x.example.com", now)
    assert changed["metadata"]["generation"] == 2
    _, said = await api.patch(f"{WIDGETS}/w", {"spec": {"a": 2}})
    assert said["spec"] == {"a": 2, "b": "x"}


@in_virtual_time
async def test_definitions_are_served_again_after_a_restart():
    first = Api()
    await first.good("POST", DEFINITIONS, definition(objects(a=STRING), selectableFields=[{"jsonPath": ".spec.a"}]))
    await first.good("POST", WIDGETS, widget(spec={"a": "x"}))
    again = Api(store=first.server.store)
    for value, count in (("x", 1), ("y", 0)):
        found = await again.good("GET", f"{WIDGETS}?fieldSelector=spec.a%3D{value}")
        assert len(found["items"]) == count
