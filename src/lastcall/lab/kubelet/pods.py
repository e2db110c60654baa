"""The pods of one node: a worker for each, what the runtime tells, and what was left behind."""

import asyncio
import logging

from lastcall.adapters.kube.resources import PODS, Object
from lastcall.adapters.kube.watching import Kind, Watching
from lastcall.aio import Group, first
from lastcall.errors import InvalidInput, LastcallError
from lastcall.lab.kubelet.ending import Order
from lastcall.lab.kubelet.means import Means
from lastcall.lab.kubelet.worker import PodWorker
from lastcall.model.pods import Pod
from lastcall.ports import LivePod

LOG_TIMES_SECONDS = 1.0

log = logging.getLogger(__name__)


class Pods:
    """``workers`` by uid."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._group = Group()
        self._early: dict[str, list[tuple[str, int | None]]] = {}
        self._left: dict[str, LivePod] = {}
        self._ended_by_others: dict[tuple[str, str], tuple[Order, dict[str, int | None]]] = {}
        self.workers: dict[str, PodWorker] = {}
        self.synced = False
        """Whether the API server has told once which pods there are."""

    async def run(self) -> None:
        """Until cancelled. The pods run on then."""
        self._means.runtime.tell_again()
        try:
            await first(self._hear_ends(), self._follow(), self._note_times())
        finally:
            await self._group.cancel()

    def ended_by(self, pod: Pod, order: Order, codes: dict[str, int | None]) -> None:
        """Somebody else has ended it. It may be known only later: a kubelet that begins anew has yet to hear of its pods."""
        if worker := self.worker(pod):
            worker.ended_by(order, codes)
        elif not self.synced:
            self._ended_by_others[pod.metadata.namespace, pod.metadata.name] = (order, codes)

    def worker(self, pod: Pod) -> PodWorker | None:
        """One that has ended while nobody looked is known by its name alone."""
        if pod.metadata.uid in self.workers:
            return self.workers[pod.metadata.uid]
        wanted = (pod.metadata.namespace, pod.metadata.name)
        return next((worker for worker in self.workers.values() if worker.place == wanted), None)

    # -- what the API server tells -------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        self._left = {live.pod.metadata.uid: live for live in await self._refresh()}
        watching = Watching(
            self._means.client,
            PODS,
            clock=self._means.clock,
            random=self._means.random,
            fields=f"spec.nodeName={self._means.profile.name}",
            shared=True,
        )
        async for change in watching.changes():
            if change.kind is Kind.SYNCED:
                await self._sweep()
            elif change.new is not None:
                self._hear(change.kind, change.new)

    def _hear(self, kind: Kind, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        worker = self.workers.get(uid)
        if kind is Kind.DELETED:
            if worker:
                worker.gone(pod)
        elif worker:
            worker.update(pod)
        else:
            self._begin(uid, pod)

    def _begin(self, uid: str, pod: Object) -> None:
        self._means.sources.heed(pod)
        worker = self.workers[uid] = PodWorker(pod, self._means, live=self._left.pop(uid, None))
        for name, code in self._early.pop(uid, ()):
            worker.ended(name, code)
        if told := self._ended_by_others.pop(worker.place, None):
            worker.ended_by(*told)
        self._group.start(self._work(uid, worker), f"pod {uid}")

    async def _work(self, uid: str, worker: PodWorker) -> None:
        """A mistake with one pod must not end the others."""
        try:
            await worker.run()
            del self.workers[uid]
        except Exception:
            log.exception("pod %s is left alone: its worker broke off", uid)

    async def _sweep(self) -> None:
        """What runs, or has volumes, of pods that were deleted while no kubelet looked (``HandlePodCleanups``)."""
        if self.synced:
            return
        self.synced = True
        for uid in [
            *self._left,
            *(uid for uid in self._means.volumes.leftovers(self.workers) if uid not in self._left),
        ]:
            self._group.start(self._remove(uid), f"remove {uid}")
        self._left, self._early, self._ended_by_others = {}, {}, {}

    async def _remove(self, uid: str) -> None:
        while True:
            try:
                await self._means.runtime.remove(uid)
                await self._means.volumes.unmount_all(uid)
                return
            except LastcallError as error:
                log.warning("what is left of pod %s cannot be removed: %s", uid, error)
            await self._means.clock.sleep(self._means.settings.retry)

    # -- what the runtime tells ----------------------------------------------------------------------------------------

    async def _refresh(self) -> list[LivePod]:
        while True:
            try:
                return list(await self._means.runtime.refresh())
            except LastcallError as error:
                log.warning("the runtime cannot be asked: %s", error)
            await self._means.clock.sleep(self._means.settings.retry)

    async def _hear_ends(self) -> None:
        while True:
            uid, name, code = await self._means.runtime.ended()
            if worker := self.workers.get(uid):
                worker.ended(name, code)
            elif not self.synced:
                self._early.setdefault(uid, []).append((name, code))

    async def _note_times(self) -> None:
        if not self._means.runtime.untimed_logs:
            await asyncio.Event().wait()
        while True:
            await self._means.clock.sleep(LOG_TIMES_SECONDS)
            try:
                await self._means.runtime.note_log_times()
            except (OSError, InvalidInput) as error:
                log.warning("the times of logs cannot be noted: %s", error)
