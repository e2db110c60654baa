"""What a drain has changed of a workload or autoscaler, as an annotation on it (pure).

The change and its record are one patch, so that whoever finds the object after a crash can put it back.
"""

from datetime import datetime
from typing import Any

import msgspec

from lastcall.drain.unlocking.surge_choice import SurgeChoice, SurgeMethod
from lastcall.model.base import Facts, Time
from lastcall.model.surge_facts import Autoscaler, SurgeableWorkload
from lastcall.names import DRAIN_SURGE

RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
"""The annotation of the pod template that ``kubectl rollout restart`` sets."""


class SurgeRecord(Facts, frozen=True):
    """The change: the drain that has made it, its id, the value before and the one that was set, and when.

    The values are numbers of replicas, or the times of restarts ("" before the first one).
    """

    drain: str
    method: SurgeMethod
    before: int | str
    after: int | str
    at: Time


def read_record(subject: SurgeableWorkload | Autoscaler) -> SurgeRecord | None:
    """The record on the object; None without one, or if it cannot be read."""
    text = (subject.metadata.annotations or {}).get(DRAIN_SURGE)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=SurgeRecord)
    except msgspec.DecodeError:
        return None


def begin_patch(choice: SurgeChoice, drain: str, now: datetime) -> dict[str, Any]:
    """The JSON merge patch that makes the change and records it; it fails if the object has changed meanwhile."""
    is_restart = choice.method is SurgeMethod.RESTART
    after = f"{now:%Y-%m-%dT%H:%M:%SZ}" if is_restart else choice.workload.spec.replicas + 1
    before = _present_value(choice.subject, choice.method)
    record = SurgeRecord(drain=drain, method=choice.method, before=before, after=after, at=now)
    return _record_patch(choice.subject, msgspec.json.encode(record).decode()) | _value_patch(choice.method, after)


def put_back_patch(subject: SurgeableWorkload | Autoscaler, record: SurgeRecord, *, undo: bool) -> dict[str, Any]:
    """The JSON merge patch that removes the record and, with ``undo``, the change.

    A value that somebody else has set since stays.
    """
    patch = _record_patch(subject, None)
    if not undo or _present_value(subject, record.method) != record.after:
        return patch
    return patch | _value_patch(record.method, record.before)


def _present_value(subject: SurgeableWorkload | Autoscaler, method: SurgeMethod) -> int | str:
    if isinstance(subject, Autoscaler):
        return subject.spec.min_replicas
    if method is SurgeMethod.RESTART:
        return (subject.spec.template.metadata.annotations or {}).get(RESTARTED_AT, "")
    return subject.spec.replicas


def _record_patch(subject: SurgeableWorkload | Autoscaler, text: str | None) -> dict[str, Any]:
    version = subject.metadata.resource_version
    return {"metadata": {"resourceVersion": version, "annotations": {DRAIN_SURGE: text}}}


def _value_patch(method: SurgeMethod, value: int | str) -> dict[str, Any]:
    match method:
        case SurgeMethod.RESTART:
            return {"spec": {"template": {"metadata": {"annotations": {RESTARTED_AT: value or None}}}}}
        case SurgeMethod.REPLICAS:
            return {"spec": {"replicas": value}}
        case SurgeMethod.MIN_REPLICAS:
            return {"spec": {"minReplicas": value}}
