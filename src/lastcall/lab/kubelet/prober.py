"""Asks the containers of a pod how they are, for as long as they run (``pkg/kubelet/prober/worker.go``)."""

from collections.abc import Callable

from lastcall.adapters.kube.resources import Object
from lastcall.aio import Group
from lastcall.lab.kubelet.means import Means
from lastcall.lab.kubelet.probes import Probe, Streak, probes
from lastcall.lab.kubelet.ticks import next_tick
from lastcall.ports import Clock, LivePod

Verdict = Callable[[str, Probe, bool], None]
"""A container's probe has reached a threshold: which, and whether it succeeds."""


class Prober:
    """``live`` gives the pod as it runs; ``started`` whether a container's startup probe has succeeded."""

    def __init__(
        self,
        means: Means,
        *,
        pod: Callable[[], Object],
        live: Callable[[], LivePod],
        started: Callable[[str], bool],
        verdict: Verdict,
    ) -> None:
        self._means = means
        self._pod = pod
        self._live = live
        self._started = started
        self._verdict = verdict
        self._groups: dict[str, Group] = {}
        self._ending = Group()

    def begin(self, container: Object) -> None:
        """A container has started."""
        group = self._groups[container["name"]] = Group()
        for probe in probes(container):
            group.start(self._ask(container["name"], probe), f"{probe.kind} probe of {container['name']}")

    def end(self, name: str) -> None:
        """It has ended."""
        if group := self._groups.pop(name, None):
            self._ending.start(group.cancel(), f"end probes of {name}")

    async def close(self) -> None:
        """Ends all."""
        for name in list(self._groups):
            self.end(name)
        await self._ending.join()

    async def _ask(self, name: str, probe: Probe) -> None:
        """Every period from the container's start on, once the delay is over; not while the answer is known to stay."""
        clock: Clock = self._means.clock
        began = tick = clock.boottime()
        streak = Streak()
        while True:
            if self._due(name, probe, clock.boottime() - began):
                ok = await self._one(name, probe)
                before, streak = streak.verdict, streak.then(ok, probe)
                if streak.verdict is not None and streak.verdict != before:
                    self._verdict(name, probe, streak.verdict)
                if ok and streak.verdict:
                    await self._means.runtime.unsettled(self._live().containers.get(name, ""))
            if probe.kind == "Startup" and self._started(name):
                return
            now = clock.boottime()
            tick = next_tick(began, probe.period, max(tick + probe.period, now))
            await clock.sleep(tick - now)

    def _due(self, name: str, probe: Probe, age: float) -> bool:
        """A pod that is being deleted is asked for its readiness alone."""
        if self._pod()["metadata"].get("deletionTimestamp") and probe.kind != "Readiness":
            return False
        return age >= probe.delay and (probe.kind == "Startup") != self._started(name)

    async def _one(self, name: str, probe: Probe) -> bool:
        result = await self._means.runtime.probe(self._live(), name, probe.handler, probe.timeout)
        if not result.ok:
            message = f"{probe.kind} probe failed: {result.message}"
            self._means.tell(self._pod(), "Warning", "Unhealthy", message, name)
        return result.ok
