"""What the lab's API server is given to do, through ``adapters.kube`` and whatever carries its requests."""

import asyncio
import contextlib
import itertools
import statistics
import time

import msgspec

from lastcall.adapters.kube.resources import PODS

NAMESPACE = "default"
NODES = 500
"""The pods are spread over so many, one after the other."""

_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def pod(number, prefix):
    """A pod on a node, some 3 KB of JSON: a container as Deployments have them, with a sidecar and annotations."""
    labels = {"app": "shop", "app.kubernetes.io/name": "shop", "pod-template-hash": "7d9c5b8f64"}
    notes = {f"bench.example.com/note-{i}": "what somebody's controller has written here, " * 3 for i in range(5)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{prefix}-{number:05d}", "labels": labels, "annotations": notes},
        "spec": {
            "nodeName": f"node-{number % NODES:03d}",
            "terminationGracePeriodSeconds": 30,
            "containers": [_container("shop", 8080), _container("proxy", 8443)],
            "volumes": [{"name": "data", "emptyDir": {}}, {"name": "config", "configMap": {"name": "shop"}}],
        },
    }


def _container(name, port):
    probe = {"httpGet": {"path": "/healthz", "port": port, "scheme": "HTTP"}, "periodSeconds": 5, "failureThreshold": 3}
    mounts = [{"name": "data", "mountPath": "/data"}, {"name": "config", "mountPath": "/etc/shop", "readOnly": True}]
    return {
        "name": name,
        "image": f"registry.example.com/shop/{name}:1.27.3",
        "args": [f"--listen=:{port}", "--log-level=info", "--shutdown-timeout=25s"],
        "env": [{"name": f"SHOP_SETTING_{i}", "value": f"value number {i} of the shop"} for i in range(4)],
        "ports": [{"containerPort": port, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "readinessProbe": probe,
        "livenessProbe": probe,
        "volumeMounts": mounts,
    }


def sent(number=0):
    """The JSON of such a pod."""
    return msgspec.json.encode(pod(number, "pod"))


async def rate(clients, count, do):
    """``do(number)`` for each number below ``count``, by so many at once; how often a second."""
    numbers = iter(range(count))

    async def one():
        for number in numbers:
            await do(number)

    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(clients)))
    return count / (time.perf_counter() - began)


class Work:
    """The verbs of the bench on one API server. Rates are per second, times are seconds."""

    def __init__(self, client, transport):
        self._client = client
        self._transport = transport
        self._phases = itertools.cycle(("Running", "Pending"))

    async def create(self, prefix, clients, count):
        """New pods ``PREFIX-00000`` and so on."""
        return await rate(clients, count, lambda i: self._client.create(PODS, pod(i, prefix), namespace=NAMESPACE))

    async def delete(self, prefix, clients, count):
        """By force: grace 0, after which they are gone."""
        name = f"{prefix}-{{:05d}}".format
        return await rate(clients, count, lambda i: self._client.delete(PODS, name(i), namespace=NAMESPACE, grace=0))

    async def patch(self, prefix, clients, count):
        """Their status: each call is a change."""
        phase = next(self._phases)
        return await rate(clients, count, lambda i: self._patch(f"{prefix}-{i:05d}", phase))

    async def _patch(self, name, phase):
        ready = {"type": "Ready", "status": str(phase == "Running"), "lastTransitionTime": "2026-01-01T00:00:00Z"}
        status = {"phase": phase, "conditions": [ready], "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}
        await self._client.patch(PODS, name, {"status": status}, namespace=NAMESPACE, subresource="status")

    async def get(self, prefix, count):
        """One client, one after the other."""
        return await rate(1, count, lambda i: self._client.get(PODS, f"{prefix}-{i:05d}", namespace=NAMESPACE))

    async def list(self, limit):
        """Seconds for all pods, ``limit`` at a time (0: whole); they are not decoded."""
        began = time.perf_counter()
        await self._client.list_raw(PODS, limit=limit)
        return time.perf_counter() - began

    async def table(self):
        """Seconds for all pods as kubectl asks for them, but whole."""
        began = time.perf_counter()
        answer = await self._transport.request("GET", "/api/v1/pods", {"accept": _TABLE}, b"")
        assert answer.status == 200
        return time.perf_counter() - began

    # -- watches -------------------------------------------------------------------------------------------------------

    async def fan_out(self, prefix, watchers, count):
        """All watchers hear of every change, which 16 clients make: events a second until the last has heard all."""
        async with self._crowd([""] * watchers) as crowd:
            heard = crowd.expect(count)
            began = time.perf_counter()
            await self.patch(prefix, 16, count)
            await heard
            return watchers * count / (time.perf_counter() - began)

    async def each_its_node(self, prefix, watchers, count):
        """Each watcher hears of one node's pods only, as kubelets do: changes a second until all is heard."""
        nodes = [f"spec.nodeName=node-{i:03d}" for i in range(watchers)]
        async with self._crowd(nodes) as crowd:
            heard = crowd.expect(*(len(range(i, count, NODES)) for i in range(watchers)))
            began = time.perf_counter()
            await self.patch(prefix, 16, count)
            await heard
            return count / (time.perf_counter() - began)

    async def last_heard(self, prefix, watchers, times):
        """Seconds from before a write until the last watcher has heard of it; the median."""
        seconds = []
        async with self._crowd([""] * watchers) as crowd:
            for _ in range(times):
                heard = crowd.expect(1)
                began = time.perf_counter()
                await self.patch(prefix, 1, 1)
                await heard
                seconds.append(time.perf_counter() - began)
        return statistics.median(seconds)

    @contextlib.asynccontextmanager
    async def _crowd(self, selectors):
        """A watch for each selector, since now; each must be open before anything is written."""
        revision = (await self._client.list_raw(PODS, fields="metadata.name=nobody"))[1]
        streams = [await self._client.watch(PODS, revision, fields=one, seconds=3600) for one in selectors]
        crowd = Crowd(streams)
        try:
            yield crowd
        finally:
            await crowd.close()


class Crowd:
    """Readers of streams of lines, who count. Shorter than a minute: bookmarks would be counted too."""

    def __init__(self, streams):
        self._counts = [0] * len(streams)
        self._wanted = [0] * len(streams)
        self._missing = 0
        self._heard = None
        self._tasks = [asyncio.create_task(self._read(index, stream)) for index, stream in enumerate(streams)]

    def expect(self, *more):
        """Done when every reader has heard so many lines more: one number for all, or one for each."""
        each = more * len(self._tasks) if len(more) == 1 else more
        self._wanted = [count + one for count, one in zip(self._counts, each, strict=True)]
        self._missing = sum(map(bool, each))
        self._heard = asyncio.get_running_loop().create_future()
        return self._heard

    async def _read(self, index, stream):
        async with contextlib.aclosing(stream):
            async for chunk in stream:
                before = self._counts[index]
                self._counts[index] += chunk.count(b"\n")
                if before < self._wanted[index] <= self._counts[index]:
                    self._missing -= 1
                    if not self._missing:
                        self._heard.set_result(None)

    async def close(self):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
