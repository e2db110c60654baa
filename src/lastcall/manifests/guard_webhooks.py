"""The ValidatingWebhookConfiguration by which the API server asks the guard about deletions and evictions (pure)."""

from collections.abc import Mapping, Sequence
from typing import Final

from lastcall import names
from lastcall.manifests.rbac import Object
from lastcall.model.guard_config import NEVER_GUARDED
from lastcall.model.guard_webhooks import NAME
from lastcall.model.pods import FINISHED

CONFIGURATION: Final = NAME
"""The object's name, and that of the Service."""

PATH: Final = "/review"
"""The path of the webhook; a secret token follows it."""

TIMEOUT_SECONDS: Final = 5
"""The guard answers within one second; the rest is for the connection."""

IGNORE, FAIL = "Ignore", "Fail"
"""``failurePolicy``: whether a deletion is allowed or refused while no guard answers."""

_NO_KUBELET: Final = {
    "name": "not-by-a-kubelet",
    "expression": "!request.userInfo.username.startsWith('system:node:')",
}
"""A kubelet's DELETE that is refused leaves a terminated pod for ever."""

_ALIVE: Final = {
    "name": "alive",
    "expression": "oldObject == null || (!has(oldObject.metadata.deletionTimestamp) &&"
    " !(has(oldObject.status) && has(oldObject.status.phase) && oldObject.status.phase in ["
    + ", ".join(f"'{one}'" for one in FINISHED)
    + "]))",
}
"""Pods that are being deleted, or have ended, need no guard: an outage of it must not keep them."""


def guard_webhook_configuration(
    client: Mapping[str, object], *, failure_policy: str = IGNORE, labels: Mapping[str, str] | None = None
) -> Object:
    """The configuration; ``client`` says where the guard is, as ``service_client`` or ``url_client`` have it."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": CONFIGURATION, **({"labels": dict(labels)} if labels else {})},
        "webhooks": [
            _webhook(
                "delete", client, failure_policy, resource="pods", operation="DELETE", conditions=[_NO_KUBELET, _ALIVE]
            ),
            _webhook(
                "evict", client, failure_policy, resource="pods/eviction", operation="CREATE", conditions=[_NO_KUBELET]
            ),
        ],
    }


def service_client(namespace: str) -> Object:
    """The guard behind its Service. The guard itself adds its authority and its path."""
    return {"service": {"namespace": namespace, "name": CONFIGURATION, "port": 443}}


def url_client(url: str) -> Object:
    """The guard at an address that the API server reaches."""
    return {"url": url}


def _webhook(
    name: str,
    client: Mapping[str, object],
    failure_policy: str,
    *,
    resource: str,
    operation: str,
    conditions: Sequence[Mapping[str, str]],
) -> Object:
    return {
        "name": f"{name}.guard.{names.GROUP}",
        "clientConfig": dict(client),
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": [operation],
                "resources": [resource],
                "scope": "Namespaced",
            }
        ],
        "namespaceSelector": {
            "matchExpressions": [
                {"key": names.GUARD_ENABLED, "operator": "In", "values": ["true"]},
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(NEVER_GUARDED)},
            ]
        },
        "objectSelector": {},
        "matchConditions": [dict(one) for one in conditions],
        "matchPolicy": "Equivalent",
        "failurePolicy": failure_policy,
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1", "v1beta1"],
    }
