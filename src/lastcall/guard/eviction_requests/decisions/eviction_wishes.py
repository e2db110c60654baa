"""The EvictionRequests of one requester (pure)."""

from lastcall.model.eviction_requests import EvictionIntent, EvictionRequestSpec, EvictionTarget, TargetPod
from lastcall.model.pods import ObjectMetadata


def name_request(requester: str, uid: str) -> str:
    """The name of the requester's EvictionRequest for the pod of this uid: it has one at most."""
    return f"{requester.replace('/', '.')}-{uid}"


def make_spec(requester: str, pod: ObjectMetadata) -> EvictionRequestSpec:
    """That this pod, and no later one of its name, be evicted."""
    target = EvictionTarget(pod=TargetPod(name=pod.name, uid=pod.uid))
    return EvictionRequestSpec(target=target, requester=requester, intent=EvictionIntent.EVICTION)
