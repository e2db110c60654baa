"""The plan of a drain from objects as the API has them."""

import json
from datetime import UTC, datetime
from typing import Any

from support.drain.objects import node_object

from lastcall.drain.planning.drain_case import DrainCase, build_case
from lastcall.drain.planning.drain_plan import build_plan, plan_document
from lastcall.model.drain_settings import DrainSettings
from lastcall.model.drain_state_file import read_drain_state
from lastcall.model.label_selector import Matcher, select_everything

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def list_of(*objects: dict[str, Any]) -> bytes:
    """A List with these objects, as a file has it."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}).encode()


def case_of(
    *objects: dict[str, Any], nodes: tuple[str, ...] = ("n1",), selects: Matcher = select_everything, **settings: Any
) -> DrainCase:
    """The case of nodes that are made if they are not among the objects."""
    known = {one["metadata"]["name"] for one in objects if one["kind"] == "Node"}
    whole = [*objects, *(node_object(name) for name in nodes if name not in known)]
    facts = read_drain_state(list_of(*whole), "state.json").facts
    return build_case(facts, nodes, DrainSettings(**settings), NOW, selects)


def plan_of(*objects: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The document that ``lastcall drain --plan -o json`` prints."""
    return plan_document(build_plan(case_of(*objects, **more)))


def blocked_of(*objects: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    """What is blocked."""
    return plan_of(*objects, **more)["blocked"]


def notes_of(*objects: dict[str, Any], **more: Any) -> list[str]:
    """The notes, with what to do about them."""
    return [f"{note.text} ({note.mend})" for note in build_plan(case_of(*objects, **more)).notes]


def budget_object(
    name: str = "b",
    *,
    namespace: str = "n",
    allowed: int = 0,
    healthy: int = 1,
    desired: int = 1,
    expected: int = 1,
    generation: int = 1,
    observed: int = 1,
    selector: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
    **status: Any,
) -> dict[str, Any]:
    """A PodDisruptionBudget for ``app: web``; without numbers one of a single pod that may not go."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace, "generation": generation},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}} if selector is None else selector,
            **(spec or {"minAvailable": 1}),
        },
        "status": {
            "observedGeneration": observed,
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            **status,
        },
    }


def workload_object(
    kind: str = "Deployment",
    name: str = "web",
    *,
    namespace: str = "n",
    replicas: int = 1,
    owner: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A Deployment, ReplicaSet or StatefulSet."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    if owner:
        metadata["ownerReferences"] = [owner]
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": {"replicas": replicas, **spec}}
