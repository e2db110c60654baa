"""A patch makes of an object what it would if the whole object were read again, not only what the patch changes."""

import copy
import json

import pytest
from support.lab.kind_objects import PATHS, with_api

from lastcall_lab.apiserver.catalog.built_in_resources import built_in_resources
from lastcall_lab.apiserver.patches import merge_patch, strategic_merge
from lastcall_lab.apiserver.patches.structural_sharing import share_items
from lastcall_lab.apiserver.registry.patch_requests import may_share
from lastcall_lab.apiserver.resources.scheme import ResourceScheme
from lastcall_lab.apiserver.routing.routes import Route
from lastcall_lab.apiserver.schema import Schemas, fast_decoder
from lastcall_lab.apiserver.schema.decoder import Decoder

SCHEMAS = Schemas()
NODE = SCHEMAS.types.find("", "v1", "Pod")
ENTRY = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:spec": {}}}
POD = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "p", "labels": {"a": "b", "c": "d"}, "creationTimestamp": None, "managedFields": [ENTRY]},
    "spec": {
        "nodeSelector": {"zone": "a"},
        "containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}, {"name": "d", "image": "d:1"}],
        "securityContext": {},
    },
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None}]},
}
"""As the API server stores it."""


def read(obj):
    decoder = Decoder()
    return decoder.decode(obj, NODE.struct), decoder.unknown


STORED = read(POD)[0]
READY = STORED["status"]["conditions"][0]

PATCHES = [
    {"status": {"phase": "Failed"}},
    {"status": {"phase": None, "conditions": None}},
    {"status": None},
    {"status": {"phase": "", "message": "", "startTime": "2026-01-01T01:00:00+01:00"}},
    {"status": {"conditions": [READY, {**READY, "type": "Other", "message": ""}]}},
    {"metadata": {"labels": {"a": None}}},
    {"metadata": {"labels": {"a": None, "c": None}}},
    {"metadata": {"creationTimestamp": None, "annotations": {"x": "y"}}},
    {"metadata": {"labels": {}, "annotations": {}}},
    {"metadata": {}, "spec": {}},
    {"metadata": None},
    {"spec": {"nodeSelector": {"zone": None}, "securityContext": None, "hostname": "", "priority": 3}},
    {"spec": {"containers": [{"name": "c", "resources": None}, {"name": "d", "env": []}]}},
    {"spec": {"containers": [{"name": "d", "image": "d:1"}, {"name": "e", "image": "e:1"}]}},
    {"spec": {"affinity": {"nodeAffinity": {}}, "securityContext": {"runAsUser": 0, "seLinuxOptions": {}}}},
]


@pytest.mark.parametrize(
    "merged",
    [merge_patch.apply_merge_patch, lambda obj, patch: strategic_merge.apply_strategic_patch(obj, patch, NODE)],
)
@pytest.mark.parametrize("patch", PATCHES, ids=json.dumps)
def test_only_what_a_patch_changes_is_read_again(patch, merged):
    before = copy.deepcopy(STORED)
    new = merged(before, copy.deepcopy(patch))
    assert before == STORED, "the object itself is left as it is"
    assert (fast_decoder.decode_plain(new, NODE.struct, before), []) == read(new)


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"priority": "high"}},
        {"spec": {"priority": True}},
        {"metadata": {"labels": {"a": 1}}},
        {"metadata": {"labels": {"a": None}, "mood": "good"}},
        {"status": []},
        {"status": {"startTime": "today"}},
        {"status": {"conditions": [{**READY, "mood": "good"}]}},
        {"status": {"conditions": [READY, None]}},
        {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "much"}}}]}},
    ],
    ids=json.dumps,
)
def test_what_has_to_be_told_is_left_to_who_tells_it(patch):
    with pytest.raises(fast_decoder.NeedsFullDecoder):
        fast_decoder.decode_plain(merge_patch.apply_merge_patch(STORED, patch), NODE.struct, STORED)


