"""Keeps the containers of one pod running: starts, backoff, probes and restarts."""

from collections.abc import Mapping
from dataclasses import replace

from lastcall.adapters.kube.resources import Object
from lastcall.aio import OrderedTaskGroup, wait_first
from lastcall.errors import InvalidInput, LastcallError, Unavailable
from lastcall.model.duration import format_seconds
from lastcall.model.pods import DEFAULT_GRACE
from lastcall.ports.node import RunningPod
from lastcall_lab.kubelet.base.missing_dependency import MissingDependency
from lastcall_lab.kubelet.pod.container_end import end_container
from lastcall_lab.kubelet.pod.container_starter import ContainerStarter, PodHeld, VolumeUnavailable
from lastcall_lab.kubelet.pod.dependencies import KubeletDeps
from lastcall_lab.kubelet.pod.pod_record import PodStateRecord
from lastcall_lab.kubelet.pod.prober import Prober
from lastcall_lab.kubelet.state import crash_loop_backoff, start_plan
from lastcall_lab.kubelet.state.container_facts import RunningState, WaitingState, containers_from_status
from lastcall_lab.kubelet.state.probe_results import Probe
from lastcall_lab.kubelet.state.start_plan import PodProgress, StartPlan, all_containers

_LONGEST_RETRY = 10.0


