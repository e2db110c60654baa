"""The fencers of one node: created from its policy, called, and with their calls since its boot is observed.

Their reports of the power state are evidence; an accepted order is none.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from lastcall.errors import LastcallError, TimedOut
from lastcall.failover.decisions.case import FencerCall, FencerState
from lastcall.failover.evidence import fence_answers
from lastcall.failover.evidence.facts import InstanceSeen, PowerSeen
from lastcall.failover.evidence.proofs import power_of
from lastcall.failover.limits import fence_targets
from lastcall.failover.limits.fence_targets import TargetJudgement
from lastcall.model import fencer_values
from lastcall.model.fence_node import FenceNode
from lastcall.model.fence_policy import FencePolicy
from lastcall.model.fencer import Fencer, TargetCheck
from lastcall.model.power import PowerState
from lastcall.ports.fences import ExtendableFence, Fence, FenceFactory
from lastcall.ports.node import Clock

AGAIN = 30.0
"""Seconds before an unusable fencer is created again.

By then its Secret may exist or hold another password, or a miswired BMC may be connected to its own machine.
"""
STILL = 5.0
"""Seconds after a failure before the fencer is created again: its power state may still show an order's result."""

_KEPT = 16
"""The number of remembered attempts of each kind: a BMC may be dead for weeks, and the next call follows from the last
ones.
"""


@dataclass
class _FencerHistory:
    """The calls to one fencer."""

    fencer: Fencer
    basis: object
    fence: Fence | None = None
    trouble: str = ""
    judgement: TargetJudgement | None = None
    judged: float = 0.0
    renewed: float = 0.0
    """When it was last created, or creation failed."""
    unanswered: list[FencerCall] = field(default_factory=list)
    offs: list[FencerCall] = field(default_factory=list)
    forgotten: int = 0
    ons: list[FencerCall] = field(default_factory=list)
    answers: list[PowerSeen | InstanceSeen] = field(default_factory=list)

    @property
    def is_broken(self) -> bool:
        """It is unusable in its current form."""
        unchecked = self.fencer.target_check is TargetCheck.DISABLED
        return bool(self.trouble) or bool(self.judgement and not self.judgement.allows_fencing(unchecked=unchecked))

    def note_call(self, tries: list[FencerCall], one: FencerCall) -> None:
        """Records an attempt in ``tries``."""
        tries.append(one)
        if tries is not self.ons and len(tries) > _KEPT:
            del tries[0]
            self.forgotten += 1

    def is_failing(self, now: float) -> bool:
        """Whether the last attempt to power off failed some time ago: its configuration may have been corrected since.

        Not if a later read of the target succeeded, or one of the power state was OFF. A read-only account can read the
        target and still not power off: so after a failed order the fencer is created again once, and if it then reads
        the target, it is kept until its next order, however slow that is.
        """
        tries = (*self.unanswered[-1:], *self.offs[-1:])
        last = max(tries, key=lambda one: one.ended, default=None)
        if last is None or not last.error or now < last.ended + STILL:
            return False
        if any(power_of(one) is PowerState.OFF and one.answered >= last.ended for one in self.answers[-1:]):
            return False
        said = self.renewed > last.ended if last in self.offs else self.judged >= last.ended
        return not (self.judgement and said)


