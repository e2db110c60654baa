"""Gives every pod a service account and, by default, its token (``ServiceAccount``)."""

from random import Random

from lastcall.ports.node import Clock
from lastcall_lab.apiserver.admission.chain import AdmissionAttributes, AdmissionPlugin, refusal_error
from lastcall_lab.apiserver.authorization.pod_references import named_references
from lastcall_lab.apiserver.kinds.pod_defaults import containers_of
from lastcall_lab.apiserver.kinds.pod_update_rules import MIRROR
from lastcall_lab.apiserver.storage.store import StorageKey, Store
from lastcall_lab.apiserver.values import object_meta
from lastcall_lab.apiserver.values.request import Object

_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_VOLUME = "kube-api-access-"
_LIFETIME = 3607
"""Seconds: an hour, plus an offset by which the API server recognizes automatically mounted tokens."""

_ATTEMPTS = 10
"""Seconds between reads of the account ``default``, which a controller creates shortly after its namespace."""


class PodServiceAccounts(AdmissionPlugin):
    """Handles new pods."""

    sees = ("pods",)

    def __init__(self, store: Store, clock: Clock, random: Random) -> None:
        self._store = store
        self._clock = clock
        self._random = random

    async def mutate(self, attributes: AdmissionAttributes) -> None:
        """ApiError if the pod's account does not exist; waits about a second for the account ``default``."""
        pod = attributes.obj
        if attributes.operation != "CREATE" or attributes.subresource or not pod:
            return
        spec = pod["spec"]
        if MIRROR in (pod["metadata"].get("annotations") or {}):
            _check_mirror(attributes, pod)
            return
        name = spec.get("serviceAccountName") or "default"
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = await self._find(attributes.namespace, name)
        if account is None:
            why = f'error looking up service account {attributes.namespace}/{name}: serviceaccount "{name}" not found'
            raise refusal_error(attributes, why)
        if spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken", True)):
            self._mount_token(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [{"name": one["name"]} for one in account["imagePullSecrets"]]

    async def _find(self, namespace: str, name: str) -> Object | None:
        interval = self._random.uniform(0.1, 0.2)
        for attempt in range(_ATTEMPTS if name == "default" else 1):
            if attempt:
                await self._clock.sleep(interval)
            if stored := self._store.get(StorageKey("serviceaccounts", namespace, name)):
                return stored.to_object()
        return None

    def _mount_token(self, spec: Object) -> None:
        volumes = spec.get("volumes") or []
        present = next((volume["name"] for volume in volumes if volume["name"].startswith(_VOLUME)), None)
        name = present or object_meta.generate_name(_VOLUME, self._random)
        without = [one for one in containers_of(spec, ("initContainers", "containers")) if not _has_token(one)]
        for container in without:
            mount = {"name": name, "readOnly": True, "mountPath": _MOUNT}
            container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
        if without and not present:
            spec["volumes"] = [*volumes, {"name": name, "projected": _token()}]


def _check_mirror(attributes: AdmissionAttributes, pod: Object) -> None:
    """A mirror pod is stored unchanged, so it must not use an account or a Secret. ApiError (403) if it does."""
    found = {one.resource for one in named_references(pod)}
    if "serviceaccounts" in found:
        raise refusal_error(attributes, "a mirror pod may not reference service accounts")
    if "secrets" in found:
        raise refusal_error(attributes, "a mirror pod may not reference secrets")
    projected = (volume.get("projected") or {} for volume in pod["spec"].get("volumes") or ())
    if any("serviceAccountToken" in source for one in projected for source in one.get("sources") or ()):
        raise refusal_error(attributes, "a mirror pod may not use ServiceAccountToken volume projections")


def _has_token(container: Object) -> bool:
    return any(mount.get("mountPath") == _MOUNT for mount in container.get("volumeMounts") or ())


def _token() -> Object:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _LIFETIME, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [namespace]}},
        ],
        "defaultMode": 0o644,
    }
