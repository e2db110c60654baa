"""What a CustomResourceDefinition may say."""

import copy

import pytest
from support.lab.custom_schemas import INTEGER, STRING, definition, objects, ruled, said

from lastcall_lab.apiserver.custom import definition_conditions, definition_rules, definition_schema
from lastcall_lab.apiserver.custom.definition_kind import DefinitionKind

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
        ({"type": "string", "pattern": "("}, f'{AT}.pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: error parsing regexp: missing closing ): `(`'),
    ],
)  # fmt: skip
def test_a_schema_that_is_refused(spec, words):
    assert words in said(judged(definition(spec)))


def judged(obj):
    kind = DefinitionKind()
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
    assert definition_schema.schema_violations(objects(spec=spec), "s", status=True) == []


def test_what_cannot_change():
    old = definition()
    DefinitionKind().default(old)
    DefinitionKind().prepare_create(old)
    definition_conditions.settle_conditions(old, [], wall=0.0)
    new = copy.deepcopy(old)
    new["spec"]["scope"] = "Cluster"
    new["spec"]["names"]["kind"] = "Other"
    assert said(definition_rules.definition_update_violations(new, old)) == [
        'spec.scope: Invalid value: "Cluster": field is immutable',
        'spec.names.kind: Invalid value: "Other": field is immutable',
    ]


def test_names_that_another_definition_has():
    first, second = definition(), definition()
    for obj in (first, second):
        DefinitionKind().default(obj)
        DefinitionKind().prepare_create(obj)
    assert definition_conditions.settle_conditions(first, [], wall=0.0)
    assert not definition_conditions.settle_conditions(first, [], wall=9.0)
    second["spec"]["names"] |= {"plural": "others", "shortNames": ["widget"]}
    assert definition_conditions.settle_conditions(second, [first], wall=0.0)
    assert second["status"]["acceptedNames"] == {"plural": "others", "kind": ""}
    found = {one["type"]: (one["status"], one["reason"], one["message"]) for one in second["status"]["conditions"]}
    assert found == {
        "NamesAccepted": ("False", "ListKindConflict", '"WidgetList" is already in use'),
        "Established": ("False", "NotAccepted", "not all names are accepted"),
    }
