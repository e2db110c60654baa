"""Objects are made only in namespaces that are there and stay (``NamespaceLifecycle``)."""

from lastcall.lab.apiserver import status
from lastcall.lab.apiserver.admission.chain import Attributes, Plugin, refusal
from lastcall.lab.apiserver.store import Key, Store

_IMMORTAL = ("default", "kube-system", "kube-public")


class NamespaceLifecycle(Plugin):
    """Sees every write."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def mutate(self, attributes: Attributes) -> None:
        """ApiError for a write into a namespace that is not there, or for a new object in one that is being deleted."""
        if attributes.resource.storage == "namespaces":
            if attributes.operation == "DELETE" and attributes.name in _IMMORTAL:
                raise refusal(attributes, "this namespace may not be deleted")
            return
        self._check(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """The same of a new object, once more: its webhooks, and the thread for a large one, were waited for."""
        if attributes.operation == "CREATE" and attributes.resource.storage != "namespaces":
            self._check(attributes)

    def _check(self, attributes: Attributes) -> None:
        namespace = attributes.namespace
        if (
            not namespace
            or attributes.operation in ("DELETE", "CONNECT")
            or attributes.resource.plural.endswith("accessreviews")
        ):
            return
        stored = self._store.get(Key("namespaces", "", namespace))
        if stored is None:
            raise status.not_found("namespaces", "", namespace)
        if attributes.operation == "CREATE" and stored.fields.get("status.phase") == "Terminating":
            raise _terminating(attributes)


def _terminating(attributes: Attributes) -> status.ApiError:
    namespace = attributes.namespace
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    error = refusal(attributes, why)
    message = f"namespace {namespace} is being terminated"
    causes = [{"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}]
    error.details = {**(error.details or {}), "causes": causes}
    return error
