"""The guard's grants by place, each with its reason (pure)."""

from typing import Final

from lastcall import names
from lastcall.manifests.guard_webhooks import CONFIGURATION
from lastcall.manifests.rbac import Grant

NAME: Final = "lastcall-guard"
RELEASER: Final = names.GUARD_RELEASER.rpartition(":")[2]
ACCESS: Final = "lastcall-guard-access"
"""The ClusterRole that is bound in each guarded namespace, and nowhere else."""

_READ = ("get", "list")


def guard_grants(namespace: str) -> list[Grant]:
    """Everywhere what is read, and what is written of lastcall's own; the rest by name."""
    return [
        Grant("pods", _READ, "the members of guarded applications, read live"),
        Grant("namespaces", ("get",), "whether a namespace is guarded, or being deleted"),
        Grant(
            "nodes",
            ("get", "list", "watch"),
            "whether a pod's node exists, is out of service, or shuts down; which addresses are not pods'",
        ),
        Grant("replicationcontrollers", ("get",), "owners of pods"),
        Grant("statefulsets", ("list",), "owners of pods, and how many they want", "apps"),
        Grant("replicasets", ("list",), "the same", "apps"),
        Grant("deployments", ("list",), "the same", "apps"),
        Grant("daemonsets", ("get",), "owners of pods", "apps"),
        Grant("jobs", ("get",), "owners of pods", "batch"),
        Grant("cronjobs", ("get",), "owners of Jobs", "batch"),
        Grant("poddisruptionbudgets", ("list",), "nothing is prepared while a budget would refuse", "policy"),
        Grant("guardpolicies", ("get", "list", "watch"), "what is guarded, and how far it is", names.GROUP),
        Grant("guardpolicies/status", ("patch",), "requests and preparations are recorded there", names.GROUP),
        Grant("events", ("create",), "what is held is told on the pod and its owner"),
        Grant("endpointslices", ("list",), "the API server's addresses", "discovery.k8s.io", "default"),
        Grant(
            "validatingwebhookconfigurations",
            ("get", "update"),
            "the authority of its certificate, and its path; an uninstallation empties the first one",
            "admissionregistration.k8s.io",
            names=(CONFIGURATION, names.GUARD_UNINSTALL),
        ),
        Grant("leases", ("get", "patch"), "which replica prepares", "coordination.k8s.io", namespace, (NAME,)),
        Grant("leases", ("create",), "the Lease is made anew if somebody deletes it", "coordination.k8s.io", namespace),
        Grant(
            "secrets",
            ("get", "update"),
            "the certificate that all replicas serve with",
            "",
            namespace,
            (f"{NAME}-tls",),
        ),
        Grant("serviceaccounts", ("impersonate",), "ready pods are deleted in its name", "", namespace, (RELEASER,)),
    ]


def access_grants() -> list[Grant]:
    """What the guard may do in a namespace whose administrator has bound it."""
    return [
        Grant("secrets", ("get",), "credentials that a GuardPolicy names"),
        Grant("pods/exec", ("get", "create"), "commands of the providers exec and rabbitmq"),
        Grant("pods/status", ("patch",), "the condition for which the agent of a node that shuts down waits"),
    ]


def releaser_grants() -> list[Grant]:
    """The releaser deletes ready pods whose controller waits in its backoff."""
    return [Grant("pods", ("delete",), "ready pods, by their uid")]
