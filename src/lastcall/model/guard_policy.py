"""``GuardPolicy`` of ``lastcall.dev/v1alpha1``: which pods are deleted only after a preparation, and how far it is (pure).

It is namespaced. The structs hold the object as the API server stores it, under its camelCase names.
``guard_policy_rules`` holds the rules beyond the types, ``guard_state_file`` reads the objects of a file.
"""

from enum import Enum
from typing import Annotated, Any

from msgspec import Meta, field

from lastcall.model import duration
from lastcall.model.base import Facts, Time
from lastcall.model.patterns import DURATION, QUALIFIED
from lastcall.model.selectors import LabelSelector


class HoldLimitAction(Enum):
    """What becomes of a pod that has been held for ``holdLimit``."""

    HOLD = "Hold"
    """It is held until its application is ready, and a person is told."""
    ALLOW = "Allow"
    """Its deletion is allowed."""


class PreparationState(Enum):
    """How far the preparation of one pod's deletion is."""

    PREPARING = "Preparing"
    READY = "Ready"
    """The application can do without the pod; it has to be verified again and again."""
    STALLED = "Stalled"
    """The provider makes no progress: a person is needed."""
    UNHEALTHY = "Unhealthy"
    """The application is short of members already: the preparation has not begun."""
    RELEASED = "Released"
    """The preparation is undone: the replacement is up, or the deletion was given up."""
    UNKNOWN = "Unknown"
    """Read for every other state: a newer version of the guard has written it. It is never written."""

    @classmethod
    def _missing_(cls, value: object) -> "PreparationState":
        return cls.UNKNOWN


class RequestedRemoval(Enum):
    """How the removal of a held pod was requested."""

    DELETE = "Delete"
    EVICTION = "Eviction"
    NODE_SHUTDOWN = "NodeShutdown"
    """The pod's node shuts down."""
    UNKNOWN = "Unknown"
    """Read for every other one, as in ``PreparationState``."""

    @classmethod
    def _missing_(cls, value: object) -> "RequestedRemoval":
        return cls.UNKNOWN


class HeldPod(Facts, frozen=True):
    """One pod whose deletion was requested. ``percent`` and ``eta_seconds`` are as the provider says them.

    It stays in the status until its replacement is up, so it may be older than the pod of its name.
    """

    name: Annotated[str, Meta(max_length=253, description="The pod's name.")]
    uid: Annotated[str, Meta(max_length=128, description="The pod's uid.")]
    state: Annotated[PreparationState, Meta(description="How far the preparation is.")]
    since: Annotated[Time, Meta(description="When the deletion was first requested.")] | None = None
    requested_by: Annotated[str, Meta(max_length=1024, description="The user who requested it.")] = ""
    percent: Annotated[int, Meta(ge=0, le=100, description="How much is done.")] | None = None
    eta_seconds: Annotated[int, Meta(ge=0, description="How long it will still take, in seconds.")] | None = None
    message: Annotated[str, Meta(max_length=1024, description="What is waited for, or what has failed.")] = ""
    attempts: Annotated[int, Meta(ge=0, description="How often the provider has failed in a row.")] = 0
    verified_at: (
        Annotated[Time, Meta(description="When the provider was last asked and said that it is ready.")] | None
    ) = None
    group: Annotated[
        str,
        Meta(
            max_length=253, description="Its application: the value of the label groupBy, or its topmost owner's uid."
        ),
    ] = ""
    workload_uid: Annotated[
        str, Meta(max_length=128, description="The uid of the topmost owner with a number of replicas.")
    ] = field(default="", name="workloadUID")
    request: Annotated[RequestedRemoval, Meta(description="How the removal was last requested.")] | None = None
    last_request_at: Annotated[Time, Meta(description="When it was last requested, to half a minute.")] | None = None
    grace_period_seconds: Annotated[int, Meta(description="As requested; without it the pod's own.")] | None = None
    prepared_at: (
        Annotated[Time, Meta(description="When the provider began to prepare: it has something to undo.")] | None
    ) = None
    ready_at: Annotated[Time, Meta(description="Since when the application is ready.")] | None = None
    unreachable_since: Annotated[Time, Meta(description="Since when the provider has not been reached.")] | None = None
    next_attempt_at: Annotated[Time, Meta(description="When the provider is asked again, after a failure.")] | None = (
        None
    )
    released_at: Annotated[Time, Meta(description="When the preparation had ended.")] | None = None
    allowed_at: (
        Annotated[Time, Meta(description="When it was allowed to go, and stayed: something else has refused it.")]
        | None
    ) = None
    undo_requested_at: (
        Annotated[Time, Meta(description="When it was to be undone at once, since the guard is uninstalled.")] | None
    ) = None

    @property
    def is_reserving(self) -> bool:
        """Whether it counts for ``maxUnavailable``: from the start of its preparation until its release.

        One of a state that is not known counts, since its pod may be on its way.
        """
        return self.state not in (PreparationState.UNHEALTHY, PreparationState.RELEASED)


