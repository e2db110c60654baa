"""The NodeFace of an agent beside a kubelet: while the kubelet is stopped, the agent writes what the cluster needs.

The calls to the API server run beside the pods' termination. A SIGTERM waits only for the withdrawal of a pod that
Services may select, and no step waits for a server that does not answer within ``ANSWER_SECONDS``.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from lastcall.aio import OrderedTaskGroup, cancel_and_wait, wait_any, wait_first
from lastcall.errors import LastcallError
from lastcall.graceful.cluster import pod_changes
from lastcall.graceful.cluster.after_boot import AfterBoot
from lastcall.graceful.cluster.application_state import ApplicationState
from lastcall.graceful.cluster.call_limit import CallLimit
from lastcall.graceful.cluster.node_announcement import NodeAnnouncement
from lastcall.graceful.cluster.pod_changes import ObjectFate
from lastcall.graceful.cluster.pod_departure import PodDeparture
from lastcall.graceful.cluster.pod_volumes import PodVolumes
from lastcall.graceful.cluster.server_contact import ServerContact
from lastcall.graceful.cluster.settle_time import SettleTime
from lastcall.graceful.cluster.traffic_wait import ANSWER_SECONDS, TrafficWait
from lastcall.model.node_shutdown_object import HANDED_OVER
from lastcall.model.pods import Pod
from lastcall.model.shutdown import ShutdownRecord
from lastcall.model.traffic import TrafficSettings, may_be_selected
from lastcall.ports.cluster import NodeObjects, PodEndpoints, PodOwners, ProxyLatency
from lastcall.ports.node import ApplicationReadiness, Clock, KubeletFace, RunningPod
from lastcall.ports.volumes import NodeVolumes

LAST_SECONDS = 2.0
"""How long the machine waits at the end for writes under way, in seconds, while the server answers."""

AFTER_SIGTERM_SECONDS, SIGTERM_SECONDS, SIGTERMS_SECONDS = 0.02, 0.008, 0.5
"""After how many seconds the writes of a pod begin whose SIGTERM waits for none of them: at least, for each pod that is under
way, and at most. A runtime sends a hundred SIGTERMs a second on two cores, and the writes would take the CPU from them."""

STOP_FIRST_SECONDS, SIGTERMS_FIRST_SECONDS = 0.012, 0.005
"""How long the Node's announcement leaves the CPU to the stop of the kubelet, at most, and then to the first SIGTERMs."""

STOP_SECONDS = 2.0
"""How long the writes to pods wait for the kubelet's end, in seconds."""

log = logging.getLogger(__name__)


