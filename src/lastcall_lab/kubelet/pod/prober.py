"""Probes the containers of a pod while they run (``pkg/kubelet/prober/worker.go``)."""

from collections.abc import Callable

from lastcall.adapters.kube.resources import Object
from lastcall.aio import OrderedTaskGroup
from lastcall.ports.node import Clock, RunningPod
from lastcall_lab.kubelet.base.next_tick import next_tick
from lastcall_lab.kubelet.pod.dependencies import KubeletDeps
from lastcall_lab.kubelet.state.probe_results import Probe, ProbeStreak, probes_of

Verdict = Callable[[str, Probe, bool], None]
"""Called when a container's probe reaches a threshold: which probe, and whether it succeeds."""


class Prober:
    """``live`` returns the running pod; ``started`` whether a container's startup probe has succeeded."""

    def __init__(
        self,
        means: KubeletDeps,
        *,
        pod: Callable[[], Object],
        live: Callable[[], RunningPod],
        started: Callable[[str], bool],
        verdict: Verdict,
    ) -> None:
        self._means = means
        self._pod = pod
        self._live = live
        self._started = started
        self._verdict = verdict
        self._groups: dict[str, OrderedTaskGroup] = {}
        self._ending = OrderedTaskGroup()

    def begin(self, container: Object) -> None:
        """Starts the probes of a container that has started."""
        group = self._groups[container["name"]] = OrderedTaskGroup()
        for probe in probes_of(container):
            group.start(
                self._probe_periodically(container["name"], probe), f"{probe.kind} probe of {container['name']}"
            )

    def end(self, name: str) -> None:
        """Stops the probes of a container that has ended."""
        if group := self._groups.pop(name, None):
            self._ending.start(group.cancel(), f"end probes of {name}")

    async def close(self) -> None:
        """Stops all probes."""
        for name in list(self._groups):
            self.end(name)
        await self._ending.join()

    async def _probe_periodically(self, name: str, probe: Probe) -> None:
        """Probes in every period after the initial delay, except while the result is known to stay the same."""
        clock: Clock = self._means.clock
        began = tick = clock.boottime()
        streak = ProbeStreak()
        while True:
            if self._is_due(name, probe, clock.boottime() - began):
                ok = await self._probe_once(name, probe)
                before, streak = streak.verdict, streak.with_result(ok, probe)
                if streak.verdict is not None and streak.verdict != before:
                    self._verdict(name, probe, streak.verdict)
                if ok and streak.verdict:
                    await self._means.runtime.wait_for_probe_change(self._live().containers.get(name, ""))
            if probe.kind == "Startup" and self._started(name):
                return
            now = clock.boottime()
            tick = next_tick(began, probe.period, max(tick + probe.period, now))
            await clock.sleep(tick - now)

    def _is_due(self, name: str, probe: Probe, age: float) -> bool:
        """Whether to probe now. A pod that is being deleted gets readiness probes only."""
        if self._pod()["metadata"].get("deletionTimestamp") and probe.kind != "Readiness":
            return False
        return age >= probe.delay and (probe.kind == "Startup") != self._started(name)

    async def _probe_once(self, name: str, probe: Probe) -> bool:
        result = await self._means.runtime.probe(self._live(), name, probe.handler, probe.timeout)
        if not result.ok:
            message = f"{probe.kind} probe failed: {result.message}"
            self._means.record_event(self._pod(), "Warning", "Unhealthy", message, name)
        return result.ok
