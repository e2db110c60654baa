"""That an agent writes of its own node alone, by the API server's own admission (pure).

Roles cannot say it: all agents have one ServiceAccount. But a token that was made for a pod, or for a Node
(``kubectl create token --bound-object-kind Node``), names the node, which Kubernetes has shown to admission since 1.30, and
without a feature gate since 1.32 (KEP-4193, ``authentication.kubernetes.io/node-name``). Policies that are written in CEL
(``admissionregistration.k8s.io/v1``) are there since 1.30.
"""

from lastcall.manifests.rbac import Object
from lastcall.names import API_VERSION, GROUP

CLAIM = "authentication.kubernetes.io/node-name"
OWN_NODE = (
    f"has(request.userInfo.extra) && '{CLAIM}' in request.userInfo.extra"
    f" && request.userInfo.extra['{CLAIM}'] == [object.metadata.name]"
)
"""The Lease and the NodeShutdown have the name of their Node."""


def own_node_policy(name: str, namespace: str, labels: dict[str, str]) -> list[Object]:
    """A policy and what puts it into force, for the ServiceAccount ``name``; a request that it cannot judge is refused."""
    metadata = {"name": f"{name}-own-node", "labels": labels}
    api = "admissionregistration.k8s.io/v1"
    policy: Object = {
        "apiVersion": api,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata,
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    _resource_rule("coordination.k8s.io", "v1", "leases"),
                    _resource_rule(GROUP, API_VERSION.partition("/")[2], "nodeshutdowns"),
                ]
            },
            "matchConditions": [
                {
                    "name": "an-agent",
                    "expression": f"request.userInfo.username == 'system:serviceaccount:{namespace}:{name}'",
                }
            ],
            "validations": [
                {
                    "expression": OWN_NODE,
                    "message": "an agent writes of its own node alone: its token has to be bound to that Node, or to a pod there",
                    "reason": "Forbidden",
                }
            ],
        },
    }
    binding: Object = {
        "apiVersion": api,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": {"policyName": metadata["name"], "validationActions": ["Deny"]},
    }
    return [policy, binding]


def _resource_rule(group: str, version: str, resource: str) -> Object:
    """What an agent may write; it deletes nothing."""
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": ["CREATE", "UPDATE"],
        "resources": [resource],
        "scope": "*",  # the default, which kubectl would find missing at each apply
    }
