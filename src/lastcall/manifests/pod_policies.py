"""Mutating admission policies that prepare new pods for their end (pure).

A living kubelet sends SIGTERM as soon as a pod is deleted or evicted, while Services still send it requests. The first
policy adds a ``sleep`` (KEP-3960) in front of it. The second copies the numeric priority to an annotation, which a
container runtime can tell a node without the API. Both are policies in CEL (``admissionregistration.k8s.io/v1``, since
Kubernetes 1.36), so there is no webhook that can be down; a policy that cannot be evaluated changes nothing.

They act only in namespaces with the label SETTLE_SECONDS, and only at the creation of a pod: its containers cannot be
changed afterwards. Mutating policies run after the admission plugin Priority (pkg/kubeapiserver/options/plugins.go), so
``spec.priority`` is set.
"""

from lastcall.errors import InvalidInput
from lastcall.manifests.mutating_policies import (
    NO_MIRROR_POD,
    apply_configuration,
    match_new_pods,
    policy_and_binding,
)
from lastcall.manifests.rbac import Object
from lastcall.model.pod_creation import MOST_SETTLE_SECONDS
from lastcall.names import PRIORITY_ANNOTATION, SETTLE_SECONDS, SLEEP_ADDED

SECONDS = 2
"""Seconds of the sleep by default: as long as an agent waits for a pod's Services at most."""

_LABELS = {
    "app.kubernetes.io/name": "lastcall",
    "app.kubernetes.io/component": "pod-policies",
    "app.kubernetes.io/part-of": "lastcall",
}
_NAMESPACES: Object = {"matchExpressions": [{"key": SETTLE_SECONDS, "operator": "Exists"}]}
_SPEC = "Object.spec"
_NO_JOB = "!object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) && o.kind == 'Job')"
_NO_HOOK = "!has(c.lifecycle) || !has(c.lifecycle.preStop)"
_SERVES = f"has(c.ports) && size(c.ports) > 0 && ({_NO_HOOK})"
_SIDECAR = "c.?restartPolicy.orValue('') == 'Always'"
_A_SERVER_WITHOUT_HOOK = (
    f"object.spec.containers.exists(c, {_SERVES})"
    f" || object.spec.?initContainers.orValue([]).exists(c, {_SIDECAR} && {_SERVES})"
)


def pod_policy_objects(*, seconds: int = SECONDS) -> list[Object]:
    """Both policies with their bindings. InvalidInput if ``seconds``, the sleep where no number is given, is no such."""
    if not 0 <= seconds <= MOST_SETTLE_SECONDS:
        raise InvalidInput("manifests", [f"--settle-seconds: {seconds}: must be 0 to {MOST_SETTLE_SECONDS}"])
    return [
        *policy_and_binding("lastcall-settle", _LABELS, settle_policy(seconds)),
        *policy_and_binding("lastcall-priority", _LABELS, priority_policy()),
    ]


def settle_policy(seconds: int | str) -> Object:
    """The spec of the policy for the sleep: each container without a preStop hook of a pod that serves gets it.

    Pods of Jobs serve nobody. A pod whose serving containers all have hooks is left to them. The grace period is raised
    by as much; that of a pod without a controller stays, because ``kubectl apply`` would try to set it back, which the
    API server refuses.
    """
    return {
        "failurePolicy": "Ignore",
        # A webhook that adds a sidecar comes after the policies.
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": match_new_pods(_NAMESPACES),
        "matchConditions": [
            {"name": "no-mirror-pod", "expression": NO_MIRROR_POD},
            {"name": "no-job", "expression": _NO_JOB},
            {"name": "ends-with-grace", "expression": "object.spec.?terminationGracePeriodSeconds.orValue(30) > 0"},
            {"name": "serves-without-hook", "expression": _A_SERVER_WITHOUT_HOOK},
        ],
        "variables": [
            {
                "name": "asked",
                "expression": f"object.metadata.?annotations[?'{SETTLE_SECONDS}'].orValue("
                f"namespaceObject.metadata.?labels[?'{SETTLE_SECONDS}'].orValue(''))",
            },
            {
                "name": "seconds",
                "expression": f"variables.asked.matches('^[0-9]{{1,3}}$') ? int(variables.asked) : {seconds}",
            },
            {"name": "grace", "expression": "object.spec.?terminationGracePeriodSeconds.orValue(30)"},
            {
                "name": "controlled",
                "expression": "object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false))",
            },
            {
                "name": "added",
                "expression": f"'{SLEEP_ADDED}' in object.metadata.?annotations.orValue({{}})",
            },
        ],
        "mutations": [apply_configuration(_SLEEP)],
    }


def priority_policy() -> Object:
    """The spec of the policy for the annotation. A pod that has one keeps it."""
    annotated = f"'{PRIORITY_ANNOTATION}' in object.metadata.?annotations.orValue({{}})"
    text = f"Object.metadata{{annotations: {{'{PRIORITY_ANNOTATION}': string(object.spec.priority)}}}}"
    return {
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "Never",
        "matchConstraints": match_new_pods(_NAMESPACES),
        "matchConditions": [
            {"name": "no-mirror-pod", "expression": NO_MIRROR_POD},
            {"name": "has-priority", "expression": f"has(object.spec.priority) && !({annotated})"},
        ],
        "mutations": [apply_configuration(f"Object{{metadata: {text}}}")],
    }


def _hooked(field: str, condition: str) -> str:
    """The containers of a list that get the sleep, as apply configurations."""
    kind = f"{_SPEC}.{field}"
    hook = f"{kind}.lifecycle.preStop"
    sleep = f"{kind}.lifecycle{{preStop: {hook}{{sleep: {hook}.sleep{{seconds: variables.seconds}}}}}}"
    found = f"object.spec.?{field}.orValue([]).filter(c, {condition})"
    return f"{found}.map(c, {kind}{{name: c.name, lifecycle: {sleep}}})"


_SLEEP = (
    "variables.seconds == 0 || (!variables.controlled && variables.grace <= variables.seconds) ? Object{} : Object{"
    f"metadata: Object.metadata{{annotations: {{'{SLEEP_ADDED}': string(variables.seconds)}}}}, "
    "spec: Object.spec{"
    "terminationGracePeriodSeconds:"
    " variables.grace + (variables.controlled && !variables.added ? variables.seconds : 0), "
    f"containers: {_hooked('containers', _NO_HOOK)}, "
    f"initContainers: {_hooked('initContainers', f'{_SIDECAR} && ({_NO_HOOK})')}"
    "}}"
)
