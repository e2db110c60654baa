"""Updates the files of a running pod's volumes from their sources (``pkg/kubelet/pod_workers.go``: each sync does)."""

from collections.abc import Callable
from typing import Any
from zlib import crc32

from lastcall.adapters.kube.resources import Object
from lastcall.aio import wait_first
from lastcall.errors import LastcallError
from lastcall_lab.kubelet.base.cheap_event import CheapEvent
from lastcall_lab.kubelet.pod.dependencies import KubeletDeps
from lastcall_lab.kubelet.pod.pod_record import PodStateRecord
from lastcall_lab.kubelet.spec import projections


class VolumeRefresher:
    """Checks about every minute and when the pod's metadata change. Does nothing before ``mounted`` is set."""

    def __init__(self, record: PodStateRecord, means: KubeletDeps, *, mounted: Callable[[], bool]) -> None:
        self._record = record
        self._means = means
        self._mounted = mounted
        self._shown = _downward_inputs(record.pod)
        self._volumes = [one for one in record.pod["spec"].get("volumes") or () if projections.is_projected(one)]
        self._news = CheapEvent()

    @property
    def has_refreshable(self) -> bool:
        """Whether the pod has such a volume; otherwise ``run`` is not needed."""
        return bool(self._volumes)

    def check_pod(self) -> None:
        """Signals that the pod may have changed."""
        if _downward_inputs(self._record.pod) != self._shown:
            self._news.set()

    async def run(self) -> None:
        """Runs until cancelled. Keeps the files that it cannot update, and records an event with the reason."""
        spread = crc32(self._record.uid.encode()) / 2**32
        pause = self._means.settings.sync * (1 + spread / 2)
        while True:
            await wait_first(self._news.wait(), self._means.clock.sleep(pause))
            self._news.clear()
            if self._mounted():
                self._shown = _downward_inputs(self._record.pod)
                for volume in self._volumes:
                    await self._refresh_volume(volume)

    async def _refresh_volume(self, volume: Object) -> None:
        place = self._means.pod_location(self._record.facts.address)
        try:
            await self._means.volumes.mount(self._record.pod, volume, place)
        except (LastcallError, OSError) as error:
            said = f'MountVolume.SetUp failed for volume "{volume["name"]}" : {error}'
            self._record.tell("Warning", "FailedMount", said)


def _downward_inputs(pod: Object) -> tuple[Any, Any]:
    metadata = pod["metadata"]
    return metadata.get("labels"), metadata.get("annotations")