class ClusterNodeFace:
    """``ports.node.NodeFace`` that stops the kubelet through ``kubelet`` and writes the Node and the pods itself.

    ``traffic`` is how long a SIGTERM waits for its pod to leave the EndpointSlices that ``endpoints`` reads, and the
    proxies of ``proxies``. ``observe_withdrawal`` gets the seconds that each pod took to leave the slices.
    ``find_pod`` returns what is known of the pod with a uid.
    """

    def __init__(
        self,
        kubelet: KubeletFace,
        objects: NodeObjects,
        endpoints: PodEndpoints,
        proxies: ProxyLatency,
        owners: PodOwners,
        *,
        volumes: NodeVolumes,
        find_pod: Callable[[str], Pod | None],
        boot_id: str,
        traffic: TrafficSettings,
        clock: Clock,
        observe_withdrawal: Callable[[float], None],
    ) -> None:
        self._kubelet = kubelet
        self._objects = objects
        self._endpoints = endpoints
        self._clock = clock
        self._notes: list[str] = []
        self._contact = ServerContact(clock, self._add_note)
        self._announcement = NodeAnnouncement(objects, boot_id=boot_id, clock=clock, contact=self._contact)
        self._limit = traffic.limit_seconds
        self._settle = SettleTime(traffic.settle_seconds, proxies)
        self._traffic = TrafficWait(endpoints, settle=self._settle, observe=observe_withdrawal, clock=clock)
        self._volumes = PodVolumes(
            volumes, objects, clock=clock, contact=self._contact, note=self._add_note, start_write=self._start_write
        )
        self._after_boot = AfterBoot(objects, owners, self._announcement, clock=clock)
        self._find_pod = find_pod
        self._applications = ApplicationState(find_pod, clock)
        self._work = OrderedTaskGroup()
        self._departures: dict[str, PodDeparture] = {}
        self._ends: dict[str, asyncio.Event] = {}
        """Set when the containers of a pod with a departure have ended."""
        self._writes: list[tuple[str, asyncio.Task[None]]] = []
        self._calls = CallLimit(clock)
        self._announcing: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._stopped_by = 0.0
        self._cleaning: asyncio.Task[None] | None = None
        self._is_cancelled = False
        self._listed_by: dict[str, float] = {}
        """Until when the slices of each namespace are waited for."""

    def refuse_pods(self) -> None:
        """Calls the kubelet's; a stopped kubelet starts no pod: new ones stay Pending until the next boot."""
        self._kubelet.refuse_pods()

    async def begin_shutdown(self, deadline: float) -> None:
        """Stops the kubelet; at the same time writes NotReady, the conditions and the cordon, and repeats them.

        Returns when the kubelet has its SIGTERM: it has no time to react to a container's end any more.
        """
        self._is_cancelled = False
        await self._stop_clean_up()
        self._volumes.until = deadline
        stopping = self._stopping = self._work.start(self._stop_kubelet(deadline), "stop the kubelet")
        self._stopped_by = self._clock.boottime() + STOP_SECONDS
        if self._announcing is None:
            self._announcing = self._work.start(self._announce(stopping, deadline), "announce the shutdown")
            self._work.start(self._correct_kubelet(), "correct what a kubelet writes")
        await wait_first(wait_any(stopping), self._kubelet.wait_until_ending())
        if stopping.done() and not stopping.cancelled():
            stopping.result()

    def expect_pods(self, namespaces: Iterable[str]) -> None:
        """Begins to read the EndpointSlices of these namespaces."""
        for namespace in (expected := set(namespaces)) - self._listed_by.keys():
            self._listed_by[namespace] = self._clock.boottime() + ANSWER_SECONDS
        if self._limit and self._objects.is_connected():
            self._endpoints.start(expected)

    async def wait_until_prepared(self, live: RunningPod, until: Callable[[], float]) -> ApplicationReadiness | None:
        """Waits for the pod's condition, which the guard writes: it prepares from the Node's mark on."""
        return await self._applications.wait_until_ready(live.pod.metadata.uid, until)

    async def begin_pod(self, live: RunningPod, grace: float, until: float) -> bool:
        """Deletes the pod's object or makes the pod not ready, then waits until no Service sends it traffic.

        A pod that runs a CSI driver also waits until the volumes of ended pods are unmounted. True unless the server has
        accepted the deletion, or may have.
        """
        if self._is_cancelled:
            return True
        self._volumes.expect_end(live.pod)
        since = self._clock.boottime()
        end = min(until, since + self._limit)
        receives = await self._receives_traffic(live, end)
        departure = self._find_departure(live.pod, grace, is_urgent=receives is not False)
        if departure is None:
            return True
        if receives:
            await self._traffic.wait_until_withdrawn(
                live.pod, departure.wait_until_begun, since=since, until=end, stopped=self._wait_until_stopped
            )
        if pod_changes.serves_volumes(live.pod):
            await self._volumes.wait_for_users(until)
        return not (departure.is_deleted or departure.is_being_deleted)

    async def report_pod_ended(self, live: RunningPod, exit_codes: dict[str, int | None]) -> bool:
        """Begins to write the pod's last status, and unmounts its volumes if its object is deleted.

        Returns when they are unmounted or given up: True if that is proved, and no kubelet can start the pod again.
        After a cancel nothing is done: the pod is the kubelet's, which may run it again already.
        """
        known = await self._kubelet.report_pod_ended(live, exit_codes)
        uid = live.pod.metadata.uid
        if end := self._ends.get(uid):
            end.set()
        pod = live.pod if uid in self._departures else self._find_pod(uid) or live.pod
        if self._is_cancelled or pod_changes.object_fate(pod) is not ObjectFate.DELETED:
            return known
        unmounting = self._work.start(self._volumes.unmount(pod), f"unmount volumes of {pod.key}")
        departure = self._departures.get(uid) or self._start_departure(pod, 1.0)
        self._start_write(pod.key, departure.finish(exit_codes, unmounting))
        await wait_any(unmounting)
        return known or (departure.is_deleted and not unmounting.cancelled() and unmounting.result().is_proved)

    async def report_finished(self) -> None:
        """Waits for the writes under way: two seconds at most, and only while the server answers."""
        await self._kubelet.report_finished()
        end = self._clock.boottime() + LAST_SECONDS if self._objects.is_connected() else 0.0
        while (pods := self._pods_being_written()) and (left := end - self._clock.boottime()) > 0:
            if await wait_first(self._contact.next_answer(), self._clock.sleep(min(ANSWER_SECONDS, left))):
                break
        if pods:
            self._add_note(f"the last writes are not confirmed for {', '.join(pods)}")
        self._volumes.note_held_up()

    def take_notes(self) -> Sequence[str]:
        """The notes since the last call."""
        notes, self._notes = [*self._notes, *self._kubelet.take_notes()], []
        return notes

    async def mark_ready(self) -> None:
        """Starts the kubelet again and undoes what the agent changed of the Node. LastcallError if that fails.

        The kubelet finishes the deletions that have begun; a note lists their pods.
        """
        await self._hand_over()
        await self._kubelet.mark_ready()
        await self._announcement.undo_cancelled()

    async def clean_up(self, last: ShutdownRecord | None) -> None:
        """Undoes in the background what a shutdown before this boot changed and left, as often as it takes."""
        await self._kubelet.clean_up(last)
        if self._cleaning is None and self._announcing is None:
            self._cleaning = asyncio.create_task(self._after_boot.run(last), name="clean up after the last shutdown")

    async def close(self) -> None:
        """Ends all calls under way."""
        await self._stop_clean_up()
        await self._stop_writing()

    # ------------------------------------------------------------------------------------------------------------------

    def _add_note(self, text: str) -> None:
        self._notes.append(text)

    async def _stop_kubelet(self, deadline: float) -> None:
        await self._kubelet.begin_shutdown(deadline)
        self._announcement.look_again()

    async def _announce(self, stopping: asyncio.Task[None], deadline: float) -> None:
        """The SIGTERMs that wait for the kubelet's are sent first, unless that one is late."""
        ending = self._kubelet.wait_until_ending()
        if await wait_first(self._clock.sleep(STOP_FIRST_SECONDS), wait_any(stopping), ending):
            await self._clock.sleep(SIGTERMS_FIRST_SECONDS)
        await self._announcement.keep(deadline)

    async def _correct_kubelet(self) -> None:
        """Repeats what a kubelet that ran during the shutdown has written its own status over."""
        while True:
            await self._kubelet.wait_until_stopped_again()
            self._announcement.look_again()
            for departure in self._departures.values():
                self._start_write(departure.key, departure.repeat())

    async def _receives_traffic(self, live: RunningPod, end: float) -> bool | None:
        """Whether Services send the pod traffic for whose end SIGTERM waits; None if the server has not said so in time.

        Not if no Service can select the pod; the labels of a pod that only the runtime knows may be old ones.
        """
        selectable = may_be_selected(live.pod) or not live.is_spec_known
        if not (selectable and self._limit > 0 and self._objects.is_connected()):
            return False
        listed_by = self._listed_by.get(live.pod.metadata.namespace, 0.0)
        return await self._traffic.receives_traffic(live.pod, by=min(listed_by, end))

    async def _wait_until_stopped(self) -> None:
        """A kubelet that is about to end may still see a deletion, and would end the pod itself, without any wait."""
        left = self._stopped_by - self._clock.boottime()
        if self._stopping and not self._stopping.done() and left > 0:
            await wait_first(wait_any(self._stopping), self._clock.sleep(left))

    async def _begin_departure(
        self, departure: PodDeparture, grace: float, *, end: asyncio.Event, is_urgent: bool
    ) -> None:
        """First the kubelet, and then the Node: a replacement must not be scheduled to it again."""
        if not is_urgent:
            await self._leave_cpu_to_sigterms(end)
        await self._wait_until_stopped()
        if self._announcing:
            await wait_first(self._announcement.wait_until_tried(), self._clock.sleep(ANSWER_SECONDS))
        await departure.begin(grace)

    async def _leave_cpu_to_sigterms(self, end: asyncio.Event) -> None:
        """Until the pod's ``end`` at most. How many SIGTERMs there are is known when all pods of the phase have begun."""
        await self._clock.sleep(AFTER_SIGTERM_SECONDS)
        under_way = sum(not one.is_set() for one in self._ends.values())
        left = min(SIGTERM_SECONDS * under_way, SIGTERMS_SECONDS) - AFTER_SIGTERM_SECONDS
        await wait_first(end.wait(), self._clock.sleep(left))

    def _find_departure(self, pod: Pod, grace: float, *, is_urgent: bool) -> PodDeparture | None:
        """The pod's writes, which begin now unless they have; None after a cancel."""
        if self._is_cancelled:
            return None
        return self._departures.get(pod.metadata.uid) or self._start_departure(pod, grace, is_urgent=is_urgent)

    def _start_departure(self, pod: Pod, grace: float, *, is_urgent: bool = True) -> PodDeparture:
        departure = self._departures[pod.metadata.uid] = PodDeparture(
            pod,
            self._objects,
            calls=self._calls,
            clock=self._clock,
            note=self._add_note,
            contact=self._contact,
        )
        end = self._ends[pod.metadata.uid] = asyncio.Event()
        self._start_write(pod.key, self._begin_departure(departure, grace, end=end, is_urgent=is_urgent))
        return departure

    async def _hand_over(self) -> None:
        """Ends the writes; the restarted kubelet finishes what they have begun."""
        if self._is_cancelled:
            return
        self._is_cancelled = True
        pods = sorted(one.key for one in self._departures.values() if one.is_being_deleted)
        is_known = bool(self._departures) or self._announcing is not None
        await self._stop_writing()
        pods = pods if is_known else await self._list_terminating_pods()
        if pods:
            self._add_note(f"{HANDED_OVER}: {', '.join(pods)}")

    async def _list_terminating_pods(self) -> list[str]:
        """The pods whose deletion is under way, for an agent that started after the cancel; none if that is not known."""
        try:
            found = await self._objects.list_pods()
        except LastcallError as error:
            log.warning("which pods are handed over to the kubelet is not known: %s", error)
            return []
        return sorted(pod.key for pod in found if pod.metadata.deletion_timestamp)

    def _start_write(self, key: str, work: Coroutine[Any, Any, None]) -> None:
        task = self._work.start(work, f"write {key}")
        task.add_done_callback(lambda _: self._contact.wake_waiters())
        self._writes.append((key, task))

    def _pods_being_written(self) -> list[str]:
        return [key for key, task in self._writes if not task.done()]

    async def _stop_writing(self) -> None:
        await self._work.cancel()
        self._work = OrderedTaskGroup()
        self._announcing = self._stopping = None
        self._departures.clear()
        self._ends.clear()
        self._writes.clear()
        self._listed_by.clear()
        await self._volumes.stop()
        await self._endpoints.stop()
        await self._settle.stop()

    async def _stop_clean_up(self) -> None:
        if self._cleaning:
            await cancel_and_wait(self._cleaning)
            self._cleaning = None
