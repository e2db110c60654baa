"""Keeps the files of a running pod's volumes as their sources are (``pkg/kubelet/pod_workers.go``: each sync does)."""

from collections.abc import Callable
from typing import Any
from zlib import crc32

from lastcall.adapters.kube.resources import Object
from lastcall.aio import first
from lastcall.errors import LastcallError
from lastcall.lab.kubelet import projections
from lastcall.lab.kubelet.flag import Flag
from lastcall.lab.kubelet.means import Means
from lastcall.lab.kubelet.record import Record


class Refresher:
    """Looks about every minute, and when the pod's own metadata have changed. Nothing is done before ``mounted``."""

    def __init__(self, record: Record, means: Means, *, mounted: Callable[[], bool]) -> None:
        self._record = record
        self._means = means
        self._mounted = mounted
        self._shown = _described(record.pod)
        self._volumes = [one for one in record.pod["spec"].get("volumes") or () if projections.projected(one)]
        self._news = Flag()

    @property
    def needed(self) -> bool:
        """Whether there is anything to be refreshed; else nobody has to run it."""
        return bool(self._volumes)

    def look(self) -> None:
        """The pod may have changed."""
        if _described(self._record.pod) != self._shown:
            self._news.set()

    async def run(self) -> None:
        """Until cancelled. What cannot be refreshed stays as it is, and an event tells why."""
        spread = crc32(self._record.uid.encode()) / 2**32
        pause = self._means.settings.sync * (1 + spread / 2)
        while True:
            await first(self._news.wait(), self._means.clock.sleep(pause))
            self._news.clear()
            if self._mounted():
                self._shown = _described(self._record.pod)
                for volume in self._volumes:
                    await self._refresh(volume)

    async def _refresh(self, volume: Object) -> None:
        place = self._means.place(self._record.facts.address)
        try:
            await self._means.volumes.mount(self._record.pod, volume, place)
        except (LastcallError, OSError) as error:
            said = f'MountVolume.SetUp failed for volume "{volume["name"]}" : {error}'
            self._record.tell("Warning", "FailedMount", said)


def _described(pod: Object) -> tuple[Any, Any]:
    metadata = pod["metadata"]
    return metadata.get("labels"), metadata.get("annotations")
