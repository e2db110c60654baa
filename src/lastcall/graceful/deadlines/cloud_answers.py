"""What the metadata services of clouds say about the end of this machine (pure).

A deadline is the difference between the time that the service names and the service's own clock, since this machine's
clock may be wrong.
"""

import datetime as dt
import email.utils
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from lastcall.graceful.deadlines.findings import SourceFinding, UnreadableAnswer
from lastcall.model.base import Facts
from lastcall.model.foreign_text import plain_text
from lastcall.model.shutdown_notice import NoticeSource, ShutdownNotice
from lastcall.ports.deadlines import MetadataAnswer

EC2_SECONDS = 120.0
"""How long before the interruption of a spot instance EC2 says so; a later time is a fault of a clock."""

GCP_SECONDS = 30.0
"""How long Compute Engine waits after the notice of a preemption."""

AZURE_SECONDS = 900.0
"""The longest notice of Azure's scheduled events."""

STARTED_SECONDS = 15.0
"""How long a machine counts on whose event Azure has started without a notice."""

T = TypeVar("T")


class _SpotAction(Facts, frozen=True):
    action: str
    time: str


class AzureEvent(msgspec.Struct, frozen=True, rename="pascal"):
    """One event of Azure's Scheduled Events, version 2020-07-01."""

    event_id: str
    event_type: str
    resources: tuple[str, ...] = ()
    event_status: str = "Scheduled"
    not_before: str = ""


class _AzureDocument(msgspec.Struct, frozen=True, rename="pascal"):
    events: tuple[AzureEvent, ...]


def spot_finding(answer: MetadataAnswer, *, now: float, wall: float) -> SourceFinding:
    """EC2: ``/latest/meta-data/spot/instance-action``, which does not exist (404) until the instance is interrupted."""
    if answer.status == 404:
        return SourceFinding()
    said = _decode(answer, _SpotAction)
    left = min(EC2_SECONDS, _parse_time(said.time) - _service_time(answer, wall))
    action = plain_text(said.action)[:40]
    return SourceFinding(
        notice=_notice(NoticeSource.EC2, f"{action} {said.time}", now + left, f"spot instance: {action}")
    )


def rebalance_warning(answer: MetadataAnswer) -> str:
    """EC2: ``/latest/meta-data/events/recommendations/rebalance``: this instance has a higher risk of interruption."""
    if answer.status == 404:
        return ""
    _require_success(answer)
    return "EC2 recommends to move work away: the instance has an elevated risk of interruption"


def preemption_finding(answer: MetadataAnswer, *, now: float) -> SourceFinding:
    """Compute Engine: ``/computeMetadata/v1/instance/preempted``, TRUE when the machine is about to be preempted."""
    _require_success(answer)
    said = answer.body.strip().upper()
    if said not in (b"TRUE", b"FALSE"):
        raise UnreadableAnswer(f"preempted is neither TRUE nor FALSE: {answer.body[:40]!r}")
    if said == b"FALSE":
        return SourceFinding()
    return SourceFinding(notice=_notice(NoticeSource.GCP, "preempted", now + GCP_SECONDS, "preempted"))


def azure_events(answer: MetadataAnswer) -> Sequence[AzureEvent]:
    """Azure: the events of ``/metadata/scheduledevents``, of all machines in this one's group."""
    return _decode(answer, _AzureDocument).events


def azure_finding(
    events: Sequence[AzureEvent], answer: MetadataAnswer, *, machine: str, types: Sequence[str], now: float, wall: float
) -> SourceFinding:
    """The earliest event that ends this machine; other kinds, such as Freeze, are only warnings."""
    own = [event for event in events if machine.lower() in (name.lower() for name in event.resources)]
    ends = [(_azure_seconds(event, answer, wall), event) for event in own if event.event_type in types]
    others = [event for event in own if event.event_type not in types]
    warning = ", ".join(f"{plain_text(one.event_type)[:40]} is scheduled" for one in others[:4])
    if not ends:
        return SourceFinding(warning=warning)
    left, first = min(ends, key=lambda one: (one[0], one[1].event_id))
    reason = f"scheduled event: {plain_text(first.event_type)[:40]}"
    notice = _notice(NoticeSource.AZURE, first.event_id, now + left, reason)
    return SourceFinding(notice=notice, warning=warning)


def events_to_start(events: Sequence[AzureEvent], *, machine: str, types: Sequence[str]) -> list[str]:
    """The IDs of the scheduled events that end this machine and no other: starting one starts it for all its machines."""
    return [
        event.event_id
        for event in events
        if event.event_type in types
        and event.event_status == "Scheduled"
        and [name.lower() for name in event.resources] == [machine.lower()]
    ]


def _azure_seconds(event: AzureEvent, answer: MetadataAnswer, wall: float) -> float:
    """Seconds until the event; an event without a time has started."""
    if not event.not_before:
        return STARTED_SECONDS
    return min(AZURE_SECONDS, _parse_time(event.not_before) - _service_time(answer, wall))


def _notice(source: NoticeSource, key: str, deadline: float, reason: str) -> ShutdownNotice:
    return ShutdownNotice(source=source, key=plain_text(key)[:200], deadline=deadline, reason=reason)


def _service_time(answer: MetadataAnswer, wall: float) -> float:
    return wall if answer.date is None else answer.date


def _require_success(answer: MetadataAnswer) -> None:
    if answer.status != 200:
        raise UnreadableAnswer(f"the metadata service answers {answer.status}")


def _decode(answer: MetadataAnswer, type_: type[T]) -> T:
    _require_success(answer)
    try:
        found: T = msgspec.json.decode(answer.body, type=type_)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnreadableAnswer(f"the metadata service answers what is not expected: {error}") from error
    return found


def _parse_time(said: str) -> float:
    """Seconds since 1970 of an RFC 3339 time (EC2), or of an HTTP date (Azure)."""
    moment: Any = None
    try:
        moment = dt.datetime.fromisoformat(said)
    except ValueError:
        try:
            moment = email.utils.parsedate_to_datetime(said)
        except (ValueError, TypeError, IndexError):
            raise UnreadableAnswer(f"{plain_text(said)[:60]!r} is not a time") from None
    try:
        return float((moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp())
    except (OverflowError, ValueError, OSError):
        raise UnreadableAnswer(f"{plain_text(said)[:60]!r} is not a time") from None
