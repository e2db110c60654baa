"""Removes pods and volumes from a node, concurrently within the limiter's slots and with safety checks."""

from lastcall.errors import Conflict, NotFound, RefusedForSafety
from lastcall.failover.controller.call_batch import CallBatch
from lastcall.failover.controller.call_limiter import CallLimiter
from lastcall.failover.controller.controller_ports import FailoverApi, Leadership
from lastcall.failover.controller.preconditions import SafetyCheck
from lastcall.failover.controller.step_context import StepContext
from lastcall.failover.decisions import api_refusals, pod_list_reuse, steps
from lastcall.failover.reporting.controller_events import Listener, PodsRemoved
from lastcall.failover.upstream import pod_disruption
from lastcall.failover.upstream.controller_manager_rules import RemovalReason
from lastcall.ports.node import Clock


class ObjectRemoval:
    """Removes objects of all nodes of one controller, whose identity is ``me``."""

    def __init__(
        self, cluster: FailoverApi, leadership: Leadership, clock: Clock, pool: CallLimiter, *, me: str, tell: Listener
    ) -> None:
        self._cluster = cluster
        self._leadership = leadership
        self._clock = clock
        self._pool = pool
        self._me = me
        self._tell = tell

    async def delete_pods(self, step: steps.Delete, subject: StepContext) -> None:
        """Deletes pods as taint eviction does: with its condition and the pod's own grace period (at least 1 s)."""
        surety = self._safety_check(subject, step.boot_id)
        batch = self._call_batch("delete", step, subject, surety, None)

        async def delete(uid: str) -> None:
            pod = subject.gathered.pods[uid]
            await surety.ensure()
            batch.sent.add(uid)
            if condition := pod_disruption.disruption_condition(pod, pod_disruption.EVICTED, self._clock.wall()):
                await self._cluster.add_pod_condition(pod, condition)
                await surety.ensure()
            answer = await self._cluster.delete_pod(
                *pod.key, uid=uid, grace=1 if pod.spec.termination_grace_period_seconds == 0 else None
            )
            pod_list_reuse.update_from_answer(subject.gathered.pods, answer)

        await batch.call_all([(one.uid, one.namespace, one.name) for one in step.pods], delete)

    async def force_delete_pods(self, step: steps.ForceDelete, subject: StepContext) -> None:
        """Force-deletes pods as Pod GC does: unfinished pods are set to Failed first.

        Errors as ``CallBatch.call_all`` raises. Two calls per pod. A pod that is not terminating gets taint eviction's
        condition with its phase, in one patch.
        """
        surety = self._safety_check(subject, step.boot_id)
        batch = self._call_batch("force-delete", step, subject, surety, RemovalReason.OUT_OF_SERVICE)
        removed: list[tuple[str, str, str]] = []

        async def force(uid: str) -> None:
            pod = subject.gathered.pods[uid]
            await surety.ensure()
            batch.sent.add(uid)
            latest = pod
            ends = pod_disruption.pod_failure_patch(pod.status.phase, RemovalReason.OUT_OF_SERVICE)
            if ends:
                condition = (
                    None
                    if pod.is_terminating
                    else pod_disruption.disruption_condition(pod, pod_disruption.EVICTED, self._clock.wall())
                )
                latest = await self._cluster.fail_pod(pod, condition)
                if not pod_list_reuse.is_same_pod(latest, pod):
                    raise RefusedForSafety(f"pod {'/'.join(pod.key)} is not as it was listed")
                await surety.ensure()
            try:
                await self._cluster.delete_pod(*pod.key, uid=uid, grace=0)
            except NotFound as failure:
                # A Failed pod has no grace: taint eviction's DELETE, by the same taint, may have come first and removed it.
                if not (ends and api_refusals.is_object_gone(failure)):
                    raise
            removed.append((*pod.key, uid))
            if not latest.metadata.finalizers:
                subject.gathered.pods.pop(uid, None)

        try:
            await batch.call_all([(one.uid, one.namespace, one.name) for one in step.pods], force)
        finally:
            self._tell(PodsRemoved(node=subject.name, pods=tuple(removed)))

    async def detach_volumes(self, step: steps.Detach, subject: StepContext) -> None:
        """Deletes each VolumeAttachment as the watch has shown it; one that has changed since is read live first.

        UID and resourceVersion are preconditions of each deletion, so no other attachment of the same name is deleted.
        """
        surety = self._safety_check(subject, step.boot_id)
        batch = self._call_batch("detach", step, subject, surety, RemovalReason.OUT_OF_SERVICE)
        names_of = {one.uid: one.name for one in step.attachments}
        revisions = {one.metadata.uid: one.metadata.resource_version for one in subject.gathered.attachments}

        async def delete(uid: str, revision: str) -> None:
            await surety.ensure()
            batch.sent.add(uid)
            await self._cluster.delete_attachment(names_of[uid], uid=uid, revision=revision)

        async def detach(uid: str) -> None:
            try:
                await delete(uid, revisions[uid])
            except Conflict:
                await delete(uid, await self._live_revision(names_of[uid], uid, subject.name))

        await batch.call_all([(one.uid, "", one.name) for one in step.attachments], detach)

    async def _live_revision(self, name: str, uid: str, node: str) -> str:
        """The resourceVersion of an attachment, read live. Conflict if it is another one, NotFound if it is gone."""
        there = await self._cluster.read_attachment(name)
        if there.metadata.uid != uid or there.spec.node_name != node:
            raise Conflict(f"{name} is another attachment by now")
        return there.metadata.resource_version

    # -- within --------------------------------------------------------------------------------------------------------

    def _safety_check(self, subject: StepContext, boot_id: str) -> SafetyCheck:
        return subject.safety_check(self._leadership, self._clock, me=self._me, boot_id=boot_id)

    def _call_batch(
        self,
        verb: str,
        step: steps.Delete | steps.ForceDelete | steps.Detach,
        subject: StepContext,
        surety: SafetyCheck,
        why: RemovalReason | None,
    ) -> CallBatch:
        acted = subject.describe_call(verb, step.why, step.boot_id, began=self._clock.boottime(), reason=why)
        return CallBatch(acted, subject.refusals, self._pool, self._clock, self._tell, surety.ensure)
