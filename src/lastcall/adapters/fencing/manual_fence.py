"""A fencer that asks a person to switch the machine off and to confirm it."""

import logging
from shlex import quote

from lastcall.model.fence_node import FenceNode
from lastcall.model.power import PowerState
from lastcall.ports.fences import FenceAnswer, FenceTarget

log = logging.getLogger(__name__)


class ManualFence:
    """Never reports ON or OFF: a person's word is other evidence, the Node's ``acknowledged-dead``."""

    def __init__(self, name: str, node: FenceNode) -> None:
        self._name = name
        self._node = node

    @property
    def name(self) -> str:
        """The fencer's name in the policy."""
        return self._name

    async def read_target(self) -> FenceTarget:
        """The Node's own machine: the person is asked to switch that one off."""
        node = self._node
        return FenceTarget(
            system_uuid=node.system_uuid, serial=node.serial, provider_id=node.provider_id, name=node.name
        )

    async def read_power(self) -> FenceAnswer:
        """Always UNKNOWN, with the command that confirms the power-off."""
        return FenceAnswer(
            power=PowerState.UNKNOWN, why=f"a person has to say that it is off: {self._acknowledge_command}"
        )

    async def switch_off(self, within: float) -> None:
        """Asks for it in the log; only the person knows when it is done."""
        log.warning(
            "%s: switch the machine of node %s off (%s), make sure that it is, then run: %s",
            *(self._name, self._node.name, self._machine_identity, self._acknowledge_command),
        )

    async def switch_on(self, within: float) -> None:
        """Reports in the log that the machine may be switched on."""
        log.warning("%s: the machine of node %s may be switched on again", self._name, self._node.name)

    @property
    def _acknowledge_command(self) -> str:
        return f"lastcall failover acknowledge {quote(self._node.name)} --boot-id ID"

    @property
    def _machine_identity(self) -> str:
        """Identifiers of the machine for the log message."""
        node = self._node
        said = (("system UUID", node.system_uuid), ("serial number", node.serial), ("providerID", node.provider_id))
        return ", ".join(f"{what} {value}" for what, value in said if value) or "nothing more is known of it"
