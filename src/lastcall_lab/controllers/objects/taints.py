"""Reads and writes taints, tolerations and node states (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from lastcall import names
from lastcall.failover.upstream.controller_manager_rules import UpstreamNodeState
from lastcall.model.tolerations import Taint, Toleration
from lastcall_lab.apiserver.values.object_meta import timestamp
from lastcall_lab.controllers.framework.actions import PatchObject
from lastcall_lab.controllers.framework.view import Object, ref_of
from lastcall_lab.controllers.objects import pods

Kind = tuple[str, str]
"""Key and effect, which identify a taint (``Taint.MatchTaint``)."""


@dataclass(frozen=True)
class TaintEdits:
    """Taints to add to a node and taints to remove from it."""

    add: frozenset[Kind] = frozenset()
    remove: frozenset[Kind] = frozenset()

    def __add__(self, more: "TaintEdits") -> "TaintEdits":
        return TaintEdits(self.add | more.add, self.remove | more.remove)


def taints_of(node: Object) -> Sequence[Taint]:
    """The taints of a node."""
    return msgspec.convert((node.get("spec") or {}).get("taints") or [], list[Taint])


def tolerations_of(pod: Object) -> Sequence[Toleration]:
    """The tolerations of a pod."""
    return msgspec.convert(pod["spec"].get("tolerations") or [], list[Toleration])


def is_node_ready(node: Object) -> bool:
    """Whether its condition Ready is True; without that condition it is not ready (``nodeutil.IsNodeReady``)."""
    return pods.condition_of(node, "Ready").get("status") == "True"


def node_state(node: Object | None) -> UpstreamNodeState | None:
    """The facts about a node that the verdicts need; None if the node does not exist."""
    if node is None:
        return None
    return UpstreamNodeState(is_node_ready(node), any(taint.key == names.OUT_OF_SERVICE for taint in taints_of(node)))


def apply_edits(node: Object, edits: TaintEdits, now: float) -> tuple[PatchObject, ...]:
    """Adds and removes taints of a node; no action if nothing changes.

    Writes the whole list, so the patch is valid only for the known version of the node.
    """
    old = (node.get("spec") or {}).get("taints") or []
    present = {(taint["key"], taint["effect"]) for taint in old}
    if edits.add <= present and not edits.remove & present:
        return ()
    kept = [taint for taint in old if (taint["key"], taint["effect"]) not in edits.remove]
    missing = sorted(edits.add - {(taint["key"], taint["effect"]) for taint in kept})
    since = timestamp(now)
    new = kept + [{"key": key, "effect": effect, "timeAdded": since} for key, effect in missing]
    metadata, body = node["metadata"], {"spec": {"taints": new}}
    return (PatchObject(ref_of("nodes", node), body, uid=metadata["uid"], revision=metadata["resourceVersion"]),)
