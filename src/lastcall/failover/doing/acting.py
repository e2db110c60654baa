"""Carries out one step of one node. What cannot be undone is made sure of right before it, and told right after it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from lastcall.errors import (
    ApiFailure,
    Conflict,
    LastcallError,
    RefusedForSafety,
    TimedOut,
    Unavailable,
)
from lastcall.failover.deciding import listed, refusing, steps
from lastcall.failover.deciding.case import Refusal
from lastcall.failover.doing.devices import Devices
from lastcall.failover.doing.gathering import Gathered
from lastcall.failover.doing.orders import Orders
from lastcall.failover.doing.outside import Cluster, Leadership
from lastcall.failover.doing.pool import Pool
from lastcall.failover.doing.reading import Reading
from lastcall.failover.doing.surety import Surety
from lastcall.failover.knowing import owner, taints
from lastcall.failover.knowing.owner import OwnerMark, Unreadable
from lastcall.failover.knowing.sightings import Sightings
from lastcall.failover.limits import fenced
from lastcall.failover.telling.happenings import Acted, Learned, Listener, Removed
from lastcall.failover.upstream import marks
from lastcall.failover.upstream.verdict import Removal
from lastcall.model.observed import LiveNode
from lastcall.model.snapshot import DatedTaint
from lastcall.ports import Clock

_RANKS = {"detach": 0, "force-delete": 1, "delete": 2}
"""Where there is no room for all: a node that has begun is done before the next begins, soon after it was decided about."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One node, with what is remembered of it."""

    gathered: Gathered
    reading: Reading
    seen: Sightings
    devices: Devices
    refusals: dict[str, Refusal]
    """By uid."""

    @property
    def name(self) -> str:
        """The node's."""
        return self.gathered.case.name


