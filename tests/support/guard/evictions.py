"""Builders of EvictionRequests, Evictions and pods, as the guard reads them."""

from datetime import UTC, datetime, timedelta

import msgspec

from lastcall.model.eviction_requests import EvictablePod, EvictionRequest, PodEviction

NOW = datetime(2027, 1, 15, 8, 0, 0, tzinfo=UTC)
UID = "5c0de5ab-0001-4000-8000-000000000001"
GUARD, EVICTOR, DRAIN = "lastcall.dev/guard", "imperative-eviction.k8s.io/evictor", "acme.io/drain"


def at(seconds):
    """A time that is so many seconds after NOW."""
    return NOW + timedelta(seconds=seconds)


def text(moment):
    """As the API writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def request(name="r", *, requester=DRAIN, intent="Eviction", uid=UID, status=None, **metadata):
    said = {
        "metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}", "generation": 1, **metadata},
        "spec": {"target": {"pod": {"name": "db-0", "uid": uid}}, "requester": requester, "intent": intent},
        "status": status or {},
    }
    return msgspec.convert(said, EvictionRequest)


def eviction(name="pod-1-db-0", *, uid=UID, conditions=(), targets=(), responders=(), requesters=(DRAIN,), **metadata):
    """``targets``: (name, priority, state); ``responders``: entries as the API has them."""
    status = {
        "conditions": [*conditions],
        "observedGeneration": 1,
        "requesters": [{"name": one, "intent": "Eviction"} for one in requesters],
        "targetResponders": [dict(zip(("name", "priority", "state"), one, strict=True)) for one in targets],
        "responders": [*responders],
    }
    said = {
        "metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}", "generation": 1, **metadata},
        "spec": {"target": {"pod": {"name": "db-0", "uid": uid}}},
        "status": status,
    }
    return msgspec.convert(said, PodEviction)


def condition(kind, *, is_true=True, reason="X", since=NOW):
    status = "True" if is_true else "False"
    return {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": text(since)}


def pod(*, uid=UID, responders=(), phase="Running", group=None, owner=None, **metadata):
    """``responders``: (name, priority)."""
    owners = [{"kind": owner, "name": "x", "uid": "u", "controller": True}] if owner else []
    said = {
        "metadata": {"name": "db-0", "namespace": "shop", "uid": uid, "ownerReferences": owners, **metadata},
        "spec": {
            "evictionResponders": [{"name": name, "priority": priority} for name, priority in responders],
            "schedulingGroup": group,
        },
        "status": {"phase": phase},
    }
    return msgspec.convert(said, EvictablePod)


def states(turns):
    """The names and states, in order."""
    return [(one.name, one.state.value) for one in turns]
