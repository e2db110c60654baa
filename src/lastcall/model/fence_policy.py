"""``FencePolicy`` of ``lastcall.dev/v1alpha1``: how lost nodes may be fenced and failed over (pure).

It is cluster-scoped. The structs hold the ``spec`` as the API server stores it, under its camelCase names. The
CustomResourceDefinition is generated from them: types, bounds, defaults and descriptions. ``fence_policy_rules`` holds
the rules beyond that, ``fence_policy_reader`` reads objects, and ``failover.limits.policy_choice`` chooses the policy
of a node.
"""

from enum import Enum
from typing import Annotated, Any

from msgspec import Meta, field

from lastcall.model import duration
from lastcall.model.base import Facts
from lastcall.model.fencer import Fencer
from lastcall.model.patterns import DURATION, QUALIFIED
from lastcall.model.pods import Int32
from lastcall.model.selectors import LabelSelector


class FailoverMode(Enum):
    """What the controller does for a lost node."""

    OBSERVE = "Observe"
    """It takes no action, and reports what it would do."""
    TAINT_ONLY = "TaintOnly"
    """It fences the node, and adds the taint out-of-service on proof that it is off; kube-controller-manager does the
    rest."""
    ENFORCE = "Enforce"
    """It takes all steps."""


class PowerOn(Enum):
    """Whether lastcall switches a machine back on that it has switched off."""

    NEVER = "Never"
    AFTER_FAILOVER = "AfterFailover"
    """When no pod or volume remains to be forced."""


class RemoveTaint(Enum):
    """Which out-of-service taint lastcall removes when the node is back."""

    OURS = "Ours"
    ALWAYS = "Always"
    """Also one that a person has added by hand."""


class MachineIDCheck(Enum):
    """Whether two Nodes with the same machineID may be the same machine."""

    REQUIRED = "Required"
    """They may be: neither is fenced while the other one shows signs of life."""
    DISABLED = "Disabled"
    """They need not be: the machines were cloned with their ``/etc/machine-id``, so it identifies no machine."""


class PolicyLimits(Facts, frozen=True):
    """The limits that protect the cluster from its own controller, over all nodes and policies."""

    min_healthy: Annotated[
        int | str,
        Meta(description="So many of all nodes are healthy, or none is fenced: a number, or a percentage, rounded up."),
    ] = "51%"
    per_domain: Annotated[
        int, Meta(ge=1, le=5000, description="Nodes of one failure domain that are fenced and not back yet.")
    ] = 1
    per_hour: Annotated[int, Meta(ge=1, le=5000, description="Nodes that are fenced within any hour.")] = 3
    settle: Annotated[
        str,
        Meta(
            pattern=DURATION,
            description="How long the controller does not trust its view after errors of the API server or a step of its"
            " clock.",
        ),
    ] = "1m"

    @property
    def settle_seconds(self) -> float:
        """``settle`` in seconds."""
        return duration.parse(self.settle) / duration.SECOND


class PolicySpec(Facts, frozen=True):
    """The actions for the selected nodes."""

    node_selector: Annotated[
        LabelSelector, Meta(description="The nodes that it is for, by their labels; without requirements all of them.")
    ] = LabelSelector()
    priority: Annotated[
        Int32,
        Meta(
            description="Of several policies for a node the one with the greatest holds; of equals the first by name."
        ),
    ] = 0
    mode: Annotated[
        FailoverMode,
        Meta(
            description="Observe only reports what would be done; TaintOnly fences the node and sets the taint"
            " out-of-service; Enforce also deletes the pods and detaches the volumes."
        ),
    ] = FailoverMode.OBSERVE
    suspect_after: Annotated[
        str,
        Meta(
            pattern=DURATION,
            description="How long nothing is heard of a node before it is suspected: 1s to 1h. A kubelet renews its Lease"
            " every 10 s.",
        ),
    ] = "40s"
    limits: Annotated[PolicyLimits, Meta(description="What protects the cluster from its own controller.")] = (
        PolicyLimits()
    )
    domain_label: Annotated[
        str, Meta(pattern=QUALIFIED, max_length=317, description="The label of nodes that names their failure domain.")
    ] = "topology.kubernetes.io/zone"
    power_on: Annotated[
        PowerOn,
        Meta(description="Whether a machine that was switched off is switched on when nothing is left to force."),
    ] = PowerOn.NEVER
    remove_taint: Annotated[
        RemoveTaint,
        Meta(
            description="Which taint out-of-service is taken away when the node is back: only lastcall's own, or one set by"
            " hand too."
        ),
    ] = RemoveTaint.OURS
    machine_id_check: Annotated[
        MachineIDCheck,
        Meta(
            description="Required: a node is not fenced while another Node with the same status.nodeInfo.machineID is heard"
            " of, as it may be the same machine. Disabled: machines were cloned, and share it."
        ),
    ] = field(default=MachineIDCheck.REQUIRED, name="machineIDCheck")
    fencers: Annotated[
        tuple[Fencer, ...],
        Meta(
            max_length=8, description="The ways to switch the machine off, in this order; the next when one has failed."
        ),
    ] = ()

    @property
    def suspect_after_seconds(self) -> float:
        """``suspectAfter`` in seconds."""
        return duration.parse(self.suspect_after) / duration.SECOND


class PolicyMeta(Facts, frozen=True):
    """v1.ObjectMeta."""

    name: Annotated[str, Meta(min_length=1, max_length=253)]
    uid: str = ""
    generation: int = 0
    resource_version: str = ""


class FencePolicy(Facts, frozen=True):
    """How lost nodes may be fenced and failed over, for the nodes that the selector matches."""

    metadata: PolicyMeta
    spec: PolicySpec = PolicySpec()
    status: dict[str, Any] = field(default_factory=dict)
    """The status as read; ``failover.limits.policy_choice`` computes what it should be."""

    @property
    def name(self) -> str:
        """The object's name; unique, because the kind is cluster-scoped."""
        return self.metadata.name
