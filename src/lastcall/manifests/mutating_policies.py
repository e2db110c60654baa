"""What mutating admission policies for new pods have in common (``admissionregistration.k8s.io/v1``; pure)."""

from typing import Final

from lastcall.manifests.rbac import Object
from lastcall.names import MIRROR_ANNOTATION

NO_MIRROR_POD: Final = f"!('{MIRROR_ANNOTATION}' in object.metadata.?annotations.orValue({{}}))"
"""CEL: the pod does not mirror a static pod, which the API server cannot change."""

_API: Final = "admissionregistration.k8s.io/v1"


def match_new_pods(namespaces: Object) -> Object:
    """The matchConstraints for the creation of pods in the namespaces that a label selector selects.

    Every default is written out: kubectl would otherwise find fields missing at each apply.
    """
    return {
        "matchPolicy": "Equivalent",
        "namespaceSelector": namespaces,
        "objectSelector": {},
        "resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"], "scope": "*"}
        ],
    }


def apply_configuration(expression: str) -> Object:
    """The mutation that applies what a CEL expression returns."""
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def json_patch(expression: str) -> Object:
    """The mutation by the JSON patch that a CEL expression returns."""
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def policy_and_binding(name: str, labels: dict[str, str], spec: Object, *, param: Object | None = None) -> list[Object]:
    """A MutatingAdmissionPolicy and the binding that puts it in force, of one name; ``param`` is the binding's paramRef."""
    metadata = {"name": name, "labels": dict(labels)}
    return [
        {"apiVersion": _API, "kind": "MutatingAdmissionPolicy", "metadata": metadata, "spec": spec},
        {
            "apiVersion": _API,
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": {"policyName": name, **({"paramRef": param} if param else {})},
        },
    ]
