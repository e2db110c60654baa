"""The fences of a node as its FencePolicy describes them: ``ports_fences.Fences``.

Whatever is secret is read from Secrets when the fences are made, handed to them, and kept nowhere else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lastcall.adapters.fencing import ec2, redfish
from lastcall.adapters.fencing.fence_agent import FenceAgents
from lastcall.adapters.fencing.manual import ManualFence
from lastcall.adapters.fencing.redfish import RedfishSettings
from lastcall.adapters.fencing.secrets import Secrets
from lastcall.adapters.kube.client import Client
from lastcall.errors import InvalidInput
from lastcall.model import fencer_values
from lastcall.model.fence_node import FenceNode
from lastcall.model.fence_policy import FencePolicy
from lastcall.model.fencer import Agent, Credentials, Ec2, Fencer, Redfish, SecretKey
from lastcall.ports import Clock
from lastcall.ports_fences import Fence


class KubeFences:
    """``namespace`` is lastcall's own: Secrets are read there alone. ``environ``: where cloud SDKs find credentials."""

    def __init__(
        self, client: Client, namespace: str, *, clock: Clock, environ: Mapping[str, str], agents: FenceAgents
    ) -> None:
        self._secrets = Secrets(client, namespace)
        self._clock = clock
        self._environ = environ
        self._agents = agents

    async def of(self, node: FenceNode, policy: FencePolicy) -> Sequence[Fence]:
        """In the policy's order. InvalidInput names the field that is wrong; Unavailable: a Secret cannot be read now."""
        return [await self._fence(fencer, node, f"FencePolicy {policy.name}") for fencer in policy.spec.fencers]

    async def _fence(self, fencer: Fencer, node: FenceNode, source: str) -> Fence:
        at = f"spec.fencers[{fencer.name}]"
        place = _Place(node, source, f"{at}.{fencer.kind}")
        if fencer.agent:
            return await self._agent(fencer, fencer.agent, place)
        if fencer.redfish:
            settings = await self._redfish(fencer.redfish, place)
            return redfish.fence(
                fencer.name, settings, source=place.within, clock=self._clock, patience=_patience(fencer)
            )
        if fencer.ec2:
            found = await self._ec2(fencer.ec2, place)
            return ec2.fence(fencer.name, found, clock=self._clock, environ=self._environ, patience=_patience(fencer))
        if fencer.manual:
            return ManualFence(fencer.name, node)
        raise InvalidInput(source, [f"{at}: must be one of agent, redfish, ec2 and manual"])

    async def _agent(self, fencer: Fencer, agent: Agent, place: "_Place") -> Fence:
        node, source, field = place.node, place.source, place.field
        parameters = fencer_values.parameters(agent, node, source=source, field=field)
        secrets = {
            name: await self._secret(key, place, f"secretParameters[{name}]")
            for name, key in agent.secret_parameters.items()
        }
        return await self._agents(fencer.name, agent.program, parameters, secrets, patience=_patience(fencer))

    async def _redfish(self, wanted: Redfish, place: "_Place") -> RedfishSettings:
        node, source, field = place.node, place.source, place.field
        username, password = await self._credentials(wanted.credentials, place)
        return RedfishSettings(
            address=fencer_values.setting(wanted.address, node, source=source, field=f"{field}.address"),
            system_id=fencer_values.setting(wanted.system_id, node, source=source, field=f"{field}.systemID"),
            username=username,
            password=password,
            authority=await self._secret(wanted.ca_secret, place, "caSecret") if wanted.ca_secret else "",
            insecure=wanted.insecure_skip_tls_verify,
        )

    async def _ec2(self, wanted: Ec2, place: "_Place") -> ec2.Ec2Settings:
        credentials = await self._credentials(wanted.credentials, place) if wanted.credentials else None
        return ec2.settings(
            place.node.provider_id,
            region=wanted.region,
            endpoint=wanted.endpoint,
            credentials=credentials,
            source=place.within,
        )

    async def _credentials(self, wanted: Credentials, place: "_Place") -> tuple[str, str]:
        """User and password."""
        name = wanted.secret_of(place.node.name)
        user, password = wanted.username_key, wanted.password_key
        return (
            await self._secrets.value(name, user, source=place.source, field=f"{place.field}.credentials.usernameKey"),
            await self._secrets.value(
                name, password, source=place.source, field=f"{place.field}.credentials.passwordKey"
            ),
        )

    async def _secret(self, wanted: SecretKey, place: "_Place", field: str) -> str:
        name, key = wanted.of(place.node.name)
        return await self._secrets.value(name, key, source=place.source, field=f"{place.field}.{field}")


@dataclass(frozen=True)
class _Place:
    """Whose settings are looked at: of which node, and where they stand in which policy."""

    node: FenceNode
    source: str
    field: str

    @property
    def within(self) -> str:
        """The source of what is wrong in a field below."""
        return f"{self.source}: {self.field}"


def _patience(fencer: Fencer) -> float:
    return float(fencer.timeout_seconds)