class ContainerRunner:
    """``run`` can be cancelled at any time; ``close`` stops the tasks that it started."""

    def __init__(self, record: PodStateRecord, means: KubeletDeps) -> None:
        self._record = record
        self._means = means
        self._starter = ContainerStarter(means)
        self._starting = ""
        self._early: dict[str, int | None] = {}
        self._failures = 0
        self._group = OrderedTaskGroup()
        self._prober = Prober(
            means,
            pod=lambda: record.pod,
            live=self.live_pod,
            started=lambda name: record.facts.facts_of(name).started,
            verdict=self._handle_probe_verdict,
        )

    @property
    def prepared_pod(self) -> RunningPod | None:
        """The pod as given to the runtime; None before that."""
        return self._starter.live

    async def run(self) -> None:
        """Starts containers as planned. Returns when none is left to start."""
        while True:
            self._record.moved.clear()
            if self._means.held(self._record.uid):
                await self._record.moved.wait()
                continue
            plan = self._next_plan()
            if plan.result is PodProgress.OVER:
                return
            self._show_pauses(plan)
            well = True
            for name in plan.start:
                well = await self._start_container(name) and well
            if not (plan.start and well):
                await self._wait_for_change(plan, well=well)

    def handle_container_end(self, name: str, code: int | None) -> None:
        """Records the end of a container's run."""
        known = self._record.facts.facts_of(name)
        if name == self._starting or not known.running:
            self._early[name] = code
            return
        self._prober.end(name)
        self._record.set_container(name, known.with_end(code, self._means.clock.wall()))

    async def handle_external_end(self, codes: Mapping[str, int | None]) -> None:
        """Another component ended all containers.

        Waits briefly for the runtime to report exit codes that ``codes`` lacks.
        """
        for name, code in {**self._early, **codes}.items():
            self.handle_container_end(name, code)
        if self._running_names():
            await self._means.clock.sleep(self._means.settings.lost_after)
        for name in self._running_names():
            self.handle_container_end(name, None)

    def _running_names(self) -> list[str]:
        return [name for name, known in self._record.facts.containers.items() if known.running]

    async def close(self) -> None:
        """Stops probes and restarts; running containers keep running."""
        await self._prober.close()
        await self._group.cancel()

    def _next_plan(self) -> StartPlan:
        return start_plan.plan_start(
            self._record.pod, self._record.facts, self._means.clock.wall(), self._means.settings
        )

    async def _wait_for_change(self, plan: StartPlan, *, well: bool) -> None:
        """Waits for a change, for the end of a backoff, or for a growing pause after a failure."""
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
            await wait_first(moved, self._means.clock.sleep(plan.again_in))

    # -- starting ------------------------------------------------------------------------------------------------------

    async def _start_container(self, name: str) -> bool:
        """Starts a container; False on failure, which goes to its status and to an event."""
        try:
            await self._starter.prepare(self._record.pod)
            self._record.set(address=self._starter.address)
            await self._launch_container(self._container_spec(name))
        except PodHeld:
            return True
        except InvalidInput as error:
            self._report_start_failure(name, "CreateContainerError", error)
        except VolumeUnavailable as error:
            self._record.tell("Warning", "FailedMount", str(error))
        except MissingDependency as error:
            self._report_start_failure(name, "CreateContainerConfigError", error)
        except LastcallError as error:
            self._report_start_failure(name, "RunContainerError", error)
        else:
            return True
        return False

    def _report_start_failure(self, name: str, reason: str, error: LastcallError) -> None:
        known = self._record.facts.facts_of(name)
        self._record.set_container(name, replace(known, waiting=WaitingState(reason, str(error))))
        self._record.tell("Warning", "Failed", f"Error: {error}", name)

    async def _launch_container(self, container: Object) -> None:
        name = container["name"]
        known = self._record.facts.facts_of(name)
        attempt = known.restarts + 1 if known.run or known.last else known.restarts
        self._early.pop(name, None)
        self._starting = name
        try:
            run = await self._starter.launch_container(self._record.pod, container, attempt)
        finally:
            self._starting = ""
        self._tell_start(container)
        self._note_start(container, run, attempt)
        self._prober.begin(container)
        if name in self._early:
            self.handle_container_end(name, self._early.pop(name))
        await self._run_post_start(container)

    def _tell_start(self, container: Object) -> None:
        image = container.get("image", "")
        pulled = f'Container image "{image}" already present on machine and can be accessed by the pod'
        for reason, message in (("Pulled", pulled), ("Created", "Container created"), ("Started", "Container started")):
            self._record.tell("Normal", reason, message, container["name"])

    def _note_start(self, container: Object, run: str, attempt: int) -> None:
        known, now = self._record.facts.facts_of(container["name"]), self._means.clock.wall()
        pause = known.pause
        if known.last_end:
            pause = crash_loop_backoff.next_pause(known.pause, known.last_end.finished, now, self._means.settings)
        last = known.last_end or known.last
        begun = replace(known, run=RunningState(run, now), last=last, waiting=None, restarts=attempt, pause=pause)
        self._record.set_container(container["name"], begun.before_probes(container))

    async def _run_post_start(self, container: Object) -> None:
        """Stops a container whose postStart hook fails."""
        name, hook = container["name"], self._starter.post_start_hook(container)
        if hook is None or not self._record.facts.facts_of(name).running:
            return
        asked = self._record.pod["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE)
        result = await self._means.runtime.run_hook(self.live_pod(), name, hook, self._means.settings.post_start_limit)
        if not result.ok and self._record.facts.facts_of(name).running:
            self._record.tell("Warning", "FailedPostStartHook", f"PostStartHook failed: {result.message}", name)
            await end_container(self.live_pod(), name, asked, self._means)

    def _container_spec(self, name: str) -> Object:
        return next(one for one in all_containers(self._record.pod) if one["name"] == name)

    def _show_pauses(self, plan: StartPlan) -> None:
        """Reports a container in backoff by its waiting state and an event."""
        metadata = self._record.pod["metadata"]
        pod = f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"
        for name, seconds in plan.pausing.items():
            known = self._record.facts.facts_of(name)
            if known.waiting is None:
                why = f"back-off {format_seconds(seconds)} restarting failed container={name} pod={pod}"
                self._record.set_container(name, replace(known, waiting=WaitingState("CrashLoopBackOff", why)))
                said = f"Back-off restarting failed container {name} in pod {pod}"
                self._record.tell("Warning", "BackOff", said, name)

    # -- probes --------------------------------------------------------------------------------------------------------

    def _handle_probe_verdict(self, name: str, probe: Probe, ok: bool) -> None:
        known, container = self._record.facts.facts_of(name), self._container_spec(name)
        if probe.kind == "Readiness":
            self._record.set_container(name, replace(known, ready=ok and known.started))
        elif probe.kind == "Startup" and ok:
            ready = "readinessProbe" not in container
            self._record.set_container(name, replace(known, started=True, ready=ready))
        elif not ok and not self._means.held(self._record.uid):
            self._restart_container(container, probe)

    def _restart_container(self, container: Object, probe: Probe) -> None:
        """Stops the container. The start plan decides about a restart once it has ended."""
        spec = self._record.pod["spec"]
        again = "" if spec.get("restartPolicy") == "Never" else ", will be restarted"
        said = f"Container {container['name']} failed {probe.kind.lower()} probe{again}"
        self._record.tell("Normal", "Killing", said, container["name"])
        asked = spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE) if probe.grace is None else probe.grace
        self._group.start(
            end_container(self.live_pod(), container["name"], asked, self._means), f"end {container['name']}"
        )

    def live_pod(self) -> RunningPod:
        """The pod with its running containers; Unavailable before it has been prepared."""
        live = self._starter.live
        if live is None:
            raise Unavailable("the pod has not been started yet")
        known = self._record.facts.containers
        runs = {name: one.run.id for name, one in known.items() if isinstance(one.run, RunningState)}
        return RunningPod(pod=live.pod, containers=runs, sandbox=live.sandbox)

    # -- after a restart of the kubelet --------------------------------------------------------------------------------

    async def recall_running(self) -> None:
        """Adopts running containers; waits briefly for the runtime to report how the others ended."""
        live = await self._starter.prepare(self._record.pod)
        found = containers_from_status(self._record.pod, live.containers, self._means.clock.wall())
        self._record.set(containers=found, address=self._starter.address)
        for container in all_containers(self._record.pod):
            if container["name"] in live.containers:
                self._take_over(container)
        for name, code in list(self._early.items()):
            if name not in live.containers:
                self.handle_container_end(name, code)
        lost = [name for name, one in found.items() if one.running and name not in live.containers]
        if lost:
            await self._means.clock.sleep(self._means.settings.lost_after)
            self._record_lost(
                [name for name in lost if self._record.facts.facts_of(name).running], nothing=not live.containers
            )

    def _take_over(self, container: Object) -> None:
        """Adopts a run of an earlier kubelet.

        If that kubelet had no time to report it, no status shows it as started.
        """
        known = self._record.facts.facts_of(container["name"])
        if not known.started:
            self._record.set_container(container["name"], known.before_probes(container))
        self._prober.begin(container)

    def _record_lost(self, names: list[str], *, nothing: bool) -> None:
        """Records containers with unknown ends after a machine crash. Without its sandbox the pod starts over.

        A pod with restartPolicy Never does not start over (``computePodActions``).
        """
        for name in names:
            self.handle_container_end(name, None)
        if not names or not nothing or self._record.pod["spec"].get("restartPolicy") == "Never":
            return
        self._record.tell("Normal", "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
        for container in all_containers(self._record.pod):
            known = self._record.facts.facts_of(container["name"])
            again = replace(known, run=None, last=known.last_end or known.last)
            self._record.set_container(container["name"], again)
