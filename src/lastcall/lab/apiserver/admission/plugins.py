"""The plugins that are always there, in the order of Kubernetes (``kubeapiserver/options/plugins.go``)."""

from collections.abc import Sequence
from random import Random

from lastcall.lab.apiserver.admission.chain import Plugin
from lastcall.lab.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from lastcall.lab.apiserver.admission.node_restriction import NodeRestriction
from lastcall.lab.apiserver.admission.node_taints import NodeTaints
from lastcall.lab.apiserver.admission.priorities import Priorities
from lastcall.lab.apiserver.admission.runtime_classes import RuntimeClasses
from lastcall.lab.apiserver.admission.service_accounts import ServiceAccounts
from lastcall.lab.apiserver.admission.tolerations import DefaultTolerations
from lastcall.lab.apiserver.admission.topology import TopologyLabels
from lastcall.lab.apiserver.admission.volumes import ClaimResize, DefaultStorageClass, StorageProtection, VolumePhases
from lastcall.lab.apiserver.store import Store
from lastcall.ports import Clock


def built_in(store: Store, clock: Clock, random: Random) -> Sequence[Plugin]:
    """All of them; webhooks come after them."""
    return [
        NamespaceLifecycle(store),
        ServiceAccounts(store, clock, random),
        NodeRestriction(store),
        NodeTaints(),
        Priorities(store),
        DefaultTolerations(),
        DefaultStorageClass(store),
        StorageProtection(),
        VolumePhases(clock),
        ClaimResize(store),
        RuntimeClasses(),
        TopologyLabels(store),
    ]
