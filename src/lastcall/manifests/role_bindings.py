"""Turns grants into roles and bindings of a ServiceAccount (pure)."""

from collections.abc import Mapping, Sequence

from lastcall.manifests.rbac import ANYWHERE, Grant, Object, role_rules

_RBAC = "rbac.authorization.k8s.io"


def role_objects(grants: Sequence[Grant], *, to: str, of: str, labels: Mapping[str, str]) -> list[Object]:
    """A Role for each namespace, or a ClusterRole, bound to the ServiceAccount ``to`` of namespace ``of``."""
    where = dict.fromkeys(one.namespace for one in grants)
    return [
        obj
        for namespace in where
        for obj in _role_and_binding(
            [one for one in grants if one.namespace == namespace], namespace, to=to, of=of, labels=labels
        )
    ]


def _role_and_binding(
    grants: Sequence[Grant], namespace: str, *, to: str, of: str, labels: Mapping[str, str]
) -> tuple[Object, Object]:
    kind = "ClusterRole" if namespace == ANYWHERE else "Role"
    place = {} if namespace == ANYWHERE else {"namespace": namespace}
    head: Object = {"metadata": {"name": to, **place, "labels": dict(labels)}}
    api = {"apiVersion": f"{_RBAC}/v1"}
    return (
        {**api, "kind": kind, **head, "rules": role_rules(grants)},
        {
            **api,
            "kind": f"{kind}Binding",
            **head,
            "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": to},
            "subjects": [{"kind": "ServiceAccount", "name": to, "namespace": of}],
        },
    )
