"""Lists: pages, revisions, and what is refused; in virtual time, by requests."""

import base64
import json

import pytest
from support.lab.config_maps import MAPS, lab

TOO_OLD = "The provided continue parameter is too old to display a consistent list result."


@lab
async def test_pages_are_of_one_revision(maps):
    await maps.create(*"bdfh")
    names, first = await maps.list("limit=2")
    assert (names, first["remainingItemCount"]) == ("bd", 2)
    await maps.create("a", "e", "z")
    await maps.remove("f")
    names, second = await maps.list(f"limit=1&continue={first['continue']}")
    assert (names, second["remainingItemCount"], second["resourceVersion"]) == ("f", 1, first["resourceVersion"])
    names, last = await maps.list(f"continue={second['continue']}")
    assert (names, last) == ("h", {"resourceVersion": first["resourceVersion"]})
    assert (await maps.list())[0] == "abdehz"


@lab
async def test_a_selected_list_does_not_know_how_much_remains(maps):
    await maps.create(*"abc", app="x")
    await maps.create("d")
    names, first = await maps.list("limit=2&labelSelector=app")
    assert names == "ab"
    assert "remainingItemCount" not in first
    names, last = await maps.list(f"limit=2&labelSelector=app&continue={first['continue']}")
    assert (names, "continue" in last) == ("c", False)


@lab
async def test_pages_go_on_across_namespaces(maps):
    await maps.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "aaa"}})
    await maps.create("x", "y", namespace="aaa")
    await maps.create("b")
    everywhere, names, token = "/api/v1/configmaps", "", ""
    for _ in range(3):
        page, metadata = await maps.list(f"limit=1&continue={token}", everywhere)
        names, token = names + page, metadata.get("continue", "")
    assert (names, token) == ("xyb", "")


@lab
async def test_a_token_that_is_too_old_comes_with_one_to_go_on(maps):
    await maps.create(*"bdf")
    _, first = await maps.list("limit=1")
    await maps.create("c")
    maps.api.compact()
    status, body = await maps.refused(f"limit=1&continue={first['continue']}")
    assert (status, body["reason"]) == (410, "Expired")
    assert body["message"].startswith(TOO_OLD)
    names, second = await maps.list(f"limit=2&continue={body['metadata']['continue']}")
    assert (names, second["remainingItemCount"]) == ("cd", 1)
    assert int(second["resourceVersion"]) > int(first["resourceVersion"])
    assert (await maps.list(f"continue={second['continue']}"))[0] == "f"


@lab
async def test_revisions(maps):
    then = await maps.create("a")
    now = await maps.create("b")
    exact, metadata = await maps.list(f"resourceVersion={then}&resourceVersionMatch=Exact")
    assert (exact, metadata["resourceVersion"]) == ("a", str(then))
    assert (await maps.list(f"resourceVersion={then}"))[0] == "ab"
    assert (await maps.list(f"resourceVersion={then}&resourceVersionMatch=NotOlderThan"))[0] == "ab"
    assert (await maps.list(f"resourceVersion={then}&limit=5"))[0] == "a"  # a limit means the revision exactly
    assert (await maps.list("resourceVersion=0&limit=1"))[0] == "ab"  # any revision has no pages
    status, body = await maps.refused(f"resourceVersion={now + 1}")
    assert (status, body["details"]["retryAfterSeconds"]) == (504, 1)
    assert body["message"] == f"Timeout: Too large resource version: {now + 1}, current: {now}"
    maps.api.compact()
    status, body = await maps.refused(f"resourceVersion={then}&resourceVersionMatch=Exact")
    assert (status, body["message"]) == (410, "The resourceVersion for the provided list is too old.")


@lab
async def test_what_makes_no_sense_is_refused(maps):
    def token(**content):
        return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")

    invalid = "invalid continue token: continue key is not valid"
    number = 'strconv.ParseUint: parsing "x": invalid syntax'
    for query, code, message in [
        ("limit=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("limit=", 400, 'strconv.ParseInt: parsing "": invalid syntax'),
        ("timeoutSeconds=99999999999999999999", 400, None),
        ("resourceVersion=x", 400, f'invalid resource version: resourceVersion: Invalid value: "x": {number}'),
        ("continue=%21", 400, f"{invalid}: illegal base64 data at input byte 0"),
        ("continue=bm8", 400, f"{invalid}: invalid character 'o' in literal null (expecting 'u')"),
        (f"continue={token(v='v2')}", 400, f"{invalid}: server does not recognize this encoded version v2"),
        (f"continue={token(v='meta.k8s.io/v1', start='a')}", 400, None),
        (f"continue={token(v='meta.k8s.io/v1', rv=1)}", 400, None),
        (f"continue={token(v='meta.k8s.io/v1', rv=1, start='../x')}", 400, None),
        ("timeout=5", 400, 'invalid timeout specified in the request URL - time: missing unit in duration "5"'),
        ("resourceVersionMatch=Exact", 422, None),
        ("sendInitialEvents=false", 422, None),
        ("labelSelector=a%20b", 400, None),
        ("fieldSelector=data=x", 400, None),
    ]:
        status, body = await maps.refused(query)
        assert (status, body["kind"]) == (code, "Status"), query
        assert message in (None, body["message"]), query
    status, body = await maps.refused("resourceVersion=x", f"{MAPS}/a")
    assert (status, body["message"]) == (500, f'resourceVersion: Invalid value: "x": {number}')


@lab
async def test_metadata_alone(maps):
    await maps.create("a")
    one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    status, body = await maps.ask("GET", f"{MAPS}/a", accept=one)
    assert (status, body["kind"], body["metadata"]["name"], len(body)) == (200, "PartialObjectMetadata", "a", 3)
    status, body = await maps.ask("GET", MAPS, accept=one)
    expected = "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)"
    assert (status, body["message"]) == (406, expected)
    many = one.replace("Metadata;", "MetadataList;")
    status, body = await maps.ask("GET", f"{MAPS}?labelSelector=none", accept=many)
    assert (body["kind"], body["items"]) == ("PartialObjectMetadataList", None)
    status, body = await maps.ask("DELETE", f"{MAPS}/a", accept=one)
    assert (status, body["kind"]) == (200, "Status")


@pytest.mark.parametrize("accept", ["application/yaml", "application/yaml;as=Table;g=meta.k8s.io;v=v1"])
def test_yaml(accept):
    @lab
    async def run(maps):
        await maps.create("a")
        status, body = await maps.ask("GET", MAPS, accept=accept)
        assert (status, "Table" in accept) == (200, body["kind"] == "Table")
        status, body = await maps.ask("GET", f"{MAPS}/none", accept=accept)
        assert (status, body["kind"]) == (404, "Status")

    run()
