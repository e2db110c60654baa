"""Copies the zone and region labels of a node to its pods (``PodTopologyLabels``)."""

from lastcall_lab.apiserver.admission.chain import AdmissionAttributes, AdmissionPlugin
from lastcall_lab.apiserver.storage.store import StorageKey, Store
from lastcall_lab.apiserver.values.request import Object

LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class TopologyLabels(AdmissionPlugin):
    """Handles bindings, and new pods with a node name."""

    sees = ("pods",)

    def __init__(self, store: Store) -> None:
        self._store = store

    async def mutate(self, attributes: AdmissionAttributes) -> None:
        """Copies the node's labels; the binding passes its own on to the pod."""
        obj = attributes.obj
        if attributes.operation != "CREATE" or obj is None:
            return
        target = obj.get("target") or {}
        if not attributes.subresource:
            found = self._labels((obj.get("spec") or {}).get("nodeName", ""))
        elif attributes.subresource == "binding" and target.get("kind") == "Node":
            found = self._labels(target.get("name", ""))
        else:
            return
        if found:
            metadata = obj["metadata"]
            metadata["labels"] = {**(metadata.get("labels") or {}), **found}

    def _labels(self, node: str) -> Object:
        stored = self._store.get(StorageKey("nodes", "", node)) if node else None
        return {name: stored.labels[name] for name in LABELS if name in stored.labels} if stored else {}
