"""Decides whether a node is suspected to be lost (pure): only silence makes it so.

Silence counts from when this controller began to observe: neither an old Lease nor a condition Ready=Unknown, which the
node controller writes, tells how long it has lasted. A fence's power state is no ground for suspicion or against it: a
partitioned machine runs on and writes, which is what fencing is for. A kubelet that reports Ready=False is unhealthy,
but not silent.
"""

from lastcall.failover.decisions import remaining
from lastcall.failover.decisions.case import Case
from lastcall.failover.decisions.steps import Done, Step, Wait
from lastcall.model import duration

FRESH = 20.0
"""For nodes without a policy (see ``case.EffectivePolicy.fresh``)."""


def is_awake(case: Case, now: float) -> bool:
    """Whether the kubelet gave a recent sign of life; the start of our observation is none."""
    policy = case.policy
    recent = min(policy.fresh, policy.suspect_after) if policy else FRESH
    return case.heard is not None and now - case.heard < recent


def wait_if_unwatched(case: Case, now: float) -> Step | None:
    """No policy applies to the node, or it never reported a boot ID."""
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
    """The node is not silent yet for as long as the policy says."""
    assert case.policy
    suspect_at = case.quiet_since + case.policy.suspect_after
    if now >= suspect_at:
        return None
    ago = duration.format_elapsed(now - case.quiet_since)
    since = f"was heard of {ago} ago" if case.heard is not None else f"has been observed for {ago} only"
    late = duration.format_seconds(case.policy.suspect_after)
    return Wait(f"node {case.name} {since}; it is suspected after a silence of {late}", until=suspect_at)


def nothing_to_fail_over(case: Case, now: float) -> Step | None:
    """Nothing on the node must go: a node is not fenced for its own sake."""
    del now
    if remaining.has_anything_to_remove(case):
        return None
    return Wait(f"nothing on node {case.name} has to be failed over")
