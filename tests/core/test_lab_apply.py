"""Server-side apply, and the record of who owns which field."""

import functools
import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.lab import virtual
from lastcall.lab.apiserver import ApiServer
from lastcall.lab.apiserver.patches import applying, field_sets, merging, owners
from lastcall.lab.apiserver.patches.comparing import compared, owned
from lastcall.lab.apiserver.patches.faults import faults
from lastcall.lab.apiserver.patches.shapes import Shape
from lastcall.lab.apiserver.request import Request
from lastcall.lab.apiserver.schema.types import Types

TYPES = Types()
POD, SERVICE, MAP = (Shape(TYPES.find("", "v1", kind)) for kind in ("Pod", "Service", "ConfigMap"))
FREE = Shape(None)
L = field_sets.LEAF


def spec(**fields):
    return {"spec": fields}


# -- sets of fields -----------------------------------------------------------------------------------------------------

SETS = st.recursive(
    st.just({}),
    lambda inner: st.dictionaries(st.sampled_from(["f:a", "f:b", 'k:{"n":1}', "v:2"]), inner, max_size=3).flatmap(
        lambda node: st.sampled_from([node, {".": {}, **node}] if node else [{}])
    ),
    max_leaves=8,
).map(lambda node: {key: below for key, below in node.items() if key != "."})


def members(fields, prefix=()):
    """The same set in another form: as tuples of keys."""
    found = set()
    for key, below in fields.items():
        if key != ".":
            found |= ({(*prefix, key)} if not below or "." in below else set()) | members(below, (*prefix, key))
    return found


@given(SETS, SETS)
def test_the_arithmetic_of_sets(one, other):
    a, b = members(one), members(other)
    assert members(field_sets.union(one, other)) == a | b
    assert members(field_sets.difference(one, other)) == a - b
    assert members(field_sets.intersection(one, other)) == a & b
    below = {path for path in a if any(path[: len(whole)] == whole for whole in b)}
    assert members(field_sets.without(one, other)) == a - below
    assert members(field_sets.ordered(one)) == a
    assert len(list(field_sets.paths(one))) == len(a)


def test_the_order_of_keys_is_that_of_their_values():
    keys = ["v:10", "v:9", 'k:{"port":443}', 'k:{"port":80}', "f:b", ".", "f:a"]
    assert [*field_sets.ordered(dict.fromkeys(keys, L))] == [
        *(".", "f:a", "f:b"),
        *('k:{"port":80}', 'k:{"port":443}'),
        *("v:9", "v:10"),
    ]


def test_paths_as_messages_show_them():
    fields = {
        "f:spec": {
            "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": L, "f:name": L}},
            "f:x": {'v:"a"': L},
            "f:type": L,
        }
    }
    assert list(field_sets.paths(fields)) == [
        ".spec.type",
        '.spec.ports[port=80,protocol="TCP"]',
        '.spec.ports[port=80,protocol="TCP"].name',
        '.spec.x[="a"]',
    ]


def test_a_key_is_written_as_go_writes_it():
    assert field_sets.item({"b": 1, "a": "<x>"}) == 'k:{"a":"\\u003cx\\u003e","b":1}'


