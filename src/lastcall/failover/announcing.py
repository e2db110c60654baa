"""What is told to people by events on Nodes and Pods (pure)."""

from lastcall import names
from lastcall.failover import steps
from lastcall.failover.happenings import Acted, Decided, Happening
from lastcall.model.observed import Told

_MOST = 1024
"""Characters of a message that the API takes (``core/validation``: 1 KiB of a note)."""


def told(happening: Happening, uids: dict[str, str]) -> Told | None:
    """The event for it; None if it is not for people. ``uids``: those of nodes, which is noted here."""
    match happening:
        case Decided(node=node, uid=uid, step=step, would=would):
            uids[node] = uid
            return _told(node, uid, names.E_WOULD, step.why, warning=True) if would else _decided(node, uid, step)
        case Acted(ended=None, verb="off", node=node, fencer=fencer, why=why):
            return _told(node, uids.get(node, ""), names.E_SWITCHING_OFF, f"{fencer}: {why}", warning=True)
        case Acted(ended=float(), verb="off" | "on", node=node, error=error, fencer=fencer) if error:
            return _told(node, uids.get(node, ""), names.E_FENCING_FAILED, f"{fencer}: {error}", warning=True)
        case Acted(verb="taint", node=node, error="", why=why):
            return _told(node, uids.get(node, ""), names.E_DEAD, why, warning=True)
        case Acted(verb="force-delete", error="", namespace=namespace, name=name, uid=uid, node=node):
            message = f"Removed by force: node {node} is gone, and will not confirm the pod's end"
            return _told(name, uid, names.E_REMOVED, message, namespace=namespace)
        case _:
            return None


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
    return Told(name=name, uid=uid, reason=reason, message=message[:_MOST], namespace=namespace, warning=warning)
