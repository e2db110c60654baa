"""``NodeShutdown`` as stored in the API: the newest shutdown of the node of the same name (pure).

``node_shutdown_export.to_node_shutdown`` writes it; these structs read it. The CustomResourceDefinition is generated
from them.
"""

from typing import Annotated

from msgspec import Meta, field

from lastcall.model.base import Facts, Time
from lastcall.model.pods import Int32, Int64
from lastcall.model.shutdown import PhaseEnd, PodOutcome, ShutdownMode, ShutdownOutcome, ShutdownState
from lastcall.model.shutdown_kind import ends_boot
from lastcall.model.shutdown_notice import LOGIND

MOST_PODS = 4096
MOST_NOTES = 256
HANDED_OVER = "handed over to the kubelet, because their deletion had begun"
"""Begins the note that lists the pods whose deletion a cancelled shutdown had begun."""


class ShutdownPhasePlan(Facts, frozen=True):
    """A phase as it was planned."""

    priority: Annotated[Int32, Meta(description="Of its pods at least, up to the next phase's.")]
    seconds: Annotated[Int64, Meta(description="How long it may take.")]


class ShutdownPhase(Facts, frozen=True):
    """How a phase went."""

    priority: Annotated[Int32, Meta(description="As in the spec.")]
    granted_seconds: Annotated[float, Meta(description="How long it might take, as planned when it began.")] | None = (
        None
    )
    start_time: Annotated[Time, Meta(description="When it began.")] | None = None
    end_time: Annotated[Time, Meta(description="When it was over.")] | None = None
    result: Annotated[PhaseEnd, Meta(description="How it ended.")] | None = None


class ShutdownHook(Facts, frozen=True):
    """How a preStop hook went."""

    start_time: Annotated[Time, Meta(description="When it began.")] | None = None
    end_time: Annotated[Time, Meta(description="When it had ended.")] | None = None
    succeeded: Annotated[bool, Meta(description="False also if it was cut off.")] | None = None
    message: Annotated[str, Meta(description="What is known of its failure.")] = ""


class ShutdownContainer(Facts, frozen=True):
    """How a container ended."""

    name: Annotated[str, Meta(description="Unique in its pod.")]
    pre_stop: Annotated[ShutdownHook, Meta(description="How its preStop hook went.")] | None = None
    sigterm_time: (
        Annotated[Time, Meta(description="When SIGTERM went out, or the stop signal of the container's spec.")] | None
    ) = None
    sigkill_time: Annotated[Time, Meta(description="When SIGKILL went out, if it did.")] | None = None
    end_time: Annotated[Time, Meta(description="When it had ended.")] | None = None
    exit_code: Annotated[Int32, Meta(description="With which code, if that is known.")] | None = None


class ShutdownPod(Facts, frozen=True):
    """How a pod ended."""

    namespace: Annotated[str, Meta(description="Of the pod.")]
    name: Annotated[str, Meta(description="Of the pod.")]
    uid: Annotated[str, Meta(description="Of the pod; another pod of the same name has another one.")]
    priority: Annotated[Int32, Meta(description="Of the pod.")] = 0
    phase_index: Annotated[Int32, Meta(description="Which phase it belongs to, from 0.")] = 0
    termination_grace_period_seconds: Annotated[Int64, Meta(description="What its spec asks for.")] = 0
    granted_seconds: Annotated[float, Meta(description="What it was given.")] | None = None
    start_time: Annotated[Time, Meta(description="When its end began.")] | None = None
    end_time: Annotated[Time, Meta(description="When its last container had ended.")] | None = None
    unmounted_time: (
        Annotated[
            Time,
            Meta(
                description="When all of its volumes were unmounted, after all its containers had ended. Not given where"
                " that is not proved, and where a kubelet can start the pod again."
            ),
        ]
        | None
    ) = None
    application_ready: (
        Annotated[bool, Meta(description="Whether the application of a guarded pod could do without it.")] | None
    ) = None
    application_message: Annotated[str, Meta(description="Why the application was not ready.")] = ""
    outcome: Annotated[PodOutcome, Meta(description="How it ended.")] | None = None
    cut_short: Annotated[bool, Meta(description="Killed with less time than it asked for.")] = False
    containers: Annotated[
        tuple[ShutdownContainer, ...], Meta(max_length=256, description="Those that ran when its end began.")
    ] = ()

    @property
    def is_ended(self) -> bool:
        """Whether no part of the pod can write any more: every container has ended, and every volume is unmounted."""
        return self.unmounted_time is not None and self.outcome in (PodOutcome.GRACEFUL, PodOutcome.KILLED)


