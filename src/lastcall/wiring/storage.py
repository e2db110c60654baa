"""Joins the agent to the node's lease on shared storage, and to the API server that it tells of it."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator

from lastcall.adapters.host.boot import boot_id
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.host.sanlock import Sanlock
from lastcall.adapters.kube import kubeconfig as access
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.storage_lease_annotation import KubeStorageAnnotation
from lastcall.aio import cancel_and_wait
from lastcall.model.storage_lease import StorageLeaseSettings
from lastcall.ports.storage import StorageLeases
from lastcall.storage.lease_reporter import StorageLeaseReporter, retract_record


@contextlib.asynccontextmanager
async def storage_lease_reporter(
    settings: StorageLeaseSettings | None, node_name: str, kubeconfig: str = "", leases: StorageLeases | None = None
) -> AsyncIterator[None]:
    """While the context lasts the lease is told of; without settings, what was told of it before is taken back.

    InvalidInput if no API server is named. ``leases`` are those of this machine's sanlock, unless others are given.
    """
    clock = SystemClock()
    found = access.find_access(clock, os.environ, kubeconfig=kubeconfig)
    http = HttpsTransport(found.endpoint, found.credentials)
    word = KubeStorageAnnotation(Client(http, manager="lastcall-agent"), node_name)
    if settings is None:
        telling = retract_record(word, clock)
    else:
        leases = leases or Sanlock()
        telling = StorageLeaseReporter(settings.sanlock, leases=leases, word=word, clock=clock, boot_id=boot_id()).run()
    running = asyncio.create_task(telling, name="the lease on shared storage")
    try:
        yield
    finally:
        await cancel_and_wait(running)
        http.close()
