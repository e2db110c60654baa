"""What the schema of a custom resource allows of its objects, what it prunes, and what it sets."""

import pytest
from support.lab.custom_schemas import INTEGER, STRING, objects, said

from lastcall_lab.apiserver.custom import list_types, value_validation
from lastcall_lab.apiserver.schema import pruning


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
        ({**STRING, "pattern": "^n$"}, "n\n", "Invalid value: \"n\\n\": s in body should match '^n$'"),
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
    assert said(value_validation.value_violations(value, schema, "s")) == [f"s: {words}"]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (INTEGER, 2.0),
        ({"type": "number"}, 2),
        ({**STRING, "nullable": True}, None),
        ({"x-kubernetes-int-or-string": True}, "50%"),
        ({**STRING, "pattern": r"^[^$]\$$"}, "n$"),
        ({**STRING, "pattern": "(?m)^n$"}, "n\n"),
        ({**STRING, "format": "date-time"}, "2026-01-01T00:00:00Z"),
        ({**STRING, "format": "ipv4"}, "10.0.0.1"),
        ({**STRING, "format": "nobody-knows-it"}, "x"),
        ({"type": "object"}, {"anything": 1}),
    ],
)
def test_a_value_that_the_schema_allows(schema, value):
    assert said(value_validation.value_violations(value, schema, "s")) == []


def test_paths_and_required_fields():
    schema = objects(spec={**objects(tags={"type": "array", "items": STRING}), "required": ["size"]})
    assert said(value_validation.value_violations({"spec": {"tags": ["a", 1]}}, schema)) == [
        'spec.tags[1]: Invalid value: "integer": spec.tags[1] in body must be of type string: "integer"',
        "spec.size: Required value",
    ]


def test_one_of_is_told_without_a_path():
    schema = objects(s={"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]})
    assert said(value_validation.value_violations({"s": {"a": 1, "b": 2}}, schema)) == [
        '<nil>: Invalid value: "": "s" must validate one and only one schema (oneOf). Found 2 valid alternatives'
    ]
    assert said(value_validation.value_violations({"s": {}}, schema)) == [
        '<nil>: Invalid value: "": "s" must validate one and only one schema (oneOf). Found none valid',
        "s.a: Required value",
    ]


def test_what_an_update_leaves_as_it_was_is_not_judged_again():
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    schema = objects(a=INTEGER, b=INTEGER, c={"type": "array", **keyed, "items": objects(name=STRING, n=INTEGER)})
    old = {"a": "bad", "b": 1, "c": [{"name": "x", "n": "bad"}, {"name": "y", "n": 1}]}
    new = {"a": "bad", "b": "worse", "c": [{"name": "x", "n": "bad"}, {"name": "y", "n": "worse"}]}
    assert [cause.field for cause in value_validation.value_violations(new, schema, old=old)] == ["b", "c[1].n"]


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
    pruning.apply_defaults(obj, schema)
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
    assert said(list_types.list_violations(obj, schema)) == [
        'set[2]: Duplicate value: "a"',
        'map[1]: Duplicate value: {"name":"x"}',
    ]