class ShutdownNote(Facts, frozen=True):
    """Something that a person should read."""

    time: Annotated[Time, Meta(description="When it was noted.")]
    message: Annotated[str, Meta(description="A sentence.")]


class NodeShutdownSpec(Facts, frozen=True):
    """What was to happen."""

    node_name: Annotated[str, Meta(min_length=1, description="The Node's name.")]
    boot_id: Annotated[str, Meta(description="Of the boot that ends, as in the Node's `status.nodeInfo.bootID`.")] = (
        field(name="bootID")
    )
    id: Annotated[str, Meta(description="By which `lastcall report` knows it on the node.")] = ""
    how: Annotated[
        str,
        Meta(
            description="What logind said of it: `poweroff`, `reboot`, `halt`, `kexec` or `soft-reboot`. After a"
            " soft-reboot the boot id is the same."
        ),
    ] = ""
    announced_by: Annotated[
        tuple[str, ...],
        Meta(
            max_length=16,
            description="Who has announced it, in this order: `Logind`, or a source of `deadlines` in the agent's"
            " configuration. While logind is not among them, the machine may stay up.",
        ),
    ] = ()
    mode: Annotated[ShutdownMode, Meta(description="Observe: nothing is ended.")] = ShutdownMode.ENFORCE
    requested_seconds: Annotated[float, Meta(description="What the configuration asks for.")] | None = None
    granted_seconds: (
        Annotated[float, Meta(description="What logind grants; not given if that is unlimited.")] | None
    ) = None
    phases: Annotated[tuple[ShutdownPhasePlan, ...], Meta(max_length=256, description="In their order.")] = ()


class NodeShutdownStatus(Facts, frozen=True):
    """What has happened so far."""

    state: Annotated[
        ShutdownState, Meta(description="How far it has come; Returned: the machine has booted again.")
    ] = ShutdownState.ANNOUNCED
    outcome: Annotated[ShutdownOutcome, Meta(description="Running until the machine may shut down, or stays up.")] = (
        ShutdownOutcome.RUNNING
    )
    start_time: Annotated[Time, Meta(description="When the shutdown was seen.")] | None = None
    deadline_time: (
        Annotated[Time, Meta(description="When the machine shuts down at the latest. Nobody fences the node before.")]
        | None
    ) = None
    end_time: Annotated[Time, Meta(description="When it was over.")] | None = None
    released_time: Annotated[Time, Meta(description="When the lock was closed: the machine may shut down.")] | None = (
        None
    )
    returned_time: (
        Annotated[Time, Meta(description="When the agent of the next boot found this record: the machine is back.")]
        | None
    ) = None
    pods_ended: Annotated[
        str, Meta(max_length=32, description="How many pods have ended, of those whose end has begun, such as 7/12.")
    ] = ""
    lock_held: Annotated[bool, Meta(description="Whether the machine waits for the pods.")] = False
    phases: Annotated[tuple[ShutdownPhase, ...], Meta(max_length=256, description="As in the spec.")] = ()
    pods: Annotated[
        tuple[ShutdownPod, ...], Meta(max_length=MOST_PODS, description="In the order in which their ends began.")
    ] = ()
    notes: Annotated[
        tuple[ShutdownNote, ...], Meta(max_length=MOST_NOTES, description="What else a person should know.")
    ] = ()


class ShutdownMeta(Facts, frozen=True):
    """v1.ObjectMeta."""

    name: Annotated[str, Meta(min_length=1)]
    uid: str = ""
    resource_version: str = ""


class NodeShutdown(Facts, frozen=True):
    """A node's own word on its shutdown: what it has ended, and until when it may take."""

    metadata: ShutdownMeta
    spec: NodeShutdownSpec
    status: NodeShutdownStatus = NodeShutdownStatus()

    @property
    def ended_pod_uids(self) -> frozenset[str]:
        """The UIDs of pods that have ended and are unmounted, and that this boot does not start again.

        None after a soft-reboot: its kubelet starts the pods again, in the same boot and with the same UIDs. None either
        while only others than logind announce the shutdown: the machine may stay up, and its kubelet with it.
        """
        by = self.spec.announced_by
        if not ends_boot(self.spec.how) or (by and LOGIND not in by):
            return frozenset()
        return frozenset(pod.uid for pod in self.status.pods if pod.is_ended)
