"""Custom resources for the conformance suite: one definition with all that a schema can say, and its objects."""

from support.conformance.api_client import unique
from support.conformance.objects import meta

from lastcall.adapters.kube.resources import DEFINITIONS, dict_resource

GROUP = "conformance.example.com"

SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "nick": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
        "when": {"type": "string", "format": "date-time"},
        "port": {"x-kubernetes-int-or-string": True},
        "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is fixed"}]},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "n": {"type": "integer", "default": 1}},
            },
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "anything": {"x-kubernetes-preserve-unknown-fields": True},
        "closed": {"type": "object"},
        "maybe": {"type": "string", "nullable": True},
        "low": {"type": "integer"},
        "high": {"type": "integer"},
    },
    "x-kubernetes-validations": [
        {"rule": "!has(self.low) || !has(self.high) || self.low <= self.high", "message": "low must not exceed high"}
    ],
}
STATUS = {"type": "object", "properties": {"phase": {"type": "string"}, "replicas": {"type": "integer"}}}


def definition(plural, kind, *, version="v1", **more):
    """A definition with the schema above, a status and printer columns."""
    schema = {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "priority": 1},
    ]
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale},
        "additionalPrinterColumns": columns,
        "selectableFields": [{"jsonPath": ".spec.color"}],
    }
    names = {"plural": plural, "singular": plural[:-1], "kind": kind, "shortNames": [plural[:-1] + "x"]}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [served], **more}
    return {**meta(f"{plural}.{GROUP}"), "spec": spec}


def letters():
    """A plural that no other case has."""
    return unique("w").replace("-", "") + "s"


async def served(api, body):
    """Makes a definition and waits until its resource is served."""
    await api.create(DEFINITIONS, body)
    name, spec = body["metadata"]["name"], body["spec"]

    async def established():
        found = (await api.get(DEFINITIONS, name))["status"].get("conditions") or []
        if {one["type"]: one["status"] for one in found}.get("Established") != "True":
            return False
        path = f"/apis/{GROUP}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
        return (await api.ask("GET", path).reply()).status == 200

    await api.until(established)
    return dict_resource(GROUP, spec["versions"][0]["name"], spec["names"]["plural"])


def widget(widgets, name="w", status=None, **spec):
    """An object of it."""
    made, kind = widgets
    head = {"apiVersion": f"{made.group}/{made.version}", "kind": kind}
    whole = {**head, **meta(name), "spec": {"size": 3, **spec}}
    return {**whole, **({"status": status} if status else {})}
