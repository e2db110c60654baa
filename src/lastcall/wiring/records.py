"""Connects the agent to the API server for the records of its node's shutdowns."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig as access
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.node_shutdown_recorder import NodeShutdownRecorder
from lastcall.aio import cancel_and_wait


@contextlib.asynccontextmanager
async def shutdown_recorder(node_name: str, kubeconfig: str = "") -> AsyncIterator[NodeShutdownRecorder]:
    """A recorder that writes its events while the context lasts. InvalidInput if no API server is configured."""
    clock = SystemClock()
    found = access.find_access(clock, os.environ, kubeconfig=kubeconfig)
    http = HttpsTransport(found.endpoint, found.credentials)
    records = NodeShutdownRecorder(Client(http, manager="lastcall-agent"), node_name, clock)
    writing = asyncio.create_task(records.run(), name="shutdown record")
    try:
        yield records
    finally:
        await cancel_and_wait(writing)
        http.close()
