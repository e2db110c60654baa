"""CustomResourceDefinitions: what they may say, and what becomes of the objects that they define."""

import copy
import json
from random import Random

import pytest

from lastcall.lab import virtual
from lastcall.lab.apiserver import ApiServer
from lastcall.lab.apiserver.custom import conditions, definition_rules, lists, pruning, rules, schema_rules, values
from lastcall.lab.apiserver.custom.definition import Definition
from lastcall.lab.apiserver.request import Request

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/x.example.com/v1/namespaces/default/widgets"
STRING, INTEGER = {"type": "string"}, {"type": "integer"}


def definition(spec=None, **version):
    schema = {"type": "object", "properties": {"spec": spec or {"type": "object"}, "status": {"type": "object"}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.x.example.com"},
        "spec": {
            "group": "x.example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
            ],
        },
    }


def objects(**properties):
    return {"type": "object", "properties": properties}


def said(causes):
    return [f"{cause.field}: {cause.message}" for cause in causes]


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        (INTEGER, "x", 'Invalid value: "string": s in body must be of type integer: "string"'),
        (INTEGER, 1.5, 'Invalid value: "number": s in body must be of type integer: "number"'),
        (STRING, None, 'Invalid value: "null": s in body must be of type string: "null"'),
        (
            {"x-kubernetes-int-or-string": True},
            True,
            'Invalid value: "boolean": s in body must be of type integer,string: "boolean"',
        ),
        ({**INTEGER, "minimum": 1}, 0, "Invalid value: 0: s in body should be greater than or equal to 1"),
        ({**INTEGER, "maximum": 9}, 10, "Invalid value: 10: s in body should be less than or equal to 9"),
        ({**INTEGER, "maximum": 9, "exclusiveMaximum": True}, 9, "Invalid value: 9: s in body should be less than 9"),
        ({**INTEGER, "multipleOf": 5}, 7, "Invalid value: 7: s in body should be a multiple of 5"),
        ({**STRING, "pattern": "^n"}, "x", "Invalid value: \"x\": s in body should match '^n'"),
        ({**STRING, "minLength": 2}, "x", 'Invalid value: "x": s in body should be at least 2 chars long'),
        ({**STRING, "maxLength": 2}, "xyz", "Too long: may not be more than 2 bytes"),
        ({**STRING, "enum": ["A", "B"]}, "C", 'Unsupported value: "C": supported values: "A", "B"'),
        ({**STRING, "format": "date-time"}, "x", 'Invalid value: "x": s in body must be of type date-time: "x"'),
        ({"type": "array", "maxItems": 1}, [1, 2], "Too many: 2: must have at most 1 item"),
        ({"type": "array", "minItems": 1}, [], "Invalid value: 0: s in body should have at least 1 items"),
        ({"type": "object", "maxProperties": 0}, {"a": 1}, "Too many: 1: must have at most 0 items"),
    ],
)
def test_a_value_that_the_schema_refuses(schema, value, words):
    assert said(values.check(value, schema, "s")) == [f"s: {words}"]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (INTEGER, 2.0),
        ({"type": "number"}, 2),
        ({**STRING, "nullable": True}, None),
        ({"x-kubernetes-int-or-string": True}, "50%"),
        ({**STRING, "format": "date-time"}, "2026-01-01T00:00:00Z"),
        ({**STRING, "format": "ipv4"}, "10.0.0.1"),
        ({**STRING, "format": "nobody-knows-it"}, "x"),
        ({"type": "object"}, {"anything": 1}),
    ],
)
def test_a_value_that_the_schema_allows(schema, value):
    assert said(values.check(value, schema, "s")) == []


def test_paths_and_required_fields():
    schema = objects(spec={**objects(tags={"type": "array", "items": STRING}), "required": ["size"]})
    assert said(values.check({"spec": {"tags": ["a", 1]}}, schema)) == [
        'spec.tags[1]: Invalid value: "integer": spec.tags[1] in body must be of type string: "integer"',
        "spec.size: Required value",
    ]