# -- what differs, what is owned ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "shape", "changed", "removed"),
    [
        ({"data": {"a": "1"}}, {"data": {"a": "2"}}, MAP, {"f:data": {"f:a": L}}, {}),
        ({}, {"data": {"a": "1"}}, MAP, {"f:data": {".": L, "f:a": L}}, {}),
        ({"data": {"a": "1"}}, {}, MAP, {}, {"f:data": {".": L, "f:a": L}}),
        ({"data": {"a": "1"}}, {"data": {}}, MAP, {}, {"f:data": {"f:a": L}}),
        ({"spec": {}}, spec(nodeSelector={"a": "1"}), POD, {"f:spec": {"f:nodeSelector": L}}, {}),
        (spec(nodeSelector={"a": "1"}), spec(nodeSelector={"a": "2"}), POD, {"f:spec": {"f:nodeSelector": L}}, {}),
        (spec(tolerations=[{"key": "a"}]), spec(tolerations=[]), POD, {"f:spec": {"f:tolerations": L}}, {}),
        (
            spec(containers=[{"name": "a", "image": "1"}]),
            spec(containers=[{"name": "b"}, {"name": "a", "image": "2"}]),
            POD,
            {"f:spec": {"f:containers": {'k:{"name":"a"}': {"f:image": L}, 'k:{"name":"b"}': {".": L, "f:name": L}}}},
            {},
        ),
        (
            spec(containers=[{"name": "a"}]),
            spec(containers=[]),
            POD,
            {},
            {"f:spec": {"f:containers": {'k:{"name":"a"}': {".": L, "f:name": L}}}},
        ),
        (
            {"metadata": {"finalizers": ["a"]}},
            {"metadata": {"finalizers": ["b", "a"]}},
            POD,
            {"f:metadata": {"f:finalizers": {'v:"b"': L}}},
            {},
        ),
        (spec(hostNetwork=False), spec(hostNetwork=0), POD, {}, {}),
        (spec(x=[1]), spec(x=[2]), FREE, {"f:spec": {"f:x": L}}, {}),
        (spec(x={"y": [1]}), spec(x={"y": [1], "z": {}}), FREE, {"f:spec": {"f:x": {"f:z": L}}}, {}),
    ],
)
def test_differences(old, new, shape, changed, removed):
    assert compared(old, new, shape) == (changed, removed)


def test_items_that_share_their_key_are_one_value():
    two = spec(containers=[{"name": "a", "image": "1"}, {"name": "a", "image": "2"}])
    one = spec(containers=[{"name": "a", "image": "1"}])
    key = 'k:{"name":"a"}'
    assert compared(one, two, POD) == (
        {"f:spec": {"f:containers": {key: L}}},
        {"f:spec": {"f:containers": {key: {".": L, "f:name": L, "f:image": L}}}},
    )
    assert compared(two, two, POD) == ({}, {})
    assert owned(two, POD) == {"f:spec": {"f:containers": {key: L}}}


@pytest.mark.parametrize(
    ("config", "shape", "fields"),
    [
        ({"data": {"a": "1"}}, MAP, {"f:data": {"f:a": L}}),
        ({"data": {}}, MAP, {"f:data": L}),
        ({"metadata": {"finalizers": []}}, MAP, {}),
        (spec(securityContext={}), POD, {"f:spec": {"f:securityContext": L}}),
        (
            spec(containers=[{"name": "a", "ports": [{"containerPort": 80}]}]),
            POD,
            {
                "f:spec": {
                    "f:containers": {
                        'k:{"name":"a"}': {
                            ".": L,
                            "f:name": L,
                            "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": L, "f:containerPort": L}},
                        }
                    }
                }
            },
        ),
        (
            spec(tolerations=[{"key": "a"}], nodeSelector={"a": "b"}),
            POD,
            {"f:spec": {"f:tolerations": L, "f:nodeSelector": L}},
        ),
        (spec(a={"b": 1}, c=[1]), FREE, {"f:spec": {".": L, "f:a": {".": L, "f:b": L}, "f:c": L}}),
    ],
)
def test_what_a_configuration_owns(config, shape, fields):
    assert owned(config, shape) == fields


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"nope": 1}, [".nope: field not declared in schema"]),
        (spec(nope=1), [".spec.nope: field not declared in schema"]),
        ({"spec": "x"}, [".spec: expected map, got &{x}"]),
        (spec(containers={}), [".spec.containers: expected list, got &{map[]}"]),
        (spec(hostNetwork="x"), [".spec.hostNetwork: expected boolean, got &{x}"]),
        (spec(priority="x"), [".spec.priority: expected numeric (int or float), got string"]),
        (spec(nodeName=1), [".spec.nodeName: expected string, got &value.valueUnstructured{Value:1}"]),
        (spec(containers=[{"name": "a"}, {"name": "a"}]), ['.spec.containers: duplicate entries for key [name="a"]']),
        (
            spec(containers=[{"image": "a"}]),
            [
                (
                    '.spec.containers: element 0: associative list with keys has an element that omits all key fields ["name"]'
                    " (and doesn't have default values for any key fields)"
                )
            ],
        ),
        (
            spec(containers=[{"name": "a", "image": 1}]),
            ['.spec.containers[name="a"].image: expected string, got &value.valueUnstructured{Value:1}'],
        ),
        (
            spec(tolerations=[{"key": 1}]),
            [".spec.tolerations[0].key: expected string, got &value.valueUnstructured{Value:1}"],
        ),
        (spec(hostNetwork=None, containers=None), []),
    ],
)
def test_faults(config, said):
    assert faults(config, POD) == said


