"""``ports.drain.DrainWatch``: one watch of the pods of each node, and one of the nodes."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from random import Random
from typing import Any

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.informer import ChangeKind, Informer, WatchChange
from lastcall.adapters.kube.resources import NODES, PODS
from lastcall.aio import ChangeCounter, wait_first
from lastcall.errors import ApiNotPermitted
from lastcall.model.drain_facts import DrainNode, DrainPod
from lastcall.ports.node import Clock

_PODS = PODS.with_shape(DrainPod)
_NODES = NODES.with_shape(DrainNode)

_LOOK_SECONDS = 1.0
"""Between two looks at whether the watch is permitted."""

_PATIENCE = 20.0
"""Seconds after which a right that is still missing is missing for good; it is asked for within half a minute more."""


class KubeDrainWatch:
    """Needs list and watch on pods and nodes. The API server has an index of pods by node."""

    def __init__(self, client: Client, nodes: Sequence[str], clock: Clock, random: Random) -> None:
        self._clock = clock
        self._names = frozenset(nodes)
        self._pods = {
            name: Informer(client, _PODS, clock=clock, random=random, fields=f"spec.nodeName={name}")
            for name in sorted(self._names)
        }
        only = f"metadata.name={nodes[0]}" if len(self._names) == 1 else ""
        self._nodes = Informer(client, _NODES, clock=clock, random=random, fields=only)
        self._unlisted = {"", *self._names}
        self._changes = ChangeCounter()

    @property
    def is_complete(self) -> bool:
        """``DrainWatch.is_complete``."""
        return not self._unlisted

    @property
    def nodes_failure(self) -> str:
        """``DrainWatch.nodes_failure``."""
        return "" if self._nodes.failure is None else str(self._nodes.failure)

    @property
    def _informers(self) -> Sequence[Informer[DrainNode] | Informer[DrainPod]]:
        return (self._nodes, *self._pods.values())

    @property
    def pods(self) -> Iterable[DrainPod]:
        """``DrainWatch.pods``."""
        return [pod for one in self._pods.values() for pod in one.objects.values()]

    @property
    def nodes(self) -> Mapping[str, DrainNode]:
        """``DrainWatch.nodes``."""
        return {key.name: node for key, node in self._nodes.objects.items() if key.name in self._names}

    async def wait_for_change(self, seen: int) -> int:
        """``DrainWatch.wait_for_change``."""
        return await self._changes.wait_for_change(seen)

    async def run(self) -> None:
        """``DrainWatch.run``."""
        follow = [self._follow(name, one.changes()) for name, one in self._pods.items()]
        await wait_first(self._follow("", self._nodes.changes()), *follow, self._wait_until_forbidden())

    async def _wait_until_forbidden(self) -> None:
        """An API server that has just started may refuse what its roles permit, until it has read them.

        A refusal stands until the informer asks again, up to a minute later, and the right may be back meanwhile. So what
        counts is another refusal after ``_PATIENCE``.
        """
        began: dict[int, float] = {}
        last: dict[int, ApiNotPermitted] = {}
        while True:
            await self._clock.sleep(_LOOK_SECONDS)
            for index, informer in enumerate(self._informers):
                error = informer.failure
                if not isinstance(error, ApiNotPermitted):
                    began.pop(index, None)
                elif error is not last.get(index):
                    last[index] = error
                    if self._clock.boottime() - began.setdefault(index, self._clock.boottime()) >= _PATIENCE:
                        raise error

    async def _follow(self, name: str, changes: AsyncGenerator[WatchChange[Any], None]) -> None:
        async for change in changes:
            if change.kind is ChangeKind.SYNCED:
                self._unlisted.discard(name)
            if name or change.kind is ChangeKind.SYNCED or change.key.name in self._names:
                self._changes.add()