class GuardSpec(Facts, frozen=True):
    """Which pods are guarded, and by what."""

    provider: Annotated[
        dict[str, dict[str, Any]],
        Meta(min_length=1, max_length=1, description="What prepares the application: one provider with its settings."),
    ]
    selector: Annotated[
        LabelSelector | None,
        Meta(description="The pods of the namespace that are guarded; without it those with the annotation alone."),
    ] = None
    group_by: Annotated[
        str,
        Meta(
            max_length=317,
            pattern=f"^$|{QUALIFIED}",
            description="The label whose value says which pods are one application; without it their controller.",
        ),
    ] = ""
    max_unavailable: Annotated[
        int | str,
        Meta(description="So many pods of one application are given up at a time: a number, or a percentage."),
    ] = 1
    hold_limit: Annotated[
        str, Meta(pattern=f"^$|{DURATION}", description="How long a pod is held at most; without it for ever.")
    ] = ""
    on_limit: Annotated[HoldLimitAction, Meta(description="What becomes of a pod that was held for so long.")] = (
        HoldLimitAction.HOLD
    )
    on_unreachable: Annotated[
        HoldLimitAction, Meta(description="What becomes of a pod whose provider cannot be reached for holdLimit.")
    ] = HoldLimitAction.HOLD

    @property
    def hold_limit_seconds(self) -> float | None:
        """``holdLimit`` in seconds; None for ever."""
        return duration.parse(self.hold_limit) / duration.SECOND if self.hold_limit else None


class GuardPolicyCondition(Facts, frozen=True):
    """metav1.Condition."""

    type: str
    status: str
    reason: str
    message: Annotated[str, Meta(max_length=32768)]
    last_transition_time: Time
    observed_generation: int = 0


class GuardStatus(Facts, frozen=True):
    """The pods whose deletion was requested."""

    pods: Annotated[
        tuple[HeldPod, ...], Meta(max_length=1000, description="The pods whose deletion was requested.")
    ] = ()
    held_pods: Annotated[int, Meta(ge=0, description="How many pods are held now.")] = 0
    ready_pods: Annotated[int, Meta(ge=0, description="How many of these are ready to be deleted.")] = 0
    conditions: Annotated[
        tuple[GuardPolicyCondition, ...],
        Meta(description="Accepted: whether the guard can follow the policy, and if not, why."),
    ] = ()


class GuardPolicyMeta(Facts, frozen=True):
    """v1.ObjectMeta."""

    name: Annotated[str, Meta(min_length=1, max_length=253)]
    namespace: str = "default"
    uid: str = ""
    resource_version: str = ""
    generation: int = 0


class GuardPolicy(Facts, frozen=True):
    """Which pods of a namespace are guarded, and how far the preparations of their deletions are."""

    metadata: GuardPolicyMeta
    spec: GuardSpec
    status: GuardStatus = field(default_factory=GuardStatus)

    @property
    def name(self) -> str:
        """The object's name, unique in its namespace."""
        return self.metadata.name

    def find_pod(self, uid: str) -> HeldPod | None:
        """The entry of a pod in the status."""
        for one in self.status.pods:
            if one.uid == uid:
                return one
        return None

    def put_entry(self, entry: HeldPod) -> tuple[HeldPod, ...]:
        """The entries of the status with this one, in its old place if it has one, else first: kubectl shows the first."""
        if self.find_pod(entry.uid) is None:
            return (entry, *self.status.pods)
        return tuple(entry if one.uid == entry.uid else one for one in self.status.pods)