# -- laying over and taking out ------------------------------------------------------------------------------------------


def items(*names):
    return [{"name": name} for name in names]


@pytest.mark.parametrize(
    ("live", "config", "merged"),
    [
        (items("a", "b"), items("c"), "abc"),
        (items("a", "b"), items("b", "a"), "ba"),
        (items("a", "x", "b"), items("b", "a"), "xba"),
        (items("a", "b", "c"), items("x", "b"), "axbc"),
        (items("a", "b", "c", "d"), items("d", "c"), "abdc"),
        ([], items("a"), "a"),
    ],
)
def test_the_order_of_merged_lists(live, config, merged):
    result = merging.laid_over(spec(containers=live), spec(containers=config), POD)
    assert "".join(one["name"] for one in result["spec"]["containers"]) == merged


def test_an_item_of_the_configuration_is_merged_into_the_live_one():
    live = spec(containers=[{"name": "a", "image": "1", "command": ["x"]}], nodeSelector={"a": "1"})
    config = spec(containers=[{"name": "a", "image": "2"}], nodeSelector={"b": "2"})
    assert merging.laid_over(live, config, POD) == spec(
        containers=[{"name": "a", "image": "2", "command": ["x"]}], nodeSelector={"b": "2"}
    )


def test_what_is_taken_out_is_gone_with_what_is_below():
    value = spec(containers=[{"name": "a", "image": "1"}, {"name": "b"}], nodeName="n")
    fields = {"f:spec": {"f:containers": {'k:{"name":"b"}': {".": L, "f:name": L}, 'k:{"name":"a"}': {"f:image": L}}}}
    assert merging.taken_out(value, fields, POD) == spec(containers=[{"name": "a"}], nodeName="n")


