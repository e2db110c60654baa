"""A scheduler and kubelets in little, for tests of controllers in virtual time: pods run, get ready, end and go."""

import contextlib
from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.informer import ChangeKind, Informer
from lastcall.adapters.kube.resources import PODS
from lastcall.aio import OrderedTaskGroup
from lastcall.errors import Conflict, NotFound
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.values.object_meta import timestamp

FOR_EVER = None


class Kubelet:
    """Binds pods to ``nodes`` in turn (daemon pods to theirs), and runs them.

    ``ready_after`` and ``stops_after`` are seconds, or functions of the pod that give them (None: never).
    ``work`` gives the seconds and the exit code of a pod that ends by itself, None for one that does not.
    """

    def __init__(self, cluster, *, nodes=("n1", "n2", "n3"), ready_after=1.0, stops_after=1.0, work=None):
        self.cluster, self.nodes = cluster, list(nodes)
        self.ready_after, self.stops_after, self.work = ready_after, stops_after, work or (lambda pod: FOR_EVER)
        self.client = Client(InProcessTransport(cluster.server), manager="kubelet")
        self.group = OrderedTaskGroup()
        self.begun, self.ending = set(), set()
        self.seen = []
        """Every version of every pod, in order: (what, pod)."""

    async def run(self):
        """Until cancelled."""
        try:
            watching = Informer(self.client, PODS, clock=self.cluster.clock, random=Random(2))
            async for change in watching.changes():
                if change.kind is not ChangeKind.SYNCED:
                    self.seen.append((change.kind, change.new))
                    self._changed(change.kind, change.new)
        finally:
            await self.group.cancel()

    def _changed(self, kind, pod):
        uid = pod["metadata"]["uid"]
        if kind is ChangeKind.DELETED:
            return
        if uid not in self.begun:
            self.begun.add(uid)
            self.group.start(self._live(pod), f"live {uid}")
        if pod["metadata"].get("deletionTimestamp") and uid not in self.ending:
            self.ending.add(uid)
            self.group.start(self._end(pod), f"end {uid}")

    async def _live(self, pod):
        with contextlib.suppress(NotFound, Conflict):
            if not pod["spec"].get("nodeName"):
                await self.cluster.bind(pod["metadata"]["name"], self._node(pod))
            after = _value(self.ready_after, pod)
            if after is None:
                return
            await self.cluster.clock.sleep(after)
            await self._status(pod, "Running", ready=True)
            pod = await self.client.get(PODS, pod["metadata"]["name"], namespace=pod["metadata"]["namespace"])
            if (work := self.work(pod)) is not FOR_EVER:
                seconds, code = work
                await self.cluster.clock.sleep(seconds)
                await self._finish(pod, code)

    async def _end(self, pod):
        with contextlib.suppress(NotFound, Conflict):
            await self.cluster.clock.sleep(_value(self.stops_after, pod))
            metadata = pod["metadata"]
            if (pod.get("status") or {}).get("phase") == "Running":
                await self._finish(pod, 143)
            await self.client.delete(
                PODS, metadata["name"], namespace=metadata["namespace"], uid=metadata["uid"], grace=0
            )

    async def _finish(self, pod, code):
        now = timestamp(self.cluster.clock.wall())
        ended = {"exitCode": code, "finishedAt": now, "startedAt": now, "reason": "Completed" if not code else "Error"}
        name = pod["spec"]["containers"][0]["name"]
        containers = [
            {
                "name": name,
                "state": {"terminated": ended},
                "image": "i",
                "imageID": "",
                "restartCount": 0,
                "ready": False,
            }
        ]
        phase = "Succeeded" if code == 0 else "Failed"
        await self._status(pod, phase, ready=False, containerStatuses=containers)

    async def _status(self, pod, phase, *, ready, **more):
        now = timestamp(self.cluster.clock.wall())
        found = await self.client.get(PODS, pod["metadata"]["name"], namespace=pod["metadata"]["namespace"])
        if found["metadata"]["uid"] != pod["metadata"]["uid"] or found["status"].get("phase") in (
            "Succeeded",
            "Failed",
        ):
            return
        others = [one for one in found["status"].get("conditions") or () if one["type"] != "Ready"]
        said = {"type": "Ready", "status": str(ready), "lastTransitionTime": now}
        status = {"phase": phase, "conditions": [*others, said], **more}
        patch = {"metadata": {"uid": found["metadata"]["uid"]}, "status": status}
        await self.client.patch(
            PODS, pod["metadata"]["name"], patch, namespace=pod["metadata"]["namespace"], subresource="status"
        )

    def _node(self, pod):
        terms = (
            (pod["spec"].get("affinity") or {})
            .get("nodeAffinity", {})
            .get("requiredDuringSchedulingIgnoredDuringExecution", {})
            .get("nodeSelectorTerms", [])
        )
        for term in terms:
            for field in term.get("matchFields") or ():
                return field["values"][0]
        return self.nodes[len(self.begun) % len(self.nodes)]


@contextlib.asynccontextmanager
async def kubelet(cluster, **options):
    """One that runs within the block."""
    made = Kubelet(cluster, **options)
    group = OrderedTaskGroup()
    group.start(made.run(), "kubelet")
    try:
        yield made
    finally:
        await group.cancel()


def _value(said, pod):
    return said(pod) if callable(said) else said
