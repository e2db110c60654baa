"""Sets the priority of pods from their PriorityClass (``Priority``)."""

from lastcall_lab.apiserver.admission.chain import AdmissionAttributes, AdmissionPlugin, refusal_error
from lastcall_lab.apiserver.resources.kind_behaviour import keep_field
from lastcall_lab.apiserver.storage.store import StorageKey, Store
from lastcall_lab.apiserver.values.request import Object

_CLASSES = "priorityclasses.scheduling.k8s.io"
_NONE: Object = {"value": 0, "preemptionPolicy": "PreemptLowerPriority"}
"""The priority without a default class."""


class PodPriorities(AdmissionPlugin):
    """Handles pods and PriorityClasses."""

    sees = ("pods", _CLASSES)

    def __init__(self, store: Store) -> None:
        self._store = store

    async def mutate(self, attributes: AdmissionAttributes) -> None:
        """ApiError if a pod's class does not exist, or if the pod sets a priority that differs from its class."""
        if attributes.resource.storage != "pods" or attributes.subresource or attributes.obj is None:
            return
        spec = attributes.obj["spec"]
        if attributes.operation == "UPDATE" and attributes.old:
            for name in ("priority", "preemptionPolicy"):
                if name not in spec:
                    keep_field(spec, attributes.old["spec"], name)
        elif attributes.operation == "CREATE":
            self._resolve(attributes, spec)

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """ApiError for a second default class."""
        wanted = attributes.obj
        if attributes.resource.storage != _CLASSES or not wanted or not wanted.get("globalDefault"):
            return
        present = self._default()
        if present and present["metadata"]["name"] != wanted["metadata"]["name"]:
            name = present["metadata"]["name"]
            raise refusal_error(
                attributes, f"PriorityClass {name} is already marked as default. Only one default can exist"
            )

    def _resolve(self, attributes: AdmissionAttributes, spec: Object) -> None:
        chosen = self._class(attributes, spec)
        if chosen is not _NONE:
            spec["priorityClassName"] = chosen["metadata"]["name"]
        priority, policy = chosen.get("value", 0), chosen.get("preemptionPolicy", "PreemptLowerPriority")
        if spec.get("priority", priority) != priority:
            why = (
                f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority"
                f" admission controller computed {priority} from the given PriorityClass name"
            )
            raise refusal_error(attributes, why)
        if spec.get("preemptionPolicy", policy) != policy:
            why = (
                f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec;"
                f" priority admission controller computed {policy} from the given PriorityClass name"
            )
            raise refusal_error(attributes, why)
        spec["priority"], spec["preemptionPolicy"] = priority, policy

    def _class(self, attributes: AdmissionAttributes, spec: Object) -> Object:
        name = spec.get("priorityClassName")
        if not name:
            return self._default() or _NONE
        stored = self._store.get(StorageKey(_CLASSES, "", name))
        if stored is None:
            raise refusal_error(attributes, f"no PriorityClass with name {name} was found")
        return stored.to_object()

    def _default(self) -> Object | None:
        """The class for pods that name none: the lowest if there are several."""
        classes = [stored.to_object() for stored in self._store.objects(_CLASSES)]
        return min((one for one in classes if one.get("globalDefault")), key=lambda one: one["value"], default=None)
