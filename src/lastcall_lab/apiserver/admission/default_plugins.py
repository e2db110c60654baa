"""The built-in plugins, in the order of Kubernetes (``kubeapiserver/options/plugins.go``)."""

from collections.abc import Sequence
from random import Random

from lastcall.ports.node import Clock
from lastcall_lab.apiserver.admission.chain import AdmissionPlugin
from lastcall_lab.apiserver.admission.default_tolerations import DefaultTolerations
from lastcall_lab.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from lastcall_lab.apiserver.admission.node_restriction import NodeRestriction
from lastcall_lab.apiserver.admission.node_taints import NodeTaints
from lastcall_lab.apiserver.admission.pod_priorities import PodPriorities
from lastcall_lab.apiserver.admission.runtime_classes import RuntimeClasses
from lastcall_lab.apiserver.admission.service_accounts import PodServiceAccounts
from lastcall_lab.apiserver.admission.topology_labels import TopologyLabels
from lastcall_lab.apiserver.admission.volume_plugins import (
    ClaimResize,
    DefaultStorageClass,
    StorageObjectProtection,
    VolumePhases,
)
from lastcall_lab.apiserver.storage.store import Store


def built_in_plugins(store: Store, clock: Clock, random: Random) -> Sequence[AdmissionPlugin]:
    """All built-in plugins; webhooks follow them."""
    return [
        NamespaceLifecycle(store),
        PodServiceAccounts(store, clock, random),
        NodeRestriction(store),
        NodeTaints(),
        PodPriorities(store),
        DefaultTolerations(),
        DefaultStorageClass(store),
        StorageObjectProtection(),
        VolumePhases(clock),
        ClaimResize(store),
        RuntimeClasses(),
        TopologyLabels(store),
    ]
