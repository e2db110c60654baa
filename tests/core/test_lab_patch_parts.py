"""A patch makes of an object what it would if the whole object were read again, not only what the patch speaks of."""

import copy
import json

import pytest

from lastcall.lab.apiserver.patches import merge_patch
from lastcall.lab.apiserver.schema import Schemas
from lastcall.lab.apiserver.schema.decode import Decoder, Undecodable
from lastcall.lab.apiserver.schema.parts import narrowed, widened

SCHEMAS = Schemas()
NODE = SCHEMAS.types.find("", "v1", "Pod")
ENTRY = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:spec": {}}}
POD = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "p", "labels": {"a": "b", "c": "d"}, "creationTimestamp": None, "managedFields": [ENTRY]},
    "spec": {
        "nodeSelector": {"zone": "a"},
        "containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}],
        "securityContext": {},
    },
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None}]},
}
"""As the API server stores it."""


def read(obj):
    decoder = Decoder()
    return decoder.decode(obj, NODE.struct), decoder.unknown


STORED = read(POD)[0]


@pytest.mark.parametrize(
    "patch",
    [
        {"status": {"phase": "Failed"}},
        {"status": {"phase": None, "conditions": None}},
        {"status": None},
        {"status": {"phase": "", "message": "", "startTime": "2026-01-01T01:00:00+01:00"}},
        {"status": {"conditions": [{"type": "Ready", "status": "False", "mood": "good"}]}},
        {"metadata": {"labels": {"a": None}}},
        {"metadata": {"labels": {"a": None, "c": None}}},
        {"metadata": {"creationTimestamp": None, "annotations": {"x": "y"}}},
        {"metadata": {"labels": {}, "annotations": {}, "mood": "good"}},
        {"metadata": {}, "spec": {}, "mood": "good"},
        {"metadata": None},
        {"spec": {"nodeSelector": {"zone": None}, "securityContext": None, "hostname": "", "priority": 3}},
        {"spec": {"containers": [{"name": "c", "resources": None}, {"name": "d", "env": []}]}},
        {"spec": {"affinity": {"nodeAffinity": {}}, "securityContext": {"runAsUser": 0, "seLinuxOptions": {}}}},
    ],
    ids=json.dumps,
)
def test_only_what_a_patch_speaks_of_is_read_again(patch):
    merged = merge_patch.merged(copy.deepcopy(STORED), patch)
    part = narrowed(merged, patch)
    decoded, unknown = read(part)
    assert (widened(merged, part, decoded), unknown) == read(merged)


@pytest.mark.parametrize(
    "patch", [{"spec": {"priority": "high"}}, {"metadata": {"labels": {"a": 1}}}, {"status": []}], ids=json.dumps
)
def test_mistakes_are_told_as_if_all_were_read(patch):
    merged = merge_patch.merged(copy.deepcopy(STORED), patch)
    with pytest.raises(Undecodable) as whole:
        read(merged)
    with pytest.raises(Undecodable) as partly:
        read(narrowed(merged, patch))
    assert str(partly.value) == str(whole.value)


def test_what_is_not_spoken_of_is_left_out():
    assert narrowed(STORED, {"status": {"phase": "Failed"}, "metadata": {"uid": "u"}}) == {
        "status": {"phase": "Running"},
        "metadata": {},
    }


def test_a_directive_speaks_of_all_that_is_beside_it():
    patch = {"status": {"$retainKeys": ["phase"], "phase": "Failed"}}
    assert narrowed(STORED, patch) == {"status": STORED["status"]}
