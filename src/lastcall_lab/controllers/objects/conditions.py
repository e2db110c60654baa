"""Conditions of Deployments and Jobs, which keep their last transition time (pure)."""

from collections.abc import Mapping, Sequence
from typing import Any

from lastcall_lab.apiserver.values.object_meta import timestamp
from lastcall_lab.controllers.framework.view import Object

Conditions = Sequence[Mapping[str, Any]]


def find_condition(conditions: Conditions, kind: str) -> Mapping[str, Any]:
    """The condition of a type; empty if there is none."""
    return next((one for one in conditions if one["type"] == kind), {})


def is_condition_true(conditions: Conditions, kind: str) -> bool:
    """Whether the condition of a type is True."""
    return find_condition(conditions, kind).get("status") == "True"


def without_condition(conditions: Conditions, kind: str) -> Conditions:
    """All conditions except those of a type."""
    return [one for one in conditions if one["type"] != kind]


def new_condition(kind: str, status: str, reason: str, message: str, *, now: float, stamp: str) -> Object:
    """A new condition; ``stamp`` names the field with the time of the last check (``lastUpdateTime``)."""
    time = timestamp(now)
    return {
        "type": kind,
        "status": status,
        stamp: time,
        "lastTransitionTime": time,
        "reason": reason,
        "message": message,
    }


def set_condition(conditions: Conditions, new: Mapping[str, Any]) -> Conditions:
    """Appends the new condition, unless status and reason are unchanged (``SetDeploymentCondition``)."""
    old = find_condition(conditions, new["type"])
    if old and (old["status"], old.get("reason")) == (new["status"], new.get("reason")):
        return conditions
    if old and old["status"] == new["status"]:
        new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
    return [*without_condition(conditions, new["type"]), new]
