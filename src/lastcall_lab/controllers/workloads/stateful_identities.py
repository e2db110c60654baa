"""The identities of a StatefulSet's pods: name, ordinal and claims (``statefulset/stateful_set_utils.go``)."""

import re

from lastcall_lab.controllers.framework.view import Object
from lastcall_lab.controllers.objects import pods
from lastcall_lab.controllers.objects.ownership import OwnerKind, object_labels
from lastcall_lab.controllers.workloads import revision_history

NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"

_NAME = re.compile(r"(.*)-([0-9]+)")


def split_name(name: str) -> tuple[str, int]:
    """The set's name and the ordinal in a pod's name; -1 if it has none."""
    found = _NAME.fullmatch(name)
    return (found[1], int(found[2])) if found else ("", -1)


def pod_ordinal(pod: Object) -> int:
    """The pod's ordinal."""
    return split_name(pod["metadata"]["name"])[1]


def set_ordinals(wanted: Object) -> range:
    """The ordinals that the set should have."""
    start = (wanted["spec"].get("ordinals") or {}).get("start", 0)
    return range(start, start + wanted["spec"]["replicas"])


def pod_name(wanted: Object, ordinal: int) -> str:
    """The name of the pod with that ordinal."""
    return f"{wanted['metadata']['name']}-{ordinal}"


def claim_names(wanted: Object, ordinal: int) -> dict[str, str]:
    """The claim names of one ordinal, by template name, which is also the volume name."""
    templates = wanted["spec"].get("volumeClaimTemplates") or ()
    names = [one["metadata"]["name"] for one in templates]
    return {name: f"{name}-{pod_name(wanted, ordinal)}" for name in names}


def revision_of(pod: Object) -> str:
    """The name of the pod's revision."""
    return object_labels(pod).get(revision_history.LABEL, "")


def new_identity_pod(wanted: Object, kind: OwnerKind, ordinal: int, revision: Object) -> Object:
    """The pod with that ordinal from one revision of the template."""
    template, name = revision_history.template_of(revision), pod_name(wanted, ordinal)
    pod = pods.pod_from_template(template, wanted, kind.api_version, kind.kind)
    pod["metadata"]["name"] = name
    pod["metadata"]["labels"] |= {
        NAME_LABEL: name,
        INDEX_LABEL: str(ordinal),
        revision_history.LABEL: revision["metadata"]["name"],
    }
    spec, claims = pod["spec"], claim_names(wanted, ordinal)
    spec["hostname"] = name
    if service := wanted["spec"].get("serviceName"):
        spec["subdomain"] = service
    own = [{"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in claims.items()]
    volumes = [*own, *(one for one in spec.get("volumes") or () if one["name"] not in claims)]
    if volumes:
        spec["volumes"] = volumes
    return pod


def missing_labels(pod: Object) -> dict[str, str]:
    """The identity labels that have been removed from the pod."""
    name = pod["metadata"]["name"]
    return {} if object_labels(pod).get(NAME_LABEL) == name else {NAME_LABEL: name, INDEX_LABEL: str(pod_ordinal(pod))}
