"""The effect of a DELETE on an object (pure), as in the generic registry (``rest.BeforeDelete``, ``Store.Delete``)."""

from collections.abc import Sequence
from dataclasses import replace

from lastcall_lab.apiserver.resources.kind_behaviour import (
    DeleteOptions,
    DeletionFate,
    DeletionOutcome,
    DependentsPolicy,
    KindBehaviour,
)
from lastcall_lab.apiserver.resources.scheme import ServedResource
from lastcall_lab.apiserver.values import field_errors, object_meta
from lastcall_lab.apiserver.values.api_errors import ApiError, Cause, conflict_error, invalid_error
from lastcall_lab.apiserver.values.object_meta import FOREGROUND, ORPHAN
from lastcall_lab.apiserver.values.request import Object

_POLICIES = ("Foreground", "Background", "Orphan")


def decide_deletion(obj: Object, options: DeleteOptions, resource: ServedResource, *, wall: float) -> DeletionOutcome:
    """The outcome for an object, which is changed in place. ApiError if a precondition fails."""
    behaviour = resource.behaviour
    if own := behaviour.outcome(obj, options, wall):
        return own
    check_preconditions(obj, options, resource)
    if options.grace is not None and options.grace < 0:
        options = replace(options, grace=1)
    metadata = obj["metadata"]
    grace = behaviour.grace(obj, options)
    gracefully = grace is not None
    if gracefully and metadata.get("deletionTimestamp"):
        left = metadata.get("deletionGracePeriodSeconds") or 0
        if left and (options.grace is None or options.grace >= left):
            return DeletionOutcome(DeletionFate.UNCHANGED, obj, options)
        gracefully, grace = left > 0, options.grace
        if gracefully:
            _shorten(metadata, grace or 0, wall)
    elif gracefully:
        options = replace(options, grace=grace)
        _mark(metadata, grace or 0, wall)
    return _outcome_with_finalizers(obj, options, behaviour, wall=wall, gracefully=gracefully)


def removes_last_hold(new: Object, old: Object, behaviour: KindBehaviour) -> bool:
    """Whether a change removes the last finalizer or grace period of an object being deleted."""
    before = old["metadata"]
    if new["metadata"].get("finalizers") or not before.get("deletionTimestamp"):
        return False
    return not before.get("deletionGracePeriodSeconds") and not behaviour.keeps_object(new)


def check_delete_options(options: DeleteOptions) -> None:
    """ApiError if the options are invalid (``validation.ValidateDeleteOptions``)."""
    causes: list[Cause] = []
    policy = options.propagation
    if options.orphan is not None and policy is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        causes.append(field_errors.invalid("propagationPolicy", policy, why))
    if policy is not None and policy not in _POLICIES:
        causes.append(field_errors.not_supported("propagationPolicy", policy, [*_POLICIES, "nil"]))
    if set(options.dry_run) - {"All"}:
        causes.append(field_errors.not_supported("dryRun", list(options.dry_run), ["All"]))
    if causes:
        raise invalid_error("DeleteOptions", "meta.k8s.io", "", causes)


def check_preconditions(obj: Object, options: DeleteOptions, resource: ServedResource) -> None:
    """ApiError if uid or resourceVersion differ from the preconditions."""
    metadata = obj["metadata"]
    found, revision = metadata["uid"], metadata["resourceVersion"]
    if options.uid is not None and options.uid != found:
        raise _mismatch(resource, metadata["name"], "UID", options.uid, found, "deleted and then recreated")
    if options.revision is not None and options.revision != revision:
        raise _mismatch(resource, metadata["name"], "ResourceVersion", options.revision, revision, "modified")


def _mismatch(resource: ServedResource, name: str, what: str, said: str, found: str, how: str) -> ApiError:
    why = (
        f"the {what} in the precondition ({said}) does not match the {what} in record ({found})."
        f" The object might have been {how}"
    )
    return conflict_error(resource.kind, resource.internal_group, name, why)


def _outcome_with_finalizers(
    obj: Object, options: DeleteOptions, behaviour: KindBehaviour, *, wall: float, gracefully: bool
) -> DeletionOutcome:
    """The outcome after the grace period is known: finalizers keep every object."""
    metadata = obj["metadata"]
    kept = resulting_finalizers(metadata.get("finalizers") or [], options, behaviour.dependents)
    metadata.pop("finalizers", None)
    if kept:
        metadata["finalizers"] = kept
    if gracefully:
        waits = bool(kept) or metadata["deletionGracePeriodSeconds"] > 0
        return DeletionOutcome(
            DeletionFate.MARKED_FOR_LATER if waits else DeletionFate.REMOVED_NOW, obj, options, marked=True
        )
    if kept:
        _mark_ungraceful(metadata, wall)
        return DeletionOutcome(DeletionFate.MARKED_FOR_LATER, obj, options, marked=True)
    return DeletionOutcome(DeletionFate.REMOVED_NOW, obj, options)


def _mark(metadata: Object, grace: int, wall: float) -> None:
    metadata["deletionTimestamp"] = object_meta.timestamp(wall + grace)
    metadata["deletionGracePeriodSeconds"] = grace
    if metadata.get("generation"):
        metadata["generation"] += 1


def _mark_ungraceful(metadata: Object, wall: float) -> None:
    """Without a grace period: the object waits for its finalizers only; an earlier mark moves to now at the latest."""
    before = metadata.get("deletionTimestamp")
    if before is None:
        _mark(metadata, 0, wall)
        return
    metadata["deletionGracePeriodSeconds"] = 0
    if object_meta.parse_seconds(before) > wall:
        metadata["deletionTimestamp"] = object_meta.timestamp(wall)


def _shorten(metadata: Object, grace: int, wall: float) -> None:
    """Brings the end forward according to the shorter grace period, but not into the past.

    If the new end would already have passed, a non-zero grace period becomes one second, so that the deletion stays
    graceful and the node ends the pod.
    """
    began = object_meta.parse_seconds(metadata["deletionTimestamp"]) - metadata["deletionGracePeriodSeconds"]
    if began + grace < wall:
        began, grace = (wall, 0) if grace == 0 else (wall - 1, 1)
    metadata["deletionTimestamp"] = object_meta.timestamp(began + grace)
    metadata["deletionGracePeriodSeconds"] = grace


def resulting_finalizers(present: Sequence[str], options: DeleteOptions, default: DependentsPolicy) -> list[str]:
    """The object's new finalizers; the options, or else the kind, decide about the garbage collector's."""
    orphaned = _policy(present, options, default)
    others = [one for one in present if one not in (ORPHAN, FOREGROUND)]
    wanted = others + {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(orphaned, [])
    return list(present) if set(wanted) == set(present) else wanted


def _policy(present: Sequence[str], options: DeleteOptions, default: DependentsPolicy) -> str:
    """In order of precedence: the options, the finalizers of an earlier deletion, the default of the kind."""
    if default is DependentsPolicy.NONE:
        return ""
    if options.orphan is not None:
        return "Orphan" if options.orphan else ""
    if options.propagation is not None:
        return options.propagation
    earlier = next((one for one in present if one in (ORPHAN, FOREGROUND)), None)
    if earlier:
        return "Orphan" if earlier == ORPHAN else "Foreground"
    return "Orphan" if default is DependentsPolicy.ORPHANED else ""
