"""Namespace deletion: deletes the content of a terminating namespace first (``pkg/controller/namespace/deletion``)."""

from collections.abc import Iterable, Sequence

from lastcall_lab.controllers.framework.actions import Action, Decision, DeleteObject, FinalizeNamespace, PatchObject
from lastcall_lab.controllers.framework.controller import CUSTOM
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View, ref_of
from lastcall_lab.controllers.objects.pods import condition_of
from lastcall_lab.controllers.objects.served_kinds import DEFINITIONS, custom_kinds

UNLISTED_SECONDS = 1.0
"""Seconds until the next check for a custom resource that is not listed yet and may have objects in the namespace."""

_REMAINING = "NamespaceContentRemaining"


class NamespaceController:
    """``contents`` are the built-in namespaced resources; custom resources are added from their definitions."""

    name = "namespace"

    def __init__(self, contents: Sequence[str]) -> None:
        self._contents = tuple(sorted(contents))
        self.resources: Sequence[str] = ("namespaces", DEFINITIONS, CUSTOM, *self._contents)

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """The namespace, if it is being deleted."""
        name = obj["metadata"]["name"] if resource == "namespaces" else obj["metadata"].get("namespace", "")
        namespace = view.get("namespaces", "", name)
        return [ref_of("namespaces", namespace)] if namespace and namespace["metadata"].get("deletionTimestamp") else []

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """Deletes the remaining objects; finalizes the namespace when none remain."""
        namespace = view.get(*key)
        if namespace is None or "kubernetes" not in (namespace["spec"].get("finalizers") or ()):
            return Decision()
        custom = sorted(one.resource for one in custom_kinds(view) if one.namespaced)
        left = [(resource, obj) for resource in (*self._contents, *custom) for obj in view.all(resource, key.name)]
        listed = all(view.is_listed(resource) for resource in custom)
        if not left and listed:
            return Decision((FinalizeNamespace(key),), said=f"namespace {key.name} is empty and goes")
        actions: list[Action] = [
            DeleteObject(ref_of(resource, obj), uid=obj["metadata"]["uid"], propagation="Background")
            for resource, obj in left
            if not obj["metadata"].get("deletionTimestamp")
        ]
        actions += self._report_remaining(key, namespace, left)
        return Decision(tuple(actions), None if listed else UNLISTED_SECONDS)

    def _report_remaining(self, key: ObjectRef, namespace: Object, left: Sequence[tuple[str, Object]]) -> list[Action]:
        """The conditions that list the remaining content; no action while it is unknown."""
        if not left:
            return []
        counts: dict[str, int] = {}
        for resource, _ in left:
            plural, _, group = resource.partition(".")
            counts[f"{plural}.{group}"] = counts.get(f"{plural}.{group}", 0) + 1
        said = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(counts.items()))
        message = f"Some resources are remaining: {said}"
        if condition_of(namespace, _REMAINING).get("message") == message:
            return []
        told = {"type": _REMAINING, "status": "True", "reason": "SomeResourcesRemain", "message": message}
        others = [one for one in namespace["status"].get("conditions") or () if one["type"] != _REMAINING]
        return [PatchObject(key, {"status": {"conditions": [*others, told]}}, "status")]
