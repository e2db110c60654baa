"""What is told to people by events on Nodes and Pods (pure)."""

from collections.abc import Iterator, Sequence

from lastcall import names
from lastcall.failover.deciding import pacing, steps
from lastcall.failover.limits.storms import Limit
from lastcall.failover.telling.happenings import Acted, Blocked, Decided, Happening, Removed, Repeated
from lastcall.model.observed import Told

_MOST = 1024
"""Characters of a message that the API takes (``core/validation``: 1 KiB of a note)."""


FENCERS = "Fencers"
"""No fencer of the node can switch its machine off now."""


def told(happening: Happening, uids: dict[str, str]) -> Sequence[Told]:
    """The events for it, if it is for people. ``uids``: those of nodes, which is noted here."""
    if isinstance(happening, Removed):
        return [*_removed(happening)]
    one = _one(happening, uids)
    return [one] if one else []


def held_by(happening: Happening) -> str:
    """What keeps a suspected node from being fenced: one of the limits, or its fencers; empty if it is neither."""
    match happening:
        case Blocked(limit=limit) | Decided(step=steps.Wait(limit=Limit() as limit)):
            return limit.value
        case Decided(step=steps.Wait(stuck=True)):
            return FENCERS
        case _:
            return ""


def _one(happening: Happening, uids: dict[str, str]) -> Told | None:
    held = held_by(happening)
    match happening:
        case Blocked(node=node, uid=uid, why=why) | Decided(node=node, uid=uid, step=steps.Wait(why=why)) if held:
            uids[node] = uid
            return _told(node, uid, names.E_NOT_FENCED, why, warning=True)
        case Decided(node=node, uid=uid, step=step, would=would):
            uids[node] = uid
            return _told(node, uid, names.E_WOULD, step.why, warning=True) if would else _decided(node, uid, step)
        case Acted(ended=None, verb="off", node=node, why=why):
            return _told(node, uids.get(node, ""), names.E_SWITCHING_OFF, why, warning=True)
        case Acted(ended=float(), verb="off" | "on", node=node, error=error, fencer=fencer) if error:
            return _told(node, uids.get(node, ""), names.E_FENCING_FAILED, f"{fencer}: {error}", warning=True)
        case Acted(verb="taint", node=node, error="", why=why):
            return _told(node, uids.get(node, ""), names.E_DEAD, why, warning=True)
        case Repeated(node=node, times=times) if times >= pacing.MANY:
            message = f"Pods were removed by force {times} times in a row: others are made anew on a node that is gone"
            why = f"{message}; the next time is {pacing.pause(times):g} s later"
            return _told(node, uids.get(node, ""), names.E_ANEW, why, warning=True)
        case _:
            return None


def _removed(removed: Removed) -> Iterator[Told]:
    """One in each namespace, about its first pod: a node has a hundred, and the events are written beside the deletes."""
    spaces: dict[str, list[tuple[str, str]]] = {}
    for namespace, name, uid in sorted(removed.pods):
        spaces.setdefault(namespace, []).append((name, uid))
    for namespace, ((name, uid), *others) in spaces.items():
        message = f"Removed by force: node {removed.node} is gone, and will not confirm the pod's end"
        if others:
            message += f". With it {len(others)} more of this namespace: {', '.join(other for other, _ in others)}"
        yield _told(name, uid, names.E_REMOVED, message, namespace=namespace)


def _decided(node: str, uid: str, step: steps.Step) -> Told | None:
    match step:
        case steps.Mark(mark=mark, why=why) if not (mark.switched_off or mark.powered_on):
            return _told(node, uid, names.E_BEGUN, why, warning=True)
        case steps.SwitchOn(why=why):
            return _told(node, uid, names.E_SWITCHING_ON, why)
        case steps.Unmark(why=why):
            return _told(node, uid, names.E_OVER, why)
        case _:
            return None


def _told(name: str, uid: str, reason: str, message: str, *, namespace: str = "", warning: bool = False) -> Told:
    return Told(name=name, uid=uid, reason=reason, message=_cut(message), namespace=namespace, warning=warning)


def _cut(message: str) -> str:
    return message if len(message) <= _MOST else message[: _MOST - 4] + " ..."
