"""What takes the place of pods that were removed by force: whether it runs and is Ready elsewhere, for people."""

from collections.abc import Iterable, Mapping

from lastcall.errors import LastcallError
from lastcall.failover.doing.outside import Cluster
from lastcall.model.observed import LivePod

MOST = 50
"""So many pods of a node are followed; others are made anew by the same controllers."""
_STAYS = ("DaemonSet", "Node", "")
"""Kinds of owners that make no other pod elsewhere."""


class Replacements:
    """Of one node."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lost: dict[str, LivePod] = {}
        self._ready: dict[str, bool] = {}

    def lost(self, pods: Iterable[LivePod]) -> None:
        """These were removed by force."""
        for pod in pods:
            kind = pod.owner.kind if pod.owner else ""
            if kind not in _STAYS and len(self._lost) < MOST:
                self._lost["/".join(pod.key)] = pod
                self._ready.setdefault("/".join(pod.key), False)

    async def look(self) -> Mapping[str, bool]:
        """Whether each pod that was lost has a replacement that is Ready. One that was, is not asked for again."""
        for key, pod in self._lost.items():
            if not self._ready[key]:
                try:
                    self._ready[key] = await self._replaced(pod)
                except LastcallError:
                    return dict(self._ready)
        return dict(self._ready)

    async def _replaced(self, pod: LivePod) -> bool:
        """A StatefulSet makes it anew under its name; others make another one with the same labels."""
        assert pod.owner
        if pod.owner.kind == "StatefulSet":
            found = await self._cluster.pod(*pod.key)
            return found is not None and found.metadata.uid != pod.metadata.uid and found.ready
        return any(
            other.ready
            and other.owner
            and other.owner.uid == pod.owner.uid
            and other.spec.node_name != pod.spec.node_name
            for other in await self._cluster.pods_like(pod)
        )
