"""A fencer that asks a person: to switch the machine off, and to say so."""

import logging
from shlex import quote

from lastcall.model.fence_node import FenceNode
from lastcall.model.power import PowerState
from lastcall.ports.fences import FenceAnswer, FenceTarget

log = logging.getLogger(__name__)


class ManualFence:
    """It never says ON or OFF: what a person says is evidence of its own kind, the Node's ``acknowledged-dead``."""

    def __init__(self, name: str, node: FenceNode) -> None:
        self._name = name
        self._node = node

    @property
    def name(self) -> str:
        """In the policy."""
        return self._name

    async def read_target(self) -> FenceTarget:
        """The Node's own machine: that is the one which the person is asked to switch off."""
        node = self._node
        return FenceTarget(
            system_uuid=node.system_uuid, serial=node.serial, provider_id=node.provider_id, name=node.name
        )

    async def read_power(self) -> FenceAnswer:
        """UNKNOWN, for ever."""
        return FenceAnswer(
            power=PowerState.UNKNOWN, why=f"a person has to say that it is off: {self._acknowledge_command}"
        )

    async def switch_off(self, within: float) -> None:
        """The log asks for it; when it is done nobody knows but the person."""
        log.warning(
            "%s: switch the machine of node %s off (%s), make sure that it is, then run: %s",
            *(self._name, self._node.name, self._machine_identity, self._acknowledge_command),
        )

    async def switch_on(self, within: float) -> None:
        """The log says that it may be."""
        log.warning("%s: the machine of node %s may be switched on again", self._name, self._node.name)

    @property
    def _acknowledge_command(self) -> str:
        return f"lastcall failover acknowledge {quote(self._node.name)} --boot-id ID"

    @property
    def _machine_identity(self) -> str:
        """What tells the machine from others."""
        node = self._node
        said = (("system UUID", node.system_uuid), ("serial number", node.serial), ("providerID", node.provider_id))
        return ", ".join(f"{what} {value}" for what, value in said if value) or "nothing more is known of it"
