"""Server-side apply: the merged object and the new field ownership (pure).

The rules are those of ``structured-merge-diff/merge`` and ``apimachinery/pkg/util/managedfields``.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from lastcall_lab.apiserver.patches import field_owners, field_sets
from lastcall_lab.apiserver.patches.configuration_merge import include_structs, lay_over, take_out_fields
from lastcall_lab.apiserver.patches.field_differences import FieldDifference, compare_objects, fields_in
from lastcall_lab.apiserver.patches.field_owners import Claims, FieldClaim, FieldOwner
from lastcall_lab.apiserver.patches.field_sets import FieldSet
from lastcall_lab.apiserver.patches.shapes import OwnershipShape
from lastcall_lab.apiserver.values.request import Object

KUBECTL = "kubectl"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class ApplyConflicts(Exception):
    """Other managers own fields that the configuration changes."""

    def __init__(self, fields: Mapping[FieldOwner, FieldSet]) -> None:
        super().__init__(f"{len(fields)} owners")
        self.fields = fields


class ApplyResult(NamedTuple):
    """``obj`` has no managed fields; ``same``: it is unchanged."""

    obj: Object
    claims: Claims
    same: bool


def apply_configuration(
    live: Object,
    config: Object,
    claims: Claims,
    owner: FieldOwner,
    *,
    shape: OwnershipShape,
    version: str,
    ignored: FieldSet,
    force: bool = False,
) -> ApplyResult:
    """The object after the apply. ApplyConflicts unless ``force``. ``ignored`` are fields that it cannot change."""
    before = claims.get(owner)
    mine = field_sets.exclude_subtrees(fields_in(config, shape), ignored)
    claims = {**claims, owner: FieldClaim(mine, version, before.time if before else "")}
    merged: Object = lay_over(live, config, shape)
    if before and before.fields:
        merged = _prune(merged, claims, before.fields, shape)
    changes = _without(compare_objects(live, merged, shape), ignored)
    found = field_owners.find_conflicts(claims, changes, but=owner)
    if found and not force:
        raise ApplyConflicts(found)
    claims = field_owners.drop_changed(claims, changes, but=owner)
    fields = field_sets.sort_fields(field_sets.difference(mine, field_owners.STRIPPED))
    if fields:
        claims[owner] = claims[owner]._replace(fields=fields)
    else:
        claims.pop(owner, None)
    return ApplyResult(merged, claims, same=merged == live)


def apply_as_kubectl(live: Object, config: Object, claims: Claims, owner: FieldOwner, **rest: Any) -> ApplyResult:
    """The same for the manager ``kubectl``, which owns its earlier client-side applies without conflict."""
    try:
        result = apply_configuration(live, config, claims, owner, **rest)
    except ApplyConflicts as error:
        left = _real_conflicts(error.fields, live, rest["shape"], rest["version"])
        if left:
            raise ApplyConflicts(left) from None
        result = apply_configuration(live, config, claims, owner, **{**rest, "force": True})
    annotations = result.obj["metadata"].get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return result
    metadata = {**result.obj["metadata"], "annotations": {**annotations, LAST_APPLIED: _last_applied(config)}}
    return result._replace(obj={**result.obj, "metadata": metadata})


def _without(changes: FieldDifference, ignored: FieldSet) -> FieldDifference:
    if not ignored:
        return changes
    return FieldDifference(*(field_sets.exclude_subtrees(fields, ignored) for fields in changes))


def _prune(merged: Object, claims: Claims, last: FieldSet, shape: OwnershipShape) -> Object:
    """Removes what the owner applied last time and no manager owns now."""
    last = include_structs(last, shape)
    pruned = take_out_fields(merged, last, shape) or {}
    managed: FieldSet = {}
    for claim in claims.values():
        managed = field_sets.union(managed, claim.fields)
    everything = include_structs(fields_in(merged, shape), shape)
    kept = field_sets.union(include_structs(fields_in(pruned, shape), shape), include_structs(managed, shape))
    pruned = take_out_fields(merged, field_sets.difference(everything, kept), shape) or {}
    remaining = include_structs(fields_in(pruned, shape), shape)
    gone = field_sets.intersection(field_sets.difference(everything, remaining), last)
    result: Object = _without_new_nulls(take_out_fields(merged, gone, shape) or {}, merged)
    return result


def _without_new_nulls(value: Any, before: Any) -> Any:
    """Drops emptied maps and lists, like a typed server."""
    if value is before:
        return value
    if isinstance(value, dict) and isinstance(before, dict):
        pairs = ((name, one) for name, one in value.items() if one is not None or before.get(name) is None)
        return {name: _without_new_nulls(one, before.get(name)) for name, one in pairs}
    return value


def _real_conflicts(
    found: Mapping[FieldOwner, FieldSet], live: Object, shape: OwnershipShape, version: str
) -> Mapping[FieldOwner, FieldSet]:
    """The conflicts without those from kubectl's last applied annotation."""
    try:
        last = json.loads((live["metadata"].get("annotations") or {})[LAST_APPLIED])
    except (KeyError, ValueError):
        return found
    if not isinstance(last, dict) or last.get("apiVersion") != version:
        return found
    changes = compare_objects(last, live, shape)
    allowed = field_sets.difference(field_sets.difference(fields_in(last, shape), changes.changed), changes.removed)
    left = {owner: field_sets.difference(fields, allowed) for owner, fields in found.items()}
    return {owner: fields for owner, fields in left.items() if fields}


def _last_applied(config: Object) -> str:
    metadata = dict(config.get("metadata") or {})
    if annotations := metadata.get("annotations"):
        metadata["annotations"] = {name: text for name, text in annotations.items() if name != LAST_APPLIED}
        if not metadata["annotations"]:
            del metadata["annotations"]
    return (
        json.dumps({**config, "metadata": metadata}, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"
    )
