"""Workloads as tests of controllers write them, and what they check of them."""

import copy
import functools

from lastcall.adapters.kube.informer import ChangeKind
from lastcall_lab.apiserver.admission.chain import refusal_error

LABELS = {"app": "web"}


def template(image="i:1", *, labels=None, annotations=None, **spec):
    """A pod template with one container."""
    metadata = {"labels": dict(labels or LABELS), **({"annotations": annotations} if annotations else {})}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


def workload(name="web", **spec):
    """One of any kind with a selector."""
    base = {"selector": {"matchLabels": dict(LABELS)}, "template": template()}
    return {"metadata": {"name": name}, "spec": {**base, **copy.deepcopy(spec)}}


def told(cluster, reason):
    """The messages of the events with a reason."""
    from lastcall.adapters.kube.resources import EVENTS

    return [event["message"] for event in cluster.all(EVENTS) if event["reason"] == reason]


def condition(obj, kind):
    """One of its conditions as (status, reason); None if it has none."""
    found = [one for one in obj["status"].get("conditions") or () if one["type"] == kind]
    return (found[0]["status"], found[0].get("reason")) if found else None


def moments(kubelet):
    """The pods as they were after each change, by name."""
    present = {}
    for kind, pod in kubelet.seen:
        if kind is ChangeKind.DELETED:
            present.pop(pod["metadata"]["name"], None)
        else:
            present[pod["metadata"]["name"]] = pod
        yield dict(present)


def up(pod):
    """Whether it serves: ready, and not going."""
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions") or ())
    return ready and not pod["metadata"].get("deletionTimestamp")


def stays(pod):
    """Whether it counts as one: not going, and not finished."""
    return not pod["metadata"].get("deletionTimestamp") and pod["status"]["phase"] in ("Pending", "Running")


def refuse(cluster, plural, why):
    """Nobody makes objects of a resource until what is answered is called."""
    asked = cluster.server.admission.validate

    async def validate(attributes):
        if (attributes.operation, attributes.resource.plural) == ("CREATE", plural):
            raise refusal_error(attributes, why)
        await asked(attributes)

    cluster.server.admission.validate = validate
    return functools.partial(delattr, cluster.server.admission, "validate")
