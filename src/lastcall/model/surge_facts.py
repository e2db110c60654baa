"""Workloads and autoscalers, as far as they say whether one more pod may run for a time (pure)."""

from collections.abc import Sequence

from lastcall.model.base import Facts
from lastcall.model.int_or_percent import resolve_portion
from lastcall.model.pods import Int64, ObjectMetadata, StatusCondition

_DEFAULT_PORTION = "25%"
"""maxSurge and maxUnavailable of a Deployment that gives none (apps/v1 defaults)."""


class RollingUpdate(Facts, frozen=True):
    """apps/v1 RollingUpdateDeployment."""

    max_surge: int | str | None = None
    max_unavailable: int | str | None = None


class UpdateStrategy(Facts, frozen=True):
    """apps/v1 DeploymentStrategy."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdate | None = None


class TemplateMetadata(Facts, frozen=True):
    """v1.ObjectMeta of a pod template."""

    annotations: dict[str, str] | None = None


class PodTemplate(Facts, frozen=True):
    """v1.PodTemplateSpec."""

    metadata: TemplateMetadata = TemplateMetadata()


class SurgeableSpec(Facts, frozen=True):
    """apps/v1 DeploymentSpec and ReplicaSetSpec; v1 ReplicationControllerSpec."""

    replicas: int = 1
    paused: bool = False
    strategy: UpdateStrategy = UpdateStrategy()
    template: PodTemplate = PodTemplate()


class SurgeableStatus(Facts, frozen=True):
    """How far the workload is; its fields are those of a Deployment."""

    observed_generation: Int64 = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    conditions: tuple[StatusCondition, ...] | None = None


class SurgeableWorkload(Facts, frozen=True):
    """A Deployment, ReplicaSet or ReplicationController."""

    kind: str
    metadata: ObjectMetadata
    api_version: str = "apps/v1"
    spec: SurgeableSpec = SurgeableSpec()
    status: SurgeableStatus = SurgeableStatus()

    @property
    def title(self) -> str:
        """Kind, namespace and name, for people."""
        return f"{self.kind} {self.metadata.namespace}/{self.metadata.name}"

    @property
    def has_observed_spec(self) -> bool:
        """Whether the status is of the present spec."""
        return self.status.observed_generation >= self.metadata.generation

    @property
    def is_rolled_out(self) -> bool:
        """Whether every pod is of the present template, and available (``deploymentutil.DeploymentComplete``)."""
        status, replicas = self.status, self.spec.replicas
        return (
            self.has_observed_spec
            and status.updated_replicas == status.replicas == status.available_replicas == replicas
        )

    def find_condition(self, kind: str) -> StatusCondition | None:
        """The condition of that type."""
        return next((one for one in self.status.conditions or () if one.type == kind), None)

    def resolve_update_limits(self) -> tuple[int, int]:
        """The limits maxSurge and maxUnavailable in pods, as ``deploymentutil.ResolveFenceposts`` has them.

        ValueError if one of them is neither a number nor a percentage.
        """
        rolling = self.spec.strategy.rolling_update or RollingUpdate()
        surge, unavailable = (
            _DEFAULT_PORTION if value is None else value for value in (rolling.max_surge, rolling.max_unavailable)
        )
        pods_above = resolve_portion(surge, self.spec.replicas, up=True)
        pods_below = resolve_portion(unavailable, self.spec.replicas, up=False)
        return pods_above, pods_below if pods_above or pods_below else 1


class ScaleTarget(Facts, frozen=True):
    """autoscaling/v2 CrossVersionObjectReference."""

    kind: str
    name: str


class AutoscalerSpec(Facts, frozen=True):
    """autoscaling/v2 HorizontalPodAutoscalerSpec."""

    scale_target_ref: ScaleTarget
    max_replicas: int
    min_replicas: int = 1


class Autoscaler(Facts, frozen=True):
    """autoscaling/v2 HorizontalPodAutoscaler."""

    metadata: ObjectMetadata
    spec: AutoscalerSpec

    @property
    def title(self) -> str:
        """Kind, namespace and name, for people."""
        return f"HorizontalPodAutoscaler {self.metadata.namespace}/{self.metadata.name}"

    def scales(self, workload: SurgeableWorkload) -> bool:
        """Whether it sets the replicas of the workload."""
        target = self.spec.scale_target_ref
        place = self.metadata.namespace, target.kind, target.name
        return place == (workload.metadata.namespace, workload.kind, workload.metadata.name)


def find_autoscaler(workload: SurgeableWorkload, autoscalers: Sequence[Autoscaler]) -> Autoscaler | None:
    """The autoscaler that sets the workload's replicas; the first if there are several."""
    return next((one for one in autoscalers if one.scales(workload)), None)


def resolve_floor(min_available: int | str | None, max_unavailable: int | str | None, pods: int) -> int:
    """How many of ``pods`` expected pods a budget wants healthy (pkg/controller/disruption: getExpectedPodCount).

    ValueError if a value is neither a number nor a percentage.
    """
    if max_unavailable is not None:
        return max(0, pods - resolve_portion(max_unavailable, pods, up=True))
    return resolve_portion(min_available, pods, up=True)
