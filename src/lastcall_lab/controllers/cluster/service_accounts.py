"""What every namespace gets: the service account ``default`` and the ConfigMap ``kube-root-ca.crt``."""

from collections.abc import Iterable, Sequence

from lastcall_lab.controllers.framework.actions import Action, CreateObject, Decision
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View, ref_of

BUNDLE = "kube-root-ca.crt"


class ServiceAccountController:
    """``authority`` is the PEM certificate that pods use to verify the API server."""

    name = "serviceaccount"
    resources: Sequence[str] = ("namespaces", "serviceaccounts", "configmaps")

    def __init__(self, authority: str) -> None:
        self._authority = authority

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """The namespace."""
        if resource == "namespaces":
            return [ref_of("namespaces", obj)]
        wanted = BUNDLE if resource == "configmaps" else "default"
        return [ObjectRef("namespaces", "", obj["metadata"]["namespace"])] if obj["metadata"]["name"] == wanted else []

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """Creates what is missing, except in a namespace that is being deleted."""
        namespace = view.get(*key)
        if namespace is None or namespace["metadata"].get("deletionTimestamp"):
            return Decision()
        actions: list[Action] = []
        if view.get("serviceaccounts", key.name, "default") is None:
            actions.append(CreateObject("serviceaccounts", key.name, {"metadata": {"name": "default"}}))
        if view.get("configmaps", key.name, BUNDLE) is None:
            bundle = {"metadata": {"name": BUNDLE}, "data": {"ca.crt": self._authority}}
            actions.append(CreateObject("configmaps", key.name, bundle))
        return Decision(tuple(actions))
