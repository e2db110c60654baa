"""Port of one more pod for a time; ``adapters.kube.surge_cluster`` implements it. Errors are those of the API client."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from lastcall.model.surge_facts import Autoscaler, SurgeableWorkload


class SurgeCluster(Protocol):
    """Workloads and their autoscalers, read live."""

    async def read_workload(self, kind: str, namespace: str, name: str) -> SurgeableWorkload:
        """The workload as it is now; ``kind`` is one of ``SURGEABLE_KINDS``."""
        ...

    async def list_autoscalers(self, namespace: str) -> Sequence[Autoscaler]:
        """The HorizontalPodAutoscalers of the namespace; none if the API is not served."""
        ...

    async def patch_subject(self, subject: SurgeableWorkload | Autoscaler, patch: Mapping[str, Any]) -> None:
        """A JSON merge patch of a workload or autoscaler; Conflict if its resourceVersion is not the current one."""
        ...