class NodeFencers:
    """The fencers of one node."""

    def __init__(self, fences: FenceFactory, clock: Clock) -> None:
        self._fences = fences
        self._clock = clock
        self._made: tuple[object, ...] = ()
        self._made_at = 0.0
        self._about = ""
        self._node: FenceNode | None = None
        self._asked: dict[str, _FencerHistory] = {}

    async def prepare_fences(self, node: FenceNode, policy: FencePolicy | None, about: str) -> None:
        """Creates the fences if policy or node changed; failed and unusable ones are created again later.

        Only the node's fields that a fence is made from count (``fencer_values.answer_basis``), because other
        annotations change often. ``about`` identifies the observed boot. Another boot, or a possible change of the
        machine behind a fencer, clears the fencer's history.
        """
        now, fencers = self._clock.boottime(), policy.spec.fencers if policy else ()
        wanted = tuple(fencer_values.answer_basis(fencer, node) for fencer in fencers)
        self._node = node
        if about != self._about:
            self._about = about
            self._made = ()
            self._asked = {}
        broken = any(one.is_broken or one.is_failing(now) for one in self._asked.values())
        if self._made == wanted and not (broken and now >= self._made_at + AGAIN):
            return
        before, self._asked = self._asked, {}
        for fencer, basis in zip(fencers, wanted, strict=True):
            old = before.get(fencer.name)
            same = self._made == wanted and old is not None and not old.is_broken
            if same and old and not old.is_failing(now):
                self._asked[fencer.name] = old
                continue
            asked = self._asked[fencer.name] = old if old and old.basis == basis else _FencerHistory(fencer, basis)
            asked.judgement = None  # a changed Secret may lead to another machine
            asked.renewed = now
            await self._make_fence(asked, node, policy, keep=same)
        self._made, self._made_at = wanted, now

    async def _make_fence(
        self, asked: _FencerHistory, node: FenceNode, policy: FencePolicy | None, *, keep: bool
    ) -> None:
        """Creates one fence; an error does not affect the others. ``keep``: keep the old one if that fails."""
        assert policy
        spec = msgspec.structs.replace(policy.spec, fencers=(asked.fencer,))
        try:
            made = await self._fences.make_fences(node, msgspec.structs.replace(policy, spec=spec))
        except LastcallError as error:
            if not keep:
                asked.fence, asked.trouble = None, str(error)
        else:
            asked.fence, asked.trouble = made[0], ""

    def find_fencer(self, name: str) -> Fencer | None:
        """The fencer as in the policy; None if the policy has none of this name."""
        return self._asked[name].fencer if name in self._asked else None

    @property
    def answer_bases(self) -> Mapping[str, object]:
        """The identity on which each fencer's answers rest, by name."""
        return {name: one.basis for name, one in self._asked.items()}

    def fencer_states(self, refusal: Callable[[Fencer], str] = lambda _: "") -> tuple[FencerState, ...]:
        """All calls so far, in the policy's order. ``refusal``: why a fencer is not used (``FencerState.rival``)."""
        return tuple(
            FencerState(
                name=name,
                attempts=one.fencer.attempts,
                delay=float(one.fencer.delay_seconds),
                timeout=float(one.fencer.timeout_seconds),
                unchecked=one.fencer.target_check is TargetCheck.DISABLED,
                trouble=one.trouble,
                again=self._made_at + AGAIN if one.is_broken else None,
                rival=refusal(one.fencer),
                judgement=one.judgement,
                judged=one.judged,
                unanswered=tuple(one.unanswered),
                offs=tuple(one.offs),
                forgotten=one.forgotten,
                ons=tuple(one.ons),
                answers=tuple(one.answers),
            )
            for name, one in self._asked.items()
        )

    async def ask_target(self, name: str) -> str:
        """Reads which machine is behind it; returns the finding as a sentence."""
        asked, fence = self._usable_fence(name)
        node, began = self._node, self._clock.boottime()
        assert node
        try:
            target = await fence.read_target()
        except LastcallError as error:
            asked.note_call(asked.unanswered, FencerCall(began=began, ended=self._clock.boottime(), error=str(error)))
            return f"{name} did not say which machine it is: {error}"
        asked.judgement, asked.judged = fence_targets.judge_target(target, node), self._clock.boottime()
        return asked.judgement.why

    async def ask_power(self, name: str, boot_id: str) -> PowerSeen | InstanceSeen:
        """Reads the power state; returns it as evidence about the Node's current boot."""
        asked, fence = self._usable_fence(name)
        at = self._clock.boottime()
        answer = await fence.read_power()
        fact = fence_answers.power_evidence(
            answer, boot_id=boot_id, source=name, asked=at, answered=self._clock.boottime()
        )
        asked.answers = [*asked.answers, fact][-64:]
        return fact

    async def switch_off(self, name: str, within: float) -> str:
        """Orders it to power off; returns the reason of a failure, empty if accepted."""
        asked, fence = self._usable_fence(name)
        return await self._run_order(fence.switch_off(within), asked, asked.offs)

    async def switch_on(self, name: str, within: float) -> str:
        """Orders it to power on, in the same way."""
        asked, fence = self._usable_fence(name)
        return await self._run_order(fence.switch_on(within), asked, asked.ons)

    def extend_order(self, name: str, until: float) -> None:
        """Extends the deadline of its running order, if the fence supports that."""
        fence: object = self._asked[name].fence if name in self._asked else None
        if isinstance(fence, ExtendableFence):
            fence.extend_order(until)

    async def _run_order(self, order: Awaitable[None], asked: _FencerHistory, tries: list[FencerCall]) -> str:
        began, error = self._clock.boottime(), "it was given up"
        try:
            await order
            error = ""
        except LastcallError as failure:
            error = str(failure) or "it has failed"
        finally:
            asked.note_call(tries, FencerCall(began=began, ended=self._clock.boottime(), error=error))
        return error

    def _usable_fence(self, name: str) -> tuple[_FencerHistory, Fence]:
        asked = self._asked[name]
        if asked.fence is None:
            raise TimedOut(f"{name} cannot be used: {asked.trouble}")
        return asked, asked.fence
