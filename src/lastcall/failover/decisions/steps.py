"""The possible next steps for one node: the answers of ``decision_table.decide``.

``why`` is a sentence for people, without a full stop. Each step may be repeated if its answer was lost: the next
decision starts from what the cluster and the devices then report. Before each irreversible step the executor verifies
live that this controller leads, that the mark is its own, and that the Node still has the boot ID (``boot_id``).
"""

from dataclasses import dataclass

from lastcall.failover.decisions.case import CaseAttachment, CasePod
from lastcall.failover.evidence.owner_mark import OwnerMark
from lastcall.failover.limits.storms import Limit


@dataclass(frozen=True)
class Done:
    """Nothing to do for this node, and nothing of lastcall's on it."""

    why: str


@dataclass(frozen=True)
class Wait:
    """No action now. The awaited change may come at any time; check again at ``until`` at the latest, if given."""

    why: str
    until: float | None = None
    limit: Limit | None = None
    """The storm limit that forbids fencing the node; None if none does."""
    stuck: bool = False
    """No fencer can power the machine off now: each has failed, is unusable or is refused."""


@dataclass(frozen=True, kw_only=True)
class AskTarget:
    """Asks the fencer which machine is behind it, and compares the answer with the Node."""

    fencer: str
    why: str


@dataclass(frozen=True, kw_only=True)
class AskPower:
    """Asks the fencer for the power state; the answer is evidence about the Node's current boot."""

    fencer: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Writes this mark in place of the current one, under the Node's resourceVersion."""

    mark: OwnerMark
    why: str


@dataclass(frozen=True, kw_only=True)
class SwitchOff:
    """Orders the fencer to power off. The mark already records the order."""

    fencer: str
    boot_id: str
    within: float
    why: str


@dataclass(frozen=True, kw_only=True)
class TaintNode:
    """Adds our taint to those of the Node and writes ``mark``, in one write under its resourceVersion."""

    mark: OwnerMark
    boot_id: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Delete:
    """Deletes pods that are not terminating yet with their own grace period (at least 1 s), each by its UID."""

    pods: tuple[CasePod, ...]
    boot_id: str
    why: str


@dataclass(frozen=True, kw_only=True)
class ForceDelete:
    """Sets pods to Failed, unless they have finished, and deletes them with a grace period of 0.

    Pods that are not terminating yet get the condition DisruptionTarget in the same write as Failed. That is allowed
    only if the boot is proved to be over: from any other node only terminating pods are removed.
    """

    pods: tuple[CasePod, ...]
    boot_id: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Detach:
    """Deletes VolumeAttachments, each by its UID; the CSI attacher then detaches the volumes."""

    attachments: tuple[CaseAttachment, ...]
    boot_id: str
    why: str


@dataclass(frozen=True, kw_only=True)
class SwitchOn:
    """Orders the fencer to power on. The mark already records the order."""

    fencer: str
    within: float
    why: str


@dataclass(frozen=True, kw_only=True)
class Untaint:
    """Removes our taint, keeps all others, and writes ``mark``, in one write.

    ``by_hand``: removes every out-of-service taint, as the policy says.
    """

    mark: OwnerMark
    by_hand: bool
    why: str


@dataclass(frozen=True, kw_only=True)
class Unmark:
    """Removes the mark: lastcall has nothing on this node any more."""

    why: str
    given_back: bool = False
    """Nothing was done, and the node is still lost: only its place in the limits is released. A person's
    acknowledgement stays.
    """


Step = (
    Done
    | Wait
    | AskTarget
    | AskPower
    | Mark
    | SwitchOff
    | TaintNode
    | Delete
    | ForceDelete
    | Detach
    | SwitchOn
    | Untaint
    | Unmark
)
