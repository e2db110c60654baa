"""How a restarted agent resumes or closes the newest journal (pure)."""

from enum import Enum
from typing import TypeVar

from msgspec import structs

from lastcall.model.base import Facts
from lastcall.model.shutdown import (
    ContainerSignalled,
    HookEnded,
    HookStarted,
    JournalEvent,
    PodRecord,
    ShutdownOutcome,
    ShutdownRecord,
)
from lastcall.model.shutdown_kind import ends_boot
from lastcall.ports.node import RunningPod

F = TypeVar("F", bound=Facts)


class ResumeDecision(Enum):
    """What the newest journal calls for."""

    NOTHING = "there is none, or it is closed"
    RESUME = "this shutdown is under way: go on with the time that is left"
    ALREADY_RELEASED = "the lock was released already: the machine is shutting down"
    CANCELLED = "the shutdown was cancelled while no agent ran: make the node ready again"
    SOFT_REBOOTED = "user space has restarted in this boot: the shutdown is over"
    EARLIER_BOOT = "it belongs to an earlier boot, which is over"


def resume_decision(record: ShutdownRecord | None, *, boot_id: str, preparing: bool) -> ResumeDecision:
    """What to do about the newest journal.

    A shutdown is resumed only in the boot that wrote it and while logind reports it under way. Otherwise the agent
    would terminate the pods of a machine that stays up.
    """
    if record is None:
        return ResumeDecision.NOTHING
    if record.boot_id != boot_id:
        return ResumeDecision.EARLIER_BOOT
    if record.outcome in (ShutdownOutcome.CANCELLED, ShutdownOutcome.INTERRUPTED):
        return ResumeDecision.NOTHING
    if record.returned is not None or (not preparing and record.released is not None and not ends_boot(record.how)):
        return ResumeDecision.SOFT_REBOOTED
    if not preparing:
        return ResumeDecision.CANCELLED
    return ResumeDecision.RESUME if record.released is None else ResumeDecision.ALREADY_RELEASED


def pods_by_uid(record: ShutdownRecord) -> dict[str, PodRecord]:
    """The record's pods by uid, with CLOCK_BOOTTIME seconds instead of offsets."""
    return {
        pod.uid: structs.replace(
            _shift_times(pod, record.boottime, "started", "ended"),
            containers=tuple(
                _shift_times(container, record.boottime, "hook_started", "hook_ended", "term", "kill", "ended")
                for container in pod.containers
            ),
        )
        for pod in record.pods
    }


def is_recreated(record: PodRecord, live: RunningPod) -> bool:
    """Whether none of the containers that got a hook or SIGTERM runs any more: the kubelet has started others."""
    begun = {container.runtime_id for container in record.containers if container.runtime_id}
    return bool(begun) and begun.isdisjoint(live.containers.values())


def replay_events(record: PodRecord, at: float) -> list[JournalEvent]:
    """A cancelled shutdown's steps for a pod, as events at ``at``, for the journal of the next shutdown."""
    events: list[JournalEvent] = []
    for container in record.containers:
        uid, name, run = record.uid, container.name, container.runtime_id
        if container.hook_ended is not None:
            ok, message = bool(container.hook_ok), container.hook_message
            events.append(HookStarted(at=at, uid=uid, container=name, runtime_id=run))
            events.append(HookEnded(at=at, uid=uid, container=name, ok=ok, message=message))
        if container.term is not None:
            stop = container.stop_signal
            term = ContainerSignalled(at=at, uid=uid, container=name, signal="TERM", stop_signal=stop, runtime_id=run)
            events.append(term)
    return events


def _shift_times(facts: F, seconds: float, *fields: str) -> F:
    times = {field: getattr(facts, field) for field in fields}
    return structs.replace(facts, **{field: time + seconds for field, time in times.items() if time is not None})
