"""Selectors: the language of labelSelector and fieldSelector, and meta/v1 LabelSelectors."""

import pytest

from lastcall.model.label_selector import selector_matcher
from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.resources.scheme import ServedResource
from lastcall_lab.apiserver.routing import request_selectors
from lastcall_lab.apiserver.values.api_errors import ApiError

OBJECTS = {
    "a": {"app": "x", "tier": "1", "in": "notin"},
    "b": {"app": "x", "tier": "12"},
    "c": {"app": "", "tier": "one"},
    "d": {},
}


def chosen(selector):
    return "".join(name for name, labels in OBJECTS.items() if selector(labels))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "abcd"),
        ("app", "abc"),
        ("!app", "d"),
        ("! app", "d"),
        ("app=x", "ab"),
        ("app==x", "ab"),
        (" app = x ", "ab"),
        ("app!=x", "cd"),
        ("app=", "c"),
        ("app=,tier", "c"),
        ("app in (x)", "ab"),
        ("app in (x,)", "abc"),
        ("app in ()", "c"),
        ("app in (,x)", "abc"),
        ("app notin (x, y)", "cd"),
        ("app notin ()", "abd"),
        ("app=x,tier!=1", "b"),
        ("tier>1", "b"),
        ("tier<12", "a"),
        ("in", "a"),
        ("in in (notin)", "a"),
        ("in=notin", "a"),
        ("a.b/c!=d", "abcd"),
    ],
)
def test_labels_are_selected(text, expected):
    assert chosen(request_selectors.parse_label_selector(text)) == expected


BINARY = "in, notin, =, ==, !=, gt, lt"
INTEGER = "for 'Gt', 'Lt' operators, the value must be an integer"
KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b", f"unable to parse requirement: found 'b', expected: {BINARY}"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a in (b,=)", "unable to parse requirement: found '=', expected: ',', or identifier"),
        ("a,", "found '', expected: identifier after ','"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a=!b", "unable to parse requirement: found '!', expected: identifier"),
        ("a!", f"unable to parse requirement: found '!', expected: {BINARY}"),
        ("-a=b", f'unable to parse requirement: <nil>: Invalid value: "-a": {KEY}'),
        (
            "a>b",
            f'unable to parse requirement: values[0]: Invalid value: "b": {INTEGER}',
        ),
    ],
)
def test_what_is_wrong_with_labels_is_said_as_kubernetes_says_it(text, message):
    with pytest.raises(ApiError) as error:
        request_selectors.parse_label_selector(text)
    assert (error.value.code, error.value.reason, error.value.message) == (400, "BadRequest", message)


def test_values_that_no_label_can_have_are_refused():
    with pytest.raises(
        ApiError, match=r'^unable to parse requirement: values\[0\]\[a\]: Invalid value: "-": a valid l'
    ):
        request_selectors.parse_label_selector("a=-")
    with pytest.raises(ApiError, match=r"^unable to parse requirement: \[values\[0\]\[a\]: .*, values\[1\]\[a\]: "):
        request_selectors.parse_label_selector("a in (-,--)")


POD = ServedResource("", "v1", "pods", "Pod", KindBehaviour())
FIELDS = {"metadata.name": "p", "metadata.namespace": "n", "spec.nodeName": "n1", "note": "a,b=c\\"}


def selects(text, resource=POD, supported=("spec.nodeName", "note", "status.phase")):
    return request_selectors.field_selector(request_selectors.parse_field_terms(text), resource, supported)(FIELDS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("metadata.name=p", True),
        ("metadata.name==p", True),
        ("metadata.name!=p", False),
        ("spec.nodeName=n1,metadata.name=q", False),
        ("spec.nodeName=n1,,metadata.namespace=n", True),
        ("status.phase=", True),
        ("note=a\\,b\\=c\\\\", True),
        ("note!=a\\,b", True),
    ],
)
def test_fields_are_selected(text, expected):
    assert selects(text) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("note", "invalid selector: 'note'; can't understand 'note'"),
        ("note=a=b", "invalid field selector: unescaped character in value: 61"),
        ("note=\\a", "invalid field selector: invalid escape sequence: \\a"),
        ("note=\\", "invalid field selector: invalid escape sequence: \\"),
        ("spec.x=1", "field label not supported: spec.x"),
    ],
)
def test_what_is_wrong_with_fields(text, message):
    with pytest.raises(ApiError) as error:
        selects(text)
    assert (error.value.code, error.value.message) == (400, message)


@pytest.mark.parametrize(
    ("resource", "supported", "field", "message"),
    [
        (
            ServedResource("apps", "v1", "deployments", "Deployment", KindBehaviour()),
            (),
            "spec.replicas",
            '"spec.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        (
            ServedResource("batch", "v1", "jobs", "Job", KindBehaviour()),
            ("status.successful",),
            "x",
            'field label "x" not supported for batchv1.Job',
        ),
        (
            ServedResource("", "v1", "nodes", "Node", KindBehaviour(), namespaced=False),
            ("spec.unschedulable",),
            "metadata.namespace",
            "field label not supported: metadata.namespace",
        ),
        (
            ServedResource("e.com", "v1", "widgets", "Widget", KindBehaviour(), custom=True),
            (),
            "spec.x",
            "field label not supported: spec.x",
        ),
    ],
)
def test_each_kind_refuses_fields_in_its_own_words(resource, supported, field, message):
    with pytest.raises(ApiError) as error:
        selects(f"{field}=1", resource, supported)
    assert error.value.message == message


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, ""),
        ({}, "abcd"),
        ({"matchLabels": {}, "matchExpressions": None}, "abcd"),
        ({"matchLabels": {"app": "x", "tier": "1"}}, "a"),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", ""]}]}, "abc"),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x"]}]}, "cd"),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, "abc"),
        ({"matchLabels": {"app": "x"}, "matchExpressions": [{"key": "in", "operator": "DoesNotExist"}]}, "b"),
    ],
)
def test_label_selector_objects(selector, expected):
    assert chosen(selector_matcher(selector)) == expected


def test_an_operator_that_does_not_exist():
    with pytest.raises(ValueError, match='^"Gt" is not a valid label selector operator$'):
        selector_matcher({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]})


SELECTORS = [
    ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
    ({"matchExpressions": [{"key": "k", "operator": "In", "values": ["y", "x"]}]}, "k in (x,y)"),
    ({"matchExpressions": [{"key": "k", "operator": "DoesNotExist"}]}, "!k"),
    (None, ""),
]


@pytest.mark.parametrize(("selector", "text"), SELECTORS)
def test_selectors_as_text(selector, text):
    assert common_rules.selector_text(selector) == text


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [("In", ["x"], True), ("NotIn", ["x"], False), ("Exists", [], True), ("DoesNotExist", [], False), ("?", [], False)],
)
def test_what_selectors_match(operator, values, expected):
    selector = {"matchExpressions": [{"key": "k", "operator": operator, "values": values}]}
    assert common_rules.selects_labels(selector, {"k": "x"}) is expected


def test_nothing_is_selected_without_a_selector():
    assert not common_rules.selects_labels(None, {"a": "b"})
    assert common_rules.selects_labels({}, {"a": "b"})
