"""The webhook by which an uninstallation waits until the guard has undone its preparations: its configuration (pure).

The chart's hook creates a ConfigMap of one name, and the API server shows that to the guard. So whoever uninstalls waits for
the guard without a pod of its own: no image has to be found for it, and without a guard nothing is waited for.
"""

from collections.abc import Mapping
from typing import Final

from lastcall.manifests.rbac import Object
from lastcall.names import GROUP, GUARD_UNINSTALL, SYSTEM_NAMESPACE

PATH: Final = "/uninstall"
"""The path of the webhook; a secret token follows it."""

TIMEOUT_SECONDS: Final = 30
"""The longest that the API server waits for a webhook."""


def uninstall_webhook_configuration(client: Mapping[str, object], *, labels: Mapping[str, str] | None = None) -> Object:
    """The ValidatingWebhookConfiguration; ``client`` is one of ``guard_webhooks``. It never refuses anything."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": GUARD_UNINSTALL, **({"labels": dict(labels)} if labels else {})},
        "webhooks": [
            {
                "name": f"uninstall.guard.{GROUP}",
                "clientConfig": dict(client),
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["configmaps"],
                        "scope": "Namespaced",
                    }
                ],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SYSTEM_NAMESPACE}},
                "objectSelector": {},
                "matchConditions": [
                    {"name": "asks-for-the-end", "expression": f"object.metadata.name == '{GUARD_UNINSTALL}'"}
                ],
                "matchPolicy": "Equivalent",
                "failurePolicy": "Ignore",
                "sideEffects": "NoneOnDryRun",
                "timeoutSeconds": TIMEOUT_SECONDS,
                "admissionReviewVersions": ["v1", "v1beta1"],
            }
        ],
    }
