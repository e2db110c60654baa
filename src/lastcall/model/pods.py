"""Pods: the fields of Kubernetes' v1.Pod that determine how a pod ends."""

from typing import Annotated

import msgspec

from lastcall.model.base import Facts

SYSTEM_CRITICAL = 2_000_000_000
"""Pods of this priority and above are critical (pkg/apis/scheduling: SystemCriticalPriority)."""

SYSTEM_CLASSES = {"system-cluster-critical": SYSTEM_CRITICAL, "system-node-critical": SYSTEM_CRITICAL + 1000}
"""The two priority classes that every cluster has, with their values."""

DEFAULT_GRACE = 30
"""The default grace period in seconds (v1.DefaultTerminationGracePeriodSeconds)."""

FINISHED = ("Succeeded", "Failed")

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Seconds = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class OwnerReference(Facts, frozen=True):
    """The owner of a pod."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMetadata(Facts, frozen=True):
    """v1.ObjectMeta."""

    name: str = ""
    namespace: str = "default"
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: Int64 | None = None
    generation: Int64 = 0
    resource_version: str = ""
    owner_references: tuple[OwnerReference, ...] | None = None
    finalizers: tuple[str, ...] | None = None


class ExecAction(Facts, frozen=True):
    """Runs a command in the container, without a shell."""

    command: tuple[str, ...] = ()


class HTTPHeader(Facts, frozen=True):
    """One header of an httpGet action."""

    name: str
    value: str = ""


class HTTPGetAction(Facts, frozen=True):
    """GET of a path at the pod's address, or at ``host``."""

    port: int | str
    path: str = ""
    host: str = ""
    scheme: str = "HTTP"
    http_headers: tuple[HTTPHeader, ...] | None = None


class SleepAction(Facts, frozen=True):
    """Waits (KEP-3960)."""

    seconds: Seconds


class TCPSocketAction(Facts, frozen=True):
    """Opens a connection to a port at the pod's address, or at ``host``."""

    port: int | str
    host: str = ""


class LifecycleHandler(Facts, frozen=True):
    """v1.LifecycleHandler or v1.ProbeHandler: at most one field is set.

    As a hook, tcpSocket is accepted by the API and does nothing; a probe has no sleep.
    """

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    sleep: SleepAction | None = None
    tcp_socket: TCPSocketAction | None = None


class Lifecycle(Facts, frozen=True):
    """The lifecycle hooks of a container, and the signal that stops it ("" if none is configured; KEP-4960)."""

    pre_stop: LifecycleHandler | None = None
    stop_signal: str = ""


class ContainerPort(Facts, frozen=True):
    """A port and its name, which an httpGet action may use."""

    container_port: int
    name: str = ""


class EnvVar(Facts, frozen=True):
    """An environment variable with a plain value."""

    name: str
    value: str = ""


class SecurityContext(Facts, frozen=True):
    """The user that a container runs as."""

    run_as_user: int | None = None
    run_as_group: int | None = None


class HostPath(Facts, frozen=True):
    """A directory or file of the host."""

    path: str


class EmptyDir(Facts, frozen=True):
    """A directory with the lifetime of the pod."""


class PersistentClaimSource(Facts, frozen=True):
    """A PersistentVolumeClaim of the pod's namespace."""

    claim_name: str


class EphemeralSource(Facts, frozen=True):
    """A claim that is made for the pod and named after it (``POD-VOLUME``)."""


class InlineCsiSource(Facts, frozen=True):
    """A volume that a CSI driver makes for the pod alone."""

    driver: str


class Volume(Facts, frozen=True):
    """A volume: of the two kinds that need no cluster, or of those that a node unmounts; other kinds are not read."""

    name: str
    host_path: HostPath | None = None
    empty_dir: EmptyDir | None = None
    persistent_volume_claim: PersistentClaimSource | None = None
    ephemeral: EphemeralSource | None = None
    csi: InlineCsiSource | None = None

    @property
    def is_attachable(self) -> bool:
        """Whether it may be attached to the node: what is behind a claim is not known here."""
        return bool(self.persistent_volume_claim or self.ephemeral)


class VolumeMount(Facts, frozen=True):
    """The path at which a container mounts a volume."""

    name: str
    mount_path: str
    host_path: str = ""
    """The volume's path on this host, if the runtime does not know it from the volume itself."""


class Container(Facts, frozen=True):
    """v1.Container; in initContainers, ``restartPolicy: Always`` makes it a sidecar (KEP-753)."""

    name: str
    image: str = ""
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    working_dir: str = ""
    env: tuple[EnvVar, ...] | None = None
    ports: tuple[ContainerPort, ...] | None = None
    lifecycle: Lifecycle | None = None
    restart_policy: str | None = None
    security_context: SecurityContext | None = None
    volume_mounts: tuple[VolumeMount, ...] | None = None

    @property
    def pre_stop(self) -> LifecycleHandler | None:
        """The preStop hook, if it has an action."""
        hook = self.lifecycle.pre_stop if self.lifecycle else None
        return hook if hook and (hook.exec or hook.http_get or hook.sleep) else None

    @property
    def stop_signal(self) -> str:
        """The configured stop signal, such as ``SIGUSR1``; "" for SIGTERM, or if the runtime takes the image's."""
        signal = self.lifecycle.stop_signal if self.lifecycle else ""
        return "" if signal == "SIGTERM" else signal


class PodSpec(Facts, frozen=True):
    """v1.PodSpec."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] | None = None
    node_name: str = ""
    priority: Int32 | None = None
    priority_class_name: str = ""
    termination_grace_period_seconds: Seconds | None = None
    restart_policy: str = "Always"
    host_network: bool = False
    dns_policy: str = "ClusterFirst"
    security_context: SecurityContext | None = None
    volumes: tuple[Volume, ...] | None = None


class StatusCondition(Facts, frozen=True):
    """A condition of a pod or node."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    last_probe_time: str | None = None


class PodStatus(Facts, frozen=True):
    """v1.PodStatus."""

    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: tuple[StatusCondition, ...] | None = None


class Pod(Facts, frozen=True):
    """v1.Pod."""

    metadata: ObjectMetadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def is_finished(self) -> bool:
        """Whether the pod is Succeeded or Failed, so that no container remains to be terminated."""
        return self.status.phase in FINISHED


def pod_priority(pod: Pod) -> int:
    """A pod's priority; derived from the two system class names if the number is missing.

    A static pod bypasses the API's admission, so its number may be missing. The kubelet then counts it as 0 and ends
    the pod first (kubernetes issue 113940).
    """
    if pod.spec.priority is not None:
        return pod.spec.priority
    return SYSTEM_CLASSES.get(pod.spec.priority_class_name, 0)


def asked_grace(pod: Pod) -> int | None:
    """The grace period in seconds that the pod asks for: its own, or that of its deletion if it is smaller.

    None if neither is known. The kubelet, too, only shortens a grace period (pkg/kubelet/pod_workers.go:
    calculateEffectiveGracePeriod).
    """
    known = (pod.spec.termination_grace_period_seconds, pod.metadata.deletion_grace_period_seconds)
    return min((seconds for seconds in known if seconds is not None), default=None)


def list_sidecars(pod: Pod) -> tuple[Container, ...]:
    """The init containers that keep running beside the main containers, in start order."""
    return tuple(c for c in pod.spec.init_containers or () if c.restart_policy == "Always")
