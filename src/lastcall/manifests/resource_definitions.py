"""The CustomResourceDefinitions of lastcall's kinds, generated from the structs that decode them (pure)."""

from typing import Any

from lastcall import names
from lastcall.failover.limits.storms import Limit
from lastcall.failover.reporting import held_back
from lastcall.failover.reporting.fencer_failures import LONGEST, MOST, FailureReason
from lastcall.manifests.fence_policy_validation import RULES
from lastcall.manifests.structural_schema import Schema, SchemaExtras, schema_of
from lastcall.model.fence_policy import FencePolicy, PolicySpec
from lastcall.model.node_shutdown_object import NodeShutdown, NodeShutdownSpec, NodeShutdownStatus

Object = dict[str, Any]

VERSION = names.API_VERSION.partition("/")[2]

_CONDITION: Schema = {
    "type": "object",
    "description": "One aspect of the object's state (meta/v1 Condition).",
    "required": ["type", "status", "lastTransitionTime", "reason", "message"],
    "properties": {
        "type": {
            "type": "string",
            "maxLength": 316,
            "description": "Which aspect: Accepted, FencersWorking or FencingAllowed.",
        },
        "status": {"type": "string", "enum": ["True", "False", "Unknown"], "description": "Whether it holds."},
        "observedGeneration": {
            "type": "integer",
            "format": "int64",
            "minimum": 0,
            "description": "Of the spec that this is said of.",
        },
        "lastTransitionTime": {"type": "string", "format": "date-time", "description": "When the status changed."},
        "reason": {"type": "string", "minLength": 1, "maxLength": 1024, "description": "One word."},
        "message": {
            "type": "string",
            "maxLength": 32768,
            "description": "Every rule that is broken, the last error, or what is waited for.",
        },
    },
}

_FENCER: Schema = {
    "type": "object",
    "description": "A fencer that fails for a node that is lost.",
    "required": ["node", "name", "bootID", "reason", "lastError", "attempts"],
    "properties": {
        "node": {"type": "string", "maxLength": 253, "description": "The Node's name."},
        "name": {"type": "string", "maxLength": 63, "description": "Of spec.fencers."},
        "bootID": {"type": "string", "maxLength": 128, "description": "Which boot of the machine is to be ended."},
        "reason": {
            "type": "string",
            "enum": [one.value for one in FailureReason],
            "description": "Failed: a question or an order has failed. Unusable: it cannot be made, as without its Secret."
            " Refused: it would, or may, switch off another machine.",
        },
        "lastError": {"type": "string", "maxLength": LONGEST, "description": "What has failed last, and why."},
        "attempts": {"type": "integer", "format": "int64", "minimum": 0, "description": "How many have failed."},
        "nextTry": {
            "type": "string",
            "format": "date-time",
            "description": "When it is tried again; nothing while it is tried, or if that depends on something else.",
        },
    },
}

_HELD_BACK: Schema = {
    "type": "object",
    "description": "A limit that keeps nodes which are lost from being fenced.",
    "required": ["reason", "message", "nodes", "waiting", "blockedBy", "since"],
    "properties": {
        "reason": {"type": "string", "enum": [one.value for one in Limit], "description": "Which limit."},
        "message": {"type": "string", "maxLength": held_back.LONGEST, "description": "Its value, and what fills it."},
        "nodes": {
            "type": "array",
            "maxItems": held_back.MOST,
            "description": f"The Nodes that wait, at most {held_back.MOST} of them, by name.",
            "items": {"type": "string", "maxLength": 253},
        },
        "waiting": {"type": "integer", "format": "int64", "minimum": 1, "description": "How many Nodes wait."},
        "blockedBy": {
            "type": "array",
            "maxItems": held_back.MOST,
            "description": f"The Nodes that fill the limit, at most {held_back.MOST} of them, by name.",
            "items": {"type": "string", "maxLength": 253},
        },
        "since": {
            "type": "string",
            "format": "date-time",
            "description": "Since when, as far as the controller that leads has seen it.",
        },
        "notBefore": {
            "type": "string",
            "format": "date-time",
            "description": "Until when at least; nothing if it ends as soon as nodes are back or failed over.",
        },
    },
}

