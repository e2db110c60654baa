"""How the EndpointSlices of a namespace name a pod (pure): all slices count, those of Services and others."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from lastcall.model.traffic import EndpointSlice, SliceEndpoint

SERVICE_NAME = "kubernetes.io/service-name"
HEADLESS = "service.kubernetes.io/headless"
OTHER_PROXY = "service.kubernetes.io/service-proxy-name"


class SlicePlace(NamedTuple):
    """What the slices say of one pod; each tuple has the names of slices, sorted."""

    ready: tuple[str, ...] = ()
    """Slices that name it as ready and not terminating: new connections may reach it."""
    published: tuple[str, ...] = ()
    """Slices that name it as ready although it terminates: their Services have publishNotReadyAddresses, and send it
    traffic until the pod is gone."""
    proxied: tuple[str, ...] = ()
    """Slices that name it in any way and that kube-proxy follows."""
    others: tuple[str, ...] = ()
    """Slices that name it in any way and that kube-proxy does not follow: headless, of another proxy, of no Service."""
    serving: tuple[str, ...] = ()
    """Slices that name it as serving though it terminates, of Services without a ready endpoint: kube-proxy sends it
    traffic until another one is ready, or the pod is gone (KEP-1669)."""

    @property
    def lasting(self) -> tuple[str, ...]:
        """Slices whose Services may send it traffic until it is gone, although it terminates."""
        return tuple(sorted({*self.published, *self.serving}))


def find_places(slices: Iterable[EndpointSlice], uids: Collection[str]) -> Mapping[str, SlicePlace]:
    """The places of the pods with these uids; a pod that no slice names has an empty one.

    ``slices`` are all of one namespace.
    """
    slices = tuple(slices)
    ready_services = {_service_of(one) for one in slices if any(map(_is_ready, one.endpoints or ()))}
    found = {uid: tuple(set[str]() for _ in SlicePlace._fields) for uid in uids}
    for one in slices:
        proxied = _is_proxied(one)
        falls_back = proxied and _service_of(one) not in ready_services
        for endpoint in one.endpoints or ():
            sets = found.get(endpoint.target_ref.uid) if endpoint.target_ref else None
            if sets:
                ready, published, by_proxy, others, serving = sets
                (by_proxy if proxied else others).add(one.metadata.name)
                if _is_ready(endpoint):
                    (published if endpoint.conditions.terminating else ready).add(one.metadata.name)
                elif falls_back and endpoint.conditions.terminating and endpoint.conditions.serving is not False:
                    serving.add(one.metadata.name)
    return {uid: SlicePlace(*(tuple(sorted(names)) for names in sets)) for uid, sets in found.items()}


def merge_places(before: SlicePlace, now: SlicePlace) -> SlicePlace:
    """What slices say now, with all slices that have ever named the pod: the last of them vanish with it."""
    return now._replace(
        proxied=tuple(sorted({*before.proxied, *now.proxied})), others=tuple(sorted({*before.others, *now.others}))
    )


def _is_ready(endpoint: SliceEndpoint) -> bool:
    return endpoint.conditions.ready is not False


def _service_of(one: EndpointSlice) -> str:
    return (one.metadata.labels or {}).get(SERVICE_NAME, "")


def _is_proxied(one: EndpointSlice) -> bool:
    """kube-proxy's own selection (pkg/proxy/config: the labels of the slices that its informer lists)."""
    labels = one.metadata.labels or {}
    return SERVICE_NAME in labels and HEADLESS not in labels and OTHER_PROXY not in labels
