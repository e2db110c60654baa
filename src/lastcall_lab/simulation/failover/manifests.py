"""What the failover controller needs in a cluster, as its manifests have it, and the policy of a rehearsal (pure)."""

from collections.abc import Sequence
from typing import Any

from lastcall import names
from lastcall.manifests.controller import ControllerChoices, controller_objects
from lastcall.report.formatting import format_exact_duration
from lastcall_lab.apiserver.values.request import Object
from lastcall_lab.simulation.scenario import FailoverSettings

_NEEDED = ("Namespace", "CustomResourceDefinition", "Lease")
"""Kinds of the manifests without which it does not run."""
_RIGHTS = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
"""Those that it needs besides where the API server asks for rights."""

POLICY = "rehearsed"


def simulation_objects(*, rights: bool = False) -> Sequence[Object]:
    """In the order in which they can be made; with the ``rights`` of the controller, if they are asked for."""
    kinds = (*_NEEDED, *_RIGHTS) if rights else _NEEDED
    return [one for one in controller_objects(ControllerChoices()) if one["kind"] in kinds]


def fence_policy(settings: FailoverSettings) -> Object:
    """For all nodes; each machine's BMC is its only fencer, if it has one."""
    bmc: dict[str, Any] = {"name": "bmc", "attempts": 2, "timeoutSeconds": 10, "manual": {}}
    limits: dict[str, Any] = {
        "minHealthy": int(settings.min_healthy) if settings.min_healthy.isdecimal() else settings.min_healthy,
        "perDomain": settings.per_domain,
        "perHour": settings.per_hour,
        "settle": format_exact_duration(settings.settle),
    }
    spec = {
        "mode": "Enforce",
        "suspectAfter": format_exact_duration(settings.suspect_after),
        "limits": limits,
        "domainLabel": settings.domain_label,
        "powerOn": "AfterFailover" if settings.power_on else "Never",
        "fencers": [bmc] if settings.bmc else [],
    }
    return {"apiVersion": names.API_VERSION, "kind": names.FENCE_POLICY, "metadata": {"name": POLICY}, "spec": spec}
