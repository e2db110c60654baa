"""A pod of a drain: what was asked for it, what was answered, and how it stands (pure)."""

from collections.abc import Sequence
from enum import Enum

from msgspec.structs import replace

from lastcall.drain.planning.pod_filters import controller_of
from lastcall.model.base import Facts
from lastcall.model.drain_facts import DrainPod
from lastcall.model.pods import DEFAULT_GRACE
from lastcall.names import GUARD_READY, READY

RETRY_SECONDS = 5.0
"""Seconds until a refused eviction is asked for again, if the answer does not say (kubectl: EvictErrorRetryDelay)."""


SPENT_SECONDS = 30.0
"""The same while the watch of its budget says that it lets no pod go."""


class PodTarget(Facts, frozen=True):
    """One pod, by its uid: a pod of its name with another uid, or on another node, is not a target.

    ``tier`` counts from 0. ``owner`` is the uid of its controller, or its own. ``grace`` are the seconds that its
    deletion gives it. ``is_depended_on``: it stays as long as another pod of the drain runs.
    """

    uid: str
    namespace: str
    name: str
    node: str
    tier: int = 0
    owner: str = ""
    grace: int = DEFAULT_GRACE
    is_depended_on: bool = False
    is_ready: bool = True
    """Whether it was ready at the beginning: those that were not go first, since they use up no budget."""

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class SeenPod(Facts, frozen=True):
    """What the watch knows of a pod. Times are of the monotonic clock; None: it is not deleted."""

    terminating_since: float | None = None
    grace: int | None = None
    """``deletionGracePeriodSeconds``."""
    overdue_since: float | None = None
    """The time of its deletionTimestamp, which is when its grace period ends."""
    is_guarded: bool = False
    """A guard has said that its application is not ready to lose it."""
    opt_out: str = ""
    """Why another tool is to leave it alone, "" if none is: it is not asked for."""


class SeenRoom(Facts, frozen=True):
    """What the watch of the budgets says of a pod that was refused."""

    is_open: bool
    """The API server would let the pod go."""
    changed_at: float
    """When that, or its budget, has changed; of the monotonic clock."""


class PodProgress(Facts, frozen=True):
    """The course of one pod. Times are of the monotonic clock; None: not yet."""

    target: PodTarget
    first_asked: float | None = None
    last_asked: float | None = None
    retry_at: float = 0.0
    refusal: str = ""
    """What the last answer said, if it was a refusal."""
    is_held: bool = False
    """The last answer was a webhook's or a responder's."""
    accepted_at: float | None = None
    forced_at: float | None = None
    """When the policy at the end of the time has deleted it."""
    is_gone: bool = False
    failure: str = ""


class AnswerKind(Enum):
    """What an answer to an eviction or deletion means."""

    ACCEPTED = "accepted"
    GONE = "gone"
    """There is no pod of this name, or it is another one."""
    REFUSED = "refused"
    """Not now: a budget, a webhook, an overloaded server, or a namespace that is being deleted."""
    FAILED = "failed"
    """The same request would fail again."""


class PodAnswer(Facts, frozen=True):
    """An answer. ``retry_after`` are the seconds that it asks for; ``is_held``: a webhook or a responder has refused."""

    kind: AnswerKind
    message: str = ""
    retry_after: float | None = None
    is_held: bool = False


def choose_targets(
    tiers: Sequence[Sequence[DrainPod]], *, grace: int | None, depended: frozenset[str]
) -> list[PodTarget]:
    """The targets, in the order in which they are asked for. ``depended`` are uids; ``grace`` None: each pod's own."""
    found = [
        _make_target(pod, number, grace, pod.metadata.uid in depended)
        for number, tier in enumerate(tiers)
        for pod in tier
    ]
    return sorted(found, key=lambda one: (one.tier, one.is_ready))


def _make_target(pod: DrainPod, tier: int, grace: int | None, depended: bool) -> PodTarget:
    owner = controller_of(pod)
    own = pod.spec.termination_grace_period_seconds
    return PodTarget(
        uid=pod.metadata.uid,
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        node=pod.spec.node_name,
        tier=tier,
        owner=owner.uid if owner else pod.metadata.uid,
        grace=grace if grace is not None else DEFAULT_GRACE if own is None else own,
        is_depended_on=depended,
        is_ready=any(one.type == READY and one.status == "True" for one in pod.status.conditions or ()),
    )


def is_guarded(pod: DrainPod) -> bool:
    """Whether a guard keeps the condition of the pod, and does not say that its application can do without it."""
    said = next((one for one in pod.status.conditions or () if one.type == GUARD_READY), None)
    return said is not None and said.status != "True"


def apply_answer(progress: PodProgress, answer: PodAnswer, *, forced: bool, now: float) -> PodProgress:
    """The progress after an answer that arrived at ``now``; ``forced``: to a deletion by the policy."""
    known = replace(progress, is_held=answer.is_held, refusal="")
    match answer.kind:
        case AnswerKind.ACCEPTED:
            return replace(known, accepted_at=now, forced_at=now if forced else known.forced_at)
        case AnswerKind.GONE:
            return replace(known, is_gone=True)
        case AnswerKind.FAILED:
            return replace(known, failure=answer.message)
        case AnswerKind.REFUSED:
            after = RETRY_SECONDS if answer.retry_after is None else max(answer.retry_after, 1.0)
            return replace(known, refusal=answer.message, retry_at=now + after)
