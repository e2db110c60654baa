"""Which device a fencer switches for one node (pure): two nodes with the same device are switched off together."""

from urllib.parse import urlsplit

from lastcall.errors import InvalidInput
from lastcall.model import fencer_values
from lastcall.model.fence_node import FenceNode
from lastcall.model.fence_policy_rules import SECRETS
from lastcall.model.fencer import Agent, Fencer, Redfish, Setting

DeviceKey = tuple[str, ...]
"""Equal for the same device. It is for comparison alone."""

_CREDENTIALS = ("login", "user", "username", *SECRETS)
"""How the names of parameters end that say who asks, and nothing of what is switched."""
_PORTS = {"https": 443, "http": 80}


def device(fencer: Fencer, node: FenceNode) -> DeviceKey | None:
    """The device of ``node``; None if it has none there, or if nothing is known of it (``ec2`` and ``manual``).

    An EC2 instance is known by the Node's providerID, whatever the fencer says.
    """
    try:
        if fencer.agent:
            return _of_agent(fencer.agent, node)
        if fencer.redfish:
            return _of_redfish(fencer.redfish, node)
    except InvalidInput:
        return None
    return None


def by_node(fencer: Fencer) -> bool:
    """Whether the fencer takes which device it is from the Node, or from a table of Nodes.

    If not, it is the same device for every node, and the fencer is meant for the nodes of its policy alone.
    """
    if fencer.agent:
        return bool(fencer.agent.parameters_by_node or fencer.agent.parameters_from)
    if fencer.redfish:
        return any(map(_differs, (fencer.redfish.address, fencer.redfish.system_id)))
    return False


def _differs(setting: Setting) -> bool:
    return setting.value is None


def _of_agent(agent: Agent, node: FenceNode) -> DeviceKey:
    """All parameters but credentials; of a secret one its place stands for its value."""
    known = dict(fencer_values.parameters(agent, node, source="", field=""))
    known |= {name: "/".join(key.of(node.name)) for name, key in agent.secret_parameters.items()}
    said = (f"{name}={value.strip().casefold()}" for name, value in known.items() if not name.endswith(_CREDENTIALS))
    return ("agent", agent.program, *sorted(said))


def _of_redfish(redfish: Redfish, node: FenceNode) -> DeviceKey:
    address = fencer_values.setting(redfish.address, node, source="", field="")
    system = fencer_values.setting(redfish.system_id, node, source="", field="")
    return ("redfish", _host(address), system.strip("/").casefold())


def _host(address: str) -> str:
    """Host and port of an address."""
    try:
        found = urlsplit(address.casefold())
        return f"{found.hostname}:{found.port or _PORTS.get(found.scheme, 0)}"
    except ValueError:  # a port that is none
        return address.casefold()
