"""EvictionRequest and Eviction of ``lifecycle.k8s.io/v1alpha1``, as Kubernetes 1.37 has them (KEP-4563, pure).

Requesters create EvictionRequests. A controller makes one Eviction of those for the same pod, and lets the pod's responders
take turns. These types may still change without a new version.
"""

from enum import Enum
from typing import Final

from lastcall.model.base import Facts, Time
from lastcall.model.pods import FINISHED, Int32, Int64, ObjectMetadata

GROUP: Final = "lifecycle.k8s.io"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

EVICTOR: Final = "imperative-eviction.k8s.io/evictor"
"""The responder that every Eviction of a pod has as its last one: it calls the Eviction API."""
EVICTOR_PRIORITY: Final = 100

EVICTED: Final = "TargetEvicted"
FAILED: Final = "Failed"
"""The two conditions. True is final in an Eviction."""


class EvictionIntent(Enum):
    """What a requester wants now."""

    EVICTION = "Eviction"
    WITHDRAWN = "Withdrawn"


class ResponderState(Enum):
    """Whose turn it is. Only the controller writes it."""

    INACTIVE = "Inactive"
    ACTIVE = "Active"
    INTERRUPTED = "Interrupted"
    """It was silent for too long."""
    CANCELED = "Canceled"
    COMPLETED = "Completed"


ENDED: Final = (ResponderState.INTERRUPTED, ResponderState.CANCELED, ResponderState.COMPLETED)


class EvictionConditionReason(Enum):
    """The reasons of the two conditions."""

    AWAITING_EVICTION = "AwaitingEviction"
    EVICTION_INVALID = "EvictionInvalid"
    NO_REQUESTERS = "CanceledDueToNoRequesters"
    SUCCEEDED = "Succeeded"
    NO_FURTHER_RESPONDER = "NoFurtherResponder"
    POD_DELETED = "PodDeleted"
    POD_TERMINAL = "PodTerminal"
    EVICTION_FAILED = "EvictionFailed"


class TargetPod(Facts, frozen=True):
    """One pod, and no later one of its name."""

    name: str
    uid: str


class EvictionTarget(Facts, frozen=True):
    """What is evicted; there are only pods yet."""

    pod: TargetPod | None = None


class EvictionCondition(Facts, frozen=True):
    """metav1.Condition."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None


class EvictionRequestSpec(Facts, frozen=True):
    """Who wants which eviction. Only the intent changes."""

    target: EvictionTarget
    requester: str
    intent: EvictionIntent


class EvictionRequestStatus(Facts, frozen=True):
    """What has become of it, as the controller says it."""

    conditions: tuple[EvictionCondition, ...] = ()
    observed_generation: Int64 | None = None


class EvictionRequest(Facts, frozen=True):
    """One requester's wish that a pod be evicted."""

    metadata: ObjectMetadata
    spec: EvictionRequestSpec
    status: EvictionRequestStatus = EvictionRequestStatus()

    @property
    def is_wanted(self) -> bool:
        """Whether the eviction is wanted still; a request that is being deleted counts as withdrawn."""
        return self.metadata.deletion_timestamp is None and self.spec.intent is EvictionIntent.EVICTION


class EvictionSpec(Facts, frozen=True):
    """What is evicted."""

    target: EvictionTarget


class ListedRequester(Facts, frozen=True):
    """A requester, as an Eviction lists it."""

    name: str
    intent: EvictionIntent


class TargetResponder(Facts, frozen=True):
    """A responder of a pod, and whether it is its turn."""

    name: str
    priority: Int32 | None = None
    state: ResponderState = ResponderState.INACTIVE


class ResponderProgress(Facts, frozen=True):
    """What a responder says of itself. The controller sets ``start_time``; the rest is the responder's own."""

    name: str
    start_time: Time | None = None
    heartbeat_time: Time | None = None
    expected_completion_time: Time | None = None
    completion_time: Time | None = None
    message: str = ""


class EvictionStatus(Facts, frozen=True):
    """How far an eviction is."""

    conditions: tuple[EvictionCondition, ...] = ()
    observed_generation: Int64 | None = None
    requesters: tuple[ListedRequester, ...] = ()
    target_responders: tuple[TargetResponder, ...] = ()
    responders: tuple[ResponderProgress, ...] = ()


class PodEviction(Facts, frozen=True):
    """The eviction of one pod, for all who request it."""

    metadata: ObjectMetadata
    spec: EvictionSpec
    status: EvictionStatus = EvictionStatus()

    @property
    def is_evicted(self) -> bool:
        """Whether the pod is gone, or has finished."""
        return is_condition_true(self.status.conditions, EVICTED)

    @property
    def is_over(self) -> bool:
        """Whether nothing will happen any more."""
        return self.is_evicted or is_condition_true(self.status.conditions, FAILED)

    @property
    def uid_of_pod(self) -> str:
        """The uid of the pod that is evicted; "" if it is no pod."""
        return self.spec.target.pod.uid if self.spec.target.pod else ""

    def find_responder(self, name: str) -> TargetResponder | None:
        """The responder of that name; None if the pod does not have it."""
        return next((one for one in self.status.target_responders if one.name == name), None)

    def find_progress(self, name: str) -> ResponderProgress | None:
        """What the responder of that name says; None before the controller has made its entry."""
        return next((one for one in self.status.responders if one.name == name), None)


class PodResponder(Facts, frozen=True):
    """v1.EvictionResponder: who responds to evictions of a pod. The one with the highest priority is first."""

    name: str
    priority: Int32 | None = None


class EvictableSpec(Facts, frozen=True):
    """What a pod's spec says of its eviction."""

    eviction_responders: tuple[PodResponder, ...] = ()
    scheduling_group: dict[str, object] | None = None


class EvictableStatus(Facts, frozen=True):
    """The phase of a pod."""

    phase: str = ""


class EvictablePod(Facts, frozen=True):
    """A pod, as far as it matters to its eviction."""

    metadata: ObjectMetadata
    spec: EvictableSpec = EvictableSpec()
    status: EvictableStatus = EvictableStatus()

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended, though its object is there."""
        return self.status.phase in FINISHED


def is_condition_true(conditions: tuple[EvictionCondition, ...], kind: str) -> bool:
    """Whether the condition of this type is True."""
    return any(one.type == kind and one.status == "True" for one in conditions)
