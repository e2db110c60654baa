"""The calls of a failover without anything around them: no leadership, no proof, no live reads, no events, no audit.

Arguments: a kubeconfig, a namespace, how many calls may be under way at once. It reads which pods and attachments there are,
prints ``ready``, waits for a line on standard input, and does with each pod as the controller does: one patch of its status
(Failed, with a condition unless it terminates already), the deletion by force; then the attachments.
"""

import asyncio
import sys
from pathlib import Path
from random import Random

from lab_work import rate

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.failover_cluster import KubeCluster
from lastcall.adapters.kube.https_transport import HttpsTransport, TransportLimits
from lastcall.adapters.kube.resources import ATTACHMENTS, PODS
from lastcall.model.observed import FailoverPod, WatchedAttachment

CONDITION = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByTaintManager",
    "message": "Taint manager: deleting due to NoExecute taint",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


async def main(where, namespace, concurrency):
    clock, room = SystemClock(), int(concurrency)
    access = kubeconfig.load_kubeconfig([Path(where)], clock)
    http = HttpsTransport(access.endpoint, access.credentials, limits=TransportLimits(connections=room + 14))
    client, cluster = Client(http, manager="bench"), KubeCluster(http, clock, Random(1))
    pods = (await client.list(PODS.with_shape(FailoverPod), namespace=namespace)).items
    found = (await client.list(ATTACHMENTS.with_shape(WatchedAttachment))).items
    attachments = [one for one in found if one.spec.node_name.startswith(namespace)]
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)

    async def pod(number):
        one = pods[number]
        await cluster.fail_pod(one, None if one.is_terminating else CONDITION)
        await cluster.delete_pod(*one.key, uid=one.metadata.uid, grace=0)

    async def attachment(number):
        one = attachments[number].metadata
        await cluster.delete_attachment(one.name, uid=one.uid, revision=one.resource_version)

    await rate(room, len(pods), pod)
    await rate(room, len(attachments), attachment)
    print("done", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    http.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
