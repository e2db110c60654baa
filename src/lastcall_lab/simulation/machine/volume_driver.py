"""A machine's volumes, whose unmounting takes its time: what was written has to reach the storage first."""

from pathlib import Path

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import Object
from lastcall.ports.node import Clock
from lastcall_lab.volumes.node_driver import NodeDriver
from lastcall_lab.volumes.storage import Storage

FLUSH_SECONDS = 0.5


class FlushingDriver(NodeDriver):
    """``kubelet.volume_port.Volumes``."""

    def __init__(self, storage: Storage, node: str, client: Client, clock: Clock) -> None:
        super().__init__(storage, node, client)
        self._clock = clock

    async def unmount(self, pod: Object, claim: Object, path: Path) -> None:
        """The volume can be written until this returns."""
        await self._clock.sleep(FLUSH_SECONDS)
        await super().unmount(pod, claim, path)
