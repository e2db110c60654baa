"""Pods: their state in one column (``printPod``)."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lastcall_lab.apiserver.tables.cell_text import (
    NONE,
    Printer,
    age_text,
    find_condition,
    is_true,
    name_of,
    spec_of,
    status_of,
    time_since,
)
from lastcall_lab.apiserver.values.request import Object

_CONDITIONS = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


def pod_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a pod."""
    spec, status = spec_of(obj), status_of(obj)
    state = _state(obj)
    restarts = str(state.restarts)
    if state.restarts and state.last:
        restarts = f"{state.restarts} ({time_since(state.last, now)} ago)"
    ips = status.get("podIPs") or ()
    return [
        name_of(obj),
        f"{state.ready}/{len(spec.get('containers') or ()) + len(_sidecars(spec))}",
        _word(obj, state.reason),
        restarts,
        age_text(obj, now),
        (ips[0].get("ip") if ips else "") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(obj),
    ]


def row_conditions(obj: Object) -> list[Object]:
    """The row's condition Completed of a finished pod."""
    phase = status_of(obj).get("phase", "")
    if phase not in _CONDITIONS:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _CONDITIONS[phase]}]


class _PodState(NamedTuple):
    """``last`` is the last end of a container before its restart."""

    reason: str
    ready: int = 0
    restarts: int = 0
    last: str = ""


def _state(obj: Object) -> _PodState:
    status = status_of(obj)
    reason = status.get("reason") or status.get("phase", "")
    scheduled = find_condition(obj, "PodScheduled")
    if scheduled and scheduled.get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    init, initializing = _init(obj, reason)
    if initializing and not is_true(obj, "Initialized"):
        return init
    return _running(obj, init)


def _init(obj: Object, reason: str) -> tuple[_PodState, bool]:
    """The state by the init containers, and whether they are still running."""
    spec, sidecars = spec_of(obj), _sidecars(spec_of(obj))
    ready = restarts = 0
    last = ""
    for number, one in enumerate(status_of(obj).get("initContainerStatuses") or ()):
        restarts += one.get("restartCount", 0)
        last = max(last, _last_end(one))
        ended = (one.get("state") or {}).get("terminated")
        if ended and not ended.get("exitCode"):
            continue
        if one["name"] in sidecars and one.get("started"):
            ready += bool(one.get("ready"))
            continue
        word = _init_word(one) or f"{number}/{len(spec.get('initContainers') or ())}"
        return _PodState(f"Init:{word}", ready, restarts, last), True
    return _PodState(reason, ready, restarts, last), False


def _init_word(container: Object) -> str:
    """Why an init container is not finished, if it does not run normally."""
    state = container.get("state") or {}
    if "terminated" in state:
        return _end_word(state["terminated"])
    waiting: str = (state.get("waiting") or {}).get("reason", "")
    return "" if waiting == "PodInitializing" else waiting


def _running(obj: Object, init: _PodState) -> _PodState:
    """The state by the containers; of the init containers only sidecars count."""
    status, sidecars = status_of(obj), _sidecars(spec_of(obj))
    beside = [one for one in status.get("initContainerStatuses") or () if one["name"] in sidecars]
    reason, ready, runs = init.reason, init.ready, False
    counted = [*beside, *(status.get("containerStatuses") or ())]
    for one in reversed(status.get("containerStatuses") or ()):
        state = one.get("state") or {}
        if waiting := (state.get("waiting") or {}).get("reason"):
            reason = waiting
        elif "terminated" in state:
            reason = _end_word(state["terminated"])
        elif one.get("ready") and "running" in state:
            runs = True
            ready += 1
    if reason == "Completed" and runs:
        reason = "Running" if is_true(obj, "Ready") else "NotReady"
    restarts = sum(one.get("restartCount", 0) for one in counted)
    return _PodState(reason, ready, restarts, max((_last_end(one) for one in counted), default=""))


def _word(obj: Object, reason: str) -> str:
    status = status_of(obj)
    if not obj["metadata"].get("deletionTimestamp"):
        return reason
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return reason if status.get("phase") in ("Succeeded", "Failed") else "Terminating"


def _end_word(ended: Mapping[str, Any]) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _last_end(container: Object) -> str:
    """The end of the previous run; API timestamps sort as texts."""
    return str(((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or "")


def _sidecars(spec: Object) -> set[str]:
    """Restartable init containers, which count as containers."""
    return {one["name"] for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"}


def _gates(obj: Object) -> str:
    gates = spec_of(obj).get("readinessGates") or ()
    return f"{sum(is_true(obj, one['conditionType']) for one in gates)}/{len(gates)}" if gates else NONE


PRINTERS: Mapping[str, Printer] = {"Pod": pod_cells}
