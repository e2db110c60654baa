"""``pods/binding`` and the older ``bindings``: assign a pod to a node."""

from lastcall_lab.apiserver.encoding import media_types
from lastcall_lab.apiserver.encoding.request_bodies import GroupVersionKind
from lastcall_lab.apiserver.registry import unstored_objects
from lastcall_lab.apiserver.registry.registry import Registry
from lastcall_lab.apiserver.responses.response_builder import ResponseBuilder
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.storage.store import RevisionConflict, StorageKey, StoredObject
from lastcall_lab.apiserver.values import api_errors, field_errors, object_meta
from lastcall_lab.apiserver.values.request import Object, Response

_DONE: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


class PodBinding:
    """Assigns pods to nodes for the scheduler."""

    def __init__(self, registry: Registry, responses: ResponseBuilder) -> None:
        self._registry = registry
        self._responses = responses

    async def create(self, context: RequestContext) -> Response:
        """POST of a Binding. ApiError if it is invalid, or if the pod cannot be bound."""
        form = media_types.negotiate_format(context.request)
        binding = await self._read(context)
        attributes = await unstored_objects.admit_unstored(self._registry, context, binding)
        _check(binding)
        await self._registry.admission.validate(attributes)
        key = StorageKey("pods", context.route.namespace, binding["metadata"].get("name", ""))
        self._bind(key, binding, dry_run=context.dry_run)
        return self._responses.object_response(context, _DONE, form, code=201)

    async def _read(self, context: RequestContext) -> Object:
        binding = await self._registry.read_body(context, GroupVersionKind("", "v1", "Binding"))
        metadata = binding["metadata"]
        if metadata.setdefault("namespace", context.route.namespace) != context.route.namespace:
            raise api_errors.other_namespace_error()
        if context.route.name and metadata.get("name") != context.route.name:
            raise api_errors.bad_request_error("name in URL does not match name in Binding object")
        return binding

    def _bind(self, key: StorageKey, binding: Object, *, dry_run: bool) -> None:
        stored = self._registry.store.get(key)
        if stored is None:
            raise api_errors.not_found_error("pods", "", key.name)
        pod = stored.to_object()
        _expect(stored, pod, binding["metadata"])
        if why := _refusal(pod):
            raise api_errors.conflict_error("pods/binding", "", key.name, why)
        pod["spec"]["nodeName"] = binding["target"]["name"]
        if annotations := binding["metadata"].get("annotations"):
            pod["metadata"]["annotations"] = {**(pod["metadata"].get("annotations") or {}), **annotations}
        if labels := binding["metadata"].get("labels"):
            pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), **labels}
        pod["status"].pop("nominatedNodeName", None)
        _set_scheduled(pod["status"], object_meta.timestamp(self._registry.clock.wall()))
        if not dry_run:
            try:
                self._registry.store.put(key, pod, expected=stored.revision)
            except RevisionConflict:
                raise api_errors.conflict_error("pods", "", key.name, api_errors.MODIFIED) from None


def _check(binding: Object) -> None:
    target = binding.get("target") or {}
    causes = []
    if target.get("kind") not in (None, "", "Node"):
        causes.append(field_errors.not_supported("target.kind", target["kind"], ["Node", "<empty>"]))
    if not target.get("name"):
        causes.append(field_errors.value_required("target.name"))
    if causes:
        # No Invalid: the real server does not build one of these errors, so its clients see a plain 500.
        said = [f"{cause.field}: {cause.message}" for cause in causes]
        raise api_errors.ApiError(500, "", said[0] if len(said) == 1 else f"[{', '.join(said)}]")


def _expect(stored: StoredObject, pod: Object, metadata: Object) -> None:
    """The pod must be the one that the scheduler has seen, if the binding identifies it."""
    path = f"/registry/pods/{stored.key.namespace}/{stored.key.name}"
    wanted = (("UID", "uid", pod["metadata"]["uid"]), ("ResourceVersion", "resourceVersion", str(stored.revision)))
    for what, name, found in wanted:
        if metadata.get(name) not in (None, "", found):
            why = (
                f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg:"
                f" Precondition failed: {what} in precondition: {metadata[name]}, {what} in object meta: {found}"
            )
            raise api_errors.conflict_error("pods", "", stored.key.name, why)


def _refusal(pod: Object) -> str:
    name, spec = pod["metadata"]["name"], pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    return f"pod {name} has non-empty .spec.schedulingGates" if spec.get("schedulingGates") else ""


def _set_scheduled(pod_status: Object, now: str) -> None:
    """Sets the condition PodScheduled to True; keeps its time if it already was."""
    conditions = pod_status.setdefault("conditions", [])
    found = next((one for one in conditions if one["type"] == "PodScheduled"), None)
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    if found is None:
        conditions.append(condition)
    elif found["status"] != "True":
        conditions[conditions.index(found)] = condition
