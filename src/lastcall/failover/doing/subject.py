"""One node that something is done to, with what is remembered of it and how it is made sure of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lastcall.failover.deciding.case import Refusal
from lastcall.failover.doing.devices import Devices
from lastcall.failover.doing.gathering import Gathered
from lastcall.failover.doing.outside import Leadership
from lastcall.failover.doing.reading import Reading
from lastcall.failover.doing.surety import Surety
from lastcall.failover.knowing.sightings import Sightings
from lastcall.failover.telling.happenings import Acted
from lastcall.failover.upstream.verdict import Removal
from lastcall.model.fencer import Fencer
from lastcall.model.observed import LiveNode
from lastcall.ports import Clock


class Rivals(Protocol):
    """Other Nodes that a fencer of a node may strike."""

    def refusal(self, name: str, node: LiveNode, fencer: Fencer) -> str:
        """Why a fencer is not used for node ``name``, by what is known; empty if nothing speaks against it."""
        ...

    async def look_at_rivals(self, name: str, node: LiveNode, fencer: Fencer) -> str:
        """The same after a live look."""
        ...


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One node, with what is remembered of it."""

    gathered: Gathered
    reading: Reading
    seen: Sightings
    devices: Devices
    refusals: dict[str, Refusal]
    """By uid."""
    rivals: Rivals

    @property
    def name(self) -> str:
        """The node's."""
        return self.gathered.case.name

    @property
    def node(self) -> LiveNode:
        """As it was read for the decision: nothing is done to one that is missing."""
        assert self.gathered.node
        return self.gathered.node

    @property
    def boot_id(self) -> str:
        """Which boot runs there, by that reading."""
        return self.node.status.node_info.boot_id

    def surety(
        self, leadership: Leadership, clock: Clock, *, me: str, boot_id: str, refusal: Callable[[], str] = str
    ) -> Surety:
        """Makes sure, before what cannot be undone, that ``me`` leads and all is as this subject's decision took it."""
        case = self.gathered.case
        return Surety(
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

    def about(
        self, verb: str, why: str, boot_id: str, *, began: float, fencer: str = "", reason: Removal | None = None
    ) -> Acted:
        """What is to be told of a call that begins now, with the policy and the evidence that allow it."""
        case = self.gathered.case
        return Acted(
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
