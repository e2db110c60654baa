"""As whom the lab's own programs ask the API server: identities of least rights, as in a cluster."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from lastcall.lab.apiserver.authorization import bootstrap
from lastcall.lab.apiserver.authorization.policy_rules import PolicyRule, rules_of
from lastcall.lab.apiserver.authorization.rbac import GROUP
from lastcall.lab.apiserver.request import Identity, Object
from lastcall.manifests import agent, own_node
from lastcall.manifests.rbac import ANYWHERE, rules
from lastcall.names import SYSTEM_NAMESPACE

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
"""The service account of each controller (``cmd/kube-controller-manager/app``), which its ClusterRole is bound to."""

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
"""What the controllers of the lab's storage driver write."""


def service_account(namespace: str, name: str) -> Identity:
    """The user that a service account is."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", _AUTHENTICATED)
    return Identity(f"system:serviceaccount:{namespace}:{name}", groups)


def kubelet(node: str) -> Identity:
    """The user that the kubelet of a node is."""
    return Identity(f"system:node:{node}", ("system:nodes", _AUTHENTICATED))


def controller(name: str, resource: str) -> Identity:
    """As whom a controller of the lab writes objects of a resource: the service account that it has in a cluster."""
    if name == "scheduler":
        return SCHEDULER
    if name == "serviceaccount" and resource == "configmaps":
        return service_account(_SYSTEM, "root-ca-cert-publisher")
    return service_account(_SYSTEM, _ACCOUNTS.get(name, name))


MANAGER = Identity("system:kube-controller-manager", (_AUTHENTICATED,))
SCHEDULER = Identity("system:kube-scheduler", (_AUTHENTICATED,))
PROXY = Identity("system:kube-proxy", (_AUTHENTICATED,))
AGENT = service_account(SYSTEM_NAMESPACE, agent.NAME)


def agent_on(node: str) -> Identity:
    """Lastcall's agent on a node, whose token is bound to it, as ``lastcall manifests agent --own-node`` wants it."""
    return replace(AGENT, extra={own_node.CLAIM: [node]})


def writers(client: Callable[[Identity], T]) -> Callable[[str, str], T]:
    """Gives the client by which a controller writes objects of a resource; one for each identity."""
    made: dict[str, T] = {}

    def of(name: str, resource: str) -> T:
        user = controller(name, resource)
        if user.name not in made:
            made[user.name] = client(user)
        return made[user.name]

    return of


def cluster_roles() -> Iterator[Object]:
    """ClusterRoles of the lab's own programs, beside those of every cluster, and their bindings.

    The lab's controllers patch what those of Kubernetes update. Agents have what ``lastcall manifests agent`` gives them.
    """
    expected = {role["metadata"]["name"]: rules_of(role) for role in bootstrap.cluster_roles()}
    for account in sorted({*_ACCOUNTS.values()}):
        patched = [
            rule._replace(verbs=("patch",))
            for rule in expected[f"system:controller:{account}"]
            if "update" in rule.verbs and "patch" not in rule.verbs
        ]
        if patched:
            yield from _granted(account, account, _SYSTEM, [rule.as_object() for rule in patched])
    for account, own in _DRIVER.items():
        yield from _granted(account, account, _SYSTEM, [rule.as_object() for rule in own])
    anywhere = [grant for grant in agent.grants() if grant.namespace == ANYWHERE]
    yield from _granted("agent", agent.NAME, SYSTEM_NAMESPACE, rules(anywhere))


def _granted(part: str, account: str, namespace: str, rules: list[Object]) -> Iterator[Object]:
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