def plain(value):
    """Without what is empty, as a typed server has it."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if plain(one) not in ({}, [], None)}
    return value


configs = st.fixed_dictionaries(
    {
        "apiVersion": st.just("v1"),
        "kind": st.just("Pod"),
        "metadata": st.fixed_dictionaries(
            {"name": st.just("p")}, optional={"labels": st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"))}
        ),
    },
    optional={
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "containers": st.lists(
                    st.fixed_dictionaries({"name": st.sampled_from("abc")}, optional={"image": st.sampled_from("xy")}),
                    unique_by=lambda one: one["name"],
                ),
                "nodeSelector": st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy")),
                "hostNetwork": st.booleans(),
            },
        )
    },
).map(plain)
BLANK = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}


def apply(live, config, claims, manager, **rest):
    owner = owners.applier(manager)
    return applying.applied(live, config, claims, owner, shape=POD, version="v1", ignored={}, **rest)


@given(st.lists(st.tuples(configs, st.sampled_from("mn")), min_size=1, max_size=4))
def test_an_apply_again_changes_nothing(steps):
    live, claims = BLANK, {}
    for config, manager in steps:
        live, claims, _ = apply(live, config, claims, manager, force=True)
    config, manager = steps[-1]
    again = apply(live, config, claims, manager)
    assert again.same
    assert again.claims == claims


@given(configs, configs)
def test_who_applies_something_else_leaves_nothing_behind(first, second):
    once = apply(BLANK, first, {}, "m")
    twice = apply(once.obj, second, once.claims, "m")
    assert plain(twice.obj) == plain(apply(BLANK, second, {}, "m").obj)


@given(configs, configs, configs)
def test_nobody_removes_what_another_one_wants(first, other, second):
    one = apply(BLANK, first, {}, "m")
    both = apply(one.obj, other, one.claims, "n", force=True)
    try:
        last = apply(both.obj, second, both.claims, "m")
    except applying.Conflicts:
        return
    assert compared(plain(merging.laid_over(last.obj, other, POD)), plain(last.obj), POD) == ({}, {})


# -- the record ---------------------------------------------------------------------------------------------------------


def test_entries_come_in_the_order_of_kubernetes():
    claims = {
        owners.updater("b", "v1"): owners.Claim({"f:x": L}, "v1", "2026-01-01T00:00:00Z"),
        owners.updater("a", "v1", "status"): owners.Claim({"f:x": L}, "v1", "2026-01-01T00:00:01Z"),
        owners.updater("a", "v1"): owners.Claim({"f:x": L}, "v1", "2026-01-01T00:00:00Z"),
        owners.applier("z"): owners.Claim({"f:x": L}, "v1", ""),
    }
    entries = owners.encoded(claims)
    found = [(one["manager"], one["operation"], one.get("subresource")) for one in entries]
    assert found == [("z", "Apply", None), ("a", "Update", None), ("b", "Update", None), ("a", "Update", "status")]
    assert owners.decoded(entries) == claims
    assert "time" not in entries[0]


def test_the_oldest_of_many_updaters_become_one():
    claims = {}
    for number in range(12):
        changes = compared({}, {"data": {str(number): "x"}}, MAP)
        at = f"2026-01-01T00:00:{number:02}Z"
        claims = owners.updated(claims, changes, owners.updater(f"m{number:02}", "v1"), version="v1", now=at)
    assert len(claims) == owners.MAX_UPDATERS
    ancient = claims[owners.updater(owners.ANCIENT, "v1")]
    assert {*ancient.fields["f:data"]} - {"."} == {"f:0", "f:1", "f:2"}
    assert ancient.time == "2026-01-01T00:00:02Z"


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"operation": "Grow"}, "operation must be `Apply` or `Update`"),
        ({"operation": "Update"}, "apiVersion must not be empty"),
        ({"operation": "Update", "apiVersion": "v1"}, "missing fieldsType in managed fields entry 0"),
        ({"operation": "Update", "apiVersion": "v1", "fieldsType": "V2"}, 'invalid fieldsType "V2"'),
    ],
)
def test_records_that_cannot_be_read(entry, why):
    with pytest.raises(ValueError, match=why):
        owners.decoded([entry])


# -- requests -----------------------------------------------------------------------------------------------------------

MAPS = "/api/v1/namespaces/default/configmaps"
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}


class Api:
    """Short ways to ask a new server."""

    def __init__(self):
        self.clock = virtual.VirtualClock()
        self.server = ApiServer(self.clock, Random(1))

    async def ask(self, method, target, body=None, kind="application/json"):
        headers = {"content-type": kind, "user-agent": "tester/1.0"}
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        response = await self.server.handle(Request.of(method, target, body=data, headers=headers))
        return response.status, json.loads(response.body)

    async def good(self, *arguments, **rest):
        code, answer = await self.ask(*arguments, **rest)
        assert code < 300, answer
        return answer

    async def apply(self, manager, target, config, query=""):
        kind = "application/apply-patch+yaml"
        return await self.ask("PATCH", f"{target}?fieldManager={manager}{query}", config, kind=kind)


def on_server(test):
    @functools.wraps(test)
    def run():
        async def main():
            await test(Api())

        virtual.run(main())

    del run.__wrapped__
    return run


def record(obj):
    """Who owns what, in short."""
    return [
        (one["manager"], one["operation"], one["fieldsV1"], *([one["subresource"]] if "subresource" in one else []))
        for one in obj["metadata"].get("managedFields", [])
    ]


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
    annotated = {"name": "m", "annotations": {applying.LAST_APPLIED: json.dumps(last)}}
    await api.good("POST", f"{MAPS}?fieldManager=kubectl-client-side-apply", {**data(a="1"), "metadata": annotated})
    code, answer = await api.apply("somebody", f"{MAPS}/m", data(a="2"))
    assert (code, answer["details"]["causes"][0]["field"]) == (409, ".data.a")
    code, answer = await api.apply("kubectl", f"{MAPS}/m", data(a="2"))
    assert (code, answer["data"]) == (200, {"a": "2"})
    assert json.loads(answer["metadata"]["annotations"][applying.LAST_APPLIED])["data"] == {"a": "2"}


@on_server
async def test_status_is_a_part_of_its_own(api):
    pods = "/api/v1/namespaces/default/pods"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        **spec(containers=[{"name": "c", "image": "i"}]),
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


# -- custom resources ---------------------------------------------------------------------------------------------------

WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "how"],
                    "items": {
                        "type": "object",
                        "required": ["port"],
                        "properties": {
                            "port": {"type": "integer"},
                            "how": {"type": "string", "default": "fast"},
                            "name": {"type": "string"},
                        },
                    },
                },
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "one": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "additionalProperties": {"type": "string"},
                },
            },
        },
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    },
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": SCHEMA},
            }
        ],
    },
}


def widget(**fields):
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": fields}


async def with_widgets(api):
    await api.good("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    await api.clock.sleep(10)


@on_server
async def test_custom_resources_merge_as_their_definition_says(api):
    await with_widgets(api)
    _, made = await api.apply(
        "one", f"{WIDGETS}/w", widget(ports=[{"port": 1}], tags=["a"], any={"x": 1}, one={"a": "1"})
    )
    key = 'k:{"how":"fast","port":1}'
    spec_fields = {
        "f:any": {"f:x": L},
        "f:one": L,
        "f:ports": {key: {".": L, "f:port": L}},
        "f:tags": {'v:"a"': L},
    }
    assert record(made) == [("one", "Apply", {"f:spec": spec_fields})]
    code, after = await api.apply(
        "two", f"{WIDGETS}/w", widget(ports=[{"port": 2, "name": "n"}], tags=["b"], any={"y": [1]})
    )
    assert (code, after["spec"]["tags"], after["spec"]["any"]) == (200, ["a", "b"], {"x": 1, "y": [1]})
    assert [one["port"] for one in after["spec"]["ports"]] == [1, 2]
    code, after = await api.apply("one", f"{WIDGETS}/w", widget(tags=["b"]))
    assert (code, after["spec"]["tags"], [one["port"] for one in after["spec"]["ports"]]) == (200, ["b"], [2])
    assert "one" not in after["spec"]
    code, refused = await api.apply("one", f"{WIDGETS}/w", widget(nope=1))
    assert (code, refused["message"]) == (
        500,
        "failed to create typed patch object (/w; example.com/v1, Kind=Widget): .spec.nope: field not declared in schema",
    )


@on_server
async def test_custom_resources_take_no_strategic_patches(api):
    await with_widgets(api)
    made = await api.good("POST", WIDGETS, widget(tags=["a"]))
    assert record(made) == [("tester", "Update", {"f:spec": {".": L, "f:tags": {".": L, 'v:"a"': L}}})]
    code, refused = await api.ask("PATCH", f"{WIDGETS}/w", {}, kind="application/strategic-merge-patch+json")
    assert (code, refused["message"]) == (
        415,
        (
            "the body of the request was in an unknown format - accepted media types include:"
            " application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
        ),
    )
    after = await api.good(
        "PATCH", f"{WIDGETS}/w/status", {"status": {"phase": "x"}}, kind="application/merge-patch+json"
    )
    assert record(after)[1] == ("tester", "Update", {"f:status": {".": L, "f:phase": L}}, "status")
