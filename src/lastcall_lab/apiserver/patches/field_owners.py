"""``metadata.managedFields``: decodes, encodes and updates field ownership (pure).

The rules are those of ``apimachinery/pkg/util/managedfields`` and ``structured-merge-diff/merge``.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from lastcall_lab.apiserver.patches.field_differences import FieldDifference
from lastcall_lab.apiserver.patches.field_sets import LEAF, FieldSet, difference, intersection, sort_fields, union
from lastcall_lab.apiserver.values.request import Object

MAX_UPDATERS = 10
"""Above this number of update entries, the oldest ones are merged."""
ANCIENT = "ancient-changes"
BEFORE_FIRST_APPLY = "before-first-apply"

STRIPPED: FieldSet = {
    "f:apiVersion": LEAF,
    "f:kind": LEAF,
    "f:metadata": {
        ".": LEAF,
        "f:name": LEAF,
        "f:namespace": LEAF,
        "f:creationTimestamp": LEAF,
        "f:selfLink": LEAF,
        "f:uid": LEAF,
        "f:clusterName": LEAF,
        "f:generation": LEAF,
        "f:managedFields": LEAF,
        "f:resourceVersion": LEAF,
    },
}
"""Unowned fields: those that identify the object, and those that only the server writes."""


class FieldOwner(NamedTuple):
    """A field manager, by ``operation`` Update or Apply. An applier has no ``version``: it is the same in all."""

    manager: str
    operation: str
    version: str = ""
    subresource: str = ""

    @property
    def as_text(self) -> str:
        """The text in conflict messages."""
        text = f'"{self.manager}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.version}" if self.operation == "Update" else text


class FieldClaim(NamedTuple):
    """``version`` is that of the field names; ``time`` is the last change, or empty."""

    fields: FieldSet
    version: str
    time: str


Claims = dict[FieldOwner, FieldClaim]


def update_owner(manager: str, version: str, subresource: str = "") -> FieldOwner:
    """The manager of a POST, PUT or PATCH other than apply."""
    return FieldOwner(manager or "unknown", "Update", version, subresource)


def apply_owner(manager: str, subresource: str = "") -> FieldOwner:
    """The manager of an apply."""
    return FieldOwner(manager, "Apply", "", subresource)


def decode_claims(entries: Sequence[Mapping[str, Any]]) -> Claims:
    """Parses the entries of an object. ValueError if they are invalid."""
    claims: Claims = {}
    for index, entry in enumerate(entries):
        operation, version = entry.get("operation", ""), entry.get("apiVersion", "")
        if operation not in ("Apply", "Update"):
            raise ValueError("operation must be `Apply` or `Update`")
        if not version:
            raise ValueError("apiVersion must not be empty")
        if (kind := entry.get("fieldsType", "")) != "FieldsV1":
            what = f'invalid fieldsType "{kind}"' if kind else "missing fieldsType"
            raise ValueError(f"{what} in managed fields entry {index}")
        said = version if operation == "Update" else ""
        owner = FieldOwner(entry.get("manager", ""), operation, said, entry.get("subresource") or "")
        claims[owner] = FieldClaim(entry.get("fieldsV1") or {}, version, entry.get("time") or "")
    return claims


def encode_claims(claims: Claims) -> list[Object]:
    """The entries for an object, in the order of Kubernetes: appliers first, then by time."""

    def order(pair: tuple[FieldOwner, FieldClaim]) -> tuple[str, ...]:
        owner, claim = pair
        return owner.operation, claim.time, owner.manager, claim.version, owner.subresource

    return [_entry(owner, claim) for owner, claim in sorted(claims.items(), key=order)]


def _entry(owner: FieldOwner, claim: FieldClaim) -> Object:
    entry: Object = {"manager": owner.manager, "operation": owner.operation, "apiVersion": claim.version}
    if claim.time:
        entry["time"] = claim.time
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": claim.fields}
    if owner.subresource:
        entry["subresource"] = owner.subresource
    return entry


def initial_claims(new: Object, old: Object | None, *, subresource: bool) -> Claims:
    """The claims before a write: those in the request if allowed and valid, otherwise the old ones.

    An empty list, or a list with an empty entry, resets all claims.
    """
    said, before = new["metadata"].get("managedFields"), (old or {"metadata": {}})["metadata"].get("managedFields")
    if not subresource and said in ([], [{}]):
        return {}
    try:
        claims = decode_claims(said) if said and not subresource else {}
    except (ValueError, AttributeError, TypeError):
        claims = {}
    return claims or decode_claims(before or ())


def drop_changed(claims: Claims, changes: FieldDifference, *, but: FieldOwner | None = None) -> Claims:
    """The claims of other managers after a change, without fields that changed or no longer exist."""
    left: Claims = {}
    for owner, claim in claims.items():
        if owner == but:
            left[owner] = claim
            continue
        fields = difference(difference(claim.fields, changes.changed), changes.removed)
        if fields:
            left[owner] = claim._replace(fields=fields)
    return left


def find_conflicts(claims: Claims, changes: FieldDifference, *, but: FieldOwner) -> dict[FieldOwner, FieldSet]:
    """The claims of other managers on the fields to be changed."""
    found = {owner: intersection(claim.fields, changes.changed) for owner, claim in claims.items() if owner != but}
    return {owner: fields for owner, fields in found.items() if fields}


def claim_changes(claims: Claims, changes: FieldDifference, owner: FieldOwner, *, version: str, now: str) -> Claims:
    """After a write other than apply: the changed fields belong to the owner."""
    fields = difference(changes.changed, STRIPPED)
    if not fields:
        return drop_changed(claims, changes)
    before = claims.get(owner)
    if before and not changes.removed and not difference(fields, before.fields):  # the same fields again
        left = drop_changed(claims, changes, but=owner)
        left[owner] = before._replace(version=version, time=now)
        return _cap_updaters(left)
    left = drop_changed(claims, changes)
    before = left.get(owner)
    left[owner] = FieldClaim(sort_fields(union(fields, before.fields)) if before else fields, version, now)
    return _cap_updaters(left)


def _cap_updaters(claims: Claims) -> Claims:
    updaters = [owner for owner in claims if owner.operation == "Update"]
    if len(updaters) <= MAX_UPDATERS:
        return claims
    updaters.sort(key=lambda owner: (claims[owner].time, owner))
    merged, count, first = dict(claims), len(updaters), dict[str, FieldOwner]()
    for owner in updaters:
        if count <= MAX_UPDATERS:
            break
        claim = merged[owner]
        if claim.version not in first:
            first[claim.version] = owner
            continue
        bucket = update_owner(ANCIENT, claim.version)
        if bucket not in merged:
            merged[bucket] = merged.pop(first[claim.version])
        fields = sort_fields(union(claim.fields, merged[bucket].fields))
        merged[bucket] = FieldClaim(fields, claim.version, claim.time)
        del merged[owner]
        count -= 1
    return merged


def drop_unserved(claims: Claims, known: Callable[[str], bool]) -> Claims:
    """The claims without those in versions that are no longer served."""
    return {owner: claim for owner, claim in claims.items() if known(claim.version)}


def without_times(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The entries without their times."""
    return [{name: value for name, value in entry.items() if name != "time"} for entry in entries]