def test_what_stays_as_it_was_is_the_very_same():
    whole = {"status": {"phase": "Failed", "conditions": [dict(READY)]}, "metadata": {"labels": {"a": "b"}}}
    by_type = {**whole, "status": {"phase": "Failed", "conditions": [{"type": "Ready", "status": "True"}]}}
    for new in (
        merge_patch.apply_merge_patch(STORED, whole),
        strategic_merge.apply_strategic_patch(STORED, by_type, NODE),
    ):
        assert new["status"]["phase"] == "Failed"
        assert new["status"]["conditions"] is STORED["status"]["conditions"]
        assert new["metadata"] is STORED["metadata"]
        assert fast_decoder.decode_plain(new, NODE.struct, STORED)["spec"] is STORED["spec"]


def test_a_list_keeps_the_items_that_are_the_same():
    containers = STORED["spec"]["containers"]
    patch = {"spec": {"containers": [{"name": "new"}, dict(containers[1])]}}
    new, kept = merge_patch.apply_merge_patch(STORED, patch)["spec"]["containers"]
    assert new == {"name": "new"}
    assert kept is containers[1]
    by_name = strategic_merge.apply_strategic_patch(
        STORED, {"spec": {"containers": [{"name": "c", "image": "c:1"}]}}, NODE
    )
    assert by_name["spec"]["containers"][0] == {**containers[0], "image": "c:1"}
    assert by_name["spec"]["containers"][1] is containers[1]


@pytest.mark.parametrize("other", [True, 1.0, "1", [1], None], ids=json.dumps)
def test_what_python_takes_for_equal_need_not_be_the_same(other):
    assert merge_patch.apply_merge_patch({"a": {"b": 1}}, {"a": {"b": other}}) == {
        "a": {"b": other} if other is not None else {}
    }
    assert json.dumps(merge_patch.apply_merge_patch({"a": 1}, {"a": other or "none"})) == json.dumps(
        {"a": other or "none"}
    )
    assert json.dumps(share_items([{"b": 1}], [{"b": other}], lambda one: one)) == json.dumps([{"b": other}])


@pytest.mark.parametrize(
    ("resource", "part", "patch", "expected"),
    [
        ("pods", "status", {"status": {}, "metadata": {}, "kind": "Pod", "apiVersion": "v1"}, True),
        ("pods", "status", {"status": {}, "spec": {}}, False),
        ("pods", "status", [{"op": "remove", "path": "/spec"}], False),
        ("pods", "", {"status": {}}, False),
        ("pods", "resize", {"metadata": {}}, False),
        ("services", "", {"spec": {}}, False),
        ("endpointslices.discovery.k8s.io", "", {"endpoints": []}, True),
    ],
)
def test_who_shares_with_the_old_object(resource, part, patch, expected):
    route = Route("patch", ResourceScheme(built_in_resources()).stored_in(resource), "n", "x", part)
    assert may_share(route, patch) == expected


def test_what_a_status_patch_says_of_the_spec_leaves_no_trace():
    async def test(api):
        pods = "/api/v1/namespaces/kinds/pods"
        await api.call("POST", f"{pods[:-4]}serviceaccounts", {"metadata": {"name": "default"}})
        spec = {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]}
        _, _, made = await api.call("POST", pods, {"metadata": {"name": "p"}, "spec": spec})
        patch = {"spec": {"hostNetwork": True}, "status": {"phase": "Running"}}
        code, _, obj = await api.call("PATCH", f"{pods}/p/status", patch, patch=True)
        assert (code, obj["status"]["phase"], obj["spec"]) == (200, "Running", made["spec"])

    with_api(test)


def test_an_endpoint_that_stays_is_good_and_a_new_one_is_checked():
    async def test(api):
        first, second = ({"addresses": [address], "conditions": {}} for address in ("10.0.0.1", "10.0.0.2"))
        await api.make("endpointslices", "x", addressType="IPv4", endpoints=[first])
        _, _, obj = await api.change("endpointslices", "x", {"endpoints": [second, first]})
        assert (obj["endpoints"], obj["metadata"]["generation"]) == ([second, first], 2)
        code, _, obj = await api.change("endpointslices", "x", {"endpoints": [{"addresses": ["no"]}, first]})
        assert (code, obj["details"]["causes"][0]["field"]) == (422, "endpoints[0].addresses[0]")
        _, _, obj = await api.change("endpointslices", "x", {"addressType": "IPv6"})
        assert "must be an IPv6 address" in obj["message"]
        _, _, obj = await api.call("GET", f"{PATHS['endpointslices']}/x")
        assert obj["endpoints"] == [second, first]

    with_api(test)
