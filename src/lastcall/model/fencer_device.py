"""The device that a fencer switches for one node (pure): two nodes with the same device are switched off together."""

from urllib.parse import urlsplit

from lastcall.errors import InvalidInput
from lastcall.model import fencer_values
from lastcall.model.fence_node import FenceNode
from lastcall.model.fence_policy_rules import SECRETS
from lastcall.model.fencer import FenceAgentSpec, Fencer, RedfishSpec, Setting

DeviceKey = tuple[str, ...]
"""Equal for the same device; for comparison only."""

_CREDENTIALS = ("login", "user", "username", *SECRETS)
"""Suffixes of parameters that identify the caller and not the device."""
_PORTS = {"https": 443, "http": 80}


def device_key(fencer: Fencer, node: FenceNode) -> DeviceKey | None:
    """The device of ``node``; None if it has none, or if the device is unknown (``ec2`` and ``manual``).

    An EC2 instance is identified by the Node's providerID instead.
    """
    try:
        if fencer.agent:
            return _agent_key(fencer.agent, node)
        if fencer.redfish:
            return _redfish_key(fencer.redfish, node)
    except InvalidInput:
        return None
    return None


def differs_by_node(fencer: Fencer) -> bool:
    """Whether the device depends on the Node, by its own fields or by a table of Nodes.

    Otherwise the device is the same for every node, and the fencer applies only to the nodes of its policy.
    """
    if fencer.agent:
        return bool(fencer.agent.parameters_by_node or fencer.agent.parameters_from)
    if fencer.redfish:
        return any(map(_setting_differs, (fencer.redfish.address, fencer.redfish.system_id)))
    return False


def _setting_differs(setting: Setting) -> bool:
    return setting.value is None


def _agent_key(agent: FenceAgentSpec, node: FenceNode) -> DeviceKey:
    """All parameters except credentials; for a secret one its place in the Secret stands for its value."""
    known = dict(fencer_values.agent_parameters(agent, node, source="", field=""))
    known |= {name: "/".join(key.key_for(node.name)) for name, key in agent.secret_parameters.items()}
    said = (f"{name}={value.strip().casefold()}" for name, value in known.items() if not name.endswith(_CREDENTIALS))
    return ("agent", agent.program, *sorted(said))


def _redfish_key(redfish: RedfishSpec, node: FenceNode) -> DeviceKey:
    address = fencer_values.resolve_setting(redfish.address, node, source="", field="")
    system = fencer_values.resolve_setting(redfish.system_id, node, source="", field="")
    return ("redfish", _host_and_port(address), system.strip("/").casefold())


def _host_and_port(address: str) -> str:
    """Host and port of an address."""
    try:
        found = urlsplit(address.casefold())
        return f"{found.hostname}:{found.port or _PORTS.get(found.scheme, 0)}"
    except ValueError:  # an invalid port
        return address.casefold()
