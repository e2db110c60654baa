"""What an agent beside a kubelet knows of its pods' specs, in virtual time: the real watch, and its checkpoint in memory."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

from msgspec.structs import replace

from lastcall.adapters.cri.spec_sources import SpecSources
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.own_pods import OwnPods
from lastcall.adapters.state.pod_checkpoint import PodCheckpoint
from lastcall.aio import wait_first
from lastcall.model.pod_checkpoint import decode_checkpoint, encode_checkpoint
from lastcall.model.pods import LifecycleHandler, Pod
from lastcall.model.shutdown import JournalEvent
from lastcall.ports.node import Clock, HookResult, PodRuntime, RunningPod
from lastcall_lab.simulation.machine.disk import SimulatedDisk


class SimulatedPodSources:
    """One life of the agent: what it watches, and what an earlier life has kept on the ``disk``."""

    def __init__(self, client: Client, node: str, *, disk: SimulatedDisk, clock: Clock, random: Random) -> None:
        self._kept: Mapping[str, Pod] = decode_checkpoint(disk.checkpoint) if disk.checkpoint else {}
        self._watch = OwnPods(client, node, clock=clock, random=random, on_change=self._note_change)
        self._checkpoint = _SimulatedCheckpoint(disk, clock, lambda: self._watch.pods)

    def current_sources(self) -> SpecSources:
        """What is known at this time."""
        return SpecSources(watched=self._watch.pods, checkpoint=self._kept)

    def find_pod(self, uid: str) -> Pod | None:
        """As ``wiring.own_pods``."""
        return self._watch.pods.get(uid) or self._kept.get(uid)

    def record_event(self, event: JournalEvent) -> None:
        """As ``wiring.own_pods``."""
        self._checkpoint.record_event(event)

    async def run(self) -> None:
        """Watches and keeps, without end."""
        await wait_first(self._watch.run(), self._checkpoint.run())

    def _note_change(self) -> None:
        if self._watch.was_listed:
            self._checkpoint.note_change()


class _SimulatedCheckpoint(PodCheckpoint):
    def __init__(self, disk: SimulatedDisk, clock: Clock, pods: Callable[[], Mapping[str, Pod]]) -> None:
        super().__init__(Path(), clock, pods)
        self._disk = disk

    async def _write(self, pods: tuple[Pod, ...]) -> bool:
        if not self._disk.full:
            self._disk.checkpoint, _ = encode_checkpoint(pods)
        return not self._disk.full


class DescribedRuntime:
    """``ports.node.PodRuntime`` whose lists have what a container runtime knows, completed as ``lastcall agent`` does."""

    def __init__(self, runtime: PodRuntime, node: str, sources: Callable[[], SpecSources]) -> None:
        self._runtime = runtime
        self._node = node
        self._sources = sources
        self.ping = runtime.ping
        self.stop_container = runtime.stop_container
        self.kill_container = runtime.kill_container
        self.forget_container = runtime.forget_container
        self.tear_down_pod = runtime.tear_down_pod
        self.kill_seconds = runtime.kill_seconds
        self.reserve_stop = runtime.reserve_stop

    async def list_pods(self) -> Sequence[RunningPod]:
        """As the runtime's."""
        return [self._describe(live) for live in await self._runtime.list_pods()]

    async def refresh_pods(self) -> Sequence[RunningPod]:
        """As the runtime's."""
        return [self._describe(live) for live in await self._runtime.refresh_pods()]

    async def reread_pod(self, live: RunningPod) -> RunningPod | None:
        """As the runtime's."""
        now = await self._runtime.reread_pod(live)
        return self._describe(now) if now else None

    async def run_hook(self, live: RunningPod, container: str, hook: LifecycleHandler, limit: float) -> HookResult:
        """As the runtime's."""
        return await self._runtime.run_hook(live, container, hook, limit)

    def _describe(self, live: RunningPod) -> RunningPod:
        pod, source = self._sources().complete_pod(_runtime_description(live.pod), self._node)
        return replace(live, pod=pod, priority_source=source)


def _runtime_description(pod: Pod) -> Pod:
    """What containerd keeps of a pod: no priority, no owners, no volumes, no deletion."""
    metadata = replace(pod.metadata, owner_references=None, deletion_grace_period_seconds=None)
    spec = replace(pod.spec, priority=None, priority_class_name="", init_containers=None, volumes=None)
    return replace(pod, metadata=metadata, spec=spec)
