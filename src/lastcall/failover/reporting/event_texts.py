"""The texts of events on Nodes and Pods (pure)."""

from collections.abc import Iterator, Sequence

from lastcall import names
from lastcall.failover.decisions import removal_backoff, steps
from lastcall.failover.limits.storms import Limit
from lastcall.failover.reporting.controller_events import (
    CallReported,
    FencingBlocked,
    Happening,
    PodsRemoved,
    RemovalsRepeated,
    StepDecided,
)
from lastcall.model.observed import ClusterEvent

_MOST = 1024
"""The most characters of a message that the API accepts (``core/validation``: 1 KiB of a note)."""


FENCERS = "Fencers"
"""No fencer of the node can power its machine off now."""


def events_for(happening: Happening, uids: dict[str, str]) -> Sequence[ClusterEvent]:
    """The events for a happening, if any. ``uids`` collects the UIDs of nodes."""
    if isinstance(happening, PodsRemoved):
        return [*_removal_events(happening)]
    one = _event_for(happening, uids)
    return [one] if one else []


def holding_limit(happening: Happening) -> str:
    """What keeps a suspected node from being fenced: a storm limit or its fencers; empty otherwise."""
    match happening:
        case FencingBlocked(limit=limit) | StepDecided(step=steps.Wait(limit=Limit() as limit)):
            return limit.value
        case StepDecided(step=steps.Wait(stuck=True)):
            return FENCERS
        case _:
            return ""


def _event_for(happening: Happening, uids: dict[str, str]) -> ClusterEvent | None:
    held = holding_limit(happening)
    match happening:
        case (
            FencingBlocked(node=node, uid=uid, why=why) | StepDecided(node=node, uid=uid, step=steps.Wait(why=why))
        ) if held:
            uids[node] = uid
            return _new_event(node, uid, names.E_NOT_FENCED, why, warning=True)
        case StepDecided(node=node, uid=uid, step=step, would=would):
            uids[node] = uid
            return (
                _new_event(node, uid, names.E_WOULD, step.why, warning=True)
                if would
                else _decision_event(node, uid, step)
            )
        case CallReported(ended=None, verb="off", node=node, why=why):
            return _new_event(node, uids.get(node, ""), names.E_SWITCHING_OFF, why, warning=True)
        case CallReported(ended=float(), verb="off" | "on", node=node, error=error, fencer=fencer) if error:
            return _new_event(node, uids.get(node, ""), names.E_FENCING_FAILED, f"{fencer}: {error}", warning=True)
        case CallReported(verb="taint", node=node, error="", why=why):
            return _new_event(node, uids.get(node, ""), names.E_DEAD, why, warning=True)
        case RemovalsRepeated(node=node, times=times) if times >= removal_backoff.MANY:
            message = f"Pods were removed by force {times} times in a row: controllers recreate them on a dead node"
            why = f"{message}; the next time is {removal_backoff.pause_seconds(times):g} s later"
            return _new_event(node, uids.get(node, ""), names.E_ANEW, why, warning=True)
        case _:
            return None


def _removal_events(removed: PodsRemoved) -> Iterator[ClusterEvent]:
    """One event per namespace, about its first pod: a node may have a hundred, and events compete with deletions."""
    spaces: dict[str, list[tuple[str, str]]] = {}
    for namespace, name, uid in sorted(removed.pods):
        spaces.setdefault(namespace, []).append((name, uid))
    for namespace, ((name, uid), *others) in spaces.items():
        message = f"Removed by force: node {removed.node} is gone, and will not confirm the pod's end"
        if others:
            message += f". With it {len(others)} more of this namespace: {', '.join(other for other, _ in others)}"
        yield _new_event(name, uid, names.E_REMOVED, message, namespace=namespace)


def _decision_event(node: str, uid: str, step: steps.Step) -> ClusterEvent | None:
    match step:
        case steps.Mark(mark=mark, why=why) if not (mark.switched_off or mark.powered_on):
            return _new_event(node, uid, names.E_BEGUN, why, warning=True)
        case steps.SwitchOn(why=why):
            return _new_event(node, uid, names.E_SWITCHING_ON, why)
        case steps.Unmark(why=why):
            return _new_event(node, uid, names.E_OVER, why)
        case _:
            return None


def _new_event(
    name: str, uid: str, reason: str, message: str, *, namespace: str = "", warning: bool = False
) -> ClusterEvent:
    return ClusterEvent(
        name=name, uid=uid, reason=reason, message=_truncate_message(message), namespace=namespace, warning=warning
    )


def _truncate_message(message: str) -> str:
    return message if len(message) <= _MOST else message[: _MOST - 4] + " ..."
