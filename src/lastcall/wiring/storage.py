"""Connects the agent to the node's lease on shared storage and to the API server that gets the report."""

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
    """Reports the lease while the context lasts; without settings, removes the record of an earlier configuration.

    InvalidInput if no API server is configured. ``leases`` defaults to this machine's sanlock.
    """
    clock = SystemClock()
    found = access.find_access(clock, os.environ, kubeconfig=kubeconfig)
    http = HttpsTransport(found.endpoint, found.credentials)
    word = KubeStorageAnnotation(Client(http, manager="lastcall-agent"), node_name)
    if settings is None:
        reporting = retract_record(word, clock)
    else:
        leases = leases or Sanlock()
        reporting = StorageLeaseReporter(
            settings.sanlock, leases=leases, word=word, clock=clock, boot_id=boot_id()
        ).run()
    running = asyncio.create_task(reporting, name="the lease on shared storage")
    try:
        yield
    finally:
        await cancel_and_wait(running)
        http.close()
