"""Who owns which field: sets of fields, what a write owns, what an apply lays over and takes out, the record."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall_lab.apiserver.patches import configuration_merge, field_owners, field_sets, server_side_apply
from lastcall_lab.apiserver.patches.configuration_faults import configuration_faults
from lastcall_lab.apiserver.patches.field_differences import FieldDifference, compare_objects, fields_in
from lastcall_lab.apiserver.patches.shapes import OwnershipShape
from lastcall_lab.apiserver.schema.types import TypeTable

TYPES = TypeTable()
POD, MAP = (OwnershipShape(TYPES.find("", "v1", kind)) for kind in ("Pod", "ConfigMap"))
FREE = OwnershipShape(None)
L = field_sets.LEAF


def spec(**fields):
    return {"spec": fields}


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
    assert members(field_sets.exclude_subtrees(one, other)) == a - below
    assert members(field_sets.sort_fields(one)) == a
    assert len(list(field_sets.member_paths(one))) == len(a)


def test_the_order_of_keys_is_that_of_their_values():
    keys = ["v:10", "v:9", 'k:{"port":443}', 'k:{"port":80}', "f:b", ".", "f:a"]
    assert [*field_sets.sort_fields(dict.fromkeys(keys, L))] == [
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
    assert list(field_sets.member_paths(fields)) == [
        ".spec.type",
        '.spec.ports[port=80,protocol="TCP"]',
        '.spec.ports[port=80,protocol="TCP"].name',
        '.spec.x[="a"]',
    ]


def test_a_key_is_written_as_go_writes_it():
    assert field_sets.item_key({"b": 1, "a": "<x>"}) == 'k:{"a":"\\u003cx\\u003e","b":1}'


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
    assert compare_objects(old, new, shape) == (changed, removed)


def test_items_that_share_their_key_are_one_value():
    two = spec(containers=[{"name": "a", "image": "1"}, {"name": "a", "image": "2"}])
    one = spec(containers=[{"name": "a", "image": "1"}])
    key = 'k:{"name":"a"}'
    assert compare_objects(one, two, POD) == (
        {"f:spec": {"f:containers": {key: L}}},
        {"f:spec": {"f:containers": {key: {".": L, "f:name": L, "f:image": L}}}},
    )
    assert compare_objects(two, two, POD) == ({}, {})
    assert fields_in(two, POD) == {"f:spec": {"f:containers": {key: L}}}


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
    assert fields_in(config, shape) == fields


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
        (spec(containers=[{"image": "a"}]), []),
        (spec(containers=[{"image": "a"}, {"image": "b"}]), ['.spec.containers: duplicate entries for key [name=""]']),
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
    assert configuration_faults(config, POD) == said


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
    result = configuration_merge.lay_over(spec(containers=live), spec(containers=config), POD)
    assert "".join(one["name"] for one in result["spec"]["containers"]) == merged


def test_an_item_of_the_configuration_is_merged_into_the_live_one():
    live = spec(containers=[{"name": "a", "image": "1", "command": ["x"]}], nodeSelector={"a": "1"})
    config = spec(containers=[{"name": "a", "image": "2"}], nodeSelector={"b": "2"})
    assert configuration_merge.lay_over(live, config, POD) == spec(
        containers=[{"name": "a", "image": "2", "command": ["x"]}], nodeSelector={"b": "2"}
    )


def test_what_is_taken_out_is_gone_with_what_is_below():
    value = spec(containers=[{"name": "a", "image": "1"}, {"name": "b"}], nodeName="n")
    fields = {"f:spec": {"f:containers": {'k:{"name":"b"}': {".": L, "f:name": L}, 'k:{"name":"a"}': {"f:image": L}}}}
    assert configuration_merge.take_out_fields(value, fields, POD) == spec(containers=[{"name": "a"}], nodeName="n")


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
    owner = field_owners.apply_owner(manager)
    return server_side_apply.apply_configuration(
        live, config, claims, owner, shape=POD, version="v1", ignored={}, **rest
    )


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
    except server_side_apply.ApplyConflicts:
        return
    assert compare_objects(plain(configuration_merge.lay_over(last.obj, other, POD)), plain(last.obj), POD) == ({}, {})


# -- the record ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", [False, True])
@given(own=SETS, others=SETS, changed=SETS, removed=SETS)
def test_what_a_write_has_changed_is_the_writers_alone(again, own, others, changed, removed):
    changed = field_sets.intersection(own, changed) if again else changed
    me, other = field_owners.update_owner("me", "v1"), field_owners.update_owner("other", "v1")
    claims = {
        me: field_owners.FieldClaim(field_sets.sort_fields(own), "v1", "1"),
        other: field_owners.FieldClaim(others, "v1", "1"),
    }
    changes = FieldDifference(field_sets.sort_fields(changed), removed)
    left = field_owners.claim_changes(
        {who: one for who, one in claims.items() if one.fields}, changes, me, version="v1", now="2"
    )
    kept = {who: members(one.fields) - members(changed) - members(removed) for who, one in claims.items()}
    expected = {me: kept[me] | members(changed), other: kept[other]}
    assert {who: members(one.fields) for who, one in left.items()} == {who: one for who, one in expected.items() if one}
    assert not changed or (left[me].time, left[me].fields) == ("2", field_sets.sort_fields(left[me].fields))


def test_entries_come_in_the_order_of_kubernetes():
    claims = {
        field_owners.update_owner("b", "v1"): field_owners.FieldClaim({"f:x": L}, "v1", "2026-01-01T00:00:00Z"),
        field_owners.update_owner("a", "v1", "status"): field_owners.FieldClaim(
            {"f:x": L}, "v1", "2026-01-01T00:00:01Z"
        ),
        field_owners.update_owner("a", "v1"): field_owners.FieldClaim({"f:x": L}, "v1", "2026-01-01T00:00:00Z"),
        field_owners.apply_owner("z"): field_owners.FieldClaim({"f:x": L}, "v1", ""),
    }
    entries = field_owners.encode_claims(claims)
    found = [(one["manager"], one["operation"], one.get("subresource")) for one in entries]
    assert found == [("z", "Apply", None), ("a", "Update", None), ("b", "Update", None), ("a", "Update", "status")]
    assert field_owners.decode_claims(entries) == claims
    assert "time" not in entries[0]


def test_the_oldest_of_many_updaters_become_one():
    claims = {}
    for number in range(12):
        changes = compare_objects({}, {"data": {str(number): "x"}}, MAP)
        at = f"2026-01-01T00:00:{number:02}Z"
        claims = field_owners.claim_changes(
            claims, changes, field_owners.update_owner(f"m{number:02}", "v1"), version="v1", now=at
        )
    assert len(claims) == field_owners.MAX_UPDATERS
    ancient = claims[field_owners.update_owner(field_owners.ANCIENT, "v1")]
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
        field_owners.decode_claims([entry])
