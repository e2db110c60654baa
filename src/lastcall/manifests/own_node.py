"""An admission policy that restricts an agent's ServiceAccount to objects of its own node (pure).

Roles cannot express this: all agents have one ServiceAccount. But a token for a pod, or for a Node (``kubectl create
token --bound-object-kind Node``), names the node. Kubernetes shows that name to admission since 1.30, and without a
feature gate since 1.32 (KEP-4193, ``authentication.kubernetes.io/node-name``). Policies in CEL
(``admissionregistration.k8s.io/v1``) exist since 1.30. The rules are those of the admission plugin NodeRestriction for
a kubelet (plugin/pkg/admission/noderestriction), as far as an agent has rights. Reads do not pass admission.
"""

from lastcall.manifests.rbac import Object
from lastcall.names import API_VERSION, GROUP

CLAIM = "authentication.kubernetes.io/node-name"
OWN_NODE = (
    f"has(request.userInfo.extra) && '{CLAIM}' in request.userInfo.extra"
    f" && request.userInfo.extra['{CLAIM}'] == [variables.node]"
)
NODE_OF_OBJECT = (
    "request.resource.resource == 'pods' ? oldObject.spec.?nodeName.orValue('')"
    " : object == null ? oldObject.metadata.name : object.metadata.name"
)
"""The node that a request is about: that of a pod is in its spec, all others have the name of their Node."""

KEEPS_NODE = (
    "request.resource.resource != 'nodes'"
    " || (object.spec.?taints.orValue([]) == oldObject.spec.?taints.orValue([])"
    " && object.metadata.?labels.orValue({}) == oldObject.metadata.?labels.orValue({}))"
)
KEEPS_POD_LABELS = (
    "request.resource.resource != 'pods' || object == null"
    " || object.metadata.?labels.orValue({}) == oldObject.metadata.?labels.orValue({})"
)


def own_node_policy(name: str, namespace: str, labels: dict[str, str]) -> list[Object]:
    """A policy and its binding for the ServiceAccount ``name``; a request that it cannot evaluate is refused."""
    metadata = {"name": f"{name}-own-node", "labels": labels}
    api = "admissionregistration.k8s.io/v1"
    policy: Object = {
        "apiVersion": api,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata,
        "spec": own_node_spec(f"system:serviceaccount:{namespace}:{name}"),
    }
    binding: Object = {
        "apiVersion": api,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": {"policyName": metadata["name"], "validationActions": ["Deny"]},
    }
    return [policy, binding]


def own_node_spec(user: str) -> Object:
    """The policy's spec, for the user of this name."""
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                _resource_rule("coordination.k8s.io", "v1", "leases"),
                _resource_rule(GROUP, API_VERSION.partition("/")[2], "nodeshutdowns"),
                _resource_rule("", "v1", "nodes", "nodes/status"),
                _resource_rule("", "v1", "pods", "pods/status"),
            ]
        },
        "matchConditions": [{"name": "an-agent", "expression": f"request.userInfo.username == '{user}'"}],
        "variables": [{"name": "node", "expression": NODE_OF_OBJECT}],
        "validations": [
            _validation(
                OWN_NODE,
                "an agent writes of its own node alone: its token has to be bound to that Node, or to a pod there",
            ),
            _validation(KEEPS_NODE, "an agent changes neither taints nor labels of its Node"),
            _validation(KEEPS_POD_LABELS, "an agent does not change the labels of a pod"),
        ],
    }


def _validation(expression: str, message: str) -> Object:
    return {"expression": expression, "message": message, "reason": "Forbidden"}


def _resource_rule(group: str, version: str, *resources: str) -> Object:
    """All writes to these resources."""
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": [*resources],
        "scope": "*",  # the default, given here because kubectl would otherwise find it missing at each apply
    }
