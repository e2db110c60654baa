"""Writes on the Nodes of a drain: cordon and mark, the conditions, and Events."""

import logging
from collections.abc import Callable, Collection
from datetime import UTC, datetime

from msgspec.structs import replace

from lastcall.drain.decisions import node_patches
from lastcall.drain.decisions.node_patches import NodeReport, Patch
from lastcall.drain.execution.patience import ask_patiently
from lastcall.errors import LastcallError, NotFound
from lastcall.model.balancer_marks import BalancerMark
from lastcall.model.drain_facts import DrainNode
from lastcall.model.drain_mark import DrainMark
from lastcall.ports.drain import DrainCluster, DrainEvent
from lastcall.ports.node import Clock

log = logging.getLogger(__name__)


class NodeWriter:
    """``mark`` is that of a drain which has done nothing yet.

    ``balancers`` are the marks for external load balancers that it sets with the cordon.
    """

    def __init__(
        self, cluster: DrainCluster, mark: DrainMark, clock: Clock, *, balancers: Collection[BalancerMark] = ()
    ) -> None:
        self._cluster, self._new, self._clock, self._balancers = cluster, mark, clock, balancers
        self.marks: dict[str, DrainMark] = {}
        """The marks that were written, by node."""

    async def cordon(self, name: str) -> bool:
        """Cordons and marks a node; whether it was cordoned before. Raises the API's error if that fails."""
        before = False

        def patch(node: DrainNode) -> Patch:
            nonlocal before
            before = node.spec.unschedulable
            self.marks[name] = node_patches.begin_mark(node, self._new)
            at = int(self._clock.wall())
            return node_patches.cordon_patch(node, self.marks[name], balancers=self._balancers, at=at)

        node = await self._change(name, patch)
        assert node is not None
        mark = self.marks[name]
        said = f"{mark.by} drains it" + (f": {mark.reason}" if mark.reason else "")
        await self._announce(node, node_patches.STARTED, said)
        return before

    async def finish(self, name: str, state: NodeReport, message: str, *, spent: float, uncordon: bool = False) -> bool:
        """Writes how the drain of a node has ended; whether it took its cordon back. Failures are logged.

        A drain that has failed gives the node back to external load balancers. After one that has ended well it stays
        out of them, and after an interruption too, since another run goes on.
        """
        mark = self.marks.get(name)
        if mark is None:
            return False
        kept = replace(mark, spent=int(spent))
        took = False

        def patch(node: DrainNode) -> Patch | None:
            nonlocal took
            found = node_patches.finish_patch(
                node,
                kept,
                keep=state is not node_patches.COMPLETED,
                uncordon=uncordon,
                unmark=state is node_patches.FAILED,
            )
            took = node_patches.has_uncordoned(found)
            return found

        try:
            node = await self._change(name, patch)
            if node is not None:
                await self._announce(node, node_patches.UNCORDONED if took else state, message)
        except LastcallError as error:
            log.warning("node %s does not say how its drain has ended: %s", name, error)
        return took

    async def _change(self, name: str, patch: Callable[[DrainNode], Patch | None]) -> DrainNode | None:
        """Patches the Node as it is now; None if there is nothing to patch."""

        async def change() -> DrainNode | None:
            node = await self._cluster.read_node(name)
            wanted = patch(node)
            return node if wanted is None else await self._cluster.patch_node(name, wanted)

        return await ask_patiently(change, self._clock)

    async def _announce(self, node: DrainNode, state: NodeReport, message: str) -> None:
        """Writes conditions and an Event; nothing depends on them."""
        patch = node_patches.conditions_patch(node, state, message, self._clock.wall())
        try:
            if patch is not None:
                await self._cluster.patch_node_status(node.name, patch)
        except NotFound:
            return
        except LastcallError as error:
            log.warning("node %s: its conditions are not written: %s", node.name, error)
        is_warning = state not in (node_patches.STARTED, node_patches.COMPLETED)
        await self._cluster.write_event(
            DrainEvent(name=node.name, uid=node.name, reason=state.reason, message=message, is_warning=is_warning)
        )


def new_mark(id_: str, by: str, reason: str, wall: float) -> DrainMark:
    """The mark of a drain that begins now."""
    since = datetime.fromtimestamp(int(wall), UTC)
    return DrainMark(id=id_, by=by, reason=reason, since=since, cordoned=False)
