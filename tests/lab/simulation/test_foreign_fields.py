"""What others have set on nodes is as they left it, or it is told."""

from types import SimpleNamespace

import pytest

from lastcall_lab.simulation import foreign_fields

KEY = "example.com/theirs"
TAINT = {"key": KEY, "value": "kept", "effect": "PreferNoSchedule"}
OTHER = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}


def said(*, taints=(OTHER, TAINT), label="kept", annotation="kept"):
    metadata = {"name": "n1", "labels": {KEY: label}, "annotations": {KEY: annotation, "more": "x"}}
    node = {"metadata": metadata, "spec": {"taints": list(taints)}}
    return foreign_fields.changed_fields(SimpleNamespace(list_objects=lambda _: [node]))


def test_what_is_as_it_was_is_not_told():
    assert said() == []
    assert said(taints=[TAINT]) == []


@pytest.mark.parametrize(
    ("what", "changes"),
    [
        ("taint", {"taints": [OTHER]}),
        ("taint", {"taints": [TAINT, TAINT]}),
        ("taint", {"taints": [TAINT | {"effect": "NoExecute"}]}),
        ("taint", {"taints": [TAINT | {"value": "mine"}]}),
        ("label", {"label": "mine"}),
        ("annotation", {"annotation": None}),
    ],
)
def test_what_is_not_is_told(what, changes):
    assert said(**changes) == [f"the {what} {KEY} of n1 is not as it was"]
