"""Rehearses a shutdown: the agent's own decisions, as if logind announced one now, in mode Observe."""

import asyncio

from msgspec import structs

from lastcall.aio import wait_first
from lastcall.errors import Unavailable
from lastcall.graceful.config import AgentConfig
from lastcall.graceful.drill.read_only import NoJournals, ReadOnlyNode, ReadOnlyRuntime
from lastcall.graceful.shutdown.manager import NodeShutdownManager
from lastcall.model.shutdown import JournalEvent, ShutdownMode, ShutdownOutcome, ShutdownRecord
from lastcall.model.shutdown_fold import fold_events
from lastcall.ports.node import Clock

KIND = "drill"
"""The kind of the rehearsed shutdown in the report, in place of logind's word."""

LIST_SECONDS = 10.0
"""Longest time in seconds until the runtime has listed its pods: nothing else takes time in a drill."""


async def rehearse_shutdown(
    config: AgentConfig,
    runtime: ReadOnlyRuntime,
    clock: Clock,
    *,
    node_name: str,
    boot_id: str,
    granted: float | None,
    lock: bool,
) -> ShutdownRecord:
    """The record of a shutdown that begins now and ends no pod; it has no release, since the agent keeps its lock.

    ``granted`` is logind's limit in seconds, ``lock`` whether the agent holds a lock. Unavailable if the runtime does not
    list its pods.
    """
    events: list[JournalEvent] = []
    over = asyncio.Event()
    manager = NodeShutdownManager(
        node_name=node_name,
        boot_id=boot_id,
        runtime=runtime,
        node=ReadOnlyNode(),
        journals=NoJournals(),
        clock=clock,
        listeners=[events.append],
        wake=over.set,
    )
    try:
        observing = structs.replace(config, mode=ShutdownMode.OBSERVE)
        await manager.begin(observing, granted=granted, how=KIND, lock=lock)
        if await wait_first(over.wait(), clock.sleep(LIST_SECONDS)):
            raise Unavailable(f"the container runtime has not listed its pods within {LIST_SECONDS:g} s")
    finally:
        await manager.close()
    return structs.replace(fold_events(events), outcome=ShutdownOutcome.COMPLETED)
