"""Conditions of Deployments and Jobs: they keep the time since when they are what they are (pure)."""

from collections.abc import Mapping, Sequence
from typing import Any

from lastcall_lab.apiserver.values.object_meta import timestamp
from lastcall_lab.controllers.framework.view import Object

Conditions = Sequence[Mapping[str, Any]]


def find_condition(conditions: Conditions, kind: str) -> Mapping[str, Any]:
    """The one of a type; empty if there is none."""
    return next((one for one in conditions if one["type"] == kind), {})


def is_condition_true(conditions: Conditions, kind: str) -> bool:
    """Whether there is one of a type that is True."""
    return find_condition(conditions, kind).get("status") == "True"


def without_condition(conditions: Conditions, kind: str) -> Conditions:
    """All but those of a type."""
    return [one for one in conditions if one["type"] != kind]


def new_condition(kind: str, status: str, reason: str, message: str, *, now: float, stamp: str) -> Object:
    """A new one; ``stamp`` names the field that says when it was last looked at (``lastUpdateTime``)."""
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
    """With the new one at the end, unless status and reason are what they were (``SetDeploymentCondition``)."""
    old = find_condition(conditions, new["type"])
    if old and (old["status"], old.get("reason")) == (new["status"], new.get("reason")):
        return conditions
    if old and old["status"] == new["status"]:
        new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
    return [*without_condition(conditions, new["type"]), new]
