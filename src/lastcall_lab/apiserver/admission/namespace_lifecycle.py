"""Rejects new objects in missing or terminating namespaces (``NamespaceLifecycle``)."""

from lastcall_lab.apiserver.admission.chain import AdmissionAttributes, AdmissionPlugin, refusal_error
from lastcall_lab.apiserver.storage.store import StorageKey, Store
from lastcall_lab.apiserver.values import api_errors

_IMMORTAL = ("default", "kube-system", "kube-public")


class NamespaceLifecycle(AdmissionPlugin):
    """Handles every write."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def mutate(self, attributes: AdmissionAttributes) -> None:
        """ApiError for a write into a missing namespace, or for a new object in one that is being deleted."""
        if attributes.resource.storage == "namespaces":
            if attributes.operation == "DELETE" and attributes.name in _IMMORTAL:
                raise refusal_error(attributes, "this namespace may not be deleted")
            return
        self._check(attributes)

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Checks a new object again, because the namespace can change while webhooks or a worker thread run."""
        if attributes.operation == "CREATE" and attributes.resource.storage != "namespaces":
            self._check(attributes)

    def _check(self, attributes: AdmissionAttributes) -> None:
        namespace = attributes.namespace
        if (
            not namespace
            or attributes.operation in ("DELETE", "CONNECT")
            or attributes.resource.plural.endswith("accessreviews")
        ):
            return
        stored = self._store.get(StorageKey("namespaces", "", namespace))
        if stored is None:
            raise api_errors.not_found_error("namespaces", "", namespace)
        if attributes.operation == "CREATE" and stored.fields.get("status.phase") == "Terminating":
            raise _terminating_error(attributes)


def _terminating_error(attributes: AdmissionAttributes) -> api_errors.ApiError:
    namespace = attributes.namespace
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    error = refusal_error(attributes, why)
    message = f"namespace {namespace} is being terminated"
    causes = [{"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}]
    error.details = {**(error.details or {}), "causes": causes}
    return error
