"""JSON patches, merge patches and strategic merge patches: what they make of an object."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall_lab.apiserver.patches import json_patch, list_order, merge_patch, message_text, strategic_merge
from lastcall_lab.apiserver.schema.types import TypeTable

POD = TypeTable().find("", "v1", "Pod")
DEPLOYMENT = TypeTable().find("apps", "v1", "Deployment")


def add(path, value):
    return {"op": "add", "path": path, "value": value}


@pytest.mark.parametrize(
    ("document", "operations", "expected"),
    [
        ({"a": 1}, [add("/b", 2)], {"a": 1, "b": 2}),
        ({"a": [1, 3]}, [add("/a/1", 2)], {"a": [1, 2, 3]}),
        ({"a": [1]}, [add("/a/-", 2)], {"a": [1, 2]}),
        ({"a": [1, 2]}, [add("/a/-1", 3)], {"a": [1, 2, 3]}),
        ({"a": [1, 2]}, [{"op": "remove", "path": "/a/-1"}], {"a": [1]}),
        ({"a": {"x/y": 1, "~": 2}}, [{"op": "remove", "path": "/a/x~1y"}], {"a": {"~": 2}}),
        ({"a": {"~": 2}}, [{"op": "replace", "path": "/a/~0", "value": 3}], {"a": {"~": 3}}),
        ({"a": {}}, [{"op": "replace", "path": "/a/b", "value": 1}], {"a": {"b": 1}}),
        ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 1}}], {"b": 1}),
        ({"a": {"b": 1}}, [{"op": "move", "from": "/a/b", "path": "/c"}], {"a": {}, "c": 1}),
        ({"a": [1]}, [{"op": "copy", "from": "/a", "path": "/b"}, add("/b/-", 2)], {"a": [1], "b": [1, 2]}),
        ({"a": {"b": [1]}}, [{"op": "test", "path": "/a", "value": {"b": [1]}}], {"a": {"b": [1]}}),
        ({}, [{"op": "test", "path": "/a", "value": None}], {}),
    ],
)
def test_json_patches(document, operations, expected):
    assert json_patch.apply_operations(document, operations) == expected


@pytest.mark.parametrize(
    ("document", "operation", "why"),
    [
        ({}, add("/a/b", 1), "missing path"),
        ({"a": 1}, add("/a/b", 1), "missing path"),
        ({}, {"op": "remove", "path": "/a"}, "nonexistent key: a"),
        ({"a": [1]}, {"op": "remove", "path": "/a/1"}, "invalid index: 1"),
        ({"a": [1]}, {"op": "replace", "path": "/a/1", "value": 2}, "invalid index: 1"),
        ({"a": [1]}, add("/a/x", 1), "not a proper array index: 'x'"),
        ({"a": 1}, {"op": "test", "path": "/a", "value": True}, "testing value /a failed"),
        ({"a": 1}, {"op": "test", "path": "/a", "value": "1"}, "testing value /a failed"),
        ({"a": 1}, {"op": "grow", "path": "/a"}, "Unexpected kind: grow"),
        ({"a": 1}, {"path": "/a"}, "Unexpected kind: unknown"),
        ({"a": 1}, {"op": "add", "value": 1}, "missing path field"),
        ({"a": 1}, add("a", 1), "missing path"),
    ],
)
def test_json_patches_that_do_not_apply(document, operation, why):
    with pytest.raises(json_patch.JsonPatchDoesNotApply, match=why):
        json_patch.apply_operations(document, [operation])


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None, "d": 3}}, {"a": {"c": 2, "d": 3}}),
        ({"a": [1]}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}),
        ({"a": 1}, {"a": {"b": None}}, {"a": {}}),
        ({"a": [1, 2]}, {"a": [None, {"b": None}]}, {"a": [None, {}]}),
    ],
)
def test_merge_patches(document, patch, expected):
    assert merge_patch.apply_merge_patch(document, patch) == expected


def containers(*names):
    return [{"name": name} for name in names]


@pytest.mark.parametrize(
    ("before", "patch", "expected"),
    [
        (
            {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]},
            {"containers": [{"name": "a", "image": "2"}, {"name": "c"}]},
            {"containers": [{"name": "a", "image": "2"}, {"name": "c"}, {"name": "b"}]},
        ),
        (
            {"containers": containers("a", "b")},
            {"containers": [{"name": "a", "$patch": "delete"}]},
            {"containers": containers("b")},
        ),
        (
            {"containers": containers("a", "b")},
            {"containers": [{"$patch": "replace"}, {"name": "c"}]},
            {"containers": containers("c")},
        ),
        (
            {"containers": containers("a", "b", "x")},
            {"$setElementOrder/containers": containers("b", "a")},
            {"containers": containers("b", "a", "x")},
        ),
        (
            {"containers": containers("x", "a", "y")},
            {"$setElementOrder/containers": containers("a", "b"), "containers": containers("b")},
            {"containers": containers("x", "a", "b", "y")},
        ),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, {"tolerations": [{"key": "b"}]}),
        ({"nodeSelector": {"a": "1"}}, {"nodeSelector": {"b": "2", "a": None}}, {"nodeSelector": {"b": "2"}}),
        ({"nodeSelector": {"a": "1"}}, {"nodeSelector": {"$patch": "replace", "b": "2"}}, {"nodeSelector": {"b": "2"}}),
        ({"nodeSelector": {"a": "1"}}, {"nodeSelector": {"$patch": "delete"}}, {"nodeSelector": {}}),
        ({}, {"containers": [{"name": "a", "$patch": "delete"}], "nodeName": None}, {"containers": []}),
        ({}, {"affinity": {"nodeAffinity": None}}, {"affinity": {}}),
        (
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            {"volumes": [{"$retainKeys": ["name", "hostPath"], "name": "v", "hostPath": {"path": "/x"}}]},
            {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]},
        ),
        (
            {"containers": [{"name": "a", "ports": [{"containerPort": 1}, {"containerPort": 2}]}]},
            {"containers": [{"name": "a", "ports": [{"containerPort": 2, "$patch": "delete"}]}]},
            {"containers": [{"name": "a", "ports": [{"containerPort": 1}]}]},
        ),
    ],
)
def test_strategic_patches(before, patch, expected):
    assert strategic_merge.apply_strategic_patch({"spec": before}, {"spec": patch}, POD) == {"spec": expected}


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({"finalizers": ["c", "a"]}, ["c", "a", "b"]),
        ({"$deleteFromPrimitiveList/finalizers": ["a", "x"]}, ["b"]),
        ({"$setElementOrder/finalizers": ["b", "a"]}, ["b", "a"]),
        ({"$deleteFromPrimitiveList/finalizers": ["a"], "$setElementOrder/finalizers": ["b"]}, ["b"]),
    ],
)
def test_lists_of_scalars(patch, expected):
    before = {"metadata": {"finalizers": ["a", "b"]}}
    assert strategic_merge.apply_strategic_patch(before, {"metadata": patch}, POD)["metadata"]["finalizers"] == expected


def test_the_strategy_of_a_deployment_keeps_only_what_is_named():
    before = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert strategic_merge.apply_strategic_patch(before, patch, DEPLOYMENT) == {
        "spec": {"strategy": {"type": "Recreate"}}
    }


@pytest.mark.parametrize(
    ("patch", "error", "why"),
    [
        ({"$patch": "frob"}, list_order.InvalidPatch, r"unknown patch type: frob in map: map\[\$patch:frob\]"),
        (
            {"containers": [{"image": "x"}]},
            list_order.InvalidPatch,
            "map: .* does not contain declared merge key: name",
        ),
        ({"containers": [{"$patch": "delete"}]}, list_order.InvalidPatch, "does not contain declared merge key: name"),
        ({"containers": [{"$patch": "merge"}]}, list_order.InvalidPatch, "merging lists cannot yet be specified"),
        ({"containers": ["a"]}, list_order.InvalidPatch, "list element types are not identical"),
        ({"containers": [["a"]]}, list_order.UnmergeableLists, "lists of lists are not supported"),
        (
            {"$setElementOrder/containers": "a"},
            list_order.InvalidPatch,
            r"expected a \[\]interface {}, but received a string",
        ),
        (
            {"$setElementOrder/containers": containers("b"), "containers": containers("c")},
            list_order.InvalidPatch,
            r"The order in patch list:\n\[map\[name:c\]\]\n doesn't match \$setElementOrder list:\n\[map\[name:b\]\]\n",
        ),
        (
            {"$setElementOrder/nope": ["a"], "nope": ["a"]},
            list_order.InvalidPatch,
            'in struct PodSpec for the json field "nope"',
        ),
        ({"$retainKeys": "x"}, list_order.MalformedDirective, "invalid patch format of retainKeys"),
        ({"$retainKeys": ["a"], "nodeName": "n"}, list_order.MalformedDirective, "invalid patch format of retainKeys"),
    ],
)
def test_strategic_patches_that_make_no_sense(patch, error, why):
    with pytest.raises(error, match=why) as raised:
        strategic_merge.apply_strategic_patch({"spec": {"containers": containers("a")}}, {"spec": patch}, POD)
    assert type(raised.value) is error


# -- the patch that kubectl would compute -------------------------------------------------------------------------------


def two_way(old, new, node):
    """A strategic merge patch from one object to another, as ``kubectl apply`` makes one."""
    patch = {key: None for key in old if key not in new}
    for key, value in new.items():
        field = node.at(key)
        if key not in old:
            patch[key] = value
        elif value == old[key]:
            continue
        elif isinstance(value, dict):
            patch[key] = two_way(old[key], value, field)
        elif isinstance(value, list) and "merge" in field.patch_strategy and old[key] and value:
            patch |= list_patch(key, old[key], value, field)
        else:
            patch[key] = value
    return patch


def list_patch(key, old, new, field):
    if not field.merge_key:
        added = [one for one in new if one not in old]
        deleted = [one for one in old if one not in new]
        patch = {f"$setElementOrder/{key}": new}
        return (
            patch | ({key: added} if added else {}) | ({f"$deleteFromPrimitiveList/{key}": deleted} if deleted else {})
        )
    name = field.merge_key
    before, after = {one[name]: one for one in old}, {one[name]: one for one in new}
    items = [
        {name: value, **two_way(before[value], one, field.element)} if value in before else one
        for value, one in after.items()
        if one != before.get(value)
    ]
    items += [{"$patch": "delete", name: value} for value in before if value not in after]
    return {f"$setElementOrder/{key}": [{name: value} for value in after], key: items}


names = st.sampled_from(["a", "b", "c", "d"])
texts = st.sampled_from(["x", "y", "z"])


def named(**fields):
    return st.lists(
        st.fixed_dictionaries({"name": names}, optional=fields), unique_by=lambda one: one["name"], max_size=4
    )


pods = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": st.just("p")},
            optional={"labels": st.dictionaries(names, texts), "finalizers": st.lists(names, unique=True)},
        ),
        "spec": st.fixed_dictionaries(
            {"containers": named(image=texts, env=named(value=texts), command=st.lists(texts))},
            optional={
                "nodeSelector": st.dictionaries(names, texts),
                "tolerations": st.lists(st.fixed_dictionaries({"key": texts})),
            },
        ),
    }
)


def without_empty(value):
    """What is empty or null is as good as none, as a typed server has it."""
    if isinstance(value, dict):
        pairs = ((key, without_empty(one)) for key, one in value.items())
        return {key: one for key, one in pairs if one not in ({}, [], None)}
    return [without_empty(one) for one in value] if isinstance(value, list) else value


@given(pods, pods)
def test_the_patch_between_two_objects_makes_one_of_the_other(old, new):
    old, new = without_empty(old), without_empty(new)
    patch = two_way(old, new, POD)
    assert without_empty(strategic_merge.apply_strategic_patch(copy.deepcopy(old), copy.deepcopy(patch), POD)) == new


@given(pods, pods)
def test_the_same_patch_again_changes_nothing(old, new):
    old, new = without_empty(old), without_empty(new)
    patch = two_way(old, new, POD)
    assert without_empty(strategic_merge.apply_strategic_patch(copy.deepcopy(new), patch, POD)) == new


# -- what messages show -------------------------------------------------------------------------------------------------


def test_what_a_patch_has_touched_is_sorted():
    obj = {"kind": "Pod", "apiVersion": "v1", "spec": {"b": 1, "a": {"y": 1, "x": 2}}, "metadata": {"z": "<&>", "y": 1}}
    assert message_text.go_json(message_text.sort_touched(obj, {"spec": {"b": 1}})) == (
        '{"apiVersion":"v1","kind":"Pod","metadata":{"z":"\\u003c\\u0026\\u003e","y":1},"spec":{"a":{"y":1,"x":2},"b":1}}'
    )
    operations = [{"op": "add", "path": "/metadata/a~1b", "value": 1}]
    assert [*message_text.sort_touched(obj, operations)["metadata"]] == ["y", "z"]
    assert [*message_text.sort_touched(obj, operations)["spec"]] == ["b", "a"]
    assert [*message_text.sort_touched(obj, [])] == ["apiVersion", "kind", "metadata", "spec"]
