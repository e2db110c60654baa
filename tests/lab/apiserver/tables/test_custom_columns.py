"""The columns that a definition of custom resources asks for, and the JSON paths that fill them."""

import pytest

from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.resources.scheme import ServedResource
from lastcall_lab.apiserver.tables import build_table
from lastcall_lab.apiserver.values.jsonpath import InvalidJsonPath, JsonPath

NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z


def test_custom_columns():
    definition = {
        "additionalPrinterColumns": [
            {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
            {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1, "description": "How many"},
            {"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ]
    }
    widgets = ServedResource("x.io", "v1", "widgets", "Widget", KindBehaviour(), custom=True, definition=definition)
    obj = {
        "kind": "Widget",
        "apiVersion": "x.io/v1",
        "metadata": {"name": "w", "creationTimestamp": "2025-12-31T23:00:00Z"},
        "spec": {"size": 3},
        "status": {"conditions": [{"type": "A", "status": "False"}, {"type": "Ready", "status": "True"}]},
    }
    made = build_table(widgets, [obj], NOW, metadata={})
    assert made["rows"][0]["cells"] == ["w", None, "True", 3, "60m"]
    assert [column["description"] for column in made["columnDefinitions"][1:4]] == [
        "Custom resource definition column (in JSONPath format): .status.phase",
        'Custom resource definition column (in JSONPath format): .status.conditions[?(@.type=="Ready")].status',
        "How many",
    ]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.size", [3]),
        (".spec['a.b']", [1]),
        (r".spec.a\.b", [1]),
        (".list[0].n", [1]),
        (".list[-1].n", [2]),
        (".list[*].n", [1, 2]),
        (".list[?(@.n>1)].n", [2]),
        (".list[0:1].n", [1]),
        (".none.at.all", []),
    ],
)
def test_json_path(path, found):
    assert JsonPath(path).find({"spec": {"size": 3, "a.b": 1}, "list": [{"n": 1}, {"n": 2}]}) == found


def test_no_path():
    with pytest.raises(InvalidJsonPath):
        JsonPath("spec..")
