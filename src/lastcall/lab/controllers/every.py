"""All controllers of the lab, by the names by which they can be switched off."""

from collections.abc import Collection, Sequence

from lastcall.errors import InvalidInput
from lastcall.lab.apiserver.catalog import built_in
from lastcall.lab.controllers.attachdetach import AttachDetach
from lastcall.lab.controllers.budgets import Budgets
from lastcall.lab.controllers.clusterroles import ClusterRoleAggregation
from lastcall.lab.controllers.controller import Controller
from lastcall.lab.controllers.daemonsets import DaemonSets
from lastcall.lab.controllers.deployments import Deployments
from lastcall.lab.controllers.endpointslices import EndpointSlices
from lastcall.lab.controllers.garbage import Garbage
from lastcall.lab.controllers.job_ttl import FinishedJobs
from lastcall.lab.controllers.jobs import Jobs
from lastcall.lab.controllers.kinds import Served
from lastcall.lab.controllers.namespaces import Namespaces
from lastcall.lab.controllers.node_health import Renewals
from lastcall.lab.controllers.nodelifecycle import NodeLifecycle
from lastcall.lab.controllers.podgc import PodGC
from lastcall.lab.controllers.replicasets import ReplicaSets
from lastcall.lab.controllers.scheduler import Scheduler
from lastcall.lab.controllers.service_accounts import ServiceAccounts
from lastcall.lab.controllers.statefulsets import StatefulSets
from lastcall.lab.controllers.tainteviction import TaintEviction
from lastcall.lab.controllers.volumebinder import VolumeBinder
from lastcall.lab.controllers.volumeprotection import ClaimProtection, VolumeProtection
from lastcall.lab.volumes.attacher import Attacher
from lastcall.lab.volumes.provisioner import Provisioner
from lastcall.lab.volumes.storage import Storage

_UNWATCHED = ("events",)
"""Resources whose objects nobody owns, and which are too many to be looked at each time."""


def every(
    authority: str,
    *,
    storage: Storage | None = None,
    renewals: Renewals | None = None,
    without: Collection[str] = (),
    roles: bool = False,
) -> Sequence[Controller]:
    """All but those of the names in ``without``; InvalidInput if one of these is no controller.

    ``authority`` is the certificate, PEM, by which pods know the API server; ``storage`` is what the toy driver is for;
    ``renewals`` are those of nodes whose leases are not written each time; ``roles`` also those for ClusterRoles.
    """
    found = _every(authority, renewals)
    if roles:
        found.append(ClusterRoleAggregation())
    if storage:
        found += [Provisioner(storage), Attacher(storage)]
    names = [one.name for one in found]
    unknown = [name for name in without if name not in names]
    if unknown:
        raise InvalidInput(
            "--without", [f'"{name}" is no controller; there are {", ".join(names)}' for name in unknown]
        )
    return [one for one in found if one.name not in without]


def _every(authority: str, renewals: Renewals | None) -> list[Controller]:
    """Those that any cluster has."""
    stored = [one for one in built_in() if not one.stored_as and (not one.verbs or "watch" in one.verbs)]
    owned = {
        (one.api_version, one.kind): Served(one.storage, one.namespaced)
        for one in stored
        if one.plural not in _UNWATCHED
    }
    return [
        AttachDetach(),
        Budgets(),
        ClaimProtection(),
        DaemonSets(),
        Deployments(),
        EndpointSlices(),
        FinishedJobs(),
        Garbage(owned),
        Jobs(),
        NodeLifecycle(renewals=renewals),
        Namespaces([one.storage for one in stored if one.namespaced]),
        PodGC(),
        ReplicaSets(),
        Scheduler(),
        ServiceAccounts(authority),
        StatefulSets(),
        TaintEviction(),
        VolumeBinder(),
        VolumeProtection(),
    ]
