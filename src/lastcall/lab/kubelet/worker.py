"""One pod's life on its node, from its admission until nothing of it is left (``pkg/kubelet/pod_workers.go``)."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from lastcall.adapters.kube.resources import PODS, Object
from lastcall.aio import first
from lastcall.errors import LastcallError, NotFound
from lastcall.lab.apiserver.meta import seconds
from lastcall.lab.kubelet import pod_status
from lastcall.lab.kubelet.ending import Ending, Order, grace
from lastcall.lab.kubelet.facts import recalled
from lastcall.lab.kubelet.flag import Flag
from lastcall.lab.kubelet.means import Means
from lastcall.lab.kubelet.record import Record
from lastcall.lab.kubelet.refreshing import Refresher
from lastcall.lab.kubelet.running import Runner
from lastcall.model.pods import FINISHED
from lastcall.ports import LivePod

log = logging.getLogger(__name__)


class PodWorker:
    """``live`` is the pod as an earlier life of the kubelet has left it running."""

    def __init__(self, pod: Object, means: Means, *, live: LivePod | None = None) -> None:
        self.record = Record(pod, means)
        self.over = Flag()
        """Set when no container of it runs any more, nor ever will."""
        self.cleaned = Flag()
        """Set when its volumes are unmounted too."""
        self._means = means
        self._found = live
        self._ran = live is not None or any(one.run or one.last for one in recalled(pod, {}, 0.0).values())
        self._runner = Runner(self.record, means)
        self._refresher = Refresher(self.record, means, mounted=lambda: self._runner.prepared is not None)
        self._order: Order | None = None
        self._ending: Ending | None = None
        self._end_wanted = Flag()
        self._ended_by_others = Flag()
        self._codes: dict[str, int | None] = {}
        self._deleted = Flag()
        self._gone = Flag()
        self._told = ""

    @property
    def place(self) -> tuple[str, str]:
        """The pod's namespace and name."""
        return self.record.pod["metadata"]["namespace"], self.record.pod["metadata"]["name"]

    # -- what others tell ----------------------------------------------------------------------------------------------

    def update(self, pod: Object) -> None:
        """The pod as the API server has it."""
        self.record.learn(pod)
        self._heed_deletion()  # that it is deleted can have been known before: by the answer to a status
        self._refresher.look()

    def gone(self, pod: Object) -> None:
        """It is not there any more, whoever has deleted it."""
        self.record.pod = pod
        self.record.writer.stop()
        self._gone.set()
        self._deleted.set()
        self.end(Order(grace(pod, self._means.settings)))

    def _heed_deletion(self) -> None:
        if self.record.deleted:
            self._deleted.set()
            self.end(Order(grace(self.record.pod, self._means.settings)))

    def end(self, order: Order) -> None:
        """It is to end; a second order can only shorten the time."""
        if self._order is None:
            self._order = order
        else:
            self._order = replace(self._order, grace=min(order.grace, self._order.grace))
        if self._ending:
            self._ending.shorten(order.grace)
        self._end_wanted.set()

    def ended_by(self, order: Order, codes: dict[str, int | None]) -> None:
        """It was ended by somebody else: it has failed, whatever its exit codes are."""
        self._order = order
        self._codes = codes
        self._ended_by_others.set()
        self.record.moved.set()

    def ended(self, name: str, code: int | None) -> None:
        """A container's run is over."""
        self._runner.ended(name, code)

    def live(self) -> LivePod:
        """The pod with the containers that run; Unavailable before it has been started."""
        return self._runner.live()

    # -- life ----------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Returns when the pod is gone from the API server and from this node."""
        try:
            await first(self._through(), self.record.writer.run())
        finally:
            await self._runner.close()

    async def _through(self) -> None:
        self._heed_deletion()
        if (self.record.pod.get("status") or {}).get("phase") in FINISHED:
            await self._until_it_works(self._kill_leftovers)
        elif not self._ran and (refusal := self._means.refusal()):
            self._reject(*refusal)
        else:
            await self._live()
        await self._runner.close()
        await self._until_it_works(self._clean_up)
        self.cleaned.set()
        await self._deleted.wait()
        await self._delete()
        await self._until_it_works(self._forget)

    async def _live(self) -> None:
        begun, limit = self._begun(), self.record.pod["spec"].get("activeDeadlineSeconds")
        self.record.set(started_at=begun, **self._remembered())
        waits: list[Awaitable[Any]] = [self._run(), self._end_wanted.wait(), self._ended_by_others.wait()]
        if limit is not None:
            waits.append(self._means.clock.sleep(begun + limit - self._means.clock.wall()))
        if await first(*waits) == len(waits) - 1 and limit is not None:
            self._expire()
        await self._until_it_is_ours()
        if not self._ended_by_others.is_set():
            await self._until_it_works(self._end)
        await self._until_it_is_ours()
        if self._ended_by_others.is_set():
            await self._runner.ended_by(self._codes)
            self.record.set(phase="Failed")
        self._close()

    async def _until_it_is_ours(self) -> None:
        """While somebody else ends the pods of this node, it is up to him to end this one too."""
        while self._means.held(self.record.uid) and not self._ended_by_others.is_set():
            self.record.moved.clear()
            await self.record.moved.wait()

    def _remembered(self) -> dict[str, Any]:
        """What an earlier life has said stays said until more is known."""
        if not self._ran:
            return {}
        running = self._found.containers if self._found else {}
        found = recalled(self.record.pod, running, self._means.clock.wall())
        return {"containers": found, "address": (self.record.pod.get("status") or {}).get("podIP", "")}

    def _begun(self) -> float:
        text = (self.record.pod.get("status") or {}).get("startTime")
        return seconds(text) if text else self._means.clock.wall()

    async def _run(self) -> None:
        if self._ran:
            await self._until_it_is_ours()  # what somebody else ends is not made again
            await self._until_it_works(self._runner.recall)
        if self._refresher.needed:
            await first(self._runner.run(), self._refresher.run())
        else:
            await self._runner.run()

    def _expire(self) -> None:
        """``activeDeadlineSeconds`` are over."""
        why = "Pod was active on the node longer than the specified deadline"
        self.record.tell("Normal", "DeadlineExceeded", why)
        self.record.set(phase="Failed")
        self._order = Order(grace(self.record.pod, self._means.settings), "DeadlineExceeded", why)

    def _reject(self, reason: str, message: str) -> None:
        self.record.rejected = True
        self.record.tell("Warning", reason, message)
        said, now = f"Pod was rejected: {message}", self._means.clock.wall()
        self.record.set(reason=reason, message=said, over=True, started_at=now)
        self.over.set()

    # -- end -----------------------------------------------------------------------------------------------------------

    async def _end(self) -> None:
        """Ends what runs. Unavailable if the runtime is away: to be tried again."""
        if self._order is None:
            self._order = Order(grace(self.record.pod, self._means.settings))
        if live := await self._running():
            for name in live.containers:
                self.record.tell("Normal", "Killing", f"Stopping container {name}", name)
            self._ending = Ending(self.record.pod, live, self._order, self._means)
            await self._ending.run()
            for name, code in self._ending.codes.items():
                self._runner.ended(name, code)

    async def _running(self) -> LivePod | None:
        """What the runtime says: a start may have been broken off."""
        for live in await self._means.runtime.refresh():
            if live.pod.metadata.uid == self.record.uid:
                return live
        return None

    def _close(self) -> None:
        """Its phase is final from now on."""
        order = self._order or Order(0.0)
        self.record.set(over=True, conditions=tuple(order.conditions))
        if order.reason and pod_status.phase(self.record.pod, self.record.facts) == "Failed":
            self.record.set(reason=order.reason, message=order.message)
        self.over.set()

    async def _kill_leftovers(self) -> None:
        """It was over before; nothing of it should run."""
        found = recalled(self.record.pod, {}, self._means.clock.wall())
        status = self.record.pod["status"]
        said = {name: status[name] for name in ("reason", "message") if name in status}
        self.record.rejected = not found
        self.record.set(containers=found, over=True, started_at=self._begun(), **said)
        if live := await self._running():
            for run in live.containers.values():
                await self._means.runtime.stop(run, self._means.settings.least_grace)
        self.over.set()

    async def _clean_up(self) -> None:
        if live := self._runner.prepared or self._found:
            await self._means.runtime.finish(live)
        await self._means.volumes.unmount_all(self.record.uid)

    async def _delete(self) -> None:
        """The last word to the API server: it forgets the pod, unless finalizers keep it."""
        if not self._gone.is_set():
            await first(self.record.writer.settled(), self._gone.wait())
            await first(self._until_it_works(self._ask_for_deletion), self._gone.wait())
            await self._gone.wait()

    async def _ask_for_deletion(self) -> None:
        """A conflict is tried again: if it means that another pod has its name, the watch will tell that it is gone."""
        metadata = self.record.pod["metadata"]
        try:
            await self._means.client.delete(
                PODS, metadata["name"], namespace=metadata["namespace"], grace=0, uid=metadata["uid"]
            )
        except NotFound:
            return

    async def _forget(self) -> None:
        await self._means.runtime.remove(self.record.uid)

    async def _until_it_works(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                return await work()
            except LastcallError as error:
                if str(error) != self._told:
                    self._told = str(error)
                    metadata = self.record.pod["metadata"]
                    log.warning("pod %s/%s: %s; trying again", metadata["namespace"], metadata["name"], error)
            await self._means.clock.sleep(self._means.settings.retry)
