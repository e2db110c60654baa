"""Discovery as a real API server recorded it, as far as the lab serves the same."""

import gzip
import json
from pathlib import Path

import pytest

from lastcall_lab.apiserver.catalog import discovery
from lastcall_lab.apiserver.catalog.built_in_resources import built_in_resources
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.resources.scheme import ResourceScheme, ServedResource

RECORDED = Path(__file__).parents[3] / "recordings/discovery"


@pytest.fixture(scope="module")
def scheme():
    return ResourceScheme(built_in_resources())


def recorded(name):
    data = (RECORDED / name).read_bytes()
    return json.loads(gzip.decompress(data) if name.endswith(".gz") else data)


def served(scheme, group, version, plural, subresource=""):
    one = scheme.find(group, version, plural)
    return one is not None and (not subresource or subresource in one.subresources)


@pytest.mark.parametrize("path", ["api", "apis"])
def test_aggregated(scheme, path):
    expected = recorded(f"aggregated-discovery-{path}.json.gz")
    for item in expected["items"]:
        group = item["metadata"].get("name", "")
        for version in item["versions"]:
            name = version["version"]
            resources = [one for one in version["resources"] if served(scheme, group, name, one["resource"])]
            for one in resources:
                parts = one.pop("subresources", [])
                parts = [x for x in parts if served(scheme, group, name, one["resource"], x["subresource"])]
                one.update({"subresources": parts} if parts else {})
            version["resources"] = resources
        item["versions"] = [one for one in item["versions"] if one["resources"]]
    expected["items"] = [item for item in expected["items"] if item["versions"]]
    assert discovery.aggregated_discovery(scheme, core=path == "api") == expected


@pytest.mark.parametrize("name", [path.name for path in sorted(RECORDED.glob("legacy-*v1.json"))])
def test_resource_list(scheme, name):
    expected = recorded(name)
    group, _, version = expected["groupVersion"].rpartition("/")
    expected["resources"] = [
        one for one in expected["resources"] if served(scheme, group, version, *one["name"].split("/"))
    ]
    found = discovery.resource_list(scheme, group, version)
    assert found == expected if expected["resources"] else found is None


def test_group_list(scheme):
    expected = recorded("legacy-apis.json")
    known = dict(discovery.named_groups(scheme))
    expected["groups"] = [one for one in expected["groups"] if one["name"] in known]
    for one in expected["groups"]:
        one["versions"] = [version for version in one["versions"] if version["version"] in known[one["name"]]]
    assert discovery.group_list(scheme) == expected


def test_custom_resources_come_last(scheme):
    widgets = ServedResource(
        "a.example.com",
        "v1",
        "widgets",
        "Widget",
        KindBehaviour(),
        singular="widget",
        subresources=["status"],
        custom=True,
    )
    one = ResourceScheme([*scheme, widgets])
    assert discovery.named_groups(one)[-1] == ("a.example.com", ["v1"])
    [resource] = discovery.aggregated_discovery(one, core=False)["items"][-1]["versions"][0]["resources"]
    kind = {"group": "a.example.com", "version": "v1", "kind": "Widget"}
    assert resource["responseKind"] == kind
    assert resource["subresources"] == [
        {"subresource": "status", "responseKind": kind, "verbs": ["get", "patch", "update"]}
    ]


def test_several_versions_the_stable_and_later_first(scheme):
    made = [
        ServedResource("g.example", version, "ws", "W", KindBehaviour())
        for version in ("v1beta1", "v10", "v2", "x", "v2alpha1")
    ]
    assert dict(discovery.named_groups(ResourceScheme(made)))["g.example"] == ["v10", "v2", "v1beta1", "v2alpha1", "x"]
    assert discovery.api_group(ResourceScheme(made), "g.example")["preferredVersion"]["version"] == "v10"
    assert discovery.api_group(ResourceScheme(made), "other.example") is None


def test_who_looks_at_all_resources_is_not_disturbed_by_a_new_one():
    """A thread may look while a definition is accepted."""
    known = [*built_in_resources()]
    scheme = ResourceScheme(known[:-1])
    looking = iter(scheme)
    first = next(looking)
    scheme.add(known[-1])
    assert [first, *looking] == known[:-1]
