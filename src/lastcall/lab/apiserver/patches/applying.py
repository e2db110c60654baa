"""Server-side apply: what an object becomes by a configuration, and who owns its fields then (pure).

The rules are those of ``structured-merge-diff/merge`` and ``apimachinery/pkg/util/managedfields``.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from lastcall.lab.apiserver.patches import field_sets, owners
from lastcall.lab.apiserver.patches.comparing import Difference, compared, owned
from lastcall.lab.apiserver.patches.field_sets import FieldSet
from lastcall.lab.apiserver.patches.merging import laid_over, taken_out, with_structs
from lastcall.lab.apiserver.patches.owners import Claim, Claims, Owner
from lastcall.lab.apiserver.patches.shapes import Shape
from lastcall.lab.apiserver.request import Object

KUBECTL = "kubectl"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Conflicts(Exception):
    """Others own fields that the configuration changes."""

    def __init__(self, fields: Mapping[Owner, FieldSet]) -> None:
        super().__init__(f"{len(fields)} owners")
        self.fields = fields


class Applied(NamedTuple):
    """``obj`` has no managed fields; ``same`` says that it is as it was."""

    obj: Object
    claims: Claims
    same: bool


def applied(
    live: Object,
    config: Object,
    claims: Claims,
    owner: Owner,
    *,
    shape: Shape,
    version: str,
    ignored: FieldSet,
    force: bool = False,
) -> Applied:
    """The object after the configuration. Conflicts unless ``force``. ``ignored`` are fields that it cannot change."""
    before = claims.get(owner)
    mine = field_sets.without(owned(config, shape), ignored)
    claims = {**claims, owner: Claim(mine, version, before.time if before else "")}
    merged: Object = laid_over(live, config, shape)
    if before and before.fields:
        merged = _pruned(merged, claims, before.fields, shape)
    changes = _without(compared(live, merged, shape), ignored)
    found = owners.conflicts(claims, changes, but=owner)
    if found and not force:
        raise Conflicts(found)
    claims = owners.dropped(claims, changes, but=owner)
    fields = field_sets.ordered(field_sets.difference(mine, owners.STRIPPED))
    if fields:
        claims[owner] = claims[owner]._replace(fields=fields)
    else:
        claims.pop(owner, None)
    return Applied(merged, claims, same=merged == live)


def by_kubectl(live: Object, config: Object, claims: Claims, owner: Owner, **rest: Any) -> Applied:
    """The same for the manager ``kubectl``: what it has applied on the client's side is its own, without conflict."""
    try:
        result = applied(live, config, claims, owner, **rest)
    except Conflicts as error:
        left = _unsettled(error.fields, live, rest["shape"], rest["version"])
        if left:
            raise Conflicts(left) from None
        result = applied(live, config, claims, owner, **{**rest, "force": True})
    annotations = result.obj["metadata"].get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return result
    metadata = {**result.obj["metadata"], "annotations": {**annotations, LAST_APPLIED: _last_applied(config)}}
    return result._replace(obj={**result.obj, "metadata": metadata})


def _without(changes: Difference, ignored: FieldSet) -> Difference:
    if not ignored:
        return changes
    return Difference(*(field_sets.without(fields, ignored) for fields in changes))


def _pruned(merged: Object, claims: Claims, last: FieldSet, shape: Shape) -> Object:
    """Without what the owner applied last and nobody owns now."""
    last = with_structs(last, shape)
    pruned = taken_out(merged, last, shape) or {}
    managed: FieldSet = {}
    for claim in claims.values():
        managed = field_sets.union(managed, claim.fields)
    everything = with_structs(owned(merged, shape), shape)
    kept = field_sets.union(with_structs(owned(pruned, shape), shape), with_structs(managed, shape))
    pruned = taken_out(merged, field_sets.difference(everything, kept), shape) or {}
    remaining = with_structs(owned(pruned, shape), shape)
    gone = field_sets.intersection(field_sets.difference(everything, remaining), last)
    result: Object = _without_new_nulls(taken_out(merged, gone, shape) or {}, merged)
    return result


def _without_new_nulls(value: Any, before: Any) -> Any:
    """Maps and lists of which nothing is left are not there, as a typed server has it."""
    if value is before:
        return value
    if isinstance(value, dict) and isinstance(before, dict):
        pairs = ((name, one) for name, one in value.items() if one is not None or before.get(name) is None)
        return {name: _without_new_nulls(one, before.get(name)) for name, one in pairs}
    return value


def _unsettled(found: Mapping[Owner, FieldSet], live: Object, shape: Shape, version: str) -> Mapping[Owner, FieldSet]:
    """The conflicts that are none by what kubectl has applied before, and noted in its annotation."""
    try:
        last = json.loads((live["metadata"].get("annotations") or {})[LAST_APPLIED])
    except (KeyError, ValueError):
        return found
    if not isinstance(last, dict) or last.get("apiVersion") != version:
        return found
    changes = compared(last, live, shape)
    allowed = field_sets.difference(field_sets.difference(owned(last, shape), changes.changed), changes.removed)
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
