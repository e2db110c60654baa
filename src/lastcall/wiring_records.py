"""Joins the agent to the API server that it tells of its node's shutdowns."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator

from lastcall.adapters.clock import SystemClock
from lastcall.adapters.kube import kubeconfig as access
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.http import Http
from lastcall.adapters.kube.shutdown_records import ShutdownRecords
from lastcall.aio import cancel


@contextlib.asynccontextmanager
async def recorded(node_name: str, kubeconfig: str = "") -> AsyncIterator[ShutdownRecords]:
    """What it hears is written while the context lasts. InvalidInput if no API server is named."""
    clock = SystemClock()
    found = access.find(clock, os.environ, kubeconfig=kubeconfig)
    http = Http(found.endpoint, found.credentials)
    records = ShutdownRecords(Client(http, manager="lastcall-agent"), node_name, clock)
    writing = asyncio.create_task(records.run(), name="the node's last word")
    try:
        yield records
    finally:
        await cancel(writing)
        http.close()
