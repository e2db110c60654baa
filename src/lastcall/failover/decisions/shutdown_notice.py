"""A node that announced its own shutdown (pure): it is not fenced before its stated deadline.

Most shutdowns are reboots, and the machine comes back by itself. Its notice (the ``NodeShutdown`` that its agent
writes) proves nothing about the boot, but it does about the pods that it lists by UID as ended and unmounted: these
need not wait.
"""

from lastcall.failover.decisions import remaining
from lastcall.failover.decisions.case import Case
from lastcall.failover.decisions.steps import Delete, ForceDelete, Step, Wait
from lastcall.model.fence_policy import FailoverMode


def remove_ended_pods(case: Case, now: float) -> Step | None:
    """Removes the pods that the silent node reported as ended. They are deleted before they are force-deleted.

    A kubelet that restarts in the meantime does not start a terminating pod. A pod that tolerates the taint for a time
    keeps that time.
    """
    assert case.policy
    assert case.node
    if case.policy.mode is not FailoverMode.ENFORCE:
        return None
    over = [pod for pod in remaining.pods_to_remove_now(case) if pod.uid in case.gone]
    ready = [pod for pod in over if pod.refused is None or now >= pod.refused.again]
    boot_id, why = case.node.boot_id, f"node {case.name} has said itself that it ended and unmounted them"
    if first := tuple(pod for pod in ready if not pod.terminating):
        return Delete(pods=first, boot_id=boot_id, why=why)
    return ForceDelete(pods=tuple(ready), boot_id=boot_id, why=why) if ready else None


def wait_for_own_deadline(case: Case, now: float) -> Step | None:
    """The node announced its shutdown: it is not fenced before its stated deadline."""
    if case.held_until is None or now >= case.held_until:
        return None
    why = f"node {case.name} has said itself that it shuts down, and until when: it is not fenced before"
    return Wait(why, until=case.held_until)
