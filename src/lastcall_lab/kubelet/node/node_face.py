"""The node's side of an orderly shutdown: what the agent reports, and what other components see of it."""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from lastcall import names
from lastcall.aio import timeout
from lastcall.errors import LastcallError, Unavailable
from lastcall.graceful.agent import AgentStatus
from lastcall.graceful.cluster.settle_time import SettleTime
from lastcall.graceful.cluster.traffic_wait import ANSWER_SECONDS, TrafficWait
from lastcall.graceful.state_machine import AgentState
from lastcall.model.pods import ObjectMetadata, Pod
from lastcall.model.shutdown import JournalEvent, PodEnded, PodOutcome, PodStarted, ShutdownRecord
from lastcall.ports.cluster import PodEndpoints
from lastcall.ports.node import ApplicationReadiness, Clock, RunningPod
from lastcall_lab.kubelet.node.guarded_shutdown import GuardedShutdown
from lastcall_lab.kubelet.node.kubelet import LabKubelet
from lastcall_lab.kubelet.pod.pod_terminator import TerminationOrder

FIRST_SECONDS = 0.25
"""The maximum seconds that the first SIGTERM waits for the node's status write."""

WRITE_SECONDS = 2.0
"""Seconds for a pod's last status before the shutdown continues without it; the kubelet keeps retrying."""

_LOOK = 0.02

log = logging.getLogger(__name__)

ORDER = TerminationOrder(
    grace=0.0,
    reason=names.TERMINATED_REASON,
    message=names.TERMINATED_MESSAGE,
    conditions=(
        {
            "type": names.DISRUPTION_TARGET,
            "status": "True",
            "reason": names.TERMINATION_BY_KUBELET,
            "message": names.TERMINATED_MESSAGE,
        },
    ),
)
"""The status of a pod ended by the node shutdown (``pkg/kubelet/nodeshutdown``)."""


class ServiceTraffic(NamedTuple):
    """How the agent waits until Services send a pod no more traffic: ``limit`` seconds at most."""

    endpoints: PodEndpoints
    settle: SettleTime
    wait: TrafficWait
    limit: float


