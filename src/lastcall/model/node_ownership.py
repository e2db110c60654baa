"""Leases by which one program has a node to itself (pure): lastcall's own, and those of medik8s' operators.

No clocks are compared: a Lease of somebody else has expired when it has not changed for its duration while it was
looked at.
"""

from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, NamedTuple

from lastcall.model.base import Facts, Time
from lastcall.model.pods import ObjectMetadata
from lastcall.names import OWNER_REASON

LEASE_SECONDS = 30
"""The duration of our Leases: other runs take over after so many seconds without a renewal."""

RENEW_SECONDS = 10.0
"""The time between two renewals."""

MEDIK8S_LEASES = "medik8s-leases"
"""The namespace of the Leases of node-maintenance-operator and its sisters."""


class OwnerLeaseRecord(Facts, frozen=True):
    """coordination/v1 LeaseSpec."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: Time | None = None
    renew_time: Time | None = None


class NodeLease(Facts, frozen=True):
    """coordination/v1 Lease."""

    metadata: ObjectMetadata
    spec: OwnerLeaseRecord = OwnerLeaseRecord()

    @property
    def holder(self) -> str:
        """The holder's identity; "" if nobody holds it."""
        return self.spec.holder_identity or ""

    @property
    def duration(self) -> float:
        """Seconds after which it expires without a renewal."""
        return float(self.spec.lease_duration_seconds or LEASE_SECONDS)

    @property
    def held_seconds(self) -> float:
        """Seconds from the holder's first to its last renewal, by its own clock."""
        spec = self.spec
        if spec.acquire_time is None or spec.renew_time is None:
            return 0.0
        return max((spec.renew_time - spec.acquire_time).total_seconds(), 0.0)


class OwnershipClaim(NamedTuple):
    """Who wants a node, and why; ``holder`` is unique to this process."""

    holder: str
    reason: str


class LeaseStanding(Enum):
    """What a Lease means for a claim."""

    FREE = "free"
    EXPIRED = "expired"
    HELD = "held"
    """Its holder has renewed it while it was looked at."""
    UNCLEAR = "unclear"
    """It has a holder; whether it is alive is not known yet."""


def judge_lease(first: NodeLease, now: NodeLease | None, claim: OwnershipClaim, *, waited: float) -> LeaseStanding:
    """The standing of a Lease that was first read as ``first``, and is ``now`` this after ``waited`` seconds."""
    if now is None or now.holder in ("", claim.holder):
        return LeaseStanding.FREE
    if now.metadata.resource_version != first.metadata.resource_version:
        return LeaseStanding.HELD
    return LeaseStanding.EXPIRED if waited >= first.duration else LeaseStanding.UNCLEAR


def lease_name(node: str) -> str:
    """The name of the Lease of a node, in either namespace."""
    return f"node-{node}"


def claim_object(
    node: str, claim: OwnershipClaim, before: NodeLease | None, *, node_uid: str, wall: float
) -> dict[str, Any]:
    """The Lease with which the claim holds the node. It is deleted with the Node.

    ``before``: as it was read; another version of it is not overwritten. The time of a renewal differs from the one before.
    """
    keeps = before is not None and before.holder == claim.holder and before.spec.acquire_time is not None
    moment = datetime.fromtimestamp(wall, UTC)
    if before is not None and before.spec.renew_time is not None and moment <= before.spec.renew_time:
        moment = before.spec.renew_time + timedelta(microseconds=1)
    acquired = before.spec.acquire_time if before and keeps and before.spec.acquire_time else moment
    metadata: dict[str, Any] = {"name": lease_name(node), "annotations": {OWNER_REASON: claim.reason}}
    metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", "name": node, "uid": node_uid}]
    if before is not None:
        metadata["resourceVersion"] = before.metadata.resource_version
    spec = {
        "holderIdentity": claim.holder,
        "leaseDurationSeconds": LEASE_SECONDS,
        "acquireTime": _micro_time(acquired),
        "renewTime": _micro_time(moment),
    }
    return {"metadata": metadata, "spec": spec}


def _micro_time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
