"""Carries out one step of one node. What cannot be undone is made sure of right before it, and told right after it."""

from collections.abc import Awaitable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from lastcall.errors import LastcallError, RefusedForSafety
from lastcall.failover.deciding import steps
from lastcall.failover.doing.orders import Orders
from lastcall.failover.doing.outside import Cluster, Leadership
from lastcall.failover.doing.pool import Pool
from lastcall.failover.doing.removing import Removing
from lastcall.failover.doing.subject import Subject
from lastcall.failover.doing.surety import Surety
from lastcall.failover.knowing import owner, taints
from lastcall.failover.knowing.owner import OwnerMark, Unreadable
from lastcall.failover.limits import fenced
from lastcall.failover.telling.happenings import Acted, Learned, Listener
from lastcall.model.observed import LiveNode
from lastcall.model.snapshot import DatedTaint
from lastcall.ports import Clock


class Acting:
    """For all nodes of one controller, whose identity is ``me``."""

    def __init__(
        self, cluster: Cluster, leadership: Leadership, clock: Clock, pool: Pool, *, me: str, tell: Listener
    ) -> None:
        self._cluster = cluster
        self._leadership = leadership
        self._clock = clock
        self._me = me
        self._tell = tell
        self._orders = Orders(leadership, clock, tell)
        self._removing = Removing(cluster, leadership, clock, pool, me=me, tell=tell)

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
                await self._write(subject.node, mark, subject)
            case steps.SwitchOff():
                await self._switch_off(step, subject)
            case steps.SwitchOn():
                await self._switch_on(step, subject)
            case steps.Taint():
                await self._taint(step, subject)
            case steps.Untaint():
                await self._untaint(step, subject)
            case steps.Unmark(given_back=given_back):
                over = self._fenced(subject.node, None)
                await self._cluster.change_node(subject.node, mark="", fenced=over, keep_word=given_back)
            case steps.Delete():
                await self._removing.delete(step, subject)
            case steps.ForceDelete():
                await self._removing.force(step, subject)
            case steps.Detach():
                await self._removing.detach(step, subject)
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
        fencer = subject.devices.fencer(step.fencer)
        if fencer is None:
            raise RefusedForSafety(f"the policy of node {subject.name} has no fencer {step.fencer} any more")

        def refusal() -> str:
            return subject.rivals.refusal(subject.name, subject.node, fencer)

        if why := await subject.rivals.look_at_rivals(subject.name, subject.node, fencer):
            raise RefusedForSafety(f"{step.fencer} is refused: {why}")
        surety = subject.surety(self._leadership, self._clock, me=self._me, boot_id=step.boot_id, refusal=refusal)
        node = await surety.look()
        mark = owner.read(node.mark)
        if not isinstance(mark, OwnerMark) or mark.boot_id != step.boot_id or not mark.switched_off:
            raise RefusedForSafety(f"the mark on node {subject.name} does not say that it may be switched off")
        acted = self._about("off", step.why, step.boot_id, subject, fencer=step.fencer)
        await self._orders.give(acted, subject.devices, subject.devices.off, step.within, surety, heeding=True)

    async def _switch_on(self, step: steps.SwitchOn, subject: Subject) -> None:
        boot_id = subject.boot_id
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
        node = subject.node
        kept = taints.removed(node.spec.taints, by_hand=step.by_hand)
        acted = self._about("untaint", step.why, subject.boot_id, subject)
        await self._told(acted, self._write(node, step.mark, subject, kept))

    # -- within --------------------------------------------------------------------------------------------------------

    def _surety(self, subject: Subject, boot_id: str) -> Surety:
        return subject.surety(self._leadership, self._clock, me=self._me, boot_id=boot_id)

    def _about(self, verb: str, why: str, boot_id: str, subject: Subject, *, fencer: str = "") -> Acted:
        return subject.about(verb, why, boot_id, began=self._clock.boottime(), fencer=fencer)

    async def _told(self, acted: Acted, call: Awaitable[None]) -> None:
        try:
            await call
        except LastcallError as error:
            self._tell(replace(acted, ended=self._clock.boottime(), error=str(error)))
            raise
        self._tell(replace(acted, ended=self._clock.boottime()))