def test_one_of_is_told_without_a_path():
    schema = objects(s={"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]})
    assert said(values.check({"s": {"a": 1, "b": 2}}, schema)) == [
        '<nil>: Invalid value: "": "s" must validate one and only one schema (oneOf). Found 2 valid alternatives'
    ]
    assert said(values.check({"s": {}}, schema)) == [
        '<nil>: Invalid value: "": "s" must validate one and only one schema (oneOf). Found none valid',
        "s.a: Required value",
    ]


def test_what_an_update_leaves_as_it_was_is_not_judged_again():
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    schema = objects(a=INTEGER, b=INTEGER, c={"type": "array", **keyed, "items": objects(name=STRING, n=INTEGER)})
    old = {"a": "bad", "b": 1, "c": [{"name": "x", "n": "bad"}, {"name": "y", "n": 1}]}
    new = {"a": "bad", "b": "worse", "c": [{"name": "x", "n": "bad"}, {"name": "y", "n": "worse"}]}
    assert [cause.field for cause in values.check(new, schema, old=old)] == ["b", "c[1].n"]


def test_pruning_and_defaults():
    schema = objects(
        spec=objects(
            mode={**STRING, "default": "A"},
            list={"type": "array", "items": objects(n={**INTEGER, "default": 1})},
            map={"type": "object", "additionalProperties": INTEGER},
            raw={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            inner={"type": "object", "x-kubernetes-embedded-resource": True},
        )
    )
    obj = {
        "kind": "W",
        "apiVersion": "v1",
        "metadata": {"name": "x"},
        "spec": {
            "extra": 1,
            "list": [{"m": 2}],
            "map": {"a": 1},
            "raw": {"b": {"c": 1}},
            "inner": {"metadata": {"name": "y"}, "z": 1},
            "mode": None,
        },
        "other": True,
    }
    assert pruning.prune(obj, schema) == ["other", "spec.extra", "spec.inner.z", "spec.list[0].m"]
    pruning.drop_nulls(obj, schema)
    pruning.default(obj, schema)
    assert obj["spec"] == {
        "list": [{"n": 1}],
        "map": {"a": 1},
        "raw": {"b": {"c": 1}},
        "inner": {"metadata": {"name": "y"}},
        "mode": "A",
    }


def test_sets_and_maps_have_each_item_once():
    schema = objects(
        set={"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
        map={
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": objects(name=STRING),
        },
    )
    obj = {"set": ["a", "b", "a", "a"], "map": [{"name": "x"}, {"name": "x", "more": 1}]}
    assert said(lists.check(obj, schema)) == [
        'set[2]: Duplicate value: "a"',
        'map[1]: Duplicate value: {"name":"x"}',
    ]


# -- rules -------------------------------------------------------------------------------------------------------------


def ruled(rule, **more):
    return {"x-kubernetes-validations": [{"rule": rule, **more}]}


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        (ruled("self > 1", message="small"), 1, "Invalid value: 1: small"),
        (ruled("self > 1"), 1, "Invalid value: 1: failed rule: self > 1"),
        (ruled("self > 1", messageExpression="'not ' + string(self)"), 1, "Invalid value: 1: not 1"),
        (ruled("self > 1", message="m", messageExpression="self.x"), 1, "Invalid value: 1: m"),
        (ruled("self > 1", message="m", reason="FieldValueForbidden"), 1, "Forbidden: m"),
        (ruled("self > 1", message="m", reason="FieldValueRequired"), 1, "Required value: m"),
        (ruled("self / 0 == 1"), 1, 'Invalid value: "integer": division by zero evaluating rule: self / 0 == 1'),
    ],
)
def test_a_rule_that_does_not_hold(schema, value, words):
    assert said(rules.check({"n": value}, objects(n={**INTEGER, **schema}))) == [f"n: {words}"]


def test_a_rule_about_an_object_shows_no_value_and_may_name_a_field():
    schema = objects(spec={**objects(a=INTEGER), **ruled("self.a > 1", message="m", fieldPath=".a")})
    assert said(rules.check({"spec": {"a": 1}}, schema)) == ["spec.a: Invalid value: m"]


def test_a_rule_at_the_root_sees_the_name_and_has_no_path():
    schema = {**objects(spec=objects()), **ruled("self.metadata.name.startsWith('w')", message="m")}
    assert said(rules.check({"metadata": {"name": "x"}, "spec": {}}, schema)) == ["<nil>: Invalid value: m"]


def test_rules_about_changes():
    schema = objects(fixed={**STRING, **ruled("self == oldSelf", message="fixed")})
    assert said(rules.check({"fixed": "a"}, schema)) == []
    assert said(rules.check({"fixed": "a"}, schema, old={})) == []
    assert said(rules.check({"fixed": "a"}, schema, old={"fixed": "a"})) == []
    assert said(rules.check({"fixed": "b"}, schema, old={"fixed": "a"})) == ['fixed: Invalid value: "b": fixed']


def test_rules_about_changes_of_what_may_be_new():
    rule = "oldSelf.hasValue() || self == 'new'"
    schema = objects(s={**STRING, **ruled(rule, optionalOldSelf=True, message="m")})
    assert said(rules.check({"s": "x"}, schema)) == ['s: Invalid value: "x": m']
    assert said(rules.check({"s": "y"}, schema, old={"s": "x"})) == []


def test_rules_see_values_with_their_types():
    schema = objects(
        n={"type": "number", **ruled("self + 0.5 > 1.0")},
        t={**STRING, "format": "date-time", **ruled("self.getFullYear() == 2026")},
        o={
            **objects(**{"a-b": INTEGER, "namespace": STRING}),
            **ruled("self.a__dash__b == 1 && has(self.__namespace__)"),
        },
    )
    obj = {"n": 1, "t": "2026-01-01T00:00:00Z", "o": {"a-b": 1, "namespace": "x"}}
    assert said(rules.check(obj, schema)) == []


# -- definitions -------------------------------------------------------------------------------------------------------


AT = "spec.validation.openAPIV3Schema.properties[spec]"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"type": "whole"}, f'{AT}.type: Unsupported value: "whole": supported values: "array", "boolean", "integer", "number", "object", "string"'),
        ({"description": "x"}, f"{AT}.type: Required value: must not be empty for specified object fields"),
        ({"type": "array"}, f"{AT}.items: Required value: must be specified"),
        ({"type": "array", "items": {}}, f"{AT}.items.type: Required value: must not be empty for specified array items"),
        (objects(a={**INTEGER, "default": "x"}), f'{AT}.properties[a].default: Invalid value: "string":  in body must be of type integer: "string"'),
        ({**objects(a=INTEGER), "additionalProperties": STRING}, f"{AT}.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"),
        ({**objects(), "x-kubernetes-preserve-unknown-fields": False}, f"{AT}.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"),
        ({**objects(a=INTEGER), "anyOf": [{"type": "object"}]}, f"{AT}.anyOf[0].type: Forbidden: must be empty to be structural"),
        ({**objects(a=INTEGER), "anyOf": [{"required": ["a"]}, {"properties": {"b": {"minimum": 1}}}]}, f"{AT}.properties[b]: Required value: because it is defined in {AT}.anyOf[1].properties[b]"),
        ({"type": "array", "items": objects(name=STRING), "x-kubernetes-list-type": "map"}, f"{AT}.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"),
        (
            {"type": "array", "items": objects(name=STRING), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
            f"{AT}.items.properties[name].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ),
        ({**objects(a=STRING), **ruled("")}, f"{AT}.x-kubernetes-validations[0].rule: Required value: rule is not specified"),
        ({**objects(a=STRING), **ruled("self.a == 'x'", fieldPath=".b")}, f'{AT}.x-kubernetes-validations[0].fieldPath: Invalid value: ".b": must be a valid path'),
        ({"type": "array", "items": {**STRING, **ruled("self == oldSelf")}}, f'{AT}.items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within {AT}'),
        ({"type": "string", "pattern": "("}, f'{AT}.pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: missing ), unterminated subpattern at position 0'),
    ],
)  # fmt: skip
def test_a_schema_that_is_refused(spec, words):
    assert words in said(judged(definition(spec)))


