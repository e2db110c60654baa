"""Static pods: a kubelet has them from files of its machine, so that they are there again after every boot.

The API server shows a mirror of each. A mirror whose pod has ended, or which is not there, is made anew when the kubelet
starts (``pkg/kubelet/kubelet.go: tryReconcileMirrorPods``); its uid in the API server is another one then.
"""

import copy
from collections.abc import Iterable

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import PODS, Object
from lastcall.errors import AlreadyExists, LastcallError, NotFound
from lastcall.model.pods import FINISHED
from lastcall.ports.node import Clock

_RETRY = 1.0


async def create_static_pods(pods: Iterable[Object], client: Client, clock: Clock) -> None:
    """Of one machine, by its kubelet's client. Returns when all are there."""
    for pod in pods:
        while True:
            try:
                await _recreate_static_pod(pod, client)
                break
            except LastcallError:
                await clock.sleep(_RETRY)


async def _recreate_static_pod(pod: Object, client: Client) -> None:
    metadata = pod["metadata"]
    place = {"namespace": metadata["namespace"]}
    try:
        found = await client.get(PODS, metadata["name"], **place)
        if (found.get("status") or {}).get("phase") not in FINISHED:
            return
        await client.delete(PODS, metadata["name"], grace=0, uid=found["metadata"]["uid"], **place)
    except NotFound:
        pass
    try:
        await client.create(PODS, _without_status(pod), **place)
    except AlreadyExists:
        return


def _without_status(pod: Object) -> Object:
    """What the API server is given."""
    kept = ("name", "namespace", "labels", "annotations", "ownerReferences")
    metadata = {name: value for name, value in pod["metadata"].items() if name in kept}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": copy.deepcopy(pod["spec"])}
