"""Restricts a kubelet to tokens of service accounts of pods on its node (``NodeRestriction``)."""

from collections.abc import Collection, Sequence

from lastcall_lab.apiserver.authorization.attributes import AccessAttributes
from lastcall_lab.apiserver.authorization.authorizer import Authorizer
from lastcall_lab.apiserver.storage.store import StorageKey, Store
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Object, UserInfo

_VERB = "request-serviceaccounts-token-audience"


class NodeTokenRestriction:
    """Checks token requests before they are completed."""

    def __init__(self, store: Store, authorizer: Authorizer) -> None:
        self._store = store
        self._authorizer = authorizer

    def check(self, user: UserInfo, namespace: str, account: str, spec: Object) -> None:
        """ApiError (403, 404) if the kubelet ``user`` may not get such a token of the account."""
        if why := self._violation(user, namespace, account, spec):
            raise api_errors.forbidden_error("serviceaccounts", "", account, why)

    def _violation(self, user: UserInfo, namespace: str, account: str, spec: Object) -> str:
        reference = spec.get("boundObjectRef") or {}
        name, uid = reference.get("name") or "", reference.get("uid") or ""
        if (reference.get("apiVersion"), reference.get("kind")) != ("v1", "Pod") or not name:
            return "node requested token not bound to a pod"
        if not uid:
            return "node requested token with a pod binding without a uid"
        stored = self._store.get(StorageKey("pods", namespace, name))
        if stored is None:
            raise api_errors.not_found_error("pod", "", name)
        pod = stored.to_object()
        if pod["metadata"]["uid"] != uid:
            return (
                f"the UID in the bound object reference ({uid}) does not match the UID in record."
                " The object might have been deleted and then recreated"
            )
        if pod["spec"].get("nodeName") != user.node:
            return "node requested token bound to a pod scheduled on a different node"
        return self._audience_violation(user, namespace, account, spec.get("audiences") or [], pod)

    def _audience_violation(
        self, user: UserInfo, namespace: str, account: str, audiences: list[str], pod: Object
    ) -> str:
        if len(audiences) > 1:
            return "node may only request 0 or 1 audiences"
        audience = audiences[0] if audiences else ""
        found, missing = self._audiences(pod)
        if audience in found:
            return ""
        if missing:
            why = missing[0] if len(missing) == 1 else f"[{', '.join(missing)}]"
            return f'error validating audience "{audience}": {why}'
        asked = AccessAttributes(user, _VERB, resource=audience, namespace=namespace, name=account)
        if self._authorizer.authorize(asked).allowed:
            return ""
        return (
            f'audience "{audience}" not found in pod spec volume,'
            f" {user.name} is not authorized to request tokens for this audience"
        )

    def _audiences(self, pod: Object) -> tuple[Collection[str], Sequence[str]]:
        """The audiences of the pod's volumes and of their drivers, and the missing objects among these."""
        found: set[str] = set()
        missing: dict[str, None] = {}
        for volume in pod["spec"].get("volumes") or ():
            for source in (volume.get("projected") or {}).get("sources") or ():
                if source.get("serviceAccountToken"):
                    found.add(source["serviceAccountToken"].get("audience") or "")
            try:
                if driver := self._driver(pod, volume):
                    requests = self._read_object("csidriver", "", driver, group="storage.k8s.io")["spec"].get(
                        "tokenRequests"
                    )
                    found.update(request.get("audience") or "" for request in requests or ())
            except api_errors.ApiError as error:
                missing[error.message] = None
        return found, [*missing]

    def _driver(self, pod: Object, volume: Object) -> str:
        """The CSI driver of a volume; empty if it has none. ApiError if its claim or its volume does not exist."""
        if volume.get("csi"):
            return str(volume["csi"].get("driver") or "")
        metadata = pod["metadata"]
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName") or ""
        claim = f"{metadata['name']}-{volume['name']}" if volume.get("ephemeral") else claim
        if not claim:
            return ""
        bound = self._read_object("persistentvolumeclaim", metadata["namespace"], claim)
        persistent = self._read_object("persistentvolume", "", bound["spec"].get("volumeName") or "")
        return str((persistent["spec"].get("csi") or {}).get("driver") or "")

    def _read_object(self, singular: str, namespace: str, name: str, *, group: str = "") -> Object:
        """ApiError (404) if it does not exist, with the name as in upstream's informers."""
        stored = self._store.get(StorageKey(api_errors.qualified_resource(f"{singular}s", group), namespace, name))
        if stored is None:
            raise api_errors.not_found_error(singular, group, name)
        return stored.to_object()
