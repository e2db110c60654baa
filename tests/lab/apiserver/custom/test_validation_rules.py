"""The validation rules (``x-kubernetes-validations``) of a custom resource, and what is said if one does not hold."""

import pytest
from support.lab.custom_schemas import INTEGER, STRING, objects, ruled, said

from lastcall_lab.apiserver.custom import validation_rules


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
    assert said(validation_rules.rule_violations({"n": value}, objects(n={**INTEGER, **schema}))) == [f"n: {words}"]


def test_a_rule_about_an_object_shows_no_value_and_may_name_a_field():
    schema = objects(spec={**objects(a=INTEGER), **ruled("self.a > 1", message="m", fieldPath=".a")})
    assert said(validation_rules.rule_violations({"spec": {"a": 1}}, schema)) == ["spec.a: Invalid value: m"]


def test_a_rule_at_the_root_sees_the_name_and_has_no_path():
    schema = {**objects(spec=objects()), **ruled("self.metadata.name.startsWith('w')", message="m")}
    assert said(validation_rules.rule_violations({"metadata": {"name": "x"}, "spec": {}}, schema)) == [
        "<nil>: Invalid value: m"
    ]


def test_rules_about_changes():
    schema = objects(fixed={**STRING, **ruled("self == oldSelf", message="fixed")})
    assert said(validation_rules.rule_violations({"fixed": "a"}, schema)) == []
    assert said(validation_rules.rule_violations({"fixed": "a"}, schema, old={})) == []
    assert said(validation_rules.rule_violations({"fixed": "a"}, schema, old={"fixed": "a"})) == []
    assert said(validation_rules.rule_violations({"fixed": "b"}, schema, old={"fixed": "a"})) == [
        'fixed: Invalid value: "b": fixed'
    ]


def test_rules_about_changes_of_what_may_be_new():
    rule = "oldSelf.hasValue() || self == 'new'"
    schema = objects(s={**STRING, **ruled(rule, optionalOldSelf=True, message="m")})
    assert said(validation_rules.rule_violations({"s": "x"}, schema)) == ['s: Invalid value: "x": m']
    assert said(validation_rules.rule_violations({"s": "y"}, schema, old={"s": "x"})) == []


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
    assert said(validation_rules.rule_violations(obj, schema)) == []
