"""Server-side apply, as requests see it."""

import json

import pytest
from support.lab.apply_requests import L, on_server, record

from lastcall_lab.apiserver.patches import server_side_apply

MAPS = "/api/v1/namespaces/default/configmaps"
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}


def data(**values):
    return {**CONFIG, "data": values}


@on_server
async def test_who_has_written_what(api):
    made = await api.good("POST", MAPS, data(a="1", b="1"))
    assert record(made) == [("tester", "Update", {"f:data": {".": L, "f:a": L, "f:b": L}})]
    await api.clock.sleep(2)
    patch = {"data": {"a": "2"}, "metadata": {"labels": {"l": "1"}}}
    after = await api.good("PATCH", f"{MAPS}/m?fieldManager=other", patch, kind="application/merge-patch+json")
    assert record(after) == [
        ("tester", "Update", {"f:data": {".": L, "f:b": L}}),
        ("other", "Update", {"f:data": {"f:a": L}, "f:metadata": {"f:labels": {".": L, "f:l": L}}}),
    ]
    gone = await api.good("PATCH", f"{MAPS}/m?fieldManager=other", {"data": None}, kind="application/merge-patch+json")
    assert record(gone) == [("other", "Update", {"f:metadata": {"f:labels": {".": L, "f:l": L}}})]


@on_server
async def test_a_write_that_changes_nothing_leaves_the_record_and_the_revision(api):
    made = await api.good("POST", MAPS, data(a="1"))
    await api.clock.sleep(2)
    put = {**data(a="1"), "metadata": {"name": "m", "labels": {}}}
    again = await api.good("PUT", f"{MAPS}/m?fieldManager=tester", put)
    assert again == made
    code, applied = await api.apply("one", f"{MAPS}/m", data(a="1"))
    assert (code, applied["metadata"]["resourceVersion"]) != (200, made["metadata"]["resourceVersion"])
    await api.clock.sleep(2)
    assert (await api.apply("one", f"{MAPS}/m", data(a="1"))) == (200, applied)


@pytest.mark.parametrize("said", [[], [{}]])
def test_a_record_can_be_forgotten(said):
    @on_server
    async def run(api):
        await api.good("POST", MAPS, data(a="1"))
        patch = {"metadata": {"managedFields": said}}
        after = await api.good("PATCH", f"{MAPS}/m", patch, kind="application/merge-patch+json")
        assert "managedFields" not in after["metadata"]
        after = await api.good("PATCH", f"{MAPS}/m", {"data": {"a": "2"}}, kind="application/merge-patch+json")
        assert "managedFields" not in after["metadata"], "what has no record gets none"
        _, after = await api.apply("one", f"{MAPS}/m", data(b="1"))
        assert record(after) == [
            ("one", "Apply", {"f:data": {"f:b": L}}),
            ("before-first-apply", "Update", {"f:data": {".": L, "f:a": L}}),
        ]

    run()


@on_server
async def test_a_record_that_makes_no_sense_is_not_taken(api):
    made = await api.good("POST", MAPS, data(a="1"))
    patch = {"metadata": {"managedFields": [{"manager": "x", "operation": "Grow"}]}}
    after = await api.good("PATCH", f"{MAPS}/m", patch, kind="application/merge-patch+json")
    assert after["metadata"]["managedFields"] == made["metadata"]["managedFields"]


@on_server
async def test_apply_makes_and_changes_and_takes_back(api):
    code, made = await api.apply("one", f"{MAPS}/m", data(a="1", b="1"))
    assert (code, record(made)) == (201, [("one", "Apply", {"f:data": {"f:a": L, "f:b": L}})])
    assert made["metadata"]["managedFields"][0]["time"]
    code, after = await api.apply("one", f"{MAPS}/m", data(b="2"))
    assert (code, after["data"], record(after)) == (200, {"b": "2"}, [("one", "Apply", {"f:data": {"f:b": L}})])
    code, after = await api.apply("two", f"{MAPS}/m", data(b="2"))
    assert (code, len(record(after))) == (200, 2)
    code, after = await api.apply("one", f"{MAPS}/m", CONFIG)
    assert (after["data"], record(after)) == ({"b": "2"}, [("two", "Apply", {"f:data": {"f:b": L}})])
    code, after = await api.apply("two", f"{MAPS}/m", CONFIG)
    assert "data" not in after
    assert "managedFields" not in after["metadata"]


@on_server
async def test_conflicts_and_force(api):
    await api.apply("one", f"{MAPS}/m", data(a="1", b="1"))
    await api.good("PATCH", f"{MAPS}/m?fieldManager=hand", {"data": {"c": "1"}}, kind="application/merge-patch+json")
    code, refused = await api.apply("two", f"{MAPS}/m", data(a="2", b="2", c="2"))
    assert (code, refused["reason"]) == (409, "Conflict")
    assert refused["message"] == (
        'Apply failed with 3 conflicts: conflicts with "hand" using v1:\n- .data.c\n'
        'conflicts with "one":\n- .data.a\n- .data.b'
    )
    assert refused["details"]["causes"][0] == {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "hand" using v1',
        "field": ".data.c",
    }
    code, forced = await api.apply("two", f"{MAPS}/m", data(a="2", c="2"), "&force=true")
    assert (code, forced["data"]) == (200, {"a": "2", "b": "1", "c": "2"})
    assert record(forced) == [
        ("one", "Apply", {"f:data": {"f:b": L}}),
        ("two", "Apply", {"f:data": {"f:a": L, "f:c": L}}),
    ]


