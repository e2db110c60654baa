"""One pod on its node, from admission until nothing of it is left (``pkg/kubelet/pod_workers.go``)."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from lastcall.adapters.kube.resources import PODS, Object
from lastcall.aio import wait_first
from lastcall.errors import LastcallError, NotFound
from lastcall.model.pods import FINISHED
from lastcall.ports.node import RunningPod
from lastcall_lab.apiserver.values.object_meta import parse_seconds
from lastcall_lab.kubelet.base.cheap_event import CheapEvent
from lastcall_lab.kubelet.pod.container_runner import ContainerRunner
from lastcall_lab.kubelet.pod.dependencies import KubeletDeps
from lastcall_lab.kubelet.pod.pod_record import PodStateRecord
from lastcall_lab.kubelet.pod.pod_terminator import PodTerminator, TerminationOrder, effective_grace
from lastcall_lab.kubelet.pod.volume_refresher import VolumeRefresher
from lastcall_lab.kubelet.state import pod_status
from lastcall_lab.kubelet.state.container_facts import containers_from_status

FINAL_DELETE_PERIOD_SECONDS = 10.0
"""How often the final DELETE is repeated while the pod still exists (``status_manager.go``: ``syncPeriod``)."""

log = logging.getLogger(__name__)


class PodWorker:
    """``live`` is the pod that an earlier kubelet instance left running; ``is_static``: ``pod`` is a mirror pod."""

    def __init__(
        self, pod: Object, means: KubeletDeps, *, live: RunningPod | None = None, is_static: bool = False
    ) -> None:
        self.record = PodStateRecord(pod, means, is_static=is_static)
        self.is_withdrawn = False
        """Whether the manifest of the static pod is gone."""
        self.over = CheapEvent()
        """Set when no container of it runs or will run."""
        self.cleaned = CheapEvent()
        """Set when its volumes are unmounted too."""
        self._means = means
        self._found = live
        self._ran = live is not None or any(
            one.run or one.last for one in containers_from_status(self.record.pod, {}, 0.0).values()
        )
        self._runner = ContainerRunner(self.record, means)
        self._refresher = VolumeRefresher(self.record, means, mounted=lambda: self._runner.prepared_pod is not None)
        self._order: TerminationOrder | None = None
        self._ending: PodTerminator | None = None
        self._end_wanted = CheapEvent()
        self._ended_by_others = CheapEvent()
        self._codes: dict[str, int | None] = {}
        self._deleted = CheapEvent()
        self._gone = CheapEvent()
        self._told = ""

    @property
    def namespaced_name(self) -> tuple[str, str]:
        """The pod's namespace and name."""
        return self.record.pod["metadata"]["namespace"], self.record.pod["metadata"]["name"]

    @property
    def is_static(self) -> bool:
        """Whether it comes from a manifest on the node's disk."""
        return self.record.is_static

    # -- events from other components ----------------------------------------------------------------------------------

    def update(self, pod: Object) -> None:
        """Stores the pod as the API server has it."""
        self.record.update_pod(pod)
        self._order_deletion()  # a status response can have announced the deletion earlier
        self._refresher.check_pod()

    def mark_gone(self, pod: Object) -> None:
        """The pod no longer exists in the API, whoever deleted it."""
        self.record.replace_pod(pod)
        self.record.writer.stop()
        self._gone.set()
        self._deleted.set()
        self.end(TerminationOrder(effective_grace(pod, self._means.settings)))

    def withdraw(self) -> None:
        """Ends a static pod whose manifest is gone, and deletes its mirror pod then."""
        self.is_withdrawn = True
        self._deleted.set()
        self.end(TerminationOrder(effective_grace(self.record.pod, self._means.settings)))

    def mark_mirror_gone(self) -> None:
        """The mirror pod of a static pod that is withdrawn does not exist any more."""
        self.record.writer.stop()
        self._gone.set()

    def _order_deletion(self) -> None:
        if self.record.is_being_deleted:
            self._deleted.set()
            self.end(TerminationOrder(effective_grace(self.record.pod, self._means.settings)))

    def end(self, order: TerminationOrder) -> None:
        """Orders the end of the pod. A second order can only shorten the time."""
        if self._order is None:
            self._order = order
        else:
            self._order = replace(self._order, grace=min(order.grace, self._order.grace))
        if self._ending:
            self._ending.shorten_grace(order.grace)
        self._end_wanted.set()

    def record_end(self, order: TerminationOrder, codes: dict[str, int | None]) -> None:
        """Another component ended the pod: it has failed, whatever its exit codes."""
        self._order = order
        self._codes = codes
        self._ended_by_others.set()
        self.record.moved.set()

    def handle_container_end(self, name: str, code: int | None) -> None:
        """Records the end of a container's run."""
        self._runner.handle_container_end(name, code)

    def live_pod(self) -> RunningPod:
        """The pod with its running containers; Unavailable before it has been started."""
        return self._runner.live_pod()

    # -- lifecycle -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Returns when the pod is gone from the API server and from this node."""
        try:
            await wait_first(self._run_to_end(), self.record.writer.run())
        finally:
            await self._runner.close()

    async def _run_to_end(self) -> None:
        self._order_deletion()
        if (self.record.pod.get("status") or {}).get("phase") in FINISHED:
            await self._retry_until_done(self._kill_leftovers)
        elif not self._ran and (refusal := self._means.refusal()):
            self._reject_pod(*refusal)
        else:
            await self._run_containers()
        await self._runner.close()
        await self._retry_until_done(self._clean_up)
        self.cleaned.set()
        await self._deleted.wait()
        await self._delete_pod()
        await self._retry_until_done(self._forget_pod)

    async def _run_containers(self) -> None:
        begun, limit = self._start_time(), self.record.pod["spec"].get("activeDeadlineSeconds")
        self.record.set(started_at=begun, **self._facts_from_status())
        waits: list[Awaitable[Any]] = [self._run_until_ordered(), self._end_wanted.wait(), self._ended_by_others.wait()]
        if limit is not None:
            waits.append(self._means.clock.sleep(begun + limit - self._means.clock.wall()))
        if await wait_first(*waits) == len(waits) - 1 and limit is not None:
            self._expire_deadline()
        await self._wait_until_released()
        if not self._ended_by_others.is_set():
            await self._retry_until_done(self._end_pod)
        await self._wait_until_released()
        if self._ended_by_others.is_set():
            await self._runner.handle_external_end(self._codes)
            self.record.set(phase="Failed")
        self._finalize_status()

    async def _wait_until_released(self) -> None:
        """Waits while another component ends the pods of this node, which then ends this pod too."""
        while self._means.held(self.record.uid) and not self._ended_by_others.is_set():
            self.record.moved.clear()
            await self.record.moved.wait()

    def _facts_from_status(self) -> dict[str, Any]:
        """Keeps the facts of the last written status until the runtime reports more."""
        if not self._ran:
            return {}
        running = self._found.containers if self._found else {}
        found = containers_from_status(self.record.pod, running, self._means.clock.wall())
        return {"containers": found, "address": (self.record.pod.get("status") or {}).get("podIP", "")}

    def _start_time(self) -> float:
        text = (self.record.pod.get("status") or {}).get("startTime")
        return parse_seconds(text) if text else self._means.clock.wall()

    async def _run_until_ordered(self) -> None:
        if self._ran:
            await self._wait_until_released()  # never recreate what another component ends
            await self._retry_until_done(self._runner.recall_running)
        if self._refresher.has_refreshable:
            await wait_first(self._runner.run(), self._refresher.run())
        else:
            await self._runner.run()

    def _expire_deadline(self) -> None:
        """Ends the pod because ``activeDeadlineSeconds`` have passed."""
        why = "Pod was active on the node longer than the specified deadline"
        self.record.tell("Normal", "DeadlineExceeded", why)
        self.record.set(phase="Failed")
        self._order = TerminationOrder(effective_grace(self.record.pod, self._means.settings), "DeadlineExceeded", why)

    def _reject_pod(self, reason: str, message: str) -> None:
        self.record.rejected = True
        self.record.tell("Warning", reason, message)
        said, now = f"Pod was rejected: {message}", self._means.clock.wall()
        self.record.set(reason=reason, message=said, over=True, started_at=now)
        self.over.set()

    # -- termination ---------------------------------------------------------------------------------------------------

    async def _end_pod(self) -> None:
        """Ends the running containers. Unavailable if the runtime cannot be reached; the caller retries."""
        if self._order is None:
            self._order = TerminationOrder(effective_grace(self.record.pod, self._means.settings))
        if live := await self._running_pod():
            for name in live.containers:
                self.record.tell("Normal", "Killing", f"Stopping container {name}", name)
            self._ending = PodTerminator(self.record.pod, live, self._order, self._means)
            await self._ending.run()
            for name, code in self._ending.codes.items():
                self._runner.handle_container_end(name, code)

    async def _running_pod(self) -> RunningPod | None:
        """The pod as the runtime reports it, because a start may have been interrupted."""
        for live in await self._means.runtime.refresh_pods():
            if live.pod.metadata.uid == self.record.uid:
                return live
        return None

    def _finalize_status(self) -> None:
        """Makes the pod's phase final."""
        order = self._order or TerminationOrder(0.0)
        self.record.set(over=True, conditions=tuple(order.conditions))
        if order.reason and pod_status.pod_phase(self.record.pod, self.record.facts) == "Failed":
            self.record.set(reason=order.reason, message=order.message)
        self.over.set()

    async def _kill_leftovers(self) -> None:
        """Ends containers of a pod that had already finished; none should run."""
        found = containers_from_status(self.record.pod, {}, self._means.clock.wall())
        status = self.record.pod["status"]
        said = {name: status[name] for name in ("reason", "message") if name in status}
        self.record.rejected = not found
        self.record.set(containers=found, over=True, started_at=self._start_time(), **said)
        if live := await self._running_pod():
            for run in live.containers.values():
                await self._means.runtime.stop_container(run, self._means.settings.least_grace)
        self.over.set()

    async def _clean_up(self) -> None:
        if live := self._runner.prepared_pod or self._found:
            await self._means.runtime.tear_down_pod(live)
        await self._means.volumes.unmount_all(self.record.uid)

    async def _delete_pod(self) -> None:
        """Sends the final DELETE until the pod is gone.

        The API server keeps a pod with finalizers, and after a restore of etcd has one again that was gone.
        """
        if not self._gone.is_set():
            await wait_first(self.record.writer.wait_until_written(), self._gone.wait())
        while not self._gone.is_set():
            await wait_first(self._retry_until_done(self._ask_for_deletion), self._gone.wait())
            await wait_first(self._gone.wait(), self._means.clock.sleep(FINAL_DELETE_PERIOD_SECONDS))

    async def _ask_for_deletion(self) -> None:
        """Retries after a conflict. If another pod has taken the name, the watch reports that this one is gone."""
        metadata = self.record.api_pod["metadata"]
        try:
            await self._means.client.delete(
                PODS, metadata["name"], namespace=metadata["namespace"], grace=0, uid=metadata["uid"]
            )
        except NotFound:
            if self.is_static:
                self._gone.set()

    async def _forget_pod(self) -> None:
        await self._means.runtime.remove_pod(self.record.uid)

    async def _retry_until_done(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                return await work()
            except LastcallError as error:
                if str(error) != self._told:
                    self._told = str(error)
                    metadata = self.record.pod["metadata"]
                    log.warning("pod %s/%s: %s; trying again", metadata["namespace"], metadata["name"], error)
            await self._means.clock.sleep(self._means.settings.retry)