class KubeletNodeFace:
    """``ports.NodeFace`` of a lab node: the agent ends the pods in the runtime, the kubelet reports them.

    With ``traffic``, a pod becomes not ready before it ends, and its SIGTERM waits until no Service sends it traffic;
    without it, a pod stays in its Services until it has ended, as with the kubelet's own shutdown. From ``refuse_pods``
    until ``mark_ready`` the kubelet does not touch the pods.
    """

    def __init__(self, kubelet: LabKubelet, clock: Clock, traffic: ServiceTraffic | None = None) -> None:
        self._kubelet = kubelet
        self._clock = clock
        self._traffic = traffic
        self._guarded = GuardedShutdown(kubelet, clock)
        self._listed_by = 0.0
        self._begun: dict[str, Pod] = {}

    def hold_pods(self) -> None:
        """Prevents starts until the agent has checked for a shutdown in progress: see ``first_look``."""
        self._kubelet.frozen = True

    def first_look(self, status: AgentStatus) -> None:
        """Called by the agent after each round. If no shutdown is in progress, the kubelet controls its pods.

        Not while the agent cannot ask logind whether the shutdown of an earlier process goes on: beside a kubelet, that
        one is still stopped then.
        """
        is_shutting_down = status.state is AgentState.ENDING or status.has_unfinished_shutdown
        if not is_shutting_down and not self._kubelet.going_down and self._kubelet.frozen:
            self._kubelet.release_pods()

    def refuse_pods(self) -> None:
        """Rejects new pods from now on, whatever they tolerate, and starts no more containers."""
        self._kubelet.going_down = self._kubelet.frozen = True

    async def begin_shutdown(self, deadline: float) -> None:
        """Writes Ready=False, and the mark for the guard. LastcallError if the first write fails; both are repeated."""
        self.refuse_pods()
        self._guarded.begin(deadline)
        if not self._kubelet.told_shutdown:
            self._kubelet.told_shutdown = True
            said = "Shutdown manager detected shutdown event"
            self._kubelet.events.record_event(self._kubelet.node.known, "Normal", names.SHUTDOWN_EVENT, said)
        try:
            async with timeout(FIRST_SECONDS):
                await self._kubelet.node.write_status()
                await self._guarded.mark_node()
        except TimeoutError as error:
            self._kubelet.node.request_status_write()
            message = f"Ready=False is not written after {FIRST_SECONDS:g} s; it is tried further"
            raise Unavailable(message) from error
        except LastcallError:
            self._kubelet.node.request_status_write()
            raise

    def expect_pods(self, namespaces: Iterable[str]) -> None:
        """Begins to read the EndpointSlices of these namespaces."""
        self._listed_by = self._clock.boottime() + ANSWER_SECONDS
        if self._traffic:
            self._traffic.endpoints.start(namespaces)

    async def wait_until_prepared(self, live: RunningPod, until: Callable[[], float]) -> ApplicationReadiness | None:
        """Waits for the pod's condition, which the guard writes: it prepares from the Node's mark on."""
        return await self._guarded.wait_until_ready(live.pod.metadata.uid, until)

    async def begin_pod(self, live: RunningPod, grace: float, until: float) -> bool:
        """Makes the pod not ready, then waits until no Service sends it traffic. False: what is begun is finished."""
        worker = self._kubelet.pods.worker_of(live.pod)
        if not self._traffic or not worker:
            return False
        self._kubelet.withdrawn.add(live.pod.metadata.uid)
        worker.record.notify_change()
        since = self._clock.boottime()
        end = min(until, since + self._traffic.limit)
        if await self._traffic.wait.receives_traffic(live.pod, by=min(self._listed_by, end)):
            await self._traffic.wait.wait_until_withdrawn(
                live.pod, worker.record.writer.wait_until_written, since=since, until=end
            )
        return False

    async def report_pod_ended(self, live: RunningPod, exit_codes: dict[str, int | None]) -> bool:
        """Writes Failed/Terminated with DisruptionTarget, whatever the exit codes: the shutdown interrupted the pod.

        Then unmounts its volumes and updates the Node; otherwise they stay attached until the machine is back
        (``pkg/kubelet/nodeshutdown`` waits for them too). LastcallError if the write fails now; True when everything is
        done.
        """
        pods = self._kubelet.pods
        pods.record_end(live.pod, ORDER, exit_codes)
        async with timeout(WRITE_SECONDS):
            while not (worker := pods.worker_of(live.pod)) and not pods.has_synced:
                await self._clock.sleep(_LOOK)
            if worker is None:
                log.warning("pod %s has ended, but the kubelet does not know it", live.pod.key)
                return False
            await worker.over.wait()
            await worker.record.writer.write()
            await worker.cleaned.wait()
            await self._kubelet.node.write_status()
            return True

    async def report_finished(self) -> None:
        """Nothing to do: everything is written when a pod ends."""

    def hear(self, event: JournalEvent) -> None:
        """Receives the agent's records, including those of an earlier agent: pods it began to end, and ended pods.

        Pods that the agent only observes stay under the kubelet's control.
        """
        if isinstance(event, PodStarted):
            self._kubelet.leaving.add(event.uid)
            self._begun[event.uid] = Pod(ObjectMetadata(name=event.name, namespace=event.namespace, uid=event.uid))
        elif isinstance(event, PodEnded) and event.outcome is PodOutcome.OBSERVED:
            self._kubelet.leaving.discard(event.uid)
        elif isinstance(event, PodEnded) and event.outcome is not PodOutcome.UNCONFIRMED and event.uid in self._begun:
            self._kubelet.pods.record_end(self._begun[event.uid], ORDER, {})

    def take_notes(self) -> Sequence[str]:
        """There are none."""
        return ()

    async def clean_up(self, last: ShutdownRecord | None) -> None:
        """Removes the mark for the guard that an earlier boot has left; the kubelet reports its own node."""
        await self._guarded.remove_old_mark()

    async def mark_ready(self) -> None:
        """Marks the node ready again. Ended or rejected pods stay so, as with the real kubelet."""
        if self._traffic:
            await self._traffic.endpoints.stop()
            await self._traffic.settle.stop()
        self._kubelet.withdrawn.clear()
        self._kubelet.leaving.clear()  # those whose end has begun are the kubelet's too, which starts them again
        self._kubelet.going_down = False
        self._kubelet.release_pods()
        if self._kubelet.told_shutdown:
            self._kubelet.told_shutdown = False
            said = "Shutdown manager detected shutdown cancellation"
            self._kubelet.events.record_event(self._kubelet.node.known, "Normal", names.SHUTDOWN_EVENT, said)
        await self._kubelet.node.write_status()
        await self._guarded.unmark_node()
