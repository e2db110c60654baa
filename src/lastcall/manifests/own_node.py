"""An admission policy that restricts an agent to objects of its own node (pure).

Roles cannot express this: all agents have one ServiceAccount. But a token for a pod, or for a Node (``kubectl create
token --bound-object-kind Node``), names the node. Kubernetes shows that name to admission since 1.30, and without a
feature gate since 1.32 (KEP-4193, ``authentication.kubernetes.io/node-name``). Policies in CEL
(``admissionregistration.k8s.io/v1``) exist since 1.30.
"""

from lastcall.manifests.rbac import Object
from lastcall.names import API_VERSION, GROUP

CLAIM = "authentication.kubernetes.io/node-name"
OWN_NODE = (
    f"has(request.userInfo.extra) && '{CLAIM}' in request.userInfo.extra"
    f" && request.userInfo.extra['{CLAIM}'] == [object.metadata.name]"
)
"""The resources whose objects have the name of their Node: the Lease and the NodeShutdown."""


def own_node_policy(name: str, namespace: str, labels: dict[str, str]) -> list[Object]:
    """A policy and its binding for the ServiceAccount ``name``; a request that it cannot evaluate is refused."""
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
    """The writes of an agent that the policy checks; an agent has no right to delete."""
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": ["CREATE", "UPDATE"],
        "resources": [resource],
        "scope": "*",  # the default, given here because kubectl would otherwise find it missing at each apply
    }
