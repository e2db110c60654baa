"""The mutating admission policy that names the guard in new pods of guarded namespaces (pure).

``spec.evictionResponders`` (KEP-4563, Kubernetes 1.37) is set at the creation of a pod and never afterwards, so only admission
can add the guard to pods whose templates somebody else owns. The API server refuses more than ten responders, and any in a pod
with a ``schedulingGroup`` (pkg/apis/core/validation): such a pod is left as it is.

An API server without the field refuses a pod that a patch gives it, whatever the policy's failurePolicy. So the policy has the
APIService of ``lifecycle.k8s.io/v1alpha1`` as its parameter. kube-apiserver itself makes that object where it serves the version;
without it the policy does nothing.
"""

from typing import Final

from lastcall import names
from lastcall.manifests.mutating_policies import (
    NO_MIRROR_POD,
    json_patch,
    match_new_pods,
    policy_and_binding,
)
from lastcall.manifests.rbac import Object

NAME: Final = "lastcall-guard-responder"

PRIORITY: Final = 10001
"""Above 10000, that of a controller of the pods' own: the application prepares before its operator replaces the pod."""

SERVED: Final[Object] = {"name": "v1alpha1.lifecycle.k8s.io", "parameterNotFoundAction": "Allow"}
"""The binding's paramRef."""

_MOST: Final = 10
_FOUND: Final = "object.spec.?evictionResponders.orValue([])"
_GUARD: Final = f"{{'name': dyn('{names.GUARD_RESPONDER}'), 'priority': dyn({PRIORITY})}}"
_ADD: Final = (
    f"size({_FOUND}) == 0"
    f" ? [JSONPatch{{op: 'add', path: '/spec/evictionResponders', value: [{_GUARD}]}}]"
    f" : [JSONPatch{{op: 'add', path: '/spec/evictionResponders/-', value: {_GUARD}}}]"
)
"""An apply configuration cannot say it: an EvictionResponder is atomic (``structType``). A list of ``Object`` in a patch lets
kube-apiserver 1.36 panic.
"""


def responder_policy() -> Object:
    """The spec of the policy. A pod that names the guard itself keeps its priority."""
    return {
        "failurePolicy": "Ignore",
        "paramKind": {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService"},
        "reinvocationPolicy": "Never",
        "matchConstraints": match_new_pods({"matchLabels": {names.GUARD_ENABLED: "true"}}),
        "matchConditions": [
            {"name": "no-mirror-pod", "expression": NO_MIRROR_POD},
            {"name": "not-named", "expression": f"!{_FOUND}.exists(one, one.name == '{names.GUARD_RESPONDER}')"},
            {"name": "has-room", "expression": f"size({_FOUND}) < {_MOST}"},
            {"name": "no-group", "expression": "!has(object.spec.schedulingGroup)"},
        ],
        "mutations": [json_patch(_ADD)],
    }


def responder_policy_objects(labels: dict[str, str]) -> list[Object]:
    """The policy and its binding."""
    return policy_and_binding(NAME, labels, responder_policy(), param=SERVED)
