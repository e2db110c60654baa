"""The labels and owners of an Eviction, by which requesters and responders find it (pure)."""

from collections.abc import Mapping, Sequence

from lastcall.model.base import Facts
from lastcall.model.eviction_requests import API_VERSION, EvictionRequest, PodEviction
from lastcall.model.pods import OwnerReference

REQUESTER = "requester"
RESPONDER = "responder"
BOTH = "requester-responder"


class MetadataChange(Facts, frozen=True):
    """The labels to set, those to remove (None), and the owners to add."""

    labels: Mapping[str, str | None]
    owners: tuple[OwnerReference, ...]


def decide_metadata(eviction: PodEviction, requests: Sequence[EvictionRequest]) -> MetadataChange | None:
    """What is missing; None if nothing is.

    Owners are never removed: an Eviction whose requests are all gone is collected as garbage.
    """
    stored = eviction.metadata.labels or {}
    wanted = _list_labels(eviction, requests)
    labels: dict[str, str | None] = {key: role for key, role in wanted.items() if stored.get(key) != role}
    labels |= {key: None for key, role in stored.items() if role == REQUESTER and key not in wanted}
    known = {one.uid for one in eviction.metadata.owner_references or ()}
    missing = [one for one in requests if one.metadata.uid not in known and one.metadata.deletion_timestamp is None]
    if not labels and not missing:
        return None
    return MetadataChange(labels=labels, owners=tuple(own_by(one) for one in missing))


def own_by(request: EvictionRequest) -> OwnerReference:
    """A request as the owner of its Eviction."""
    metadata = request.metadata
    return OwnerReference(api_version=API_VERSION, kind="EvictionRequest", name=metadata.name, uid=metadata.uid)


def _list_labels(eviction: PodEviction, requests: Sequence[EvictionRequest]) -> Mapping[str, str]:
    requesters = {one.spec.requester for one in requests}
    responders = {one.name for one in eviction.status.target_responders}
    return {
        name: BOTH if name in requesters & responders else REQUESTER if name in requesters else RESPONDER
        for name in sorted(requesters | responders)
    }
