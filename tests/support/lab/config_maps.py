"""Config maps in a lab of one's own, in virtual time: the plainest objects for tests of lists and watches."""

import json

from support.lab.replayed_server import LabApi

from lastcall_lab import virtual

MAPS = "/api/v1/namespaces/default/configmaps"


class Maps:
    """Config maps by one letter each."""

    def __init__(self):
        self.api = LabApi(virtual.VirtualClock())

    async def ask(self, method, target, body=None, accept="application/json"):
        headers = {"accept": accept, "content-type": "application/json"}
        data = json.dumps(body).encode() if body else b""
        status, _, answer = await self.api.ask(method, target, headers, data, None)
        return status, answer

    async def create(self, *names, namespace="default", **labels):
        for name in names:
            path = f"/api/v1/namespaces/{namespace}/configmaps"
            status, body = await self.ask("POST", path, {"metadata": {"name": name, "labels": labels}})
            assert status == 201, body
        return int(body["metadata"]["resourceVersion"])

    async def remove(self, name):
        assert (await self.ask("DELETE", f"{MAPS}/{name}"))[0] == 200

    async def list(self, query="", path=MAPS):
        status, body = await self.ask("GET", f"{path}?{query}")
        assert status == 200, body
        return "".join(item["metadata"]["name"] for item in body["items"]), body["metadata"]

    async def refused(self, query, path=MAPS):
        return await self.ask("GET", f"{path}?{query}")


def lab(test):
    """Runs a coroutine of a test with a lab of its own in virtual time."""

    def run():
        async def main():
            await test(Maps())

        virtual.run(main())

    run.__name__ = test.__name__
    return run
