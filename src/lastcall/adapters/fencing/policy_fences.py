"""``ports.fences.Fences`` from FencePolicies: makes the fences of a node as its policy describes them.

Secrets are read when the fences are made, passed to them, and kept nowhere else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lastcall.adapters.fencing import ec2, redfish
from lastcall.adapters.fencing.fence_agent import FenceAgents
from lastcall.adapters.fencing.manual_fence import ManualFence
from lastcall.adapters.fencing.redfish import RedfishSettings
from lastcall.adapters.fencing.secret_reader import SecretReader
from lastcall.adapters.kube.client import Client
from lastcall.errors import InvalidInput
from lastcall.model import fencer_values
from lastcall.model.fence_node import FenceNode
from lastcall.model.fence_policy import FencePolicy
from lastcall.model.fencer import Ec2Spec, FenceAgentSpec, Fencer, FencerCredentials, RedfishSpec, SecretKey
from lastcall.ports.fences import Fence
from lastcall.ports.node import Clock


class PolicyFences:
    """Reads Secrets only in ``namespace``, lastcall's own. ``environ``: where cloud SDKs find credentials."""

    def __init__(
        self, client: Client, namespace: str, *, clock: Clock, environ: Mapping[str, str], agents: FenceAgents
    ) -> None:
        self._secrets = SecretReader(client, namespace)
        self._clock = clock
        self._environ = environ
        self._agents = agents

    async def make_fences(self, node: FenceNode, policy: FencePolicy) -> Sequence[Fence]:
        """Makes the fences, in the policy's order.

        Raises InvalidInput, which names the wrong field, and Unavailable if a Secret cannot be read now.
        """
        return [await self._make_fence(fencer, node, f"FencePolicy {policy.name}") for fencer in policy.spec.fencers]

    async def _make_fence(self, fencer: Fencer, node: FenceNode, source: str) -> Fence:
        at = f"spec.fencers[{fencer.name}]"
        place = _FencerContext(node, source, f"{at}.{fencer.kind}")
        if fencer.agent:
            return await self._make_agent_fence(fencer, fencer.agent, place)
        if fencer.redfish:
            settings = await self._redfish_settings(fencer.redfish, place)
            return redfish.redfish_fence(
                fencer.name, settings, source=place.field_source, clock=self._clock, patience=_question_seconds(fencer)
            )
        if fencer.ec2:
            found = await self._ec2_settings(fencer.ec2, place)
            return ec2.ec2_fence(
                fencer.name, found, clock=self._clock, environ=self._environ, patience=_question_seconds(fencer)
            )
        if fencer.manual:
            return ManualFence(fencer.name, node)
        raise InvalidInput(source, [f"{at}: must be one of agent, redfish, ec2 and manual"])

    async def _make_agent_fence(self, fencer: Fencer, agent: FenceAgentSpec, place: "_FencerContext") -> Fence:
        node, source, field = place.node, place.source, place.field
        parameters = fencer_values.agent_parameters(agent, node, source=source, field=field)
        secrets = {
            name: await self._read_secret(key, place, f"secretParameters[{name}]")
            for name, key in agent.secret_parameters.items()
        }
        return await self._agents(fencer.name, agent.program, parameters, secrets, patience=_question_seconds(fencer))

    async def _redfish_settings(self, wanted: RedfishSpec, place: "_FencerContext") -> RedfishSettings:
        node, source, field = place.node, place.source, place.field
        username, password = await self._read_credentials(wanted.credentials, place)
        return RedfishSettings(
            address=fencer_values.resolve_setting(wanted.address, node, source=source, field=f"{field}.address"),
            system_id=fencer_values.resolve_setting(wanted.system_id, node, source=source, field=f"{field}.systemID"),
            username=username,
            password=password,
            authority=await self._read_secret(wanted.ca_secret, place, "caSecret") if wanted.ca_secret else "",
            insecure=wanted.insecure_skip_tls_verify,
        )

    async def _ec2_settings(self, wanted: Ec2Spec, place: "_FencerContext") -> ec2.Ec2Settings:
        credentials = await self._read_credentials(wanted.credentials, place) if wanted.credentials else None
        return ec2.instance_settings(
            place.node.provider_id,
            region=wanted.region,
            endpoint=wanted.endpoint,
            credentials=credentials,
            source=place.field_source,
        )

    async def _read_credentials(self, wanted: FencerCredentials, place: "_FencerContext") -> tuple[str, str]:
        """Reads the user and the password."""
        name = wanted.secret_for(place.node.name)
        user, password = wanted.username_key, wanted.password_key
        return (
            await self._secrets.read_value(
                name, user, source=place.source, field=f"{place.field}.credentials.usernameKey"
            ),
            await self._secrets.read_value(
                name, password, source=place.source, field=f"{place.field}.credentials.passwordKey"
            ),
        )

    async def _read_secret(self, wanted: SecretKey, place: "_FencerContext", field: str) -> str:
        name, key = wanted.key_for(place.node.name)
        return await self._secrets.read_value(name, key, source=place.source, field=f"{place.field}.{field}")


@dataclass(frozen=True)
class _FencerContext:
    """The node and the place in the policy that the settings belong to, for error messages."""

    node: FenceNode
    source: str
    field: str

    @property
    def field_source(self) -> str:
        """The source of an error in a field below."""
        return f"{self.source}: {self.field}"


def _question_seconds(fencer: Fencer) -> float:
    return float(fencer.timeout_seconds)
