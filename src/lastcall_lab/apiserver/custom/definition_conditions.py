"""The conditions of a definition: NamesAccepted and Established (pure).

``pkg/controller/status/naming_controller.go`` and ``pkg/controller/establish``.
"""

from collections.abc import Sequence

from lastcall_lab.apiserver.values import object_meta
from lastcall_lab.apiserver.values.request import Object

_NAMES = ("plural", "singular", "kind", "listKind")


def settle_conditions(obj: Object, others: Sequence[Object], *, wall: float) -> bool:
    """Accepts, in place, the names that no other definition of the group has; returns whether anything changed.

    A definition with all names accepted becomes established and stays so.
    """
    wanted, status = obj["spec"]["names"], obj.setdefault("status", {})
    before = (status.get("acceptedNames"), [dict(one) for one in status.get("conditions") or ()])
    accepted = dict(status.get("acceptedNames") or {})
    conflict = _claim(wanted, accepted, obj["spec"]["group"], others)
    for name in ("plural", "kind"):
        accepted.setdefault(name, "")
    status["acceptedNames"] = accepted
    if conflict:
        set_condition(obj, "NamesAccepted", "False", *conflict, wall=wall)
        if not is_true(obj, "Established"):
            set_condition(obj, "Established", "False", "NotAccepted", "not all names are accepted", wall=wall)
    else:
        set_condition(obj, "NamesAccepted", "True", "NoConflicts", "no conflicts found", wall=wall)
        if not is_true(obj, "Established"):
            message = "the initial names have been accepted"
            set_condition(obj, "Established", "True", "InitialNamesAccepted", message, wall=wall)
    return before != (status["acceptedNames"], status["conditions"])


def is_true(obj: Object, kind: str) -> bool:
    """Whether the condition exists and is True."""
    found = (obj.get("status") or {}).get("conditions") or ()
    return any(one["type"] == kind and one["status"] == "True" for one in found)


def set_condition(obj: Object, kind: str, status: str, reason: str, message: str, *, wall: float) -> None:
    """Sets a condition; keeps its transition time unless the status changes."""
    found = obj.setdefault("status", {}).get("conditions") or []
    obj["status"]["conditions"] = found
    old = next((one for one in found if one["type"] == kind), None)
    since = old["lastTransitionTime"] if old and old["status"] == status else object_meta.timestamp(wall)
    new = {"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}
    if old:
        found[found.index(old)] = new
    else:
        found.append(new)


def _claim(wanted: Object, accepted: Object, group: str, others: Sequence[Object]) -> tuple[str, str] | None:
    """Adds the free names to ``accepted``; returns reason and message of the last conflict, if any."""
    taken = [(one.get("status") or {}).get("acceptedNames") or {} for one in others if one["spec"]["group"] == group]
    resources = {
        name for one in taken for name in (one.get("plural"), one.get("singular"), *(one.get("shortNames") or ()))
    }
    kinds = {name for one in taken for name in (one.get("kind"), one.get("listKind"))}
    conflict = None
    for name in _NAMES[:2]:
        conflict = _one(name, wanted, accepted, resources) or conflict
    known = accepted.get("shortNames") or []
    used = [short for short in wanted.get("shortNames") or () if short not in known and short in resources]
    if used:
        said = [f'"{short}" is already in use' for short in used]
        conflict = "ShortNamesConflict", said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    else:
        _set(accepted, "shortNames", wanted.get("shortNames"))
    for name in _NAMES[2:]:
        conflict = _one(name, wanted, accepted, kinds) or conflict
    _set(accepted, "categories", wanted.get("categories"))
    return conflict


def _one(name: str, wanted: Object, accepted: Object, used: set[str | None]) -> tuple[str, str] | None:
    said = wanted.get(name, "")
    if said != accepted.get(name) and said in used:
        return f"{name[0].upper()}{name[1:]}Conflict", f'"{said}" is already in use'
    _set(accepted, name, said)
    return None


def _set(target: Object, name: str, value: object) -> None:
    if value:
        target[name] = value
    else:
        target.pop(name, None)
