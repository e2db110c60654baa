"""The values of a fencer's settings for one node (pure)."""

from collections.abc import Mapping

from lastcall.errors import InvalidInput
from lastcall.model.fence_node import FenceNode
from lastcall.model.fencer import FenceAgentSpec, Fencer, FromNode, Setting


def answer_basis(fencer: Fencer, node: FenceNode) -> object:
    """What determines the fencer's machine: while it compares equal, the fencer's answers concern the same machine."""
    own: list[FromNode | Setting] = list(fencer.agent.parameters_from.values()) if fencer.agent else []
    if fencer.redfish:
        own += [fencer.redfish.address, fencer.redfish.system_id]
    read = [(node.annotations.get(one.annotation or ""), node.labels.get(one.label or "")) for one in own]
    return fencer, node.name, node.system_uuid, node.shared_with, node.serial, node.provider_id, read


def resolve_setting(wanted: Setting, node: FenceNode, *, source: str, field: str) -> str:
    """The setting's text for the node. InvalidInput names the field if there is none."""
    if wanted.value is not None:
        return _require_text(wanted.value, source, f"{field}.value", "is empty")
    if wanted.by_node:
        missing = f"has nothing for node {node.name}"
        return _require_text(wanted.by_node.get(node.name, ""), source, f"{field}.byNode", missing)
    return read_from_node(FromNode(annotation=wanted.annotation, label=wanted.label), node, source=source, field=field)


def read_from_node(wanted: FromNode, node: FenceNode, *, source: str, field: str) -> str:
    """The value of an annotation or label of the Node. InvalidInput names the field if there is none."""
    kind, key, known = "annotation", wanted.annotation, node.annotations
    if key is None:
        kind, key, known = "label", wanted.label, node.labels
    if key is None:
        raise InvalidInput(source, [f"{field}: gives no value"])
    missing = f"node {node.name} has no {kind} {key}, or an empty one"
    return _require_text(known.get(key, ""), source, f"{field}.{kind}", missing)


def agent_parameters(agent: FenceAgentSpec, node: FenceNode, *, source: str, field: str) -> Mapping[str, str]:
    """The fence agent's parameters that are not secret."""
    found = dict(agent.parameters)
    for name, values in agent.parameters_by_node.items():
        missing = f"has nothing for node {node.name}"
        found[name] = _require_text(values.get(node.name, ""), source, f"{field}.parametersByNode[{name}]", missing)
    for name, wanted in agent.parameters_from.items():
        found[name] = read_from_node(wanted, node, source=source, field=f"{field}.parametersFrom[{name}]")
    return found


def _require_text(text: str, source: str, field: str, missing: str) -> str:
    if not text.strip():
        raise InvalidInput(source, [f"{field}: {missing}"])
    if "\n" in text or "\r" in text:
        raise InvalidInput(source, [f"{field}: must be one line"])
    return text.strip()
