"""What the sources of deadlines change of the Node without a shutdown: two conditions, and a cordon (pure)."""

from collections.abc import Mapping
from typing import Any

from lastcall import names
from lastcall.graceful.cluster.node_changes import Patch, api_time
from lastcall.model.base import Facts
from lastcall.model.shutdown_node import ShutdownNode, is_cordoned_by_others


class SourceStanding(Facts, frozen=True):
    """What the Node shall say: why sources fail and what they warn of, by source; whether that cordons the Node."""

    failures: tuple[tuple[str, str], ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()
    cordon: bool = False


def standing_patch(standing: SourceStanding, wall: float) -> Patch:
    """The strategic merge patch of the Node's status, at ``wall`` (seconds since 1970)."""
    return {
        "status": {
            "conditions": [
                _condition(names.SOURCES_FAIL, standing.failures, ("SourcesFail", "SourcesAnswer"), wall),
                _condition(names.INTERRUPTION_LIKELY, standing.warnings, ("SourcesWarn", "NoWarning"), wall),
            ]
        }
    }


def warning_cordon_patch(node: ShutdownNode, *, wanted: bool) -> Patch | None:
    """The merge patch that cordons the Node, or undoes our cordon; None if nothing has to change.

    A Node that somebody has cordoned already is left alone, and so stays cordoned. The patch has a resourceVersion, so
    that a cordon by somebody else in between is not mistaken for ours. A cordon that somebody has set after another one
    has uncordoned the Node stays, as in ``node_changes.undo_patch``: only the annotation is removed.
    """
    ours = names.WARNING_CORDON in (node.metadata.annotations or {})
    if wanted == ours or (wanted and node.spec.unschedulable):
        return None
    mark = "true" if wanted else None
    metadata = {"resourceVersion": node.metadata.resource_version, "annotations": {names.WARNING_CORDON: mark}}
    if not wanted and is_cordoned_by_others(node):
        return {"metadata": metadata}
    return {"metadata": metadata, "spec": {"unschedulable": True if wanted else None}}


def _condition(
    kind: str, said: tuple[tuple[str, str], ...], reasons: tuple[str, str], wall: float
) -> Mapping[str, Any]:
    since = api_time(wall)
    return {
        "type": kind,
        "status": "True" if said else "False",
        "reason": reasons[0] if said else reasons[1],
        "message": "; ".join(f"{source}: {text}" for source, text in said)[:1024],
        "lastHeartbeatTime": since,
        "lastTransitionTime": since,
    }
