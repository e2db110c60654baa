"""Connects the agent to what is known about its node's pods: the API, the checkpoint on the disk, static manifests."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from random import Random

from lastcall.adapters.cri.spec_sources import SpecSources
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.kubeconfig import ClusterAccess
from lastcall.adapters.kube.node_access import find_node_access
from lastcall.adapters.kube.own_pods import OwnPods
from lastcall.adapters.pods.static_pods import StaticPods
from lastcall.adapters.state.pod_checkpoint import PodCheckpoint
from lastcall.aio import cancel_and_wait
from lastcall.errors import LastcallError
from lastcall.model.pods import Pod
from lastcall.model.shutdown import JournalEvent

SEARCH_SECONDS = 10.0
"""Seconds between two searches for an identity: at a boot the kubelet may start after the agent."""

log = logging.getLogger(__name__)


class OwnPodSources:
    """What is known about the node's pods, and the client by which the API is asked.

    ``on_change`` is called when more is known than before. ``kubeconfig`` and ``root`` as in ``find_node_access``.
    """

    def __init__(
        self,
        node_name: str,
        state_dir: Path,
        *,
        static_pod_path: str = "",
        kubeconfig: str = "",
        root: Path = Path("/"),
    ) -> None:
        self.client: Client | None = None
        """The client of this node's identity; None until one is found."""
        self.access: ClusterAccess | None = None
        """The access of that client."""
        self.on_change: Callable[[], None] = lambda: None
        self._node_name = node_name
        self._kubeconfig, self._root = kubeconfig, root
        self._clock = SystemClock()
        self._manifests = StaticPods(Path(static_pod_path), node_name) if static_pod_path else None
        self._checkpoint = PodCheckpoint(state_dir, self._clock, lambda: self.watch.pods if self.watch else {})
        self._kept: Mapping[str, Pod] = {}
        self.watch: OwnPods | None = None
        """The watch of the node's pods; None until an identity is found."""

    def current_sources(self) -> SpecSources:
        """What is known at this time."""
        return SpecSources(
            watched=self.watch.pods if self.watch else {},
            checkpoint=self._kept,
            manifests=self._manifests() if self._manifests else {},
        )

    def find_pod(self, uid: str) -> Pod | None:
        """What the API, or its checkpoint, says of the pod that the runtime knows by this uid."""
        watched = self.watch.pods if self.watch else {}
        return watched.get(uid) or self._kept.get(uid)

    def record_event(self, event: JournalEvent) -> None:
        """A listener of the agent's events: a shutdown postpones writes of the checkpoint."""
        self._checkpoint.record_event(event)

    async def read_checkpoint(self) -> None:
        """Reads what an earlier run of the agent has kept."""
        self._kept = await asyncio.to_thread(self._checkpoint.read)

    async def run(self) -> None:
        """Finds an identity, then keeps the pods and their checkpoint up to date, without end."""
        while True:
            try:
                await self._watch_pods()
            except Exception:  # a bug here must not end the agent
                log.exception("the watch of this node's pods ended, and begins again")
            await self._clock.sleep(SEARCH_SECONDS)

    async def _watch_pods(self) -> None:
        access = await self._find_access()
        log.info("the specs of this node's pods are read from %s", access.endpoint.netloc)
        http = HttpsTransport(access.endpoint, access.credentials)
        self.client, self.access = Client(http, manager="lastcall-agent"), access
        random = Random()  # noqa: S311 - spreads the pauses of the watch
        watch = OwnPods(self.client, self._node_name, clock=self._clock, random=random, on_change=self._note_change)
        self.watch = watch
        writing = asyncio.create_task(self._checkpoint.run(), name="checkpoint of pods")
        try:
            await watch.run()
        finally:
            await cancel_and_wait(writing)
            http.close()

    async def _find_access(self) -> ClusterAccess:
        told = ""
        while True:
            try:
                return await asyncio.to_thread(
                    find_node_access, self._clock, os.environ, kubeconfig=self._kubeconfig, root=self._root
                )
            except LastcallError as error:
                if str(error) != told:
                    log.warning("the specs of this node's pods cannot be read from the API: %s", error)
                told = str(error)
            await self._clock.sleep(SEARCH_SECONDS)

    def _note_change(self) -> None:
        self.on_change()
        if self.watch and self.watch.was_listed:  # before, it would replace what an earlier run has kept
            self._checkpoint.note_change()


@contextlib.asynccontextmanager
async def own_pod_sources(
    node_name: str, state_dir: Path, *, static_pod_path: str = "", kubeconfig: str = "", root: Path = Path("/")
) -> AsyncIterator[OwnPodSources]:
    """The sources, kept up to date while the context lasts. Without an identity the others remain, and the log says so."""
    sources = OwnPodSources(node_name, state_dir, static_pod_path=static_pod_path, kubeconfig=kubeconfig, root=root)
    await sources.read_checkpoint()
    running = asyncio.create_task(sources.run(), name="pods of this node")
    try:
        yield sources
    finally:
        await cancel_and_wait(running)
