"""Maps the volumes attached to a node to their claims: pods name claims, and attachments name volumes."""

from collections.abc import Mapping, Sequence

from lastcall.failover.controller.controller_ports import FailoverApi
from lastcall.model.observed import WatchedAttachment

Claim = tuple[str, str]
"""Namespace and name."""


class AttachedClaims:
    """The claims of all nodes of one controller.

    A claim stays bound while its volume is attached, so it is read once per attachment. A recreated attachment of the
    same name has another UID, and its PersistentVolume may be recreated as well. An unbound volume is read again.
    """

    def __init__(self, cluster: FailoverApi) -> None:
        self._cluster = cluster
        self._known: dict[str, dict[str, Claim]] = {}
        """By node and UID of the attachment."""

    async def claims_on_node(self, node: str, attachments: Sequence[WatchedAttachment]) -> Mapping[Claim, str]:
        """The volumes of ``attachments``, which are all of ``node``, by claim."""
        known = self._known.get(node, {})
        uids = {one.metadata.uid for one in attachments}
        kept = {uid: claim for uid, claim in known.items() if uid in uids}
        volumes = {one.metadata.uid: one.spec.source.persistent_volume_name for one in attachments}
        for uid, volume in volumes.items():
            if volume and uid not in kept and (claim := await self._cluster.find_claim(volume)):
                kept[uid] = claim
        self._known.pop(node, None)
        if kept:
            self._known[node] = kept
        return {claim: volumes[uid] for uid, claim in kept.items()}
