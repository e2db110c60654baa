"""Lists that are answered in pieces: the same bytes as of a whole list, in every form."""

import asyncio
import json
from collections.abc import Iterator
from random import Random

import msgspec
import pytest

from lastcall.adapters.host.clock import SystemClock
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.encoding import yaml_writer
from lastcall_lab.apiserver.responses import response_builder
from lastcall_lab.apiserver.values.request import Request

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


async def lab(count):
    server = ApiServer(SystemClock(), Random(1))
    for index in range(count):
        obj = {"metadata": {"name": f"m{index:03}"}, "data": {"text": f"two\nlines: {{[{index}", "number": "1"}}
        answer = await server.handle(Request.of("POST", MAPS, body=json.dumps(obj).encode()))
        assert answer.status == 201, answer.body
    return server


async def listed(server, accept, query=""):
    answer = await server.handle(Request.of("GET", MAPS + query, headers={"accept": accept}))
    assert answer.status == 200
    return answer.body


@pytest.mark.parametrize("accept", ["application/json", TABLE, PARTIAL, TABLE.replace("json", "yaml", 1)])
async def test_pieces_are_the_whole_list(monkeypatch, accept):
    server = await lab(3)
    whole = await listed(server, accept)
    assert isinstance(whole, bytes)
    monkeypatch.setattr(response_builder, "FEW", 2)
    pieces = await listed(server, accept)
    assert isinstance(pieces, Iterator)
    parts = list(pieces)
    assert len(parts) > 3
    assert b"".join(parts) == whole


@pytest.mark.parametrize("accept", ["application/json", TABLE, PARTIAL])
async def test_every_form_says_the_same(accept):
    """For people and in YAML as for programs; an independent writer of the whole list is the judge."""
    server = await lab(3)
    said = await listed(server, accept)
    value = json.loads(said)
    assert len(value.get("items") or value["rows"]) == 3
    assert await listed(server, accept, "?pretty=1") == msgspec.json.format(said.rstrip(b"\n"), indent=2)
    assert await listed(server, accept.replace("json", "yaml", 1)) == yaml_writer.dump_yaml(value)


@pytest.mark.parametrize(
    ("accept", "name", "none"), [("application/json", "items", []), (TABLE, "rows", []), (PARTIAL, "items", None)]
)
async def test_no_items(accept, name, none):
    server = await lab(0)
    assert json.loads(await listed(server, accept))[name] == none


async def test_others_are_served_while_a_collection_is_deleted():
    server = await lab(200)
    seen = []
    change = server.store.on_change

    def changed(one):
        if not seen:
            asyncio.get_running_loop().call_soon(seen.append, "another")
        seen.append(one.kind)
        change(one)

    server.store.on_change = changed
    answer = await server.handle(Request.of("DELETE", MAPS))
    assert answer.status == 200
    assert len(seen) == 201
    assert seen.index("another") < 100
