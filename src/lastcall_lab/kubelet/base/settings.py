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
    """Between two checks of the node; changes are written (``nodeStatusUpdateFrequency``)."""
    status_report: float = 300.0
    """The interval of writes of an unchanged status (``nodeStatusReportFrequency``)."""
    sync: float = 60.0
    """Between two checks of a running pod's file sources, with up to 50 % jitter (``syncFrequency``)."""
    retry: float = 1.0
    """Between two attempts to reach the API server or the runtime, or to repeat a failed start."""
    backoff_first: float = 10.0
    backoff_longest: float = 300.0
    backoff_forgotten: float = 600.0
    """After a run of this length, the restart backoff starts again with its first pause."""
    attach_limit: float = 123.0
    """The wait for a volume until an event reports it; the wait then continues (``podAttachAndMountTimeout``)."""
    attach_look: float = 0.3
    """Between two reads of a volume's attachment, besides watch events (``podAttachAndMountRetryInterval``)."""
    least_grace: float = 1.0
    """The minimum time of a pod between the order to end it and SIGKILL (``pod_workers.go``)."""
    post_start_limit: float = 600.0
    """The limit of a postStart hook; Kubernetes has none."""
    lost_after: float = 1.0
    """After a kubelet restart: how long the runtime may take to report the ends of containers that no longer run."""


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
