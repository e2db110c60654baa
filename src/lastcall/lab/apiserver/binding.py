"""``pods/binding``, and ``bindings``, which is its older name: a pod gets its node."""

from typing import TYPE_CHECKING

from lastcall.lab.apiserver import answers, fields, media, meta, posting, status
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.request import Object, Response
from lastcall.lab.apiserver.schema.bodies import Kind
from lastcall.lab.apiserver.store import Key, Outdated, Stored

if TYPE_CHECKING:
    from lastcall.lab.apiserver.server import ApiServer

_DONE: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


class Binding:
    """Assigns pods to nodes, as the scheduler asks for it."""

    def __init__(self, server: "ApiServer") -> None:
        self._server = server

    async def create(self, context: Context) -> Response:
        """POST of a Binding. ApiError if it is none, or if the pod cannot be bound."""
        form = media.negotiated(context.request)
        binding = await self._read(context)
        attributes = await posting.mutate(self._server, context, binding)
        _check(binding)
        await self._server.admission.validate(attributes)
        key = Key("pods", context.route.namespace, binding["metadata"].get("name", ""))
        self._bind(key, binding, dry_run=context.dry_run)
        return answers.one(context, _DONE, form, self._server, code=201)

    async def _read(self, context: Context) -> Object:
        binding = await self._server.read(context, Kind("", "v1", "Binding"))
        metadata = binding["metadata"]
        if metadata.setdefault("namespace", context.route.namespace) != context.route.namespace:
            raise status.other_namespace()
        if context.route.name and metadata.get("name") != context.route.name:
            raise status.bad_request("name in URL does not match name in Binding object")
        return binding

    def _bind(self, key: Key, binding: Object, *, dry_run: bool) -> None:
        stored = self._server.store.get(key)
        if stored is None:
            raise status.not_found("pods", "", key.name)
        pod = stored.object()
        _expect(stored, pod, binding["metadata"])
        if why := _refusal(pod):
            raise status.conflict("pods/binding", "", key.name, why)
        pod["spec"]["nodeName"] = binding["target"]["name"]
        if annotations := binding["metadata"].get("annotations"):
            pod["metadata"]["annotations"] = {**(pod["metadata"].get("annotations") or {}), **annotations}
        if labels := binding["metadata"].get("labels"):
            pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), **labels}
        pod["status"].pop("nominatedNodeName", None)
        _scheduled(pod["status"], meta.timestamp(self._server.clock.wall()))
        if not dry_run:
            try:
                self._server.store.put(key, pod, expected=stored.revision)
            except Outdated:
                raise status.conflict("pods", "", key.name, status.MODIFIED) from None


def _check(binding: Object) -> None:
    target = binding.get("target") or {}
    causes = []
    if target.get("kind") not in (None, "", "Node"):
        causes.append(fields.not_supported("target.kind", target["kind"], ["Node", "<empty>"]))
    if not target.get("name"):
        causes.append(fields.required("target.name"))
    if causes:
        # Not an Invalid: the real server forgets to make one of these, and so its clients see a plain 500.
        said = [f"{cause.field}: {cause.message}" for cause in causes]
        raise status.ApiError(500, "", said[0] if len(said) == 1 else f"[{', '.join(said)}]")


def _expect(stored: Stored, pod: Object, metadata: Object) -> None:
    """The pod must be the one that the scheduler has seen, as far as the binding says which that is."""
    path = f"/registry/pods/{stored.key.namespace}/{stored.key.name}"
    wanted = (("UID", "uid", pod["metadata"]["uid"]), ("ResourceVersion", "resourceVersion", str(stored.revision)))
    for what, name, found in wanted:
        if metadata.get(name) not in (None, "", found):
            why = (
                f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg:"
                f" Precondition failed: {what} in precondition: {metadata[name]}, {what} in object meta: {found}"
            )
            raise status.conflict("pods", "", stored.key.name, why)


def _refusal(pod: Object) -> str:
    name, spec = pod["metadata"]["name"], pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    return f"pod {name} has non-empty .spec.schedulingGates" if spec.get("schedulingGates") else ""


def _scheduled(pod_status: Object, now: str) -> None:
    """The condition PodScheduled is True, since now if it was not before."""
    conditions = pod_status.setdefault("conditions", [])
    found = next((one for one in conditions if one["type"] == "PodScheduled"), None)
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    if found is None:
        conditions.append(condition)
    elif found["status"] != "True":
        conditions[conditions.index(found)] = condition