_POLICY_STATUS: Schema = {
    "type": "object",
    "description": "What the controller makes of it.",
    "properties": {
        "observedGeneration": {
            "type": "integer",
            "format": "int64",
            "description": "Of the spec that this is said of.",
        },
        "nodes": {"type": "integer", "minimum": 0, "description": "For how many nodes it holds now."},
        "conditions": {
            "type": "array",
            "description": "Accepted: whether it is heeded, and if not, why. FencersWorking: False if the fencers of a lost"
            " node fail. FencingAllowed: False if a limit keeps a lost node from being fenced. Unknown while no node is lost.",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": _CONDITION,
        },
        "fencers": {
            "type": "array",
            "maxItems": MOST,
            "description": f"Fencers that fail for nodes that are lost, at most {MOST} of them.",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["node", "name"],
            "items": _FENCER,
        },
        "heldBack": {
            "type": "array",
            "maxItems": len(Limit),
            "description": "Limits that keep nodes which are lost from being fenced.",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["reason"],
            "items": _HELD_BACK,
        },
    },
}
_AS_IT_IS = SchemaExtras(defaults=False)


def fence_policy_definition() -> Object:
    """The CustomResourceDefinition of FencePolicy."""
    return build_definition(
        names.FENCE_POLICY,
        short=["fp"],
        subresources={"status": {}},
        schema=root_schema(FencePolicy, spec=schema_of(PolicySpec, RULES), status=_POLICY_STATUS),
        columns=[
            printer_column("Mode", ".spec.mode", "What is done for a node that is lost."),
            printer_column("Priority", ".spec.priority", "The greatest holds.", kind="integer"),
            printer_column(
                "Accepted", '.status.conditions[?(@.type=="Accepted")].status', "Whether it is heeded, and if not, why."
            ),
            printer_column("Nodes", ".status.nodes", "For how many nodes it holds now.", kind="integer"),
            printer_column("Age", ".metadata.creationTimestamp", "", kind="date"),
        ],
    )


def node_shutdown_definition() -> Object:
    """The CustomResourceDefinition of NodeShutdown."""
    return build_definition(
        names.NODE_SHUTDOWN,
        short=["nsd"],
        subresources={},  # one request writes both: the pods of one boot never appear beside the id of another
        schema=root_schema(
            NodeShutdown,
            spec=schema_of(NodeShutdownSpec, SchemaExtras()),
            status=schema_of(NodeShutdownStatus, SchemaExtras()),
        ),
        columns=[
            printer_column("How", ".spec.how", "What logind said of it."),
            printer_column("State", ".status.state", "How far it has come."),
            printer_column("Pods", ".status.podsEnded", "How many have ended, of those whose end has begun."),
            printer_column("Began", ".status.startTime", "When the shutdown was seen.", kind="date"),
            printer_column("Returned", ".status.returnedTime", "When the machine had booted again.", kind="date"),
            printer_column(
                "Outcome", ".status.outcome", "Running until the machine may shut down, or stays up.", priority=1
            ),
            printer_column(
                "Deadline", ".status.deadlineTime", "When the machine shuts down at the latest.", priority=1
            ),
        ],
    )


def build_definition(
    kind: str, *, short: list[str], schema: Schema, columns: list[Object], subresources: Object, scope: str = "Cluster"
) -> Object:
    """The CustomResourceDefinition of a kind of lastcall's."""
    singular = kind.lower()
    plural = f"{singular[:-1]}ies" if singular.endswith("y") else f"{singular}s"
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        **({"subresources": subresources} if subresources else {}),
        "additionalPrinterColumns": columns,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{names.GROUP}"},
        "spec": {
            "group": names.GROUP,
            "scope": scope,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": singular,
                "shortNames": short,
                "categories": ["lastcall"],
            },
            "versions": [version],
        },
    }


def root_schema(struct: type[Any], *, spec: Schema, status: Schema) -> Schema:
    """The schema of whole objects."""
    described = " ".join((struct.__doc__ or "").split())
    return {
        "type": "object",
        "description": described,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    }


def printer_column(name: str, path: str, description: str, *, kind: str = "string", priority: int = 0) -> Object:
    """A column of kubectl get; ``priority`` 1: shown with ``-o wide`` only."""
    column: Object = {"name": name, "type": kind, "jsonPath": path}
    return column | ({"description": description} if description else {}) | ({"priority": 1} if priority else {})
