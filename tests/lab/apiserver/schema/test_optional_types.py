"""The types that are served on request, compared with the schemas of the Kubernetes release that has them."""

import json
from importlib import resources

import pytest

from lastcall_lab.apiserver.catalog.optional_resources import OPTIONAL
from lastcall_lab.apiserver.schema import Schemas
from lastcall_lab.apiserver.schema.types import TypeTable

RELEASE = "v1.37.0"


def definitions():
    pytest.importorskip("kubernetes_validate")
    place = f"kubernetes-json-schema/{RELEASE}-local/_definitions.json"
    return json.loads(resources.files("kubernetes_validate").joinpath(place).read_text())["$defs"]


@pytest.mark.parametrize("version", OPTIONAL)
def test_every_field_is_there_and_lists_merge_alike(version):
    known = definitions()
    group, _, name = version.partition("/")
    prefix = f"io.k8s.api.{group.partition('.')[0]}.{name}."
    table = TypeTable([version])
    structs = [one for one in known if one.startswith(prefix) and "properties" in known[one]]
    assert structs
    for struct in (*structs, "io.k8s.api.core.v1.EvictionResponder"):
        fields = table.struct(struct).fields
        assert set(fields) == set(known[struct]["properties"]), struct
        for field, schema in known[struct]["properties"].items():
            node = fields[field]
            assert list(node.list_keys) == schema.get("x-kubernetes-list-map-keys", []), (struct, field)
            assert node.merge_key == schema.get("x-kubernetes-patch-merge-key", ""), (struct, field)


@pytest.mark.parametrize("version", OPTIONAL)
def test_the_field_of_pods_is_there_on_request_alone(version):
    pod = "io.k8s.api.core.v1.PodSpec"
    known, asked = TypeTable().struct(pod).fields, TypeTable([version]).struct(pod).fields
    assert set(asked) - set(known) == {"evictionResponders"}
    assert asked["evictionResponders"].merge_key == "name"
    assert set(known) < set(asked)


def test_the_servers_of_a_process_share_the_table_of_the_same_versions():
    assert Schemas().types is Schemas().types
    asked = Schemas([*OPTIONAL]).types
    assert asked is Schemas([*OPTIONAL]).types
    assert asked is not Schemas().types
