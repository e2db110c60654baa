"""What somebody who watches the API server sees while a node goes down, with the time of each change."""

import contextlib
import json
import time

from lastcall.adapters.kube.resources import ENDPOINT_SLICES, JOBS, NODES, PODS
from lastcall.aio import OrderedTaskGroup

WATCHED = (NODES, PODS, ENDPOINT_SLICES, JOBS)
SERVICE = "kubernetes.io/service-name"


class Sight:
    """``events`` are the time (CLOCK_BOOTTIME), the resource, whether it is gone, and the object; in order."""

    def __init__(self, client):
        self._client = client
        self.events = []

    @contextlib.asynccontextmanager
    async def open(self):
        """Watches as long as the context lasts."""
        group = OrderedTaskGroup()
        for resource in WATCHED:
            found = await self._client.list(resource)
            self.events += [(_now(), resource, False, obj) for obj in found.items]
            group.start(self._follow(resource, found.revision), f"watch {resource.plural}")
        try:
            yield self
        finally:
            await group.cancel()

    async def _follow(self, resource, revision):
        rest = b""
        chunks = await self._client.watch(resource, revision, seconds=3600)
        async with contextlib.aclosing(chunks):
            async for chunk in chunks:
                at = _now()
                *lines, rest = (rest + chunk).split(b"\n")
                for said in map(json.loads, filter(None, lines)):
                    if said["type"] != "BOOKMARK":
                        self.events.append((at, resource, said["type"] == "DELETED", said["object"]))

    def changes(self, resource, since=0.0):
        """Time, whether it is gone, and object of each change since then."""
        return [(at, gone, obj) for at, kind, gone, obj in self.events if kind is resource and at >= since]

    def latest(self, resource):
        """The objects that there are, by name."""
        found = {}
        for _, gone, obj in self.changes(resource):
            found.pop(obj["metadata"]["name"], None) if gone else found.update({obj["metadata"]["name"]: obj})
        return found

    def first(self, resource, since, is_so):
        """When an object was so for the first time since then; None if never."""
        return next((at for at, _, obj in self.changes(resource, since) if is_so(obj)), None)

    def pods_of(self, app, before):
        """Of the pods of an app that there were: their names by uid."""
        pods = (obj for at, _, obj in self.changes(PODS) if at < before and app_of(obj) == app)
        return {obj["metadata"]["uid"]: obj["metadata"]["name"] for obj in pods}

    def withdrawn(self, service, before):
        """When each of a Service's pods was no ready endpoint any more, by the pod's name."""
        slices, left, found = {}, self.pods_of(service, before), {}
        for at, gone, obj in self.changes(ENDPOINT_SLICES):
            if (obj["metadata"].get("labels") or {}).get(SERVICE) != service:
                continue
            slices[obj["metadata"]["name"]] = set() if gone else _ready_uids(obj)
            if at >= before:
                ready = set().union(*slices.values())
                found |= {left.pop(uid): at for uid in left.keys() - ready}
        return found

    def replaced(self, app, before):
        """When each replacement of an app's pods was created."""
        known, found = set(self.pods_of(app, before)), []
        for at, _, obj in self.changes(PODS, before):
            if app_of(obj) == app and obj["metadata"]["uid"] not in known:
                known.add(obj["metadata"]["uid"])
                found.append(at)
        return found


def app_of(pod):
    """The label ``app``, "" without one."""
    return (pod["metadata"].get("labels") or {}).get("app", "")


def condition(obj, kind):
    """The status of a condition, "" without it."""
    found = (obj.get("status") or {}).get("conditions") or ()
    return next((one["status"] for one in found if one["type"] == kind), "")


def _ready_uids(found):
    ends = found.get("endpoints") or ()
    return {one["targetRef"]["uid"] for one in ends if one["conditions"].get("ready") is not False}


def _now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)
