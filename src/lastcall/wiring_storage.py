"""Joins the agent to the node's lease on shared storage, and to the API server that it tells of it."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator

from lastcall.adapters.boot import boot_id
from lastcall.adapters.clock import SystemClock
from lastcall.adapters.kube import kubeconfig as access
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.http import Http
from lastcall.adapters.kube.storage_word import KubeStorageWord
from lastcall.adapters.sanlock import Sanlock
from lastcall.aio import cancel
from lastcall.model.storage_lease import StorageLeaseSettings
from lastcall.ports_storage import StorageLeases
from lastcall.storage.telling import Telling, taken_back


@contextlib.asynccontextmanager
async def told(
    settings: StorageLeaseSettings | None, node_name: str, kubeconfig: str = "", leases: StorageLeases | None = None
) -> AsyncIterator[None]:
    """While the context lasts the lease is told of; without settings, what was told of it before is taken back.

    InvalidInput if no API server is named. ``leases`` are those of this machine's sanlock, unless others are given.
    """
    clock = SystemClock()
    found = access.find(clock, os.environ, kubeconfig=kubeconfig)
    http = Http(found.endpoint, found.credentials)
    word = KubeStorageWord(Client(http, manager="lastcall-agent"), node_name)
    if settings is None:
        telling = taken_back(word, clock)
    else:
        leases = leases or Sanlock()
        telling = Telling(settings.sanlock, leases=leases, word=word, clock=clock, boot_id=boot_id()).run()
    running = asyncio.create_task(telling, name="the lease on shared storage")
    try:
        yield
    finally:
        await cancel(running)
        http.close()
