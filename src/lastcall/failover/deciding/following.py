"""The pods that a node has lost are followed until others have taken their places (pure): for people, nothing waits for it.

A taint that stays until they are Ready would keep a pod away that can run on this node alone, and that would never be Ready.
"""

from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from lastcall.failover.deciding import remaining
from lastcall.failover.deciding.case import Case, PodLeft
from lastcall.failover.deciding.steps import Mark, Step
from lastcall.failover.knowing.lost import ROOM, Lost, apart, united
from lastcall.model.fence_policy import Mode

_JOB = "Job"


def record(case: Case, now: float) -> Step | None:
    """Before pods are removed that the mark does not name yet, such as came after the taint, it names them."""
    del now
    assert case.mark
    if case.policy is None or case.policy.mode is not Mode.ENFORCE:
        return None
    goes = [pod for pod in remaining.at_once(case) if case.dead or pod.uid in case.gone]
    lost = _with(case, goes)
    new = {one.uid for one in lost} - {one.uid for one in case.mark.lost}
    if not new:
        return None
    return Mark(mark=replace(case.mark, lost=lost), why=f"what takes the place of node {case.name}'s pods is followed")


def wanted(case: Case) -> tuple[Lost, ...]:
    """What the mark is to name when the boot is proved to be over: all that has to go by then."""
    return _with(case, remaining.at_once(case))


def known(case: Case) -> tuple[Lost, ...]:
    """What the mark names, and what this controller has removed without one."""
    both = (*(case.mark.lost if case.mark else ()), *case.removed)
    return united(filter(_becomes_ready, both), (), room=_room(case))


def followed(case: Case) -> tuple[Lost, ...]:
    """Those whose replacements are told of: not who turns out to stay."""
    stays = {pod.uid for pod in case.pods if remaining.stays(pod)}
    return tuple(one for one in known(case) if one.uid not in stays)


def asked(case: Case) -> tuple[Lost, ...]:
    """Those whose replacements are looked for now: there is time for it when nothing is left that we have to do."""
    over = case.node is not None and case.mark is not None and case.mark.boot_id == case.node.boot_id
    ours = case.policy is not None and case.policy.detach and bool(remaining.loose(case))
    return followed(case) if over and not remaining.going(case) and not ours else ()


def told(case: Case, places: Collection[str]) -> Mapping[str, bool]:
    """``Case.replacements``; ``places``: the uids of those that were lost and have been replaced."""
    found: dict[str, bool] = {}
    for one in followed(case):
        found[one.key] = found.get(one.key, True) and one.uid in places
    return found


def _with(case: Case, pods: Iterable[PodLeft]) -> tuple[Lost, ...]:
    before = known(case)
    lost = [(pod.lost, pod.made) for pod in pods if pod.lost and _becomes_ready(pod.lost)]
    return united(before, apart(before, lost), room=_room(case))


def _becomes_ready(one: Lost) -> bool:
    """A Job may make no other pod, and that may be done before anybody has seen it Ready: its own status tells."""
    return one.kind != _JOB


def _room(case: Case) -> int:
    return case.node.room if case.node else ROOM