def judged(obj):
    kind = Definition()
    kind.default(obj)
    kind.prepare_create(obj)
    return list(kind.validate(obj))


def test_a_rule_with_a_field_that_nobody_knows():
    found = judged(definition({**objects(a=STRING), **ruled("self.b == 'x'")}))
    assert [cause.field for cause in found] == [f"{AT}.x-kubernetes-validations[0].rule"]
    assert "compilation failed: ERROR: <input>:1:5: undefined field 'b'\n | self.b == 'x'\n | ....^" in found[0].message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda spec: spec.update(group="x"), 'spec.group: Invalid value: "x": should be a domain with at least one dot'),
        (lambda spec: spec.pop("scope"), "spec.scope: Required value"),
        (lambda spec: spec["names"].update(kind=""), "spec.names.kind: Required value"),
        (lambda spec: spec["names"].update(listKind="Widget"), 'spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same'),
        (lambda spec: spec.update(preserveUnknownFields=True), "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"),
        (lambda spec: spec["versions"][0].update(subresources={"scale": {"specReplicasPath": "spec.n", "statusReplicasPath": ".spec.n"}}), 'spec.subresources.scale.statusReplicasPath: Invalid value: ".spec.n": should be a json path under .status'),
        (lambda spec: spec["versions"][0].update(additionalPrinterColumns=[{"name": "A", "type": "text", "jsonPath": ".a"}]), 'spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string'),
        (lambda spec: spec["versions"][0].update(selectableFields=[{"jsonPath": ".spec.none"}]), 'spec.selectableFields[0].jsonPath: Invalid value: ".spec.none": is an invalid path: does not refer to a valid field'),
        (lambda spec: spec["versions"][0].update(deprecationWarning="x"), 'spec.versions[0].deprecationWarning: Invalid value: "x": can only be set for deprecated versions'),
        (lambda spec: spec.update(conversion={"strategy": "Webhook"}), "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook"),
    ],
)  # fmt: skip
def test_a_definition_that_is_refused(change, words):
    obj = definition()
    change(obj["spec"])
    assert words in said(judged(obj))


