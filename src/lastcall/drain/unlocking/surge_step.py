"""The next step of one more pod for a time: begin, wait, let go, put back (pure).

The drain goes on asking for the eviction meanwhile: the API server and the guard decide about it, not this module.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lastcall.drain.unlocking.surge_choice import SurgeImpossible, SurgeMethod, choose_surge
from lastcall.drain.unlocking.surge_record import SurgeRecord, begin_patch, put_back_patch, read_record
from lastcall.model.budgets import Budget
from lastcall.model.surge_facts import Autoscaler, SurgeableWorkload, find_autoscaler

SURGE_LIMIT = timedelta(minutes=10)
"""How long the additional pod may take to become ready (the default progressDeadlineSeconds of a Deployment)."""


@dataclass(frozen=True)
class PatchSurge:
    """Patch ``subject`` with a JSON merge patch; ``why`` is for people."""

    subject: SurgeableWorkload | Autoscaler
    patch: dict[str, Any]
    why: str


@dataclass(frozen=True)
class WaitForSurge:
    """Nothing to do now; ``why`` is for people."""

    why: str


@dataclass(frozen=True)
class SurgeOver:
    """Nothing is left to do. ``failure`` says why the pod is still blocked; "" if it is not."""

    failure: str = ""
    mend: str = ""


SurgeStep = PatchSurge | WaitForSurge | SurgeOver


@dataclass(frozen=True)
class SurgeFacts:
    """What is known of the workload of blocked pods. ``is_gone``: all of these have ended or are terminating.

    ``budgets`` cover the pods; ``failed_before``: this drain has tried it and put it back.
    """

    workload: SurgeableWorkload
    autoscalers: Sequence[Autoscaler]
    budgets: Sequence[Budget]
    drain: str
    is_gone: bool
    failed_before: bool = False

    def find_record(self) -> tuple[SurgeableWorkload | Autoscaler, SurgeRecord] | None:
        """The record of a change, and the object on which it stands."""
        autoscaler = find_autoscaler(self.workload, self.autoscalers)
        subjects = (self.workload, autoscaler) if autoscaler else (self.workload,)
        return next(((one, record) for one in subjects if (record := read_record(one))), None)


def next_surge_step(facts: SurgeFacts, now: datetime) -> SurgeStep:
    """The next step. It depends on the recorded change alone, so another process can go on after a crash."""
    found = facts.find_record()
    if found is None:
        return SurgeOver() if facts.is_gone else _begin(facts, now)
    subject, record = found
    if record.drain != facts.drain:
        return WaitForSurge(f"{subject.title} has one more pod for another drain ({record.drain})")
    if facts.is_gone and (_is_temporary(record) or facts.workload.is_rolled_out):
        patch = put_back_patch(subject, record, undo=_is_temporary(record))
        return PatchSurge(
            subject, patch, f"{subject.title} {'is put back' if _is_temporary(record) else 'is restarted'}"
        )
    if failure := _find_failure(facts.workload, record, now):
        patch = put_back_patch(subject, record, undo=not facts.is_gone)
        return PatchSurge(subject, patch, f"{subject.title} is put back: {failure}")
    return WaitForSurge(_wait_text(facts.workload, record))


def list_put_backs(subjects: Iterable[SurgeableWorkload | Autoscaler], drain: str) -> list[PatchSurge]:
    """What puts the changes of a drain back at once: it has ended, or was interrupted. A restart is left to end."""
    found = ((one, read_record(one)) for one in subjects)
    return [
        PatchSurge(one, put_back_patch(one, record, undo=_is_temporary(record)), _end_text(one, record))
        for one, record in found
        if record and record.drain == drain
    ]


def _begin(facts: SurgeFacts, now: datetime) -> SurgeStep:
    choice = choose_surge(facts.workload, facts.budgets, facts.autoscalers)
    if isinstance(choice, SurgeImpossible):
        return SurgeOver(choice.why, choice.mend)
    if facts.failed_before:
        return SurgeOver(
            f"one more pod of {facts.workload.title} did not become ready", "see why that pod is not ready"
        )
    action = {
        SurgeMethod.RESTART: "is restarted, so that a new pod is ready before the old one ends",
        SurgeMethod.REPLICAS: "gets one more replica for a time",
        SurgeMethod.MIN_REPLICAS: "gets one more replica at least for a time",
    }[choice.method]
    return PatchSurge(choice.subject, begin_patch(choice, facts.drain, now), f"{choice.subject.title} {action}")


def _is_temporary(record: SurgeRecord) -> bool:
    return record.method is not SurgeMethod.RESTART


def _end_text(subject: SurgeableWorkload | Autoscaler, record: SurgeRecord) -> str:
    return f"{subject.title} {'is put back' if _is_temporary(record) else 'is restarted, and stays as it is'}"


def _find_failure(workload: SurgeableWorkload, record: SurgeRecord, now: datetime) -> str:
    progressing = workload.find_condition("Progressing")
    if workload.has_observed_spec and progressing and progressing.reason == "ProgressDeadlineExceeded":
        return progressing.message or "its progress deadline was exceeded"
    if now - record.at >= SURGE_LIMIT:
        return f"no additional pod was ready within {SURGE_LIMIT.total_seconds() / 60:g} minutes"
    return ""


def _wait_text(workload: SurgeableWorkload, record: SurgeRecord) -> str:
    status = workload.status
    if record.method is SurgeMethod.RESTART:
        new = f"{status.updated_replicas} of {workload.spec.replicas} pods are new"
        return f"{workload.title}: {new}" + (
            ", and not ready yet" if status.updated_replicas and not workload.is_rolled_out else ""
        )
    return f"{workload.title}: {status.ready_replicas} of {workload.spec.replicas} pods are ready"
