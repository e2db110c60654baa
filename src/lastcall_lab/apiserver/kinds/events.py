"""Events in their two versions, of which ``v1`` is the storage version (``pkg/apis/core``, ``pkg/apis/events``)."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lastcall.model import name_rules
from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.resources.kind_behaviour import DependentsPolicy, KindBehaviour
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

RENAMED: Mapping[str, str] = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
"""The fields of ``events.k8s.io/v1`` with another name in ``v1``."""

RENAMED_BACK: Mapping[str, str] = {"reportingComponent": "reportingController"}
"""The one field whose errors have the new name."""

_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_NOTE, _ACTION = 1024, 128
_UNSET = ("firstTimestamp", "lastTimestamp", "count", "source")
"""The fields of the old version only, in the order of the errors."""

_FIXED = (
    "involvedObject",
    "reason",
    "message",
    "source",
    *_UNSET[:3],
    "reason",
    "type",
    "eventTime",
    "action",
    "related",
)
_REFERENCE = ("Kind", "Namespace", "Name", "UID", "APIVersion", "ResourceVersion", "FieldPath")
_INTERNAL: Mapping[str, Sequence[str]] = {
    "involvedObject": _REFERENCE,
    "related": _REFERENCE,
    "source": ("Component", "Host"),
}
"""The Go names of nested fields, as in errors."""

_ZERO: Mapping[str, Any] = {
    "count": 0,
    "related": None,
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
}
"""How Go prints unset values that are not text."""


class EventKind(KindBehaviour):
    """``v1``: events of old clients may be incomplete."""

    dependents = DependentsPolicy.NONE
    creates_on_update = True

    def default(self, obj: Object) -> None:
        """Sets the fields that are always present."""
        common_rules.sub_object(obj, "involvedObject")
        common_rules.sub_object(obj, "source")
        for name in ("firstTimestamp", "lastTimestamp", "eventTime"):
            obj.setdefault(name, None)
        for name in ("reportingComponent", "reportingInstance"):
            obj[name] = obj.get(name) or ""

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``legacyValidateEvent``: additional rules for events with an ``eventTime``."""
        return _legacy(obj, "reportingComponent")

    def fields(self, obj: Object) -> Mapping[str, str]:
        """Involved object, reason and source, under the names of both versions, which share one storage."""
        return {**_new_fields(obj), **_old_fields(obj)}

    def selectable_fields(self) -> Collection[str]:
        """The fields under the names of this version."""
        return _old_fields({}).keys()


class NewEventKind(KindBehaviour):
    """``events.k8s.io/v1``: complete at creation; only series and metadata can change."""

    dependents = DependentsPolicy.NONE
    creates_on_update = True

    def default(self, obj: Object) -> None:
        """Sets the fields that are always present."""
        common_rules.sub_object(obj, "regarding")
        common_rules.sub_object(obj, "deprecatedSource")
        for name in ("deprecatedFirstTimestamp", "deprecatedLastTimestamp", "eventTime"):
            obj.setdefault(name, None)

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateEventCreate``."""
        event = _as_stored(obj)
        yield from _legacy(event, "reportingController")
        yield from _series(event)
        if not event.get("eventTime"):
            yield field_errors.value_required("eventTime")
        if event.get("type") not in ("Normal", "Warning"):
            yield field_errors.invalid("type", "", f"has invalid value: {event.get('type') or ''}")
        for name in _UNSET:
            if event.get(name):
                yield field_errors.invalid(name, "", "needs to be unset")

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidateEventUpdate``."""
        after, before = _as_stored(new), _as_stored(old)
        yield from _legacy(after, "reportingController")
        if after.get("series") != before.get("series"):
            yield from _series(after)
        for name in (*_FIXED, "reportingComponent", "reportingInstance"):
            if (after.get(name) or None) != (before.get(name) or None):
                shown = _go_value(name, after.get(name))
                yield field_errors.invalid(RENAMED_BACK.get(name, name), shown, "field is immutable")

    def fields(self, obj: Object) -> Mapping[str, str]:
        """The same fields under the new names."""
        return _new_fields(_as_stored(obj))


def _old_fields(event: Object) -> dict[str, str]:
    return _selectable(event, "involvedObject", "reportingComponent", "source")


def _new_fields(event: Object) -> dict[str, str]:
    return _selectable(event, "regarding", "reportingController")


def _selectable(event: Object, about: str, reporting: str, *others: str) -> dict[str, str]:
    """``about`` and ``reporting`` name the fields of the object and the reporter, ``others`` those of the source."""
    controller, involved = event.get("reportingComponent") or "", event.get("involvedObject") or {}
    source = (event.get("source") or {}).get("component") or controller
    return {
        **{f"{about}.{name}": str(involved.get(name) or "") for name in _INVOLVED},
        "reason": event.get("reason") or "",
        reporting: controller,
        **dict.fromkeys(others, source),
        "type": event.get("type") or "",
    }


def _as_stored(event: Object) -> dict[str, Any]:
    return {RENAMED.get(name, name): value for name, value in event.items()}


def _legacy(event: Object, controller: str) -> Iterator[Cause]:
    """An event is in its object's namespace; a complete one has a reporter and a reason (``legacyValidateEvent``)."""
    own, about = event["metadata"].get("namespace", ""), (event.get("involvedObject") or {}).get("namespace") or ""
    complete = bool(event.get("eventTime"))
    fits = own in ("default", "kube-system") if complete else own in ("default", "")
    if not fits if not about else not complete and about != own:
        yield field_errors.invalid("involvedObject.namespace", about, "does not match event.namespace")
    if not complete:
        return
    who = event.get("reportingComponent") or ""
    if not who:
        yield field_errors.value_required(controller)
    for wrong in name_rules.qualified_name_errors(who):
        yield field_errors.invalid(controller, who, wrong)
    for name in ("reportingInstance", "action", "reason"):
        if not event.get(name):
            yield field_errors.value_required(name)
        yield from _short(event, name, _ACTION)
    yield from _short(event, "message", _NOTE)


def _short(event: Object, name: str, most: int) -> Iterator[Cause]:
    if len((event.get(name) or "").encode()) > most:
        yield field_errors.invalid(name, "", f"can have at most {most} characters")


def _series(event: Object) -> Iterator[Cause]:
    """``validateV1EventSeries``."""
    series = event.get("series")
    if series is not None:
        if (series.get("count") or 0) < 2:
            yield field_errors.invalid("series.count", "", "should be at least 2")
        if not series.get("lastObservedTime"):
            yield field_errors.value_required("series.lastObservedTime")


def _go_value(name: str, value: Any) -> Any:
    """A value of the internal version, with its Go names."""
    inner = _INTERNAL.get(name)
    if inner is None or (name == "related" and value is None):
        return _ZERO.get(name, "") if value is None else value
    said = {key.lower(): text for key, text in (value or {}).items()}
    return {key: said.get(key.lower(), "") for key in inner}
