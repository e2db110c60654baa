"""The diff of two pod specs in Kubernetes' internal form (pure)."""

from lastcall_lab.apiserver.kinds.internal_objects import internal_fields, to_internal, unified_diff
from lastcall_lab.apiserver.values.request import Object

_HOST = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
"""Fields of the API's spec that Kubernetes keeps in its internal security context."""

_SPEC = (
    *("volumes", "initContainers", "containers", "ephemeralContainers", "restartPolicy"),
    *("terminationGracePeriodSeconds", "activeDeadlineSeconds", "dnsPolicy", "nodeSelector", "serviceAccountName"),
    *("automountServiceAccountToken", "nodeName", "securityContext", "imagePullSecrets", "hostname", "subdomain"),
    *("setHostnameAsFQDN", "affinity", "schedulerName", "tolerations", "hostAliases", "priorityClassName", "priority"),
    *("preemptionPolicy", "dnsConfig", "readinessGates", "runtimeClassName", "overhead", "enableServiceLinks"),
    *("topologySpreadConstraints", "os", "schedulingGates", "resourceClaims", "resources", "hostnameOverride"),
)


def spec_diff(old: Object, new: Object) -> str:
    """From the old spec to the new one."""
    return unified_diff(inner_spec(old), inner_spec(new))


def inner_spec(spec: Object) -> Object:
    """A spec in the internal form."""
    fields = internal_fields("Pod", "spec")
    shown = to_internal(spec, fields, _SPEC)
    if "securityContext" in spec:
        context = fields["securityContext"].fields
        shown["SecurityContext"] = {
            **to_internal(spec, fields, _HOST),
            **to_internal(spec["securityContext"], context, context),
        }
    return shown


def inner_template(template: Object) -> Object:
    """A template in the internal form; its metadata are the API's."""
    names = ("name", "generateName", "namespace", "labels", "annotations", "ownerReferences", "finalizers")
    metadata = {name: template["metadata"][name] for name in names if template["metadata"].get(name)}
    for name in ("labels", "annotations"):
        if name in metadata:
            metadata[name] = dict(sorted(metadata[name].items()))
    return {**metadata, "Spec": inner_spec(template["spec"])}
