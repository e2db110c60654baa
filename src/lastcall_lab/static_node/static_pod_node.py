"""A minimal kubelet: runs the pods of a directory of manifests, and writes node and pod status.

It provides pods without a cluster. The agent ends them through the runtime, as it would beside a real kubelet, and
reports to this node through ``ports.node.NodeFace``.
"""

import datetime as dt
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from lastcall import names
from lastcall.adapters.pods.static_pods import read_directory
from lastcall.aio import OrderedTaskGroup, wait_first
from lastcall.errors import LastcallError, Unavailable
from lastcall.model import decoding
from lastcall.model.pods import FINISHED, Pod
from lastcall.model.shutdown import ShutdownRecord
from lastcall.ports.node import ApplicationReadiness, Clock, PodRuntime, PodStarter, RunningPod
from lastcall_lab.static_node.status_files import StatusFiles

READ_SECONDS = 1.0
"""Seconds between two reads of the directory of manifests."""

log = logging.getLogger(__name__)


class StaticPodRuntime(PodRuntime, PodStarter, Protocol):
    """Starts and ends pods."""


class StaticPodNode:
    """One node. ``pods`` has the newest status of every pod by ``namespace/name``."""

    def __init__(
        self, name: str, *, manifests: Path, runtime: StaticPodRuntime, status: StatusFiles, clock: Clock
    ) -> None:
        self.name = name
        self._manifests = manifests
        self._runtime = runtime
        self._status = status
        self._clock = clock
        self._refusing = False
        self._codes: dict[str, dict[str, int | None]] = {}
        self._known: dict[str, Pod] = {}
        self._told: dict[str, str] = {}
        self.pods: dict[str, dict[str, Any]] = {}

    async def run(self) -> None:
        """Starts new pods of the directory and records ends; runs until cancelled.

        Errors of the runtime, the directory or the disk are logged, and the work is retried.
        """
        await self._retry_until_done(self._take_over)
        await wait_first(self._watch_manifests(), self._watch_ends())

    # -- ports.NodeFace ------------------------------------------------------------------------------------------------

    def refuse_pods(self) -> None:
        """Refuses new pods from now on, whatever they tolerate."""
        self._refusing = True

    async def begin_shutdown(self, deadline: float) -> None:
        """Sets Ready=False with the kubelet's reason and message."""
        self._refusing = True
        self._write_node(ready=False)

    async def mark_ready(self) -> None:
        """Sets Ready=True again; refused pods stay as they are, as with a kubelet."""
        self._refusing = False
        for pod in self._known.values():
            self._settle_phase(pod)
        self._write_node(ready=True)

    def expect_pods(self, namespaces: Iterable[str]) -> None:
        """Does nothing."""

    async def wait_until_prepared(self, live: RunningPod, until: Callable[[], float]) -> ApplicationReadiness | None:
        """Returns None: no guard watches these pods."""
        return None

    async def begin_pod(self, live: RunningPod, grace: float, until: float) -> bool:
        """Returns False at once: no Service sends traffic to these pods."""
        return False

    def take_notes(self) -> Sequence[str]:
        """There are none."""
        return ()

    async def clean_up(self, last: ShutdownRecord | None) -> None:
        """Does nothing: each run writes the whole node status."""

    async def report_pod_ended(self, live: RunningPod, exit_codes: dict[str, int | None]) -> bool:
        """Sets Failed/Terminated with DisruptionTarget (pkg/kubelet/nodeshutdown), whatever its exit codes.

        The pod still ran when its termination began, so it had not succeeded; interrupted work must not count as done.
        """
        pod = live.pod
        self._codes.setdefault(pod.metadata.uid, {}).update(exit_codes)
        written = self._status.read_pod(pod.metadata.namespace, pod.metadata.name)
        if written and not pod.spec.containers:
            pod = decoding.convert(written, Pod, pod.key)  # it ended while no node ran: only its name is known
        target = {
            "type": names.DISRUPTION_TARGET,
            "status": "True",
            "reason": names.TERMINATION_BY_KUBELET,
            "message": names.TERMINATED_MESSAGE,
            "lastTransitionTime": self._timestamp(),
        }
        self._write_pod(pod, "Failed", names.TERMINATED_REASON, names.TERMINATED_MESSAGE, conditions=[target])
        return False

    async def report_finished(self) -> None:
        """Does nothing: only the files report the shutdown."""

    # -- manifests -----------------------------------------------------------------------------------------------------

    async def _watch_manifests(self) -> None:
        while True:
            await self._retry_until_done(self._read_manifests)
            await self._clock.sleep(READ_SECONDS)

    async def _read_manifests(self) -> None:
        pods, errors = read_directory(self._manifests, self.name)
        for error in errors:
            self._log_once(error.source, error)
        starting = OrderedTaskGroup()
        for pod in pods:
            if pod.key not in self._known:
                self._known[pod.key] = pod
                starting.start(self._admit_pod(pod), f"start {pod.key}")
        await starting.join()

    async def _retry_until_done(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                return await work()
            except (OSError, Unavailable) as error:
                self._log_once("", error)
            await self._clock.sleep(READ_SECONDS)

    def _log_once(self, source: str, error: Exception) -> None:
        """Logs an error, once for each change."""
        if self._told.get(source) != str(error):
            self._told[source] = str(error)
            log.error("%s", error)

    async def _admit_pod(self, pod: Pod) -> None:
        before = self._status.read_pod(pod.metadata.namespace, pod.metadata.name)
        phase = before["status"]["phase"] if before and before["metadata"].get("uid") == pod.metadata.uid else ""
        if before and phase in FINISHED:
            self.pods[pod.key] = before
            return
        if self._refusing and phase == "Running":  # not new: an earlier run of this program started it
            log.info("%s has ended while no agent ran", pod.key)
            await self.report_pod_ended(RunningPod(pod=pod, containers={}), {})
            return
        if self._refusing:
            log.warning("%s is refused: %s", pod.key, names.REFUSED_MESSAGE)
            self._write_pod(pod, "Failed", names.REFUSED_REASON, names.REFUSED_MESSAGE)
            return
        self._write_pod(pod, "Pending")
        try:
            await self._runtime.start_pod(pod)
        except LastcallError as error:
            log.error("%s cannot be started: %s", pod.key, error)
            self._write_pod(pod, "Failed", "FailedToStart", str(error))
            return
        self._codes.setdefault(pod.metadata.uid, {})
        self._write_pod(pod, "Running")
        self._settle_phase(pod)

    async def _take_over(self) -> None:
        """Adopts the pods that an earlier run of this program started."""
        for live in await self._runtime.refresh_pods():
            self._known[live.pod.key] = live.pod
            self._codes.setdefault(live.pod.metadata.uid, {})
            self._write_pod(live.pod, "Running")
        self._write_node(ready=not self._refusing)

    async def _watch_ends(self) -> None:
        while True:
            uid, container, code = await self._runtime.next_ended()
            self._codes.setdefault(uid, {})[container] = code
            pod = next((pod for pod in self._known.values() if pod.metadata.uid == uid), None)
            if pod:
                try:
                    self._settle_phase(pod)
                except OSError as error:
                    self._log_once(pod.key, error)

    def _settle_phase(self, pod: Pod) -> None:
        """Sets Succeeded or Failed once every main container has ended by itself (it restarts none).

        Not during a shutdown: then the agent may be ending the pod, and calls ``report_pod_ended``.
        """
        if self._refusing or self.pods.get(pod.key, {}).get("status", {}).get("phase") != "Running":
            return
        codes = self._codes[pod.metadata.uid]
        ended = [codes[c.name] for c in pod.spec.containers if c.name in codes]
        if len(ended) == len(pod.spec.containers):
            self._write_pod(pod, "Failed" if any(ended) else "Succeeded")

    # -- status --------------------------------------------------------------------------------------------------------

    def _write_node(self, *, ready: bool) -> None:
        if ready:
            status, reason, message = "True", names.READY_REASON, names.READY_MESSAGE
        else:
            status, reason, message = "False", names.NOT_READY_REASON, names.NOT_READY_MESSAGE
        condition = {
            "type": names.READY,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": self._timestamp(),
            "lastTransitionTime": self._timestamp(),
        }
        self._status.write_node(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": self.name},
                "status": {"conditions": [condition]},
            }
        )

    def _write_pod(
        self, pod: Pod, phase: str, reason: str = "", message: str = "", conditions: Sequence[dict[str, Any]] = ()
    ) -> None:
        status: dict[str, Any] = {"phase": phase}
        if reason:
            status |= {"reason": reason, "message": message}
        ready = {
            "type": names.READY,
            "status": "True" if phase == "Running" else "False",
            "lastTransitionTime": self._timestamp(),
        }
        status["conditions"] = [ready, *conditions]
        status["containerStatuses"] = self._container_statuses(pod, phase)
        document = {"apiVersion": "v1", "kind": "Pod", **msgspec.to_builtins(pod), "status": status}
        self.pods[pod.key] = document
        self._status.write_pod(document)

    def _container_statuses(self, pod: Pod, phase: str) -> list[dict[str, Any]]:
        codes = self._codes.get(pod.metadata.uid, {})
        statuses = []
        for container in pod.spec.containers:
            if container.name in codes:
                state: dict[str, Any] = {"terminated": {"exitCode": codes[container.name]}}
            elif phase == "Running":
                state = {"running": {}}
            else:
                state = {"waiting": {"reason": "ContainerCreating"}}
            ready = phase == "Running" and container.name not in codes
            statuses.append({"name": container.name, "ready": ready, "state": state})
        return statuses

    def _timestamp(self) -> str:
        return dt.datetime.fromtimestamp(self._clock.wall(), dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
