"""A machine's volumes, whose unmounting takes its time: what was written has to reach the storage first."""

from pathlib import Path
from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import Object
from lastcall.lab.volumes.node_driver import NodeDriver
from lastcall.lab.volumes.storage import Storage
from lastcall.ports import Clock

FLUSH_SECONDS = 2.0
"""At most."""


class FlushingDriver(NodeDriver):
    """``kubelet.volume_port.Volumes``."""

    def __init__(self, storage: Storage, node: str, client: Client, *, clock: Clock, random: Random) -> None:
        super().__init__(storage, node, client)
        self._clock = clock
        self._random = random

    async def unmount(self, pod: Object, claim: Object, path: Path) -> None:
        """The volume can be written until this returns."""
        await self._clock.sleep(self._random.random() * FLUSH_SECONDS)
        await super().unmount(pod, claim, path)
