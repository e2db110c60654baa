"""Is a node lost? (pure): silence makes it suspect, and nothing else does.

Silence is measured by who observes, from when he began to: neither an old Lease nor a condition Ready=Unknown that
somebody else has written says how long it has lasted. What a fence says of the power makes nobody suspect or innocent: a
machine that is cut off runs on and writes, and that is what fencing is for. A kubelet that reports Ready=False is sick, and
speaks.
"""

from lastcall.failover.decisions import remaining
from lastcall.failover.decisions.case import Case
from lastcall.failover.decisions.steps import Done, Step, Wait
from lastcall.model import duration

FRESH = 20.0
"""Of nodes that no policy holds for (``case.Policy.fresh``)."""


def is_awake(case: Case, now: float) -> bool:
    """Whether the kubelet was really heard of a short time ago; that we have just begun to observe is no sign of life."""
    policy = case.policy
    recent = min(policy.fresh, policy.suspect_after) if policy else FRESH
    return case.heard is not None and now - case.heard < recent


def wait_if_unwatched(case: Case, now: float) -> Step | None:
    """No policy holds for it, or it has never reported a boot id."""
    why = ""
    if case.policy is None:
        why = f"no FencePolicy holds for node {case.name}" + (f": {case.no_policy}" if case.no_policy else "")
    elif case.node is None or not case.node.boot_id or case.boot is None:
        why = f"node {case.name} has never reported a boot id: nothing can be proved of it"
    if not why:
        return None
    del now
    return Wait(f"{why}; what lastcall has left on it goes when it is back") if case.mark else Done(why)


def wait_for_silence(case: Case, now: float) -> Step | None:
    """It is not silent yet for as long as the policy says."""
    assert case.policy
    suspect_at = case.quiet_since + case.policy.suspect_after
    if now >= suspect_at:
        return None
    ago = duration.format_elapsed(now - case.quiet_since)
    since = f"was heard of {ago} ago" if case.heard is not None else f"has been observed for {ago} only"
    late = duration.format_seconds(case.policy.suspect_after)
    return Wait(f"node {case.name} {since}; it is suspected after a silence of {late}", until=suspect_at)


def nothing_to_fail_over(case: Case, now: float) -> Step | None:
    """Nothing on it would go: a node is not fenced for its own sake."""
    del now
    if remaining.has_anything_to_remove(case):
        return None
    return Wait(f"nothing on node {case.name} has to be failed over")
