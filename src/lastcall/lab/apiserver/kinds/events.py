"""Events, in their two versions, of which ``v1`` is the one that is stored (``pkg/apis/core``, ``pkg/apis/events``)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lastcall.lab.apiserver import fields, names
from lastcall.lab.apiserver.kinds import rules
from lastcall.lab.apiserver.kinds.base import Behaviour, Dependents
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.status import Cause

RENAMED: Mapping[str, str] = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
"""The fields of ``events.k8s.io/v1`` that have another name in ``v1``."""

_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_NOTE, _ACTION = 1024, 128
_FIXED = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
)


class Event(Behaviour):
    """``v1``: old clients say little, and may."""

    dependents = Dependents.NONE
    creates_on_update = True

    def default(self, obj: Object) -> None:
        """What an event always has."""
        rules.part(obj, "involvedObject")
        rules.part(obj, "source")
        for name in ("firstTimestamp", "lastTimestamp", "eventTime"):
            obj.setdefault(name, None)
        for name in ("reportingComponent", "reportingInstance"):
            obj[name] = obj.get(name) or ""

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``legacyValidateEvent``, and what events that have an ``eventTime`` must say besides."""
        yield from _namespace(obj, "involvedObject")
        if obj.get("eventTime"):
            yield from _reporting(obj, "reportingComponent")

    def fields(self, obj: Object) -> Mapping[str, str]:
        """What the event is about, why, from whom."""
        return _selectable(obj, "involvedObject", "regarding")


class NewEvent(Behaviour):
    """``events.k8s.io/v1``: complete from the beginning, and only the series and the metadata change."""

    dependents = Dependents.NONE
    creates_on_update = True

    def default(self, obj: Object) -> None:
        """What an event always has."""
        rules.part(obj, "regarding")
        rules.part(obj, "deprecatedSource")
        for name in ("deprecatedFirstTimestamp", "deprecatedLastTimestamp", "eventTime"):
            obj.setdefault(name, None)

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateEventCreate``."""
        yield from _namespace(obj, "regarding")
        if not obj.get("eventTime"):
            yield fields.required("eventTime")
        yield from _reporting(obj, "reportingController")
        if len(obj.get("note") or "") > _NOTE:
            yield fields.invalid("note", obj["note"], f"can have at most {_NOTE} characters")
        if not obj.get("type"):
            yield fields.required("type")
        elif obj["type"] not in ("Normal", "Warning"):
            yield fields.invalid("type", obj["type"], "has invalid value: " + obj["type"])
        for name in ("deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedCount", "deprecatedSource"):
            if obj.get(name):
                yield fields.invalid(RENAMED[name], obj[name], "needs to be unset")

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidateEventUpdate``."""
        yield from _namespace(new, "regarding")
        yield from rules.immutable(_as_stored(new), _as_stored(old), "", *_FIXED)

    def fields(self, obj: Object) -> Mapping[str, str]:
        """The same, under the new names."""
        return _selectable(_as_stored(obj), "regarding")


def _selectable(event: Object, *prefixes: str) -> dict[str, str]:
    """``prefixes`` are the names of the field that says what the event is about."""
    controller, about = event.get("reportingComponent") or "", event.get("involvedObject") or {}
    said = {name: str(about.get(name) or "") for name in _INVOLVED}
    return {
        **{f"{prefix}.{name}": text for prefix in prefixes for name, text in said.items()},
        "reason": event.get("reason") or "",
        "reportingComponent": controller,
        "reportingController": controller,
        "source": (event.get("source") or {}).get("component") or controller,
        "type": event.get("type") or "",
    }


def _as_stored(event: Object) -> dict[str, Any]:
    return {RENAMED.get(name, name): value for name, value in event.items()}


def _namespace(event: Object, name: str) -> Iterator[Cause]:
    """An event lies where its object does; those of objects without a namespace lie in ``default``."""
    own, about = event["metadata"].get("namespace", ""), (event.get(name) or {}).get("namespace") or ""
    if about != own and not (not about and own in ("default", "kube-system", "")):
        yield fields.invalid("involvedObject.namespace", about, "does not match event.namespace")


def _reporting(event: Object, controller: str) -> Iterator[Cause]:
    who = event.get(controller) or ""
    if not who:
        yield fields.required("reportingController")
    elif wrong := names.qualified(who):
        yield fields.invalid("reportingController", who, wrong)
    for name in ("reportingInstance", "action", "reason"):
        said = event.get(name) or ""
        if not said:
            yield fields.required(name)
        elif len(said) > _ACTION:
            yield fields.invalid(name, said, f"can have at most {_ACTION} characters")
