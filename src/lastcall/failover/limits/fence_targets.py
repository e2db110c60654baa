"""Checks that the machine behind a fence device is the machine on which a node runs (pure).

No other may be powered off. Two identifiers tell a machine from all others and are known on both sides: the UUID and
the serial number in the SMBIOS tables of its firmware; in a cloud, also the providerID. If one of them differs, it is
another machine, whatever the others say.

A UUID has two spellings. SMBIOS stores its first three fields in little-endian order since version 2.6 (DSP0134,
7.2.1); before that, and on boards that ignore the rule, in big-endian order. The kernel and a BMC may read the same 16
bytes differently, so both orders count as the same UUID.

Some boards ship with a placeholder UUID or serial number that is the same on each of them. Placeholders are no
evidence.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from lastcall.model.fence_node import FenceNode
from lastcall.model.system_uuid import uuid_spellings
from lastcall.ports.fences import FenceTarget

_UNSET_SERIALS = re.compile(
    r"(to be filled by o\.?e\.?m\.?|not settable|not present|default string|system serial number|serial number|not specified|not applicable"
    r"|not available|none|null|n/?a|unknown|empty|oem|o\.e\.m\.|0?123456789|1234567890?|[0.x\-]*)",
    re.IGNORECASE,
)
_AWS = "aws://"


class TargetMatch(Enum):
    """The result of a comparison."""

    SAME = "the same machine"
    OTHER = "another machine"
    UNKNOWN = "cannot be known"


@dataclass(frozen=True)
class TargetJudgement:
    """The result and a sentence that gives the reason."""

    match: TargetMatch
    why: str

    def allows_fencing(self, *, unchecked: bool) -> bool:
        """Whether fencing is allowed; ``unchecked`` is the policy's ``targetCheck: Disabled`` for this fence.

        A target that is known to be another machine is never powered off.
        """
        return self.match is TargetMatch.SAME or (unchecked and self.match is TargetMatch.UNKNOWN)


def judge_target(target: FenceTarget, node: FenceNode) -> TargetJudgement:
    """Compares the identifiers of both. A machine on which another node may run counts as OTHER, whatever they say."""
    if node.shared_with and uuid_spellings(node.system_uuid):
        why = f"node {node.name} shows the same system UUID as node {node.shared_with}, whose machine it may be"
        return TargetJudgement(TargetMatch.OTHER, why)
    compared = list(_compare_identifiers(target, node))
    for same, sentence in compared:
        if not same:
            return TargetJudgement(TargetMatch.OTHER, sentence)
    if compared:
        return TargetJudgement(TargetMatch.SAME, "; ".join(sentence for _, sentence in compared))
    return TargetJudgement(TargetMatch.UNKNOWN, _missing_identifiers(target, node))


def _compare_identifiers(target: FenceTarget, node: FenceNode) -> Iterator[tuple[bool, str]]:
    """For each identifier that both sides know: whether it is the same, and a sentence."""
    pairs = (
        (
            "system UUID",
            uuid_spellings(target.system_uuid),
            uuid_spellings(node.system_uuid),
            target.system_uuid,
            node.system_uuid,
        ),
        (
            "serial number",
            comparable_serials(target.serial),
            comparable_serials(node.serial),
            target.serial,
            node.serial,
        ),
        (
            "providerID",
            comparable_provider_ids(target.provider_id),
            comparable_provider_ids(node.provider_id),
            target.provider_id,
            node.provider_id,
        ),
    )
    for what, theirs, ours, told, known in pairs:
        if theirs and ours:
            same = bool(theirs & ours)
            other = "" if same else f", that of {_target_name(target)} is {told}"
            yield (
                same,
                f"the {what} of node {node.name} is {known}{other or ', and so is that of ' + _target_name(target)}",
            )


def comparable_serials(text: str) -> frozenset[str]:
    """A serial number in its normal form; empty if it is a placeholder of the vendor."""
    text = text.strip()
    return frozenset() if _UNSET_SERIALS.fullmatch(text) else frozenset((text.upper(),))


def comparable_provider_ids(text: str) -> frozenset[str]:
    """A providerID in its normal form. AWS IDs with and without a zone name one instance; others compare literally."""
    text = text.strip()
    if text.startswith(_AWS):
        text = _AWS + text.rpartition("/")[2]
    return frozenset((text,)) if text else frozenset()


def _target_name(target: FenceTarget) -> str:
    return f"the fence's target {target.name}" if target.name else "the fence's target"


def _missing_identifiers(target: FenceTarget, node: FenceNode) -> str:
    if not (
        uuid_spellings(target.system_uuid)
        or comparable_serials(target.serial)
        or comparable_provider_ids(target.provider_id)
    ):
        return f"{_target_name(target)} names neither a system UUID nor a serial number nor a providerID"
    return f"node {node.name} knows none of the identifiers that {_target_name(target)} names"