def test_a_group_of_kubernetes_needs_approval():
    obj = definition()
    obj["metadata"]["name"], obj["spec"]["group"] = "widgets.x.k8s.io", "x.k8s.io"
    assert [cause.field for cause in judged(obj)] == ["metadata.annotations[api-approved.kubernetes.io]"]
    obj["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, an experiment"}
    assert judged(obj) == []


def test_versions_that_differ_are_told_apart():
    obj = definition()
    second = copy.deepcopy(obj["spec"]["versions"][0])
    second |= {"name": "v2", "storage": False}
    second["schema"]["openAPIV3Schema"]["properties"]["spec"] = {"type": "whole"}
    obj["spec"]["versions"].append(second)
    assert [cause.field for cause in judged(obj)] == ["spec.versions[1].schema.openAPIV3Schema.properties[spec].type"]


def test_a_good_schema():
    spec = objects(
        port={"x-kubernetes-int-or-string": True, "anyOf": [INTEGER, STRING]},
        embedded={
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        items={"type": "array", "items": {**objects(a=INTEGER), "oneOf": [{"required": ["a"]}]}},
    )
    assert schema_rules.check(objects(spec=spec), "s", status=True) == []


def test_what_cannot_change():
    old = definition()
    Definition().default(old)
    Definition().prepare_create(old)
    conditions.settle(old, [], wall=0.0)
    new = copy.deepcopy(old)
    new["spec"]["scope"] = "Cluster"
    new["spec"]["names"]["kind"] = "Other"
    assert said(definition_rules.check_update(new, old)) == [
        'spec.scope: Invalid value: "Cluster": field is immutable',
        'spec.names.kind: Invalid value: "Other": field is immutable',
    ]


def test_names_that_another_definition_has():
    first, second = definition(), definition()
    for obj in (first, second):
        Definition().default(obj)
        Definition().prepare_create(obj)
    assert conditions.settle(first, [], wall=0.0)
    assert not conditions.settle(first, [], wall=9.0)
    second["spec"]["names"] |= {"plural": "others", "shortNames": ["widget"]}
    assert conditions.settle(second, [first], wall=0.0)
    assert second["status"]["acceptedNames"] == {"plural": "others", "kind": ""}
    found = {one["type"]: (one["status"], one["reason"], one["message"]) for one in second["status"]["conditions"]}
    assert found == {
        "NamesAccepted": ("False", "ListKindConflict", '"WidgetList" is already in use'),
        "Established": ("False", "NotAccepted", "not all names are accepted"),
    }


# -- the server --------------------------------------------------------------------------------------------------------


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


def in_virtual_time(test):
    def run():
        virtual.run(test())

    run.__name__ = test.__name__
    return run


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
