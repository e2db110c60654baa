"""Executes one step of one node: a safety check before each irreversible action, and a report after it."""

from collections.abc import Awaitable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from lastcall.errors import LastcallError, RefusedForSafety
from lastcall.failover.controller import preconditions
from lastcall.failover.controller.call_limiter import CallLimiter
from lastcall.failover.controller.controller_ports import FailoverApi, Leadership
from lastcall.failover.controller.fencer_orders import FencerOrders
from lastcall.failover.controller.object_removal import ObjectRemoval
from lastcall.failover.controller.preconditions import SafetyCheck
from lastcall.failover.controller.step_context import StepContext
from lastcall.failover.decisions import steps
from lastcall.failover.evidence import out_of_service_taint, owner_mark
from lastcall.failover.evidence.owner_mark import OwnerMark, UnreadableMark
from lastcall.failover.limits import fencing_history
from lastcall.failover.reporting.controller_events import CallReported, FencerAnswered, Listener
from lastcall.model.observed import LiveNode
from lastcall.model.snapshot import DatedTaint
from lastcall.ports.node import Clock


class StepExecutor:
    """Executes steps for all nodes of one controller, whose identity is ``me``."""

    def __init__(
        self, cluster: FailoverApi, leadership: Leadership, clock: Clock, pool: CallLimiter, *, me: str, tell: Listener
    ) -> None:
        self._cluster = cluster
        self._leadership = leadership
        self._clock = clock
        self._me = me
        self._tell = tell
        self._orders = FencerOrders(leadership, clock, tell)
        self._removing = ObjectRemoval(cluster, leadership, clock, pool, me=me, tell=tell)

    async def carry_out(self, step: steps.Step, subject: StepContext) -> None:
        """Returns when the step is done, or has failed in a way that the next Case shows.

        Conflict: the Node changed in the meantime. RefusedForSafety: the step is no longer allowed. Both require a new
        decision.
        """
        match step:
            case steps.AskTarget(fencer=fencer):
                await subject.devices.ask_target(fencer)
            case steps.AskPower(fencer=fencer):
                await self._ask_power(fencer, subject)
            case steps.Mark(mark=mark):
                await self._write_mark(subject.node, mark, subject)
            case steps.SwitchOff():
                await self._switch_off(step, subject)
            case steps.SwitchOn():
                await self._switch_on(step, subject)
            case steps.TaintNode():
                await self._taint_node(step, subject)
            case steps.Untaint():
                await self._untaint_node(step, subject)
            case steps.Unmark(given_back=given_back):
                over = self._new_history(subject.node, None)
                await self._cluster.update_node(subject.node, mark="", fenced=over, keep_word=given_back)
            case steps.Delete():
                await self._removing.delete_pods(step, subject)
            case steps.ForceDelete():
                await self._removing.force_delete_pods(step, subject)
            case steps.Detach():
                await self._removing.detach_volumes(step, subject)
            case steps.Done() | steps.Wait():
                pass

    # -- fencers -------------------------------------------------------------------------------------------------------

    async def _ask_power(self, fencer: str, subject: StepContext) -> None:
        boot = subject.gathered.case.boot
        assert boot
        fact = await subject.devices.ask_power(fencer, boot.id)
        subject.seen.add_fact(fact)
        self._tell(FencerAnswered(node=subject.name, fact=fact))

    async def _switch_off(self, step: steps.SwitchOff, subject: StepContext) -> None:
        """Orders a power-off; it is over before another controller may lead, even if this process hangs."""
        fencer = subject.devices.find_fencer(step.fencer)
        if fencer is None:
            raise RefusedForSafety(f"the policy of node {subject.name} has no fencer {step.fencer} any more")

        def refusal() -> str:
            return subject.rivals.fencer_refusal(subject.name, subject.node, fencer)

        if why := await subject.rivals.verify_rivals_live(subject.name, subject.node, fencer):
            raise RefusedForSafety(f"{step.fencer} is refused: {why}")
        surety = subject.safety_check(self._leadership, self._clock, me=self._me, boot_id=step.boot_id, refusal=refusal)
        node = await surety.verify_live()
        mark = owner_mark.parse_mark(node.mark_text)
        if not isinstance(mark, OwnerMark) or mark.boot_id != step.boot_id or not mark.switched_off:
            raise RefusedForSafety(f"the mark on node {subject.name} does not say that it may be switched off")
        acted = self._describe_call("off", step.why, step.boot_id, subject, fencer=step.fencer)
        await self._orders.give(acted, subject.devices, subject.devices.switch_off, step.within, surety, heeding=True)

    async def _switch_on(self, step: steps.SwitchOn, subject: StepContext) -> None:
        boot_id = subject.boot_id
        surety = self._safety_check(subject, boot_id)
        await surety.verify_live()
        acted = self._describe_call("on", step.why, boot_id, subject, fencer=step.fencer)
        await self._orders.give(acted, subject.devices, subject.devices.switch_on, step.within, surety, heeding=False)

    # -- the Node ------------------------------------------------------------------------------------------------------

    async def _write_mark(
        self, node: LiveNode, mark: OwnerMark, subject: StepContext, wanted: Sequence[DatedTaint] | None = None
    ) -> None:
        """Writes a mark under the resourceVersion on which the decision is based."""
        merged = owner_mark.merge_marks(node.mark_text, mark, me=self._me, leader=self._leadership.holder)
        if isinstance(merged, UnreadableMark):
            raise RefusedForSafety(f"the mark on node {node.metadata.name} {merged.why}")
        if not await preconditions.confirm_recently(self._leadership, self._clock):
            raise RefusedForSafety(f"{self._me} does not lead any more")
        now = await self._cluster.update_node(
            node, mark=owner_mark.encode_mark(merged), fenced=self._new_history(node, merged), taints=wanted
        )
        subject.reading.note_write(now)

    def _new_history(self, node: LiveNode, wanted: OwnerMark | None) -> str | None:
        """The fencing history to write when the current mark is replaced; None: unchanged."""
        over = fencing_history.ended_fencing(node.mark_text, wanted)
        return fencing_history.add_fencing(node.fencing_history_text, over, wall=self._clock.wall()) if over else None

    async def _taint_node(self, step: steps.TaintNode, subject: StepContext) -> None:
        """Writes the taint and the mark that records its owner, in one write."""
        node = await self._safety_check(subject, step.boot_id).verify_live()
        since = datetime.fromtimestamp(int(self._clock.wall()), UTC)
        ours = DatedTaint(
            key=out_of_service_taint.OURS.key,
            value=out_of_service_taint.OURS.value,
            effect=out_of_service_taint.OURS.effect,
            time_added=since,
        )
        acted = self._describe_call("taint", step.why, step.boot_id, subject)
        await self._report_call(
            acted, self._write_mark(node, step.mark, subject, out_of_service_taint.add_taint(node.spec.taints, ours))
        )

    async def _untaint_node(self, step: steps.Untaint, subject: StepContext) -> None:
        node = subject.node
        kept = out_of_service_taint.remove_taint(node.spec.taints, by_hand=step.by_hand)
        acted = self._describe_call("untaint", step.why, subject.boot_id, subject)
        await self._report_call(acted, self._write_mark(node, step.mark, subject, kept))

    # -- within --------------------------------------------------------------------------------------------------------

    def _safety_check(self, subject: StepContext, boot_id: str) -> SafetyCheck:
        return subject.safety_check(self._leadership, self._clock, me=self._me, boot_id=boot_id)

    def _describe_call(
        self, verb: str, why: str, boot_id: str, subject: StepContext, *, fencer: str = ""
    ) -> CallReported:
        return subject.describe_call(verb, why, boot_id, began=self._clock.boottime(), fencer=fencer)

    async def _report_call(self, acted: CallReported, call: Awaitable[None]) -> None:
        try:
            await call
        except LastcallError as error:
            self._tell(replace(acted, ended=self._clock.boottime(), error=str(error)))
            raise
        self._tell(replace(acted, ended=self._clock.boottime()))
