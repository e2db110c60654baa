"""The identities of the lab's own programs at the API server, with least privilege, as in a cluster."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import TypeVar

import msgspec

from lastcall.manifests import agent, daemon_set, own_node
from lastcall.manifests.rbac import ANYWHERE, role_rules
from lastcall.names import SYSTEM_NAMESPACE
from lastcall_lab.apiserver.authorization import bootstrap
from lastcall_lab.apiserver.authorization.policy_rules import PolicyRule, rules_of
from lastcall_lab.apiserver.authorization.rbac_authorizer import GROUP
from lastcall_lab.apiserver.values.request import Object, UserInfo

_AUTHENTICATED = "system:authenticated"
T = TypeVar("T")
_SYSTEM = "kube-system"
_ACCOUNTS: Mapping[str, str] = {
    "attachdetach": "attachdetach-controller",
    "clusterrole-aggregation": "clusterrole-aggregation-controller",
    "daemonset": "daemon-set-controller",
    "deployment": "deployment-controller",
    "disruption": "disruption-controller",
    "endpointslice": "endpointslice-controller",
    "garbage-collector": "generic-garbage-collector",
    "job": "job-controller",
    "namespace": "namespace-controller",
    "nodelifecycle": "node-controller",
    "persistentvolume-binder": "persistent-volume-binder",
    "podgc": "pod-garbage-collector",
    "pv-protection": "pv-protection-controller",
    "pvc-protection": "pvc-protection-controller",
    "replicaset": "replicaset-controller",
    "serviceaccount": "service-account-controller",
    "statefulset": "statefulset-controller",
    "taint-eviction-controller": "node-controller",
    "ttl-after-finished": "ttl-after-finished-controller",
}
"""The service account of each controller (``cmd/kube-controller-manager/app``), bound to its ClusterRole."""

_DRIVER: Mapping[str, tuple[PolicyRule, ...]] = {
    "csi-attacher": (
        PolicyRule(("patch",), ("",), ("persistentvolumes",)),
        PolicyRule(("patch",), ("storage.k8s.io",), ("volumeattachments", "volumeattachments/status")),
    ),
    "csi-provisioner": (
        PolicyRule(("create", "delete", "patch"), ("",), ("persistentvolumes",)),
        PolicyRule(("create", "patch"), ("",), ("events",)),
    ),
}
"""The resources that the lab's storage controllers write."""


def service_account_identity(namespace: str, name: str) -> UserInfo:
    """The user name of a service account."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", _AUTHENTICATED)
    return UserInfo(f"system:serviceaccount:{namespace}:{name}", groups)


def kubelet_identity(node: str) -> UserInfo:
    """The user name of a node's kubelet."""
    return UserInfo(f"system:node:{node}", ("system:nodes", _AUTHENTICATED))


def controller_identity(name: str, resource: str) -> UserInfo:
    """The service account with which a controller writes objects of a resource, as in a cluster."""
    if name == "scheduler":
        return SCHEDULER
    if name == "serviceaccount" and resource == "configmaps":
        return service_account_identity(_SYSTEM, "root-ca-cert-publisher")
    return service_account_identity(_SYSTEM, _ACCOUNTS.get(name, name))


MANAGER = UserInfo("system:kube-controller-manager", (_AUTHENTICATED,))
SCHEDULER = UserInfo("system:kube-scheduler", (_AUTHENTICATED,))
PROXY = UserInfo("system:kube-proxy", (_AUTHENTICATED,))
AGENT = service_account_identity(SYSTEM_NAMESPACE, daemon_set.NAME)


def agent_identity(node: str) -> UserInfo:
    """The agent on a node, whose token is bound to it, as ``lastcall manifests agent --own-node`` requires."""
    return replace(AGENT, extra={own_node.CLAIM: [node]})


def client_by_controller(client: Callable[[UserInfo], T]) -> Callable[[str, str], T]:
    """Returns a function from controller and resource to a client; one client for each identity."""
    made: dict[str, T] = {}

    def of(name: str, resource: str) -> T:
        user = controller_identity(name, resource)
        if user.name not in made:
            made[user.name] = client(user)
        return made[user.name]

    return of


def cluster_roles() -> list[Object]:
    """Private copies of the ClusterRoles of the lab's own programs, beside those of every cluster, and their bindings.

    The lab's controllers patch where those of Kubernetes update. Agents have the grants of ``lastcall manifests
    agent``.
    """
    objects: list[Object] = msgspec.json.decode(_encoded_roles())
    return objects


@cache
def _encoded_roles() -> bytes:
    return msgspec.json.encode([*_make_roles()])


def _make_roles() -> Iterator[Object]:
    expected = {role["metadata"]["name"]: rules_of(role) for role in bootstrap.cluster_roles()}
    for account in sorted({*_ACCOUNTS.values()}):
        patched = [
            rule._replace(verbs=("patch",))
            for rule in expected[f"system:controller:{account}"]
            if "update" in rule.verbs and "patch" not in rule.verbs
        ]
        if patched:
            yield from _role_and_binding(account, account, _SYSTEM, [rule.as_object() for rule in patched])
    for account, own in _DRIVER.items():
        yield from _role_and_binding(account, account, _SYSTEM, [rule.as_object() for rule in own])
    anywhere = [grant for grant in agent.agent_grants() if grant.namespace == ANYWHERE]
    yield from _role_and_binding("agent", daemon_set.NAME, SYSTEM_NAMESPACE, role_rules(anywhere))


def _role_and_binding(part: str, account: str, namespace: str, rules: list[Object]) -> Iterator[Object]:
    """A ClusterRole with these rules, bound to a service account."""
    name, api = f"lab:{part}", f"{GROUP}/v1"
    yield {"apiVersion": api, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}
    yield {
        "apiVersion": api,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }
