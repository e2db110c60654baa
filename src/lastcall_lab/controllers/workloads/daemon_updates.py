"""Rolling updates of DaemonSets: which pods to delete or to add beside old ones (``daemon/update.go``)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lastcall.model.int_or_percent import resolve_portion
from lastcall_lab.controllers.framework.view import Object
from lastcall_lab.controllers.objects import pods
from lastcall_lab.controllers.workloads.daemon_pods import is_pod_updated

_Available = Callable[[Object], bool]


@dataclass
class UpdateSteps:
    """Pods to delete, and nodes that get a new one."""

    delete: list[Object] = field(default_factory=list)
    create: list[str] = field(default_factory=list)


class DaemonUpdateBounds(NamedTuple):
    """The numbers of surge pods and of nodes without an available pod that are allowed at once."""

    surge: int
    unavailable: int


class _NodePods(NamedTuple):
    """The pods of a node: one of the current template, one of an earlier template."""

    new: Object | None
    old: Object | None


def daemon_update_bounds(daemon: Object, desired: int) -> DaemonUpdateBounds:
    """Both are rounded up. If both are zero, one node may be unavailable; otherwise the update would not progress."""
    rolling = daemon["spec"]["updateStrategy"].get("rollingUpdate") or {}
    surge, unavailable = (
        resolve_portion(rolling.get(name), desired, up=True) for name in ("maxSurge", "maxUnavailable")
    )
    return DaemonUpdateBounds(surge, unavailable if surge or unavailable else min(desired, 1))


def next_update_steps(
    daemon: Object, run: Sequence[str], by_node: Mapping[str, Sequence[Object]], letters: str, now: float
) -> UpdateSteps:
    """The next steps of a rolling update. ``by_node`` are the pods per node, ``run`` the eligible nodes."""
    if not any(_is_outdated(daemon, pod, letters) for found in by_node.values() for pod in found):
        return UpdateSteps()
    places = sorted({*by_node, *run})
    pairs = {name: _pods_of_node(daemon, by_node.get(name, ()), letters) for name in places}
    allowed = daemon_update_bounds(daemon, len(run))
    seconds = daemon["spec"].get("minReadySeconds", 0)

    def available(pod: Object) -> bool:
        return pods.seconds_until_available(pod, seconds, now) == 0

    if allowed.surge:
        return _replace_with_surge(pairs, frozenset(run), allowed.surge, available)
    return _replace_in_place(pairs, allowed.unavailable, available)


def _is_outdated(daemon: Object, pod: Object, letters: str) -> bool:
    """Whether the pod is of an earlier template and must be replaced."""
    return not is_pod_updated(pod, daemon, letters) and not pod["metadata"].get("deletionTimestamp")


def _pods_of_node(daemon: Object, on_node: Sequence[Object], letters: str) -> _NodePods | None:
    """None if several pods of one kind exist; the controller must remove the surplus first."""
    alive = [pod for pod in on_node if not pod["metadata"].get("deletionTimestamp")]
    new = [pod for pod in alive if is_pod_updated(pod, daemon, letters)]
    old = [pod for pod in alive if _is_outdated(daemon, pod, letters)]
    if len(new) > 1 or len(old) > 1:
        return None
    return _NodePods(new[0] if new else None, old[0] if old else None)


def _replace_in_place(pairs: Mapping[str, _NodePods | None], most: int, available: _Available) -> UpdateSteps:
    """Deletes unavailable old pods at once, and as many others as may be unavailable."""
    missing, broken, candidates = 0, [], []
    for pair in pairs.values():
        if pair is None or (pair.new is None) == (pair.old is None):
            missing += 1
        elif pair.new:
            missing += not available(pair.new)
        elif pair.old and not available(pair.old):
            missing += 1
            broken.append(pair.old)
        elif pair.old:
            candidates.append(pair.old)
    return UpdateSteps(delete=[*broken, *candidates[: max(0, most - missing)]])


def _replace_with_surge(
    pairs: Mapping[str, _NodePods | None], run: frozenset[str], most: int, available: _Available
) -> UpdateSteps:
    """Creates the new pod first, and deletes the old one when the new one is available."""
    found, surge, serving = UpdateSteps(), 0, 0
    candidates: list[str] = []
    leaving: list[Object] = []
    for name, pair in pairs.items():
        if pair is None:
            surge += 1
            continue
        first = pair.old or pair.new
        serving += first is not None and available(first)
        if pair.old is None:
            continue
        if pair.new is not None:
            if available(pair.new):
                found.delete.append(pair.old)
            else:
                surge += 1
        elif name not in run:
            (leaving if available(pair.old) else found.delete).append(pair.old)
        else:
            (candidates if available(pair.old) else found.create).append(name)  # at once if no available pod is lost
    found.create += candidates[: max(0, most - surge)]
    found.delete += leaving[: max(0, serving - len(run))]
    return found
