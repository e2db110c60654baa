"""``ports.node.PodRuntime`` for containerd and other runtimes that implement the CRI."""

import contextlib
import logging
import math
import os
from collections.abc import Callable, Sequence

from grpclib.const import Status

from lastcall import names
from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.adapters.cri.connection import CriConnection, CriRefused
from lastcall.adapters.cri.pod_cache import PodCache
from lastcall.adapters.cri.spec_sources import SpecSources
from lastcall.adapters.cri.stop_proof import StopProof
from lastcall.adapters.cri.stop_turns import StopTurns
from lastcall.adapters.pods import hooks
from lastcall.aio import OrderedTaskGroup, timeout
from lastcall.errors import Unavailable
from lastcall.model.pods import Container, HTTPGetAction, LifecycleHandler, TCPSocketAction
from lastcall.ports.node import Clock, HookResult, RunningPod

log = logging.getLogger(__name__)

MARGIN = 30.0
"""Seconds by which the deadline of the StopContainer call lies after the grace period.

When the caller of a stop goes away, containerd cancels the stop and never sends SIGKILL: so the deadline must be later.
"""

_RETRY = 0.25

_CONFIRM = 0.15
"""Seconds between two requests that confirm whether the runtime has received a stop."""


class CriRuntime:
    """Stops containers through the CRI at ``endpoint``, such as ``unix:///run/containerd/containerd.sock``.

    ``sources`` returns what is known about the pods elsewhere; it is called at each listing. Static pods carry
    ``node_name`` in their names. The pod with the uid ``own_pod`` is in no list: an agent must not end itself. Between
    ``open`` and ``close`` the list of pods is refreshed in the background; otherwise each listing reads
    it.
    """

    def __init__(
        self,
        endpoint: str,
        clock: Clock,
        *,
        sources: Callable[[], SpecSources] = SpecSources,
        node_name: str = "",
        own_pod: str = "",
    ) -> None:
        self.connection = CriConnection(endpoint)
        self._own_pod = own_pod
        self._clock = clock
        self._mirror = PodCache(
            self.connection, clock, sources=sources, node_name=node_name, is_busy=lambda: self._stopping > 0
        )
        self._ended: set[str] = set()
        self._proof = StopProof()
        self._asked = -math.inf
        self._stopping = 0
        self._turns = StopTurns(clock, os.cpu_count() or 1)
        self._confirming = OrderedTaskGroup()

    async def open(self) -> None:
        """Starts to refresh the list of pods in the background; the runtime need not be running yet."""
        self._mirror.start()

    async def close(self) -> None:
        """Ends the refresh and all calls under way. Containers are not touched."""
        try:
            await self._confirming.cancel()
            await self._mirror.stop()
        finally:
            self.connection.close()
            await self._mirror.wait_for_looks()

    async def list_pods(self) -> Sequence[RunningPod]:
        """The pods as of the last event; if several listeners cannot get events, of the last ten seconds."""
        return self._without_own_pod(await self._mirror.pods())

    async def refresh_pods(self) -> Sequence[RunningPod]:
        """The pods, read anew."""
        return self._without_own_pod(await self._mirror.list_pods())

    def _without_own_pod(self, pods: Sequence[RunningPod]) -> Sequence[RunningPod]:
        return [one for one in pods if one.pod.metadata.uid != self._own_pod] if self._own_pod else pods

    async def reread_pod(self, live: RunningPod) -> RunningPod | None:
        """Reads one pod by its sandbox: includes containers that the kubelet has started since ``live`` was listed."""
        return await self._mirror.find_pod(live.sandbox)

    def refresh_soon(self) -> None:
        """Refreshes the list of pods soon, because a source knows more about them than before."""
        self._mirror.refresh_soon()

    async def ping(self) -> None:
        """Calls Version, which containerd answers without asking another component."""
        asked = self._clock.boottime()
        await self.connection.call("Version", cri.VersionRequest())
        self._proof.add_answer(asked, self._clock.boottime(), needed=self.kill_seconds(self._stopping))

    def reserve_stop(self) -> float:
        """As ``StopTurns.reserve_turn``."""
        return self._turns.reserve_turn()

    async def stop_container(self, container_id: str, grace: float) -> int | None:
        """Calls StopContainer, and repeats it with the remaining time while the runtime is unavailable.

        containerd remembers a sent SIGTERM, but not across its own restart. Once the runtime has confirmably received
        the stop, this only watches the container until the grace period is over. Without confirmation a container may
        get a second SIGTERM, which is better than none. Raises Unavailable if the runtime is still unavailable at the
        end of the grace period.
        """
        self._stopping += 1
        try:
            return await self._stop_with_retries(container_id, grace)
        finally:
            self._stopping -= 1

    async def _stop_with_retries(self, container_id: str, grace: float) -> int | None:
        deadline = self._clock.boottime() + grace
        seconds = max(1, math.ceil(grace))  # a timeout of 0 would be SIGKILL at once
        confirmed = False
        while True:
            asked = self._clock.boottime()
            only_looks = confirmed and asked < deadline
            try:
                if only_looks:
                    code = await self._exit_code_if_ended(container_id)
                else:
                    self._confirm_stop(asked)
                    code = await self._stop_container(container_id, seconds)
            except Unavailable as error:
                # A later answer would come from a restarted runtime, and prove nothing.
                confirmed = confirmed or (self._proof.sent_until >= asked and not isinstance(error, CriRefused))
                left = deadline - self._clock.boottime()
                if left <= 0 and not only_looks:
                    raise
                await self._clock.sleep(max(0.0, min(_RETRY, left)))
                seconds = max(0, math.ceil(deadline - self._clock.boottime()))
            else:
                self._ended.add(container_id)
                return code

    def _confirm_stop(self, asked: float) -> None:
        """Confirms that the runtime has received a stop sent at ``asked``; all stops share the same requests."""
        self._asked = asked
        if not self._confirming.running_count:
            self._confirming.start(self._ping_until_confirmed(), "confirm what is stopped")

    async def _ping_until_confirmed(self) -> None:
        with contextlib.suppress(Unavailable):
            while self._proof.sent_until < self._asked:
                await self._clock.sleep(_CONFIRM)
                await self.ping()

    async def _exit_code_if_ended(self, container_id: str) -> int | None:
        """Returns the exit code of a container that has ended.

        Raises Unavailable if the runtime does not answer, or if the container still runs.
        """
        try:
            status = await self.container_status(container_id)
        except CriRefused as error:
            if error.status is Status.NOT_FOUND:
                return None
            raise
        if status.state in (cri.CONTAINER_RUNNING, cri.CONTAINER_CREATED):
            raise Unavailable(f"container {container_id} still runs")
        return exit_code(status)

    async def kill_container(self, container_id: str) -> None:
        """Calls StopContainer without a grace period; returns when the container has ended."""
        await self._stop_container(container_id, 0)

    async def forget_container(self, container_id: str) -> None:
        """Calls RemoveContainer for a container that has ended: the call would kill one that runs."""
        try:
            if (await self.container_status(container_id)).state == cri.CONTAINER_EXITED:
                await self.connection.call("RemoveContainer", cri.RemoveContainerRequest(container_id=container_id))
        except CriRefused as error:
            if error.status is not Status.NOT_FOUND:
                raise

    async def tear_down_pod(self, live: RunningPod) -> None:
        """Calls StopPodSandbox, unless a container of the pod still runs: that call would SIGKILL it without SIGTERM.

        The runtime is asked for running containers first, as the kubelet may have started one since. A sandbox that the
        runtime cannot tear down is logged and left: no other step waits for it.
        """
        now = await self.reread_pod(live)
        running = [name for name, run in now.containers.items() if run not in self._ended] if now else []
        if running:
            log.warning("pod %s: its sandbox stays: container %s still runs", live.pod.key, ", ".join(running))
            return
        try:
            await self.connection.call(
                "StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=live.sandbox), within=MARGIN
            )
        except CriRefused as error:
            if error.status is not Status.NOT_FOUND:
                log.warning("pod %s: its sandbox stays: %s", live.pod.key, error)

    def kill_seconds(self, containers: int) -> float:
        """Seconds for killing so many containers: 0.04 for 1, 0.28 for 10, 1.6 for 50, plus a margin of 40 %.

        Measured on two idle cores (containerd 1.6). Each kill starts a process of runc, so the time is CPU work, not
        waiting.
        """
        return 0.25 + 0.04 * containers

    async def run_hook(self, live: RunningPod, container: str, hook: LifecycleHandler, limit: float) -> HookResult:
        """Runs a hook: ExecSync, a GET of the pod's address, or a pause."""
        if container not in live.containers:
            return HookResult(ok=False, message=f'no container "{container}" runs')
        try:
            if hook.exec:
                return await self._exec_in_container(live.containers[container], hook.exec.command, limit)
            if hook.http_get:
                return await self._run_http_get(live, container, hook.http_get, limit)
            if hook.tcp_socket:
                return await self._run_tcp_socket(live, container, hook.tcp_socket, limit)
            if hook.sleep:
                return await hooks.run_sleep(hook.sleep, limit=limit, clock=self._clock)
        except Unavailable as error:
            return HookResult(ok=False, message=str(error))
        return HookResult(ok=True)

    async def _stop_container(self, container_id: str, seconds: int) -> int | None:
        request = cri.StopContainerRequest(container_id=container_id, timeout=seconds)
        try:
            await self.connection.call("StopContainer", request, within=seconds + MARGIN)
            return exit_code(await self.container_status(container_id))
        except CriRefused as error:
            if error.status is Status.NOT_FOUND:
                return None
            raise

    async def container_status(self, container_id: str) -> cri.ContainerStatus:
        """The runtime's status of a container, also of one that has ended."""
        answer = await self.connection.call("ContainerStatus", cri.ContainerStatusRequest(container_id=container_id))
        status: cri.ContainerStatus = answer.status
        return status

    async def _exec_in_container(self, container_id: str, command: Sequence[str], limit: float) -> HookResult:
        """Runs a command, and cancels the call at the exact limit, upon which containerd kills the process.

        The runtime's own limit, in whole seconds, is the fallback if this process dies meanwhile.
        """
        request = cri.ExecSyncRequest(container_id=container_id, cmd=command, timeout=max(1, math.ceil(limit)))
        try:
            async with timeout(limit):
                answer = await self.connection.call("ExecSync", request, within=limit + MARGIN)
        except TimeoutError:
            return HookResult(ok=False, timed_out=True, message=f"not over after {round(limit, 1):g} s")
        if answer.exit_code == 0:
            return HookResult(ok=True)
        output = (answer.stderr or answer.stdout).decode(errors="replace").strip()
        last = output.splitlines()[-1][:200] if output else "no output"
        return HookResult(ok=False, message=f"exit code {answer.exit_code}: {last}")

    async def _run_http_get(self, live: RunningPod, container: str, action: HTTPGetAction, limit: float) -> HookResult:
        address, left = await self._pod_address(live, limit)
        described = _container_spec(live, container)
        return await hooks.run_http_get(action, pod_ip=address, container=described, limit=left, clock=self._clock)

    async def _run_tcp_socket(
        self, live: RunningPod, container: str, action: TCPSocketAction, limit: float
    ) -> HookResult:
        address, left = await self._pod_address(live, limit)
        described = _container_spec(live, container)
        return await hooks.run_tcp_socket(action, pod_ip=address, container=described, limit=left, clock=self._clock)

    async def _pod_address(self, live: RunningPod, limit: float) -> tuple[str, float]:
        """Returns the pod's address and what is left of the limit.

        The runtime reports no address for the host's network: then the address noted for the pod, or any.
        """
        deadline = self._clock.boottime() + limit
        question = cri.PodSandboxStatusRequest(pod_sandbox_id=live.sandbox)
        status = (await self.connection.call("PodSandboxStatus", question, within=limit)).status
        address = status.network.ip or status.annotations.get(names.POD_ADDRESS) or "127.0.0.1"
        return address, deadline - self._clock.boottime()


def _container_spec(live: RunningPod, container: str) -> Container:
    known = {spec.name: spec for spec in live.pod.spec.containers + (live.pod.spec.init_containers or ())}
    return known.get(container, Container(name=container))


def exit_code(status: cri.ContainerStatus) -> int | None:
    """The exit code of a container that has ended; None if the runtime does not know it.

    containerd 2 reports 255 and ``Unknown`` for a container that ended while containerd itself was down; 1.6 reports
    the real code.
    """
    return None if status.reason == "Unknown" else status.exit_code
