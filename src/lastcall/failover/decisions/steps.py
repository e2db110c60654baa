"""What is done next for one node: the answers of ``course.decide``, one for each kind of thing that can be done.

``why`` is a sentence for people, without a full stop. Each step may be done again when its answer was lost: the next
decision is made from what the cluster and the devices then say. Before each step that cannot be undone whoever carries it
out reads again, live: that he leads, that the mark is his, and that the Node still has the boot id (``boot_id``).
"""

from dataclasses import dataclass

from lastcall.failover.decisions.case import CaseAttachment, CasePod
from lastcall.failover.evidence.owner_mark import OwnerMark
from lastcall.failover.limits.storms import Limit


@dataclass(frozen=True)
class Done:
    """There is nothing to do for this node, and nothing of ours on it."""

    why: str


@dataclass(frozen=True)
class Wait:
    """Nothing is done now. What is waited for may come at any time; look again at ``until`` at the latest, if given."""

    why: str
    until: float | None = None
    limit: Limit | None = None
    """Which of the limits that protect the cluster it is that stands against fencing the node; None if none does."""
    stuck: bool = False
    """No fencer can switch the machine off now: each has failed, or cannot be used, or is refused."""


@dataclass(frozen=True, kw_only=True)
class AskTarget:
    """The fencer of this name is asked which machine is behind it, and its answer held against the Node."""

    fencer: str
    why: str


@dataclass(frozen=True, kw_only=True)
class AskPower:
    """The fencer of this name is asked for the status; its answer is evidence about the boot that the Node has."""

    fencer: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Mark:
    """The mark is written as it stands here, under the Node's resourceVersion; in place of the one that is there."""

    mark: OwnerMark
    why: str


@dataclass(frozen=True, kw_only=True)
class SwitchOff:
    """The fencer of this name is told to switch off. The mark that says so is written already."""

    fencer: str
    boot_id: str
    within: float
    why: str


@dataclass(frozen=True, kw_only=True)
class Taint:
    """Our taint is added to those of the Node, and ``mark`` written, in one write under its resourceVersion."""

    mark: OwnerMark
    boot_id: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Delete:
    """Pods that are not terminating yet are deleted with their own grace (1 s at least), each by its UID."""

    pods: tuple[CasePod, ...]
    boot_id: str
    why: str


@dataclass(frozen=True, kw_only=True)
class ForceDelete:
    """Pods are said to have failed, unless they have finished, and removed with a grace of 0.

    Those that are not terminating yet become the target of a disruption in the same write as Failed. That is only allowed
    if the boot is proved to be over: from any other node only terminating pods are removed.
    """

    pods: tuple[CasePod, ...]
    boot_id: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Detach:
    """VolumeAttachments are deleted, each by its UID; who attaches detaches then."""

    attachments: tuple[CaseAttachment, ...]
    boot_id: str
    why: str


@dataclass(frozen=True, kw_only=True)
class SwitchOn:
    """The fencer of this name is told to switch on. The mark that says so is written already."""

    fencer: str
    within: float
    why: str


@dataclass(frozen=True, kw_only=True)
class Untaint:
    """Our taint is taken away, all others left as they are, and ``mark`` written, in one write.

    ``by_hand``: every taint of that key goes, since the policy says so.
    """

    mark: OwnerMark
    by_hand: bool
    why: str


@dataclass(frozen=True, kw_only=True)
class Unmark:
    """The mark is taken away: lastcall has nothing on this node any more."""

    why: str
    given_back: bool = False
    """Nothing was done, and the node is as lost as it was: only its place among the limits is free. What a person has said of
    its machine stays."""


Step = (
    Done
    | Wait
    | AskTarget
    | AskPower
    | Mark
    | SwitchOff
    | Taint
    | Delete
    | ForceDelete
    | Detach
    | SwitchOn
    | Untaint
    | Unmark
)