class Acting:
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
        self._orders = Orders(leadership, clock, tell)

    async def carry_out(self, step: steps.Step, subject: Subject) -> None:
        """Returns when it is done, or has failed in a way that the next Case shows.

        Conflict: the Node has changed meanwhile; RefusedForSafety: it is not to be done any more. Both mean that the
        decision is to be made again.
        """
        match step:
            case steps.AskTarget(fencer=fencer):
                await subject.devices.ask_target(fencer)
            case steps.AskPower(fencer=fencer):
                await self._ask_power(fencer, subject)
            case steps.Mark(mark=mark):
                await self._write(_live(subject), mark, subject)
            case steps.SwitchOff():
                await self._switch_off(step, subject)
            case steps.SwitchOn():
                await self._switch_on(step, subject)
            case steps.Taint():
                await self._taint(step, subject)
            case steps.Untaint():
                await self._untaint(step, subject)
            case steps.Unmark():
                await self._cluster.change_node(_live(subject), mark="", fenced=self._fenced(_live(subject), None))
            case steps.Delete():
                await self._delete(step, subject)
            case steps.ForceDelete():
                await self._force(step, subject)
            case steps.Detach():
                await self._detach(step, subject)
            case steps.Done() | steps.Wait():
                pass

    # -- fencers -------------------------------------------------------------------------------------------------------

    async def _ask_power(self, fencer: str, subject: Subject) -> None:
        boot = subject.gathered.case.boot
        assert boot
        fact = await subject.devices.ask_power(fencer, boot.id)
        subject.seen.add(fact)
        self._tell(Learned(node=subject.name, fact=fact))

    async def _switch_off(self, step: steps.SwitchOff, subject: Subject) -> None:
        """It is over before anybody else may lead, also if this process stands still meanwhile."""
        surety = self._surety(subject, step.boot_id)
        node = await surety.look()
        mark = owner.read(node.mark)
        if not isinstance(mark, OwnerMark) or mark.boot_id != step.boot_id or not mark.switched_off:
            raise RefusedForSafety(f"the mark on node {subject.name} does not say that it may be switched off")
        acted = self._about("off", step.why, step.boot_id, subject, fencer=step.fencer)
        await self._orders.give(acted, subject.devices, subject.devices.off, step.within, surety, heeding=True)

    async def _switch_on(self, step: steps.SwitchOn, subject: Subject) -> None:
        boot_id = _boot_id(subject)
        surety = self._surety(subject, boot_id)
        await surety.look()
        acted = self._about("on", step.why, boot_id, subject, fencer=step.fencer)
        await self._orders.give(acted, subject.devices, subject.devices.on, step.within, surety, heeding=False)

    # -- the Node ------------------------------------------------------------------------------------------------------

    async def _write(
        self, node: LiveNode, mark: OwnerMark, subject: Subject, wanted: Sequence[DatedTaint] | None = None
    ) -> None:
        """Under the resourceVersion by which the decision was made."""
        merged = owner.merged(node.mark, mark, me=self._me, leader=self._leadership.holder)
        if isinstance(merged, Unreadable):
            raise RefusedForSafety(f"the mark on node {node.metadata.name} {merged.why}")
        if not await self._leadership.confirm():
            raise RefusedForSafety(f"{self._me} does not lead any more")
        now = await self._cluster.change_node(
            node, mark=owner.write(merged), fenced=self._fenced(node, merged), taints=wanted
        )
        subject.reading.written(now)

    def _fenced(self, node: LiveNode, wanted: OwnerMark | None) -> str | None:
        """What the Node has to say of its last hour when the mark that is there makes way; None: nothing new."""
        over = fenced.ended(node.mark, wanted)
        return fenced.added(node.fenced, over, wall=self._clock.wall()) if over else None

    async def _taint(self, step: steps.Taint, subject: Subject) -> None:
        """The taint and the mark that says whose it is, in one write."""
        node = await self._surety(subject, step.boot_id).look()
        since = datetime.fromtimestamp(int(self._clock.wall()), UTC)
        ours = DatedTaint(key=taints.OURS.key, value=taints.OURS.value, effect=taints.OURS.effect, time_added=since)
        acted = self._about("taint", step.why, step.boot_id, subject)
        await self._told(acted, self._write(node, step.mark, subject, taints.added(node.spec.taints, ours)))

    async def _untaint(self, step: steps.Untaint, subject: Subject) -> None:
        node = _live(subject)
        kept = taints.removed(node.spec.taints, by_hand=step.by_hand)
        acted = self._about("untaint", step.why, _boot_id(subject), subject)
        await self._told(acted, self._write(node, step.mark, subject, kept))

    # -- pods and volumes ----------------------------------------------------------------------------------------------

    async def _delete(self, step: steps.Delete, subject: Subject) -> None:
        surety = self._surety(subject, step.boot_id)

        async def delete(uid: str, sent: set[str]) -> None:
            pod = subject.gathered.pods[uid]
            await surety.check()
            sent.add(uid)
            if condition := marks.disrupted(pod, marks.EVICTED, self._clock.wall()):
                await self._cluster.disrupt_pod(pod, condition)
                await surety.check()
            answer = await self._cluster.delete_pod(
                *pod.key, uid=uid, grace=1 if pod.spec.termination_grace_period_seconds == 0 else None
            )
            listed.answered(subject.gathered.pods, answer)

        acted = self._about("delete", step.why, step.boot_id, subject)
        await self._each([(one.uid, one.namespace, one.name) for one in step.pods], delete, acted, subject)

    async def _force(self, step: steps.ForceDelete, subject: Subject) -> None:
        surety = self._surety(subject, step.boot_id)
        removed: list[tuple[str, str, str]] = []

        async def force(uid: str, sent: set[str]) -> None:
            pod = subject.gathered.pods[uid]
            await surety.check()
            sent.add(uid)
            if marks.mark(pod.status.phase, Removal.OUT_OF_SERVICE):
                if not listed.still(await self._cluster.fail_pod(pod), pod):
                    raise RefusedForSafety(f"pod {'/'.join(pod.key)} is not as it was listed")
                await surety.check()
            await self._cluster.delete_pod(*pod.key, uid=uid, grace=0)
            removed.append((*pod.key, uid))

        acted = self._about("force-delete", step.why, step.boot_id, subject, reason=Removal.OUT_OF_SERVICE)
        try:
            await self._each([(one.uid, one.namespace, one.name) for one in step.pods], force, acted, subject)
        finally:
            self._tell(Removed(node=subject.name, pods=tuple(removed)))

    async def _detach(self, step: steps.Detach, subject: Subject) -> None:
        surety = self._surety(subject, step.boot_id)
        names_of = {one.uid: one.name for one in step.attachments}

        async def detach(uid: str, sent: set[str]) -> None:
            try:
                there = await self._cluster.attachment(names_of[uid])
            except (TimedOut, Unavailable):
                sent.add(uid)  # what cannot be read is left out as what cannot be written
                raise
            if there.metadata.uid != uid or there.spec.node_name != subject.name:
                raise Conflict(f"{names_of[uid]} is another attachment by now")
            await surety.check()
            sent.add(uid)
            await self._cluster.delete_attachment(names_of[uid], uid=uid, revision=there.metadata.resource_version)

        acted = self._about("detach", step.why, step.boot_id, subject, reason=Removal.OUT_OF_SERVICE)
        await self._each([(one.uid, "", one.name) for one in step.attachments], detach, acted, subject)

    async def _each(
        self,
        objects: Sequence[tuple[str, str, str]],
        call: Callable[[str, set[str]], Awaitable[None]],
        acted: Acted,
        subject: Subject,
    ) -> None:
        """All at once, as far as the pool has room. What is refused for one is no trouble of the others.

        ``call`` notes in the set whose first write it sends, which may be carried out also if nothing is answered, or which
        one the server fails at before.
        """
        failures: list[LastcallError] = []
        sent: set[str] = set()

        async def attempt(uid: str) -> bool:
            """Whether it was made: not after one has failed for a reason that holds for all."""
            if failures:
                return False
            await call(uid, sent)
            return True

        async def one(uid: str, namespace: str, name: str) -> None:
            began = self._clock.boottime()
            error, gone, before = "", False, subject.refusals.get(uid)
            try:
                if not await self._pool.run(lambda: attempt(uid), rank=_RANKS[acted.verb]):
                    return
                subject.refusals.pop(uid, None)
            except (RefusedForSafety, TimedOut, Unavailable, ApiFailure) as failure:
                if ends := refusing.ends_step(failure, sent=uid in sent):
                    failures.append(failure)
                if ends and (uid not in sent or isinstance(failure, RefusedForSafety)):
                    return
                gone = refusing.gone(failure)  # that is what was wanted, and somebody else has done it
                error = "" if gone else str(failure)
                subject.refusals.pop(uid, None)
                if not gone:
                    subject.refusals[uid] = refusing.refusal(failure, before, self._clock.boottime())
            ended = self._clock.boottime()
            self._tell(
                replace(
                    acted, namespace=namespace, name=name, uid=uid, began=began, ended=ended, error=error, gone=gone
                )
            )

        await asyncio.gather(*(one(*found) for found in objects))
        if failures:
            raise failures[0]

    # -- within --------------------------------------------------------------------------------------------------------

    def _surety(self, subject: Subject, boot_id: str) -> Surety:
        return Surety(
            subject.reading,
            self._leadership,
            self._clock,
            subject.seen,
            me=self._me,
            boot_id=boot_id,
            observed=subject.gathered.case.observed,
            heard=subject.gathered.case.heard,
            node=subject.gathered.case.node,
        )

    def _about(
        self, verb: str, why: str, boot_id: str, subject: Subject, *, fencer: str = "", reason: Removal | None = None
    ) -> Acted:
        case = subject.gathered.case
        return Acted(
            verb=verb,
            node=subject.name,
            boot_id=boot_id,
            policy=case.policy.name if case.policy else "",
            why=why,
            evidence=case.verdict.reasons if case.verdict else (),
            began=self._clock.boottime(),
            fencer=fencer,
            reason=reason,
        )

    async def _told(self, acted: Acted, call: Awaitable[None]) -> None:
        try:
            await call
        except LastcallError as error:
            self._tell(replace(acted, ended=self._clock.boottime(), error=str(error)))
            raise
        self._tell(replace(acted, ended=self._clock.boottime()))


def _live(subject: Subject) -> LiveNode:
    node = subject.gathered.node
    assert node
    return node


def _boot_id(subject: Subject) -> str:
    return _live(subject).status.node_info.boot_id
