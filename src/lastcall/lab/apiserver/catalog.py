"""The resources that are built in: one line each, by group."""

from collections.abc import Sequence

from lastcall.lab.apiserver.kinds.base import Behaviour
from lastcall.lab.apiserver.scheme import Resource


def built_in() -> Sequence[Resource]:
    """All of them, with their names, subresources and behaviour."""
    return [
        Resource("", "v1", "configmaps", "ConfigMap", Behaviour(), short_names=["cm"]),
        Resource("", "v1", "namespaces", "Namespace", Behaviour(), namespaced=False, short_names=["ns"]),
        Resource("", "v1", "pods", "Pod", Behaviour(), short_names=["po"], subresources=["status"]),
    ]
