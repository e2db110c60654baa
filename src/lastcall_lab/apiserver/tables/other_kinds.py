"""Events, configuration, webhooks and roles."""

from collections.abc import Mapping, Sequence
from typing import Any

from lastcall_lab.apiserver.tables.cell_text import Printer, age_text, name_of, time_since
from lastcall_lab.apiserver.values.request import Object


def event_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of an event, of either group."""
    subject = obj.get("involvedObject") or obj.get("regarding") or {}
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    component = source.get("component") or obj.get("reportingComponent") or obj.get("reportingController", "")
    host = source.get("host") or obj.get("reportingInstance", "")
    last, first, count = _times(obj, now)
    kind = str(subject.get("kind", "")).lower()
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{subject['name']}" if subject.get("name") else kind,
        subject.get("fieldPath", ""),
        f"{component}, {host}" if host else component,
        str(obj.get("message") or obj.get("note") or "").strip(),
        first,
        count,
        name_of(obj),
    ]


def _times(obj: Object, now: float) -> tuple[str, str, int]:
    """First and last time, and count."""
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime")
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp") or first
    count = obj.get("count") or obj.get("deprecatedCount") or 1
    if series := obj.get("series"):
        last, count = series.get("lastObservedTime"), series.get("count", 0)
    return time_since(last, now), time_since(first, now), count


def config_map_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a config map."""
    return [name_of(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age_text(obj, now)]


def secret_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a secret."""
    return [name_of(obj), obj.get("type", ""), len(obj.get("data") or ()), age_text(obj, now)]


def service_account_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a service account."""
    return [name_of(obj), age_text(obj, now)]


def webhook_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a webhook configuration."""
    return [name_of(obj), len(obj.get("webhooks") or ()), age_text(obj, now)]


def binding_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a role binding."""
    role, subjects = obj.get("roleRef") or {}, obj.get("subjects") or ()
    accounts = [f"{one.get('namespace', '')}/{one['name']}" for one in subjects if one.get("kind") == "ServiceAccount"]
    return [
        name_of(obj),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        age_text(obj, now),
        *(", ".join(one["name"] for one in subjects if one.get("kind") == kind) for kind in ("User", "Group")),
        ", ".join(accounts),
    ]


PRINTERS: Mapping[str, Printer] = {
    "Event": event_cells,
    "ConfigMap": config_map_cells,
    "Secret": secret_cells,
    "ServiceAccount": service_account_cells,
    "MutatingWebhookConfiguration": webhook_cells,
    "ValidatingWebhookConfiguration": webhook_cells,
    "RoleBinding": binding_cells,
    "ClusterRoleBinding": binding_cells,
}
