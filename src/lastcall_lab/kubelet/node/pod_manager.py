"""The pods of one node: one worker per pod, runtime notifications, and removal of leftovers."""

import asyncio
import logging

from lastcall.adapters.kube.informer import ChangeKind, Informer
from lastcall.adapters.kube.resources import PODS, Object
from lastcall.aio import OrderedTaskGroup, wait_first
from lastcall.errors import InvalidInput, LastcallError
from lastcall.model.pods import Pod
from lastcall.ports.node import RunningPod
from lastcall_lab.kubelet.node.mirror_pods import ManifestSource, MirrorPods
from lastcall_lab.kubelet.pod.dependencies import KubeletDeps
from lastcall_lab.kubelet.pod.pod_terminator import TerminationOrder
from lastcall_lab.kubelet.pod.pod_worker import PodWorker
from lastcall_lab.kubelet.spec.static_pods import mirrored_uid

LOG_TIMES_SECONDS = 1.0

log = logging.getLogger(__name__)


class PodManager:
    """``workers`` are keyed by the uid that the runtime knows. ``manifests`` are those of static pods; None: it has none."""

    def __init__(self, means: KubeletDeps, manifests: ManifestSource | None = None) -> None:
        self._means = means
        self._group = OrderedTaskGroup()
        self._early: dict[str, list[tuple[str, int | None]]] = {}
        self._left: dict[str, RunningPod] = {}
        self._ended_by_others: dict[tuple[str, str], tuple[TerminationOrder, dict[str, int | None]]] = {}
        self.workers: dict[str, PodWorker] = {}
        self._synced = asyncio.Event()
        self._static = MirrorPods(manifests, means, workers=self.workers, start=self._start_static_worker)

    @property
    def has_synced(self) -> bool:
        """Whether the API server's first list of pods has arrived."""
        return self._synced.is_set()

    async def run(self) -> None:
        """Runs until cancelled; the pods keep running afterwards."""
        self._means.runtime.repeat_ends()
        try:
            loops = [self._watch_ends(), self._watch_pods(), self._note_times()]
            await wait_first(*loops, *([self._run_static_pods()] if self._static.is_used else []))
        finally:
            await self._group.cancel()

    def record_end(self, pod: Pod, order: TerminationOrder, codes: dict[str, int | None]) -> None:
        """Records that another component ended the pod. A restarted kubelet may learn of the pod only later."""
        if worker := self.worker_of(pod):
            worker.record_end(order, codes)
        elif not self.has_synced:
            self._ended_by_others[pod.metadata.namespace, pod.metadata.name] = (order, codes)

    def worker_of(self, pod: Pod) -> PodWorker | None:
        """The worker of a pod; finds a pod that ended while the kubelet was down by its name alone."""
        if pod.metadata.uid in self.workers:
            return self.workers[pod.metadata.uid]
        wanted = (pod.metadata.namespace, pod.metadata.name)
        return next((worker for worker in self.workers.values() if worker.namespaced_name == wanted), None)

    # -- watch events --------------------------------------------------------------------------------------------------

    async def _watch_pods(self) -> None:
        self._left = {live.pod.metadata.uid: live for live in await self._refresh_runtime()}
        await self._static.read_manifests()
        watching = Informer(
            self._means.client,
            PODS,
            clock=self._means.clock,
            random=self._means.random,
            fields=f"spec.nodeName={self._means.profile.name}",
            shared=True,
        )
        async for change in watching.changes():
            if change.kind is ChangeKind.SYNCED:
                await self._remove_leftovers()
            elif change.new is not None:
                self._handle_change(change.kind, change.new)

    def _handle_change(self, kind: ChangeKind, pod: Object) -> None:
        if self._static.is_mirror(pod):
            self._static.handle_change(kind, pod)
            return
        uid = pod["metadata"]["uid"]
        worker = self.workers.get(uid)
        if kind is ChangeKind.DELETED:
            if worker:
                worker.mark_gone(pod)
        elif worker:
            worker.update(pod)
        else:
            self._start_worker(uid, pod)

    async def _run_static_pods(self) -> None:
        """They start once all pods are known, so that none is taken for a new one."""
        await self._synced.wait()
        await self._static.run()

    def _start_static_worker(self, mirror: Object) -> None:
        self._start_worker(mirrored_uid(mirror), mirror, is_static=True)

    def _start_worker(self, uid: str, pod: Object, *, is_static: bool = False) -> None:
        self._means.sources.watch_for_pod(pod)
        worker = PodWorker(pod, self._means, live=self._left.pop(uid, None), is_static=is_static)
        self.workers[uid] = worker
        for name, code in self._early.pop(uid, ()):
            worker.handle_container_end(name, code)
        if told := self._ended_by_others.pop(worker.namespaced_name, None):
            worker.record_end(*told)
        self._group.start(self._run_worker(uid, worker), f"pod {uid}")

    async def _run_worker(self, uid: str, worker: PodWorker) -> None:
        """Isolates the worker: a programming error with one pod must not stop the others."""
        try:
            await worker.run()
            del self.workers[uid]
        except Exception:
            log.exception("the worker of pod %s failed; nothing manages the pod any more", uid)

    async def _remove_leftovers(self) -> None:
        """Removes containers and volumes of pods deleted while no kubelet was running (``HandlePodCleanups``)."""
        if self.has_synced:
            return
        self._synced.set()
        left = [*self._left, *(uid for uid in self._means.volumes.leftover_pods(self.workers) if uid not in self._left)]
        for uid in [uid for uid in left if not self._static.has_manifest(uid)]:
            self._group.start(self._remove_leftover(uid), f"remove {uid}")
        self._left = {uid: live for uid, live in self._left.items() if self._static.has_manifest(uid)}
        self._early = {uid: ends for uid, ends in self._early.items() if self._static.has_manifest(uid)}
        self._ended_by_others = {}

    async def _remove_leftover(self, uid: str) -> None:
        while True:
            try:
                await self._means.runtime.remove_pod(uid)
                await self._means.volumes.unmount_all(uid)
                return
            except LastcallError as error:
                log.warning("leftovers of pod %s cannot be removed: %s", uid, error)
            await self._means.clock.sleep(self._means.settings.retry)

    # -- runtime notifications -----------------------------------------------------------------------------------------

    async def _refresh_runtime(self) -> list[RunningPod]:
        while True:
            try:
                return list(await self._means.runtime.refresh_pods())
            except LastcallError as error:
                log.warning("the runtime cannot be reached: %s", error)
            await self._means.clock.sleep(self._means.settings.retry)

    async def _watch_ends(self) -> None:
        while True:
            uid, name, code = await self._means.runtime.next_ended()
            if worker := self.workers.get(uid):
                worker.handle_container_end(name, code)
            elif not self.has_synced or self._static.has_manifest(uid):
                self._early.setdefault(uid, []).append((name, code))

    async def _note_times(self) -> None:
        if not self._means.runtime.untimed_logs:
            await asyncio.Event().wait()
        while True:
            await self._means.clock.sleep(LOG_TIMES_SECONDS)
            try:
                await self._means.runtime.note_log_times()
            except (OSError, InvalidInput) as error:
                log.warning("log timestamps cannot be recorded: %s", error)
