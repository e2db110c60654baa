"""Server-side apply: short ways to ask a new API server of the lab, and to read who owns what."""

import functools
import json
from random import Random

from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.patches import field_sets
from lastcall_lab.apiserver.values.request import Request

L = field_sets.LEAF


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
    """Runs a test with such a server, in virtual time."""

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
