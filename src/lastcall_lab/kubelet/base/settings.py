"""The constants of a kubelet and the properties of one node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class KubeletSettings:
    """Seconds; the defaults are those of Kubernetes 1.36 (``pkg/kubelet/apis/config/v1beta1/defaults.go``).

    If you compress time, shorten the node lifecycle controller's grace period too: a kubelet must renew its node's
    Lease several times within it.
    """

    lease_duration: int = 40
    lease_renewal: float = 10.0
    status_update: float = 10.0
    """Between two looks at the node; what has changed is written (``nodeStatusUpdateFrequency``)."""
    status_report: float = 300.0
    """A status that has not changed is written so often all the same (``nodeStatusReportFrequency``)."""
    sync: float = 60.0
    """Between two looks at what a running pod's files come from, up to half as long again (``syncFrequency``)."""
    retry: float = 1.0
    """Between two attempts to reach an API server or a runtime that is away, or to start what did not start."""
    backoff_first: float = 10.0
    backoff_longest: float = 300.0
    backoff_forgotten: float = 600.0
    """A container that has run for so long begins with the first pause again."""
    attach_limit: float = 123.0
    """How long a volume is waited for until an event says so; it is waited for further (``podAttachAndMountTimeout``)."""
    attach_look: float = 0.3
    """Between two looks whether a volume is attached, beside the changes of the node (``podAttachAndMountRetryInterval``)."""
    least_grace: float = 1.0
    """What a pod has at least between the order to end it and SIGKILL (``pod_workers.go``)."""
    post_start_limit: float = 600.0
    """How long a postStart hook may take; Kubernetes has no limit of its own."""
    lost_after: float = 1.0
    """After a restart of the kubelet: how long the runtime may take to tell how the containers ended that run no more."""


@dataclass(frozen=True, kw_only=True)
class NodeProfile:
    """One node: ``address`` is its InternalIP and the hostIP of its pods, ``number`` selects its Services' addresses.

    ``privileged``: its service proxy listens below port 1024. ``boot_id`` changes with each boot. ``capacity`` holds
    quantities. ``taints`` are set at registration only; later the kubelet does not change them.
    """

    name: str
    address: str
    number: int = 0
    privileged: bool = False
    boot_id: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, Any]] = ()
    capacity: Mapping[str, str] = field(
        default_factory=lambda: {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    )
    architecture: str = "amd64"
    os_image: str = "lastcall lab"
    kernel: str = ""
    runtime: str = "lastcall://0"
    """containerRuntimeVersion: the runtime's name and version."""
