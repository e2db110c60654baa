"""What a DELETE does to an object (pure): the rules of the generic registry (``rest.BeforeDelete``, ``Store.Delete``)."""

from enum import Enum
from typing import NamedTuple

from lastcall.lab.apiserver import fields, meta
from lastcall.lab.apiserver.kinds.base import Behaviour, Options
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.status import ApiError, conflict, invalid

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_POLICIES = ("Foreground", "Background", "Orphan")


class Fate(Enum):
    """What becomes of the object."""

    GOES = "it is removed now"
    WAITS = "it is marked, and goes later"
    STAYS = "it is being deleted already, and nothing changes"


class Outcome(NamedTuple):
    """``obj`` is the object as it is marked; it has changed unless it stays."""

    fate: Fate
    obj: Object
    marked: bool
    """Whether the mark is a version of its own, which watches see before the end."""


def decide(obj: Object, options: Options, behaviour: Behaviour, *, kind: str, plural: str, wall: float) -> Outcome:
    """The outcome for an object (which is changed in place). ApiError if the options forbid or make no sense."""
    check(options)
    preconditions(obj, options, kind)
    metadata = obj["metadata"]
    grace = behaviour.grace(obj, options)
    if metadata.get("deletionTimestamp") and grace is not None:
        return _again(obj, options)
    finalizers = _finalizers(metadata.get("finalizers") or [], options.propagation)
    if finalizers != (metadata.get("finalizers") or []):
        metadata["finalizers"] = finalizers
        if not finalizers:
            del metadata["finalizers"]
    if grace is None and not finalizers:
        return Outcome(Fate.GOES, obj, marked=False)
    _mark(metadata, grace or 0, wall)
    return Outcome(Fate.WAITS if grace or finalizers else Fate.GOES, obj, marked=True)


def goes_with(new: Object, old: Object) -> bool:
    """Whether a change removes the last thing that kept an object which is being deleted."""
    return not new["metadata"].get("finalizers") and old["metadata"].get("deletionGracePeriodSeconds") == 0


def check(options: Options) -> None:
    """ApiError if the options make no sense (``validation.ValidateDeleteOptions``)."""
    if options.propagation is not None and options.propagation not in _POLICIES:
        cause = fields.not_supported("propagationPolicy", options.propagation, [*_POLICIES, "nil"])
        raise invalid("DeleteOptions", "meta.k8s.io", "", [cause])


def preconditions(obj: Object, options: Options, kind: str) -> None:
    """ApiError if the object is not the one that is meant."""
    metadata = obj["metadata"]
    if options.uid is not None and options.uid != metadata["uid"]:
        raise _mismatch(kind, metadata["name"], "UID", options.uid, metadata["uid"], "deleted and then recreated")
    if options.revision is not None and options.revision != metadata["resourceVersion"]:
        raise _mismatch(
            kind, metadata["name"], "ResourceVersion", options.revision, metadata["resourceVersion"], "modified"
        )


def _mismatch(kind: str, name: str, what: str, said: str, found: str, how: str) -> ApiError:
    why = (
        f"the {what} in the precondition ({said}) does not match the {what} in record ({found})."
        f" The object might have been {how}"
    )
    return conflict(kind, "", name, why)


def _again(obj: Object, options: Options) -> Outcome:
    """Only a shorter grace period changes anything."""
    metadata = obj["metadata"]
    left = metadata.get("deletionGracePeriodSeconds") or 0
    if options.grace is None or options.grace >= left:
        return Outcome(Fate.STAYS, obj, marked=False)
    shorter = options.grace if options.grace >= 0 else 1
    metadata["deletionTimestamp"] = meta.timestamp(meta.seconds(metadata["deletionTimestamp"]) - left + shorter)
    metadata["deletionGracePeriodSeconds"] = shorter
    waits = shorter > 0 or bool(metadata.get("finalizers"))
    return Outcome(Fate.WAITS if waits else Fate.GOES, obj, marked=True)


def _mark(metadata: Object, grace: int, wall: float) -> None:
    if metadata.get("deletionTimestamp"):
        return
    metadata["deletionTimestamp"] = meta.timestamp(wall + grace)
    metadata["deletionGracePeriodSeconds"] = grace
    if metadata.get("generation"):
        metadata["generation"] += 1


def _finalizers(present: list[str], propagation: str | None) -> list[str]:
    """Those of the garbage collector are as the policy says; without a policy they stay as they are."""
    if propagation is None:
        return present
    others = [one for one in present if one not in (ORPHAN, FOREGROUND)]
    return others + {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(propagation, [])