@pytest.mark.parametrize(
    ("query", "config", "code", "message"),
    [
        (
            "",
            {**CONFIG, "metadata": {}},
            400,
            "the name of the object (m based on URL) was undeterminable: name must be provided",
        ),
        ("", {**CONFIG, "kind": "Pod"}, 400, "invalid object type: /v1, Kind=Pod"),
        ("", {**CONFIG, "apiVersion": "apps/v1"}, 400, "invalid object type: apps/v1, Kind=ConfigMap"),
        (
            "",
            "- a",
            400,
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            "",
            {**CONFIG, "metadata": {"name": "m", "namespace": "x"}},
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        ("", {**CONFIG, "metadata": {"name": "m", "managedFields": []}}, 400, "metadata.managedFields must be nil"),
        (
            "",
            {**CONFIG, "metadata": {"name": "m", "uid": "u"}},
            409,
            'Operation cannot be fulfilled on configmaps "m": uid mismatch: the provided object specified uid u, and no existing object was found',
        ),
        (
            "&fieldValidation=Strict",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  a: x\n  a: z\n",
            400,
            'error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  line 6: key "a" already set in map',
        ),
    ],
)
def test_configurations_that_are_refused(query, config, code, message):
    @on_server
    async def run(api):
        found, answer = await api.apply("one", f"{MAPS}/m", config, query)
        assert (found, answer["message"]) == (code, message)
        assert (await api.ask("GET", f"{MAPS}/m"))[0] == 404

    run()


@on_server
async def test_apply_needs_a_manager_and_takes_no_cbor(api):
    code, answer = await api.apply("", f"{MAPS}/m", CONFIG)
    assert (code, answer["message"]) == (
        422,
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
    )
    code, answer = await api.ask("PATCH", f"{MAPS}/m?fieldManager=one", CONFIG, kind="application/apply-patch+cbor")
    assert (code, answer["reason"]) == (415, "UnsupportedMediaType")


@on_server
async def test_apply_holds_to_the_version_that_it_names(api):
    _, made = await api.apply("one", f"{MAPS}/m", data(a="1"))
    old = {**data(a="2"), "metadata": {"name": "m", "resourceVersion": "1"}}
    code, answer = await api.apply("one", f"{MAPS}/m", old)
    assert (code, answer["reason"]) == (409, "Conflict")
    assert "the object has been modified" in answer["message"]
    now = {**data(a="2"), "metadata": {"name": "m", "resourceVersion": made["metadata"]["resourceVersion"]}}
    assert (await api.apply("one", f"{MAPS}/m", now))[0] == 200


@on_server
async def test_what_kubectl_applied_before_is_its_own(api):
    """An object of a client-side apply is taken over by ``kubectl apply --server-side`` without conflict."""
    last = {**data(a="1"), "metadata": {"annotations": {}, "name": "m", "namespace": "default"}}
    annotated = {"name": "m", "annotations": {server_side_apply.LAST_APPLIED: json.dumps(last)}}
    await api.good("POST", f"{MAPS}?fieldManager=kubectl-client-side-apply", {**data(a="1"), "metadata": annotated})
    code, answer = await api.apply("somebody", f"{MAPS}/m", data(a="2"))
    assert (code, answer["details"]["causes"][0]["field"]) == (409, ".data.a")
    code, answer = await api.apply("kubectl", f"{MAPS}/m", data(a="2"))
    assert (code, answer["data"]) == (200, {"a": "2"})
    assert json.loads(answer["metadata"]["annotations"][server_side_apply.LAST_APPLIED])["data"] == {"a": "2"}


@on_server
async def test_status_is_a_part_of_its_own(api):
    pods = "/api/v1/namespaces/default/pods"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    await api.good("POST", "/api/v1/namespaces/default/serviceaccounts", account)
    await api.good("POST", f"{pods}?fieldManager=maker", pod)
    said = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": {"phase": "Running"}}
    code, after = await api.apply("node", f"{pods}/p/status", said)
    assert (code, after["status"]["phase"]) == (200, "Running")
    assert ("node", "Apply", {"f:status": {"f:phase": L}}, "status") in record(after)
    code, after = await api.apply("node", f"{pods}/p", {**said, "status": {"phase": "Failed"}})
    assert (code, after["status"]["phase"]) == (200, "Running"), "the object itself does not take a status"
    assert [one for one in record(after) if one[0] == "node"] == [
        ("node", "Apply", {"f:status": {"f:phase": L}}, "status")
    ]
    code, _ = await api.apply("node", f"{pods}/q/status", {**said, "metadata": {"name": "q"}})
    assert code == 404, "a status makes no object"


@on_server
async def test_what_is_there_anyhow_is_nobodys(api):
    """Structs that every object of a kind has are no one's, what is in them is; maps and lists are the maker's."""
    services = "/api/v1/namespaces/default/services"
    made = await api.good(
        "POST",
        services,
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "s", "labels": {"a": "1"}},
            "spec": {"selector": {"app": "x"}, "ports": [{"port": 80}]},
        },
    )
    fields = record(made)[0][2]
    assert fields["f:metadata"] == {"f:labels": {".": L, "f:a": L}}
    assert "." not in fields["f:spec"]
    assert fields["f:spec"]["f:selector"] == L
    assert [*fields["f:spec"]["f:ports"]] == [".", 'k:{"port":80,"protocol":"TCP"}']


@pytest.mark.parametrize(
    ("manager", "why"),
    [("x" * 129, "Too long: may not be more than 128 bytes"), ("a%01", "should only contain printable characters")],
)
def test_managers_have_names_that_can_be_read(manager, why):
    @on_server
    async def run(api):
        for answer in (
            await api.ask("POST", f"{MAPS}?fieldManager={manager}", CONFIG),
            await api.apply(manager, f"{MAPS}/m", CONFIG),
        ):
            assert answer[0] == 422
            assert why in answer[1]["message"]

    run()
