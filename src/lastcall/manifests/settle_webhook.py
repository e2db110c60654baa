"""The webhook that prepares new pods for their end, where no policy can: its configuration and rights (pure).

It does what the policies of ``pod_policies`` do, for Kubernetes before 1.36, and for pods whose ports only a Service knows.
Beside the policies it finds their work done. The guard answers it.
"""

from collections.abc import Mapping
from typing import Final

from lastcall.manifests.mutating_policies import NO_MIRROR_POD
from lastcall.manifests.rbac import Grant, Object
from lastcall.names import GROUP, SETTLE_SECONDS

CONFIGURATION: Final = "lastcall-settle"
"""The object's name."""

PATH: Final = "/settle"
"""The path of the webhook; a secret token follows it."""

TIMEOUT_SECONDS: Final = 3
"""The guard answers within one second; the rest is for the connection."""


def settle_webhook_configuration(client: Mapping[str, object], *, labels: Mapping[str, str] | None = None) -> Object:
    """The MutatingWebhookConfiguration; ``client`` is one of ``guard_webhooks``. Without an answer pods stay as they are."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": CONFIGURATION, **({"labels": dict(labels)} if labels else {})},
        "webhooks": [
            {
                "name": f"settle.pods.{GROUP}",
                "clientConfig": dict(client),
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                        "scope": "Namespaced",
                    }
                ],
                "namespaceSelector": {"matchExpressions": [{"key": SETTLE_SECONDS, "operator": "Exists"}]},
                "objectSelector": {},
                "matchConditions": [{"name": "no-mirror-pod", "expression": NO_MIRROR_POD}],
                "matchPolicy": "Equivalent",
                # A webhook that adds a sidecar may come later.
                "reinvocationPolicy": "IfNeeded",
                "failurePolicy": "Ignore",
                "sideEffects": "None",
                "timeoutSeconds": TIMEOUT_SECONDS,
                "admissionReviewVersions": ["v1", "v1beta1"],
            }
        ],
    }


def settle_webhook_grants() -> list[Grant]:
    """What the guard may do besides if it answers this webhook."""
    return [
        Grant("services", ("list",), "which new pods get requests"),
        Grant(
            "mutatingwebhookconfigurations",
            ("get", "update"),
            "the authority of its certificate, and its path",
            "admissionregistration.k8s.io",
            names=(CONFIGURATION,),
        ),
    ]
