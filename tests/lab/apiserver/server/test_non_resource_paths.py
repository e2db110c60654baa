"""The paths beside the resources: OpenAPI, health, version, discovery in the form that is asked for."""

import gzip
import json

import pytest

from lastcall_lab.apiserver.catalog import openapi
from lastcall_lab.apiserver.catalog.built_in_resources import built_in_resources
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.resources.scheme import ResourceScheme, ServedResource
from lastcall_lab.apiserver.server import health_checks
from lastcall_lab.apiserver.server.non_resource_paths import NonResourcePaths
from lastcall_lab.apiserver.storage.store import Store
from lastcall_lab.apiserver.values.api_errors import ApiError
from lastcall_lab.apiserver.values.request import Request

WIDGET = ServedResource(
    "example.com",
    "v1",
    "widgets",
    "Widget",
    KindBehaviour(),
    custom=True,
    definition={"schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}},
)
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.fixture(scope="module")
def others():
    return NonResourcePaths(ResourceScheme([*built_in_resources(), WIDGET]), Store())


def get(others, target, **headers):
    return others.answer(
        Request.of("GET", target, headers={name.replace("_", "-"): text for name, text in headers.items()})
    )


def body(response):
    return json.loads(response.body)


def test_every_group_that_is_served_has_a_document(others):
    index = body(get(others, "/openapi/v3"))["paths"]
    groups = {f"apis/{one.api_version}" if one.group else "api/v1" for one in built_in_resources()} | {
        "apis/example.com/v1"
    }
    assert set(index) == groups
    for place in index.values():
        response = get(others, place["serverRelativeURL"])
        assert (response.status, response.headers["cache-control"]) == (200, "public, immutable")
        assert body(response)["components"]["schemas"]


def test_an_old_hash_leads_to_the_new_one(others):
    response = get(others, "/openapi/v3/apis/apps/v1?hash=OLD")
    assert response.status == 301
    assert get(others, response.headers["location"]).status == 200


def test_compressed_for_those_who_take_it(others):
    response = get(others, "/openapi/v2", accept_encoding="gzip")
    assert response.headers["content-encoding"] == "gzip"
    assert json.loads(gzip.decompress(response.body))["swagger"] == "2.0"
    again = get(others, "/openapi/v2", if_none_match=response.headers["etag"])
    assert (again.status, again.body) == (304, b"")


def test_openapi_in_protobuf(others):
    """Version 2 alone, for kubectl: the definitions, by the field numbers of gnostic's ``OpenAPIv2.proto``."""
    asked = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    answer = get(others, "/openapi/v2", accept=asked)
    assert answer.headers["content-type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    document = fields(answer.body)
    assert document[1] == [b"2.0"]
    [definitions] = document[9]
    schemas = {name.decode(): fields(schema) for name, schema in map(named, fields(definitions)[1])}
    assert schemas.keys() == body(get(others, "/openapi/v2"))["definitions"].keys()
    pod = schemas["io.k8s.api.core.v1.Pod"]
    assert dict(map(named, fields(pod[25][0])[1]))[b"kind"]
    extensions = {name: fields(value)[2][0] for name, value in map(named, pod[31])}
    assert b'"kind":"Pod"' in extensions[b"x-kubernetes-group-version-kind"]
    v3 = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
    assert get(others, "/openapi/v3/api/v1", accept=v3).status == 406
    assert get(others, "/openapi/v3/api/v1", accept=f"{v3},*/*").status == 200


def named(message):
    """Name and value of an entry."""
    found = fields(message)
    return found[1][0], found[2][0]


def fields(message):
    """The fields of a message in which all have a length, by number."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        tag = varint()
        assert tag & 7 == 2
        size = varint()
        found.setdefault(tag >> 3, []).append(message[at : at + size])
        at += size
    return found


def test_a_document_that_is_made_refers_to_nothing_that_is_missing(others):
    for path in ("apis/autoscaling/v2", "apis/networking.k8s.io/v1", "apis/example.com/v1"):
        document = body(get(others, f"/openapi/v3/{path}"))
        schemas = document["components"]["schemas"]
        refs = set(openapi._referred_names(document))
        assert refs <= set(schemas), path
        assert refs
        patches = [one["patch"] for one in document["paths"].values() if "patch" in one]
        assert patches
        assert all("fieldValidation" in [p["name"] for p in one["parameters"]] for one in patches)


def test_discovery_in_the_form_that_is_asked_for(others):
    both = get(others, "/apis", accept=f"{AGGREGATED},application/json")
    assert (both.headers["content-type"], body(both)["kind"]) == (AGGREGATED, "APIGroupDiscoveryList")
    assert get(others, "/apis", if_none_match=both.headers["etag"], accept=AGGREGATED).status == 304
    older = AGGREGATED.replace("v=v2", "v=v2beta1")
    assert body(get(others, "/apis", accept=f"{older},application/json"))["kind"] == "APIGroupList"
    assert body(get(others, "/api", host="127.0.0.1:6443"))["serverAddressByClientCIDRs"] == [
        {"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}
    ]


def test_every_path_of_the_root_is_there(others):
    for path in body(get(others, "/"))["paths"]:
        assert get(others, path).status == 200, path


@pytest.mark.parametrize(
    "path",
    ["/nope", "/apis/nope.example", "/apis/nope.example/v1", "/readyz/nope", "/readyz/", "/openapi/v4", "/openapi/v2/"]
    + ["//", "//api", "/apis//v1", "/metrics/"],
)
def test_nothing_there(others, path):
    assert get(others, path) is None


@pytest.mark.parametrize("path", ["/api/v2", "/apis/apps/v2"])
def test_a_version_that_a_group_does_not_have(others, path):
    with pytest.raises(ApiError) as error:
        get(others, path)
    assert error.value.code == 404


@pytest.mark.parametrize(("method", "path"), [("POST", "/api"), ("HEAD", "/version"), ("FOO", "/api/v1")])
def test_discovery_is_only_read(others, method, path):
    with pytest.raises(ApiError) as error:
        others.answer(Request(method, path))
    assert error.value.code == 405


@pytest.mark.parametrize("path", ["/", "/apis", "/apis/apps", "/index.html"])
def test_lists_of_paths_and_groups_are_read_by_every_method(others, path):
    assert others.answer(Request("FOO", path)).status == 200


@pytest.mark.parametrize(
    ("path", "verbose", "excluded", "said"),
    [
        ("livez", False, (), "ok"),
        ("livez/ping", True, (), "ok"),
        ("healthz", True, (), "[+]ping ok\n[+]log ok\n[+]etcd ok\nhealthz check passed\n"),
        (
            "livez",
            True,
            ("etcd", "nope"),
            (
                "[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n"
                'warn: some health checks cannot be excluded: no matches for "nope"\nlivez check passed\n'
            ),
        ),
        ("livez/nope", False, (), None),
        ("healthy", False, (), None),
    ],
)
def test_health(path, verbose, excluded, said):
    assert health_checks.health_report(path, verbose=verbose, excluded=excluded) == said
