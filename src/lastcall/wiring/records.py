"""Connects the agent to the API server for the records of its node's shutdowns."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig as access
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.node_shutdown_recorder import NodeShutdownRecorder
from lastcall.aio import cancel_and_wait


@contextlib.asynccontextmanager
async def shutdown_recorder(
    node_name: str, kubeconfig: str = "", *, own: bool = True, node_client: Callable[[], Client | None] = lambda: None
) -> AsyncIterator[NodeShutdownRecorder]:
    """A recorder that writes its events while the context lasts.

    It writes with the agent's own identity if ``own``, which raises InvalidInput if none is configured; if that is
    refused, and without one, with the node's identity of ``node_client``, which may have been granted the right.
    """
    clock = SystemClock()
    async with contextlib.AsyncExitStack() as opened:
        found: list[Client] = []
        if own:
            own_access = access.find_access(clock, os.environ, kubeconfig=kubeconfig)
            http = HttpsTransport(own_access.endpoint, own_access.credentials)
            opened.callback(http.close)
            preparing = asyncio.create_task(http.prepare(), name="TLS of the agent's own identity")
            opened.push_async_callback(cancel_and_wait, preparing)
            found.append(Client(http, manager="lastcall-agent"))

        def clients() -> list[Client]:
            node = node_client()
            return [*found, node] if node else found

        records = NodeShutdownRecorder(clients, node_name, clock)
        writing = asyncio.create_task(records.run(), name="shutdown record")
        opened.push_async_callback(cancel_and_wait, writing)
        yield records
