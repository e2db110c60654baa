"""All controllers of the lab, by the names that disable them."""

from collections.abc import Collection, Sequence

from lastcall.errors import InvalidInput
from lastcall_lab.apiserver.catalog.built_in_resources import built_in_resources
from lastcall_lab.apiserver.catalog.optional_resources import optional_resources
from lastcall_lab.controllers.cluster.cluster_role_aggregation import ClusterRoleAggregator
from lastcall_lab.controllers.cluster.endpoint_slices import EndpointSliceController
from lastcall_lab.controllers.cluster.garbage_collector import GarbageCollector
from lastcall_lab.controllers.cluster.namespaces import NamespaceController
from lastcall_lab.controllers.cluster.service_accounts import ServiceAccountController
from lastcall_lab.controllers.framework.controller import Controller
from lastcall_lab.controllers.nodes.node_health import Renewals
from lastcall_lab.controllers.nodes.node_lifecycle import NodeLifecycleController
from lastcall_lab.controllers.nodes.pod_gc import PodGarbageCollector
from lastcall_lab.controllers.nodes.taint_eviction import TaintEvictionController
from lastcall_lab.controllers.objects.served_kinds import ServedKind
from lastcall_lab.controllers.scheduling.scheduler import Scheduler
from lastcall_lab.controllers.volumes.attach_detach import AttachDetachController
from lastcall_lab.controllers.volumes.volume_binder import VolumeBinderController
from lastcall_lab.controllers.volumes.volume_protection import ClaimProtectionController, VolumeProtectionController
from lastcall_lab.controllers.workloads.daemon_sets import DaemonSetController
from lastcall_lab.controllers.workloads.deployments import DeploymentController
from lastcall_lab.controllers.workloads.disruption_budgets import DisruptionController
from lastcall_lab.controllers.workloads.job_ttl import TTLAfterFinishedController
from lastcall_lab.controllers.workloads.jobs import JobController
from lastcall_lab.controllers.workloads.replica_sets import ReplicaSetController
from lastcall_lab.controllers.workloads.stateful_sets import StatefulSetController
from lastcall_lab.volumes.attacher import Attacher
from lastcall_lab.volumes.provisioner import Provisioner
from lastcall_lab.volumes.storage import Storage

_UNWATCHED = ("events",)
"""Resources whose objects have no dependents, and are too numerous to check each time."""


def make_controllers(
    authority: str,
    *,
    storage: Storage | None = None,
    renewals: Renewals | None = None,
    without: Collection[str] = (),
    roles: bool = False,
    optional: Sequence[str] = (),
) -> Sequence[Controller]:
    """Makes all controllers but those in ``without``; InvalidInput if one of these is unknown.

    ``authority`` is the certificate, PEM, by which pods verify the API server. ``storage`` is the storage of the toy
    driver. ``renewals`` are those of nodes whose leases are not written each time. ``roles`` adds the controllers for
    ClusterRoles. ``optional`` are the API versions that are served besides.
    """
    found = _cluster_controllers(authority, renewals, optional)
    if roles:
        found.append(ClusterRoleAggregator())
    if storage:
        found += [Provisioner(storage), Attacher(storage)]
    names = [one.name for one in found]
    unknown = [name for name in without if name not in names]
    if unknown:
        raise InvalidInput(
            "--without", [f'"{name}" is no controller; there are {", ".join(names)}' for name in unknown]
        )
    return [one for one in found if one.name not in without]


def _cluster_controllers(authority: str, renewals: Renewals | None, optional: Sequence[str]) -> list[Controller]:
    """The controllers of every cluster."""
    served = [*built_in_resources(), *optional_resources(optional)]
    stored = [one for one in served if not one.stored_as and (not one.verbs or "watch" in one.verbs)]
    owned = {
        (one.api_version, one.kind): ServedKind(one.storage, one.namespaced)
        for one in stored
        if one.plural not in _UNWATCHED
    }
    return [
        AttachDetachController(),
        DisruptionController(),
        ClaimProtectionController(),
        DaemonSetController(),
        DeploymentController(),
        EndpointSliceController(),
        TTLAfterFinishedController(),
        GarbageCollector(owned),
        JobController(),
        NodeLifecycleController(renewals=renewals),
        NamespaceController([one.storage for one in stored if one.namespaced]),
        PodGarbageCollector(),
        ReplicaSetController(),
        Scheduler(),
        ServiceAccountController(authority),
        StatefulSetController(),
        TaintEvictionController(),
        VolumeBinderController(),
        VolumeProtectionController(),
    ]
