"""Takes pods and volumes from a node: all at once as far as there is room, each made sure of right before."""

from lastcall.errors import Conflict, NotFound, RefusedForSafety
from lastcall.failover.deciding import listed, refusing, steps
from lastcall.failover.doing.batch import Batch
from lastcall.failover.doing.outside import Cluster, Leadership
from lastcall.failover.doing.pool import Pool
from lastcall.failover.doing.subject import Subject
from lastcall.failover.doing.surety import Surety
from lastcall.failover.telling.happenings import Listener, Removed
from lastcall.failover.upstream import marks
from lastcall.failover.upstream.verdict import Removal
from lastcall.ports import Clock


class Removing:
    """For all nodes of one controller, whose identity is ``me``."""

    def __init__(
        self, cluster: Cluster, leadership: Leadership, clock: Clock, pool: Pool, *, me: str, tell: Listener
    ) -> None:
        self._cluster = cluster
        self._leadership = leadership
        self._clock = clock
        self._pool = pool
        self._me = me
        self._tell = tell

    async def delete(self, step: steps.Delete, subject: Subject) -> None:
        """As taint eviction does: with the condition that says so, and with the pod's own time, or a second at least."""
        surety = self._surety(subject, step.boot_id)
        batch = self._batch("delete", step, subject, surety, None)

        async def delete(uid: str) -> None:
            pod = subject.gathered.pods[uid]
            await surety.check()
            batch.sent.add(uid)
            if condition := marks.disrupted(pod, marks.EVICTED, self._clock.wall()):
                await self._cluster.disrupt_pod(pod, condition)
                await surety.check()
            answer = await self._cluster.delete_pod(
                *pod.key, uid=uid, grace=1 if pod.spec.termination_grace_period_seconds == 0 else None
            )
            listed.answered(subject.gathered.pods, answer)

        await batch.make([(one.uid, one.namespace, one.name) for one in step.pods], delete)

    async def force(self, step: steps.ForceDelete, subject: Subject) -> None:
        """As Pod GC does: what has not ended is Failed before it is removed. All three raise what ``Batch.make`` does.

        Two calls a pod. A pod that is not terminating gets the condition of taint eviction with its phase, in one patch.
        """
        surety = self._surety(subject, step.boot_id)
        batch = self._batch("force-delete", step, subject, surety, Removal.OUT_OF_SERVICE)
        removed: list[tuple[str, str, str]] = []

        async def force(uid: str) -> None:
            pod = subject.gathered.pods[uid]
            await surety.check()
            batch.sent.add(uid)
            latest = pod
            ends = marks.mark(pod.status.phase, Removal.OUT_OF_SERVICE)
            if ends:
                condition = None if pod.terminating else marks.disrupted(pod, marks.EVICTED, self._clock.wall())
                latest = await self._cluster.fail_pod(pod, condition)
                if not listed.still(latest, pod):
                    raise RefusedForSafety(f"pod {'/'.join(pod.key)} is not as it was listed")
                await surety.check()
            try:
                await self._cluster.delete_pod(*pod.key, uid=uid, grace=0)
            except NotFound as failure:
                # A Failed pod has no grace: taint eviction's DELETE, by the same taint, may have come first and removed it.
                if not (ends and refusing.gone(failure)):
                    raise
            removed.append((*pod.key, uid))
            if not latest.metadata.finalizers:
                subject.gathered.pods.pop(uid, None)

        try:
            await batch.make([(one.uid, one.namespace, one.name) for one in step.pods], force)
        finally:
            self._tell(Removed(node=subject.name, pods=tuple(removed)))

    async def detach(self, step: steps.Detach, subject: Subject) -> None:
        """Each attachment as the watch has shown it; one that has changed since as it is read at that moment.

        UID and resourceVersion are preconditions of each deletion, so no other attachment of that name is hit.
        """
        surety = self._surety(subject, step.boot_id)
        batch = self._batch("detach", step, subject, surety, Removal.OUT_OF_SERVICE)
        names_of = {one.uid: one.name for one in step.attachments}
        revisions = {one.metadata.uid: one.metadata.resource_version for one in subject.gathered.attachments}

        async def delete(uid: str, revision: str) -> None:
            await surety.check()
            batch.sent.add(uid)
            await self._cluster.delete_attachment(names_of[uid], uid=uid, revision=revision)

        async def detach(uid: str) -> None:
            try:
                await delete(uid, revisions[uid])
            except Conflict:
                await delete(uid, await self._revision(names_of[uid], uid, subject.name))

        await batch.make([(one.uid, "", one.name) for one in step.attachments], detach)

    async def _revision(self, name: str, uid: str, node: str) -> str:
        """The resourceVersion of an attachment, read live. Conflict if it is another one, NotFound if it is gone."""
        there = await self._cluster.attachment(name)
        if there.metadata.uid != uid or there.spec.node_name != node:
            raise Conflict(f"{name} is another attachment by now")
        return there.metadata.resource_version

    # -- within --------------------------------------------------------------------------------------------------------

    def _surety(self, subject: Subject, boot_id: str) -> Surety:
        return subject.surety(self._leadership, self._clock, me=self._me, boot_id=boot_id)

    def _batch(
        self,
        verb: str,
        step: steps.Delete | steps.ForceDelete | steps.Detach,
        subject: Subject,
        surety: Surety,
        why: Removal | None,
    ) -> Batch:
        acted = subject.about(verb, step.why, step.boot_id, began=self._clock.boottime(), reason=why)
        return Batch(acted, subject.refusals, self._pool, self._clock, self._tell, surety.check)
