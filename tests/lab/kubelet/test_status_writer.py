"""A pod's status is written by two at the same time: by the kubelet's own loop, and by who has ended the pod."""

import asyncio
from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import PODS, dict_resource
from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.kubelet.cluster.status_writer import StatusWriter
from lastcall_lab.virtual.clock import VirtualClock

POD = {"metadata": {"name": "web"}, "spec": {"nodeName": "a", "containers": [{"name": "main", "image": "web"}]}}


class SlowAtFirst:
    """The first patch takes a second to arrive, and those after it none."""

    def __init__(self, server):
        self._inner = InProcessTransport(server)
        self._seconds = 1.0

    async def request(self, method, *rest, **more):
        if method == "PATCH":
            seconds, self._seconds = self._seconds, 0.0
            await asyncio.sleep(seconds)
        return await self._inner.request(method, *rest, **more)

    def close(self):
        self._inner.close()


def test_what_is_older_never_comes_after_what_is_newer():
    async def main():
        clock = VirtualClock()
        client = Client(SlowAtFirst(ApiServer(clock, Random(1))))
        await client.create(
            dict_resource("", "v1", "serviceaccounts"), {"metadata": {"name": "default"}}, namespace="default"
        )
        known = [await client.create(PODS, POD, namespace="default")]
        wanted = [{"phase": "Running", "message": "older"}]

        writer = StatusWriter(
            client, clock, wanted=lambda: wanted[-1], known=lambda: known[-1], learn=known.append, retry=1.0
        )
        first = asyncio.create_task(writer.write())
        await clock.sleep(0.1)
        wanted.append({"phase": "Failed", "message": "newer"})
        await writer.write()
        await first
        return await client.get(PODS, "web", namespace="default")

    status = virtual.run(main())["status"]
    assert (status["phase"], status["message"]) == ("Failed", "newer")
