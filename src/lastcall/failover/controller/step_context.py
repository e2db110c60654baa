"""The context of one step: the node, its state and its safety checks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lastcall.failover.controller.case_builder import GatheredCase
from lastcall.failover.controller.controller_ports import Leadership
from lastcall.failover.controller.node_fencers import NodeFencers
from lastcall.failover.controller.node_reading import NodeReading
from lastcall.failover.controller.preconditions import SafetyCheck
from lastcall.failover.decisions.case import ApiRefusal
from lastcall.failover.evidence.node_observations import NodeObservations
from lastcall.failover.reporting.controller_events import CallReported
from lastcall.failover.upstream.controller_manager_rules import RemovalReason
from lastcall.model.fencer import Fencer
from lastcall.model.observed import LiveNode
from lastcall.ports.node import Clock


class RivalCheck(Protocol):
    """Finds other Nodes that a fencer of a node may hit."""

    def fencer_refusal(self, name: str, node: LiveNode, fencer: Fencer) -> str:
        """Why a fencer is not used for node ``name``, as far as known; empty if there is no objection."""
        ...

    async def verify_rivals_live(self, name: str, node: LiveNode, fencer: Fencer) -> str:
        """The same after a live read of the other Nodes."""
        ...


@dataclass(frozen=True, kw_only=True)
class StepContext:
    """One node with its state across steps."""

    gathered: GatheredCase
    reading: NodeReading
    seen: NodeObservations
    devices: NodeFencers
    refusals: dict[str, ApiRefusal]
    """By UID."""
    rivals: RivalCheck

    @property
    def name(self) -> str:
        """The node's name."""
        return self.gathered.case.name

    @property
    def node(self) -> LiveNode:
        """The Node as read for the decision; no step runs for a missing one."""
        assert self.gathered.node
        return self.gathered.node

    @property
    def boot_id(self) -> str:
        """The boot ID of that read."""
        return self.node.status.node_info.boot_id

    def safety_check(
        self, leadership: Leadership, clock: Clock, *, me: str, boot_id: str, refusal: Callable[[], str] = str
    ) -> SafetyCheck:
        """The check, before irreversible actions, that ``me`` leads and the node is as the decision saw it."""
        case = self.gathered.case
        return SafetyCheck(
            self.reading,
            leadership,
            clock,
            self.seen,
            me=me,
            boot_id=boot_id,
            observed=case.observed,
            heard=case.heard,
            node=case.node,
            refusal=refusal,
        )

    def describe_call(
        self, verb: str, why: str, boot_id: str, *, began: float, fencer: str = "", reason: RemovalReason | None = None
    ) -> CallReported:
        """The report of a call that begins now, with the policy and the evidence that allow it."""
        case = self.gathered.case
        return CallReported(
            verb=verb,
            node=self.name,
            boot_id=boot_id,
            policy=case.policy.name if case.policy else "",
            why=why,
            evidence=case.verdict.reasons if case.verdict else (),
            began=began,
            fencer=fencer,
            reason=reason,
        )
