"""Keeps the containers of one pod running: starts, pauses, probes, restarts."""

from collections.abc import Mapping
from dataclasses import replace

from lastcall.adapters.kube.resources import Object
from lastcall.aio import Group, first
from lastcall.errors import InvalidInput, LastcallError, Unavailable
from lastcall.lab.kubelet import backoff, containers
from lastcall.lab.kubelet.containers import Plan, Result, every_container
from lastcall.lab.kubelet.facts import Running, Waiting, recalled
from lastcall.lab.kubelet.means import Means
from lastcall.lab.kubelet.missing import Missing
from lastcall.lab.kubelet.prober import Prober
from lastcall.lab.kubelet.probes import Probe
from lastcall.lab.kubelet.record import Record
from lastcall.lab.kubelet.restarting import restart
from lastcall.lab.kubelet.starter import Held, Starter, VolumeFault
from lastcall.model.duration import of_seconds
from lastcall.model.pods import DEFAULT_GRACE
from lastcall.ports import LivePod

_LONGEST_RETRY = 10.0


class Runner:
    """``run`` may be cancelled at any time; ``close`` ends what it has begun."""

    def __init__(self, record: Record, means: Means) -> None:
        self._record = record
        self._means = means
        self._starter = Starter(means)
        self._starting = ""
        self._early: dict[str, int | None] = {}
        self._failures = 0
        self._group = Group()
        self._prober = Prober(
            means,
            pod=lambda: record.pod,
            live=self.live,
            started=lambda name: record.facts.of(name).started,
            verdict=self._probed,
        )

    @property
    def prepared(self) -> LivePod | None:
        """The pod as the runtime was given it; None if it was not."""
        return self._starter.live

    async def run(self) -> None:
        """Starts what is to be started; returns when nothing is to be started any more."""
        while True:
            self._record.moved.clear()
            if self._means.held(self._record.uid):
                await self._record.moved.wait()
                continue
            plan = self._plan()
            if plan.result is Result.OVER:
                return
            self._show_pauses(plan)
            well = True
            for name in plan.start:
                well = await self._start(name) and well
            if not (plan.start and well):
                await self._wait(plan, well=well)

    def ended(self, name: str, code: int | None) -> None:
        """A container's run is over."""
        known = self._record.facts.of(name)
        if name == self._starting or not known.running:
            self._early[name] = code
            return
        self._prober.end(name)
        self._record.set_container(name, known.end(code, self._means.clock.wall()))

    async def ended_by(self, codes: Mapping[str, int | None]) -> None:
        """Somebody else has ended all of its containers; for what he does not tell, the runtime has a moment."""
        for name, code in {**self._early, **codes}.items():
            self.ended(name, code)
        if self._running():
            await self._means.clock.sleep(self._means.settings.lost_after)
        for name in self._running():
            self.ended(name, None)

    def _running(self) -> list[str]:
        return [name for name, known in self._record.facts.containers.items() if known.running]

    async def close(self) -> None:
        """Nothing is asked or restarted any more; what runs runs on."""
        await self._prober.close()
        await self._group.cancel()

    def _plan(self) -> Plan:
        return containers.plan(self._record.pod, self._record.facts, self._means.clock.wall(), self._means.settings)

    async def _wait(self, plan: Plan, *, well: bool) -> None:
        """For a change, for the end of a pause, or a while after a failure: longer each time."""
        if not well:
            self._failures += 1
            pause = self._means.settings.retry * 2.0 ** min(self._failures - 1, 10)
            await self._means.clock.sleep(min(pause, _LONGEST_RETRY))
            return
        self._failures = 0
        moved = self._record.moved.wait()
        if plan.again_in is None:
            await moved
        else:
            await first(moved, self._means.clock.sleep(plan.again_in))

    # -- starting ------------------------------------------------------------------------------------------------------

    async def _start(self, name: str) -> bool:
        """Whether nothing is wrong; what is missing is told, as is what this node cannot do."""
        try:
            await self._starter.prepare(self._record.pod)
            self._record.set(address=self._starter.address)
            await self._launch(self._container(name))
        except Held:
            return True
        except InvalidInput as error:
            self._fail(name, "CreateContainerError", error)
        except VolumeFault as error:
            self._record.tell("Warning", "FailedMount", str(error))
        except Missing as error:
            self._fail(name, "CreateContainerConfigError", error)
        except LastcallError as error:
            self._fail(name, "RunContainerError", error)
        else:
            return True
        return False

    def _fail(self, name: str, reason: str, error: LastcallError) -> None:
        known = self._record.facts.of(name)
        self._record.set_container(name, replace(known, waiting=Waiting(reason, str(error))))
        self._record.tell("Warning", "Failed", f"Error: {error}", name)

    async def _launch(self, container: Object) -> None:
        name = container["name"]
        known = self._record.facts.of(name)
        attempt = known.restarts + 1 if known.run or known.last else known.restarts
        self._early.pop(name, None)
        self._starting = name
        try:
            run = await self._starter.launch(self._record.pod, container, attempt)
        finally:
            self._starting = ""
        self._tell_start(container)
        self._note_start(container, run, attempt)
        self._prober.begin(container)
        if name in self._early:
            self.ended(name, self._early.pop(name))
        await self._post_start(container)

    def _tell_start(self, container: Object) -> None:
        image = container.get("image", "")
        pulled = f'Container image "{image}" already present on machine and can be accessed by the pod'
        for reason, message in (("Pulled", pulled), ("Created", "Container created"), ("Started", "Container started")):
            self._record.tell("Normal", reason, message, container["name"])

    def _note_start(self, container: Object, run: str, attempt: int) -> None:
        known, now = self._record.facts.of(container["name"]), self._means.clock.wall()
        pause = known.pause
        if known.ended:
            pause = backoff.following(known.pause, known.ended.finished, now, self._means.settings)
        last = known.ended or known.last
        begun = replace(known, run=Running(run, now), last=last, waiting=None, restarts=attempt, pause=pause)
        self._record.set_container(container["name"], begun.unprobed(container))

    async def _post_start(self, container: Object) -> None:
        """A container whose postStart hook fails is ended."""
        name, hook = container["name"], self._starter.post_start(container)
        if hook is None or not self._record.facts.of(name).running:
            return
        asked = self._record.pod["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE)
        result = await self._means.runtime.run_hook(self.live(), name, hook, self._means.settings.post_start_limit)
        if not result.ok and self._record.facts.of(name).running:
            self._record.tell("Warning", "FailedPostStartHook", f"PostStartHook failed: {result.message}", name)
            await restart(self.live(), name, asked, self._means)

    def _container(self, name: str) -> Object:
        return next(one for one in every_container(self._record.pod) if one["name"] == name)

    def _show_pauses(self, plan: Plan) -> None:
        """A container in a pause says so, and an event does."""
        metadata = self._record.pod["metadata"]
        pod = f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"
        for name, seconds in plan.pausing.items():
            known = self._record.facts.of(name)
            if known.waiting is None:
                why = f"back-off {of_seconds(seconds)} restarting failed container={name} pod={pod}"
                self._record.set_container(name, replace(known, waiting=Waiting("CrashLoopBackOff", why)))
                said = f"Back-off restarting failed container {name} in pod {pod}"
                self._record.tell("Warning", "BackOff", said, name)

    # -- probes --------------------------------------------------------------------------------------------------------

    def _probed(self, name: str, probe: Probe, ok: bool) -> None:
        known, container = self._record.facts.of(name), self._container(name)
        if probe.kind == "Readiness":
            self._record.set_container(name, replace(known, ready=ok and known.started))
        elif probe.kind == "Startup" and ok:
            ready = "readinessProbe" not in container
            self._record.set_container(name, replace(known, started=True, ready=ready))
        elif not ok and not self._means.held(self._record.uid):
            self._restart(container, probe)

    def _restart(self, container: Object, probe: Probe) -> None:
        """The container is ended; whether it is started again is decided when it has."""
        spec = self._record.pod["spec"]
        again = "" if spec.get("restartPolicy") == "Never" else ", will be restarted"
        said = f"Container {container['name']} failed {probe.kind.lower()} probe{again}"
        self._record.tell("Normal", "Killing", said, container["name"])
        asked = spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE) if probe.grace is None else probe.grace
        self._group.start(restart(self.live(), container["name"], asked, self._means), f"end {container['name']}")

    def live(self) -> LivePod:
        """The pod with the containers that run; Unavailable before it has been prepared."""
        live = self._starter.live
        if live is None:
            raise Unavailable("the pod has not been started yet")
        known = self._record.facts.containers
        runs = {name: one.run.id for name, one in known.items() if isinstance(one.run, Running)}
        return LivePod(pod=live.pod, containers=runs, sandbox=live.sandbox)

    # -- after a restart of the kubelet --------------------------------------------------------------------------------

    async def recall(self) -> None:
        """Takes over what runs; what does not is waited for a moment, in case the runtime tells how it ended."""
        live = await self._starter.prepare(self._record.pod)
        found = recalled(self._record.pod, live.containers, self._means.clock.wall())
        self._record.set(containers=found, address=self._starter.address)
        for container in every_container(self._record.pod):
            if container["name"] in live.containers:
                self._take_over(container)
        for name, code in list(self._early.items()):
            if name not in live.containers:
                self.ended(name, code)
        lost = [name for name, one in found.items() if one.running and name not in live.containers]
        if lost:
            await self._means.clock.sleep(self._means.settings.lost_after)
            self._lose([name for name in lost if self._record.facts.of(name).running], nothing=not live.containers)

    def _take_over(self, container: Object) -> None:
        """An earlier life has started it; of a run that it had no time to tell of, no status says that it has started."""
        known = self._record.facts.of(container["name"])
        if not known.started:
            self._record.set_container(container["name"], known.unprobed(container))
        self._prober.begin(container)

    def _lose(self, names: list[str], *, nothing: bool) -> None:
        """Nobody knows how they ended: the machine went down. Without its sandbox a pod begins from the beginning.

        One that is never to be restarted does not (``computePodActions``).
        """
        for name in names:
            self.ended(name, None)
        if not names or not nothing or self._record.pod["spec"].get("restartPolicy") == "Never":
            return
        self._record.tell("Normal", "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
        for container in every_container(self._record.pod):
            known = self._record.facts.of(container["name"])
            again = replace(known, run=None, last=known.ended or known.last)
            self._record.set_container(container["name"], again)
