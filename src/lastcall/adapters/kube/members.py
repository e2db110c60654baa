"""Reads the cluster's nodes, and the keys that agents share, from the API server."""

from collections.abc import Sequence

import msgspec

from lastcall import names
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import NODES, SECRETS
from lastcall.errors import LastcallError, NotFound
from lastcall.ports.watchdog import Membership


class _Address(msgspec.Struct, gc=False):
    type: str = ""
    address: str = ""


class _NodeStatus(msgspec.Struct, gc=False):
    addresses: Sequence[_Address] = ()


class _NodeMeta(msgspec.Struct, gc=False):
    name: str


class _MemberNode(msgspec.Struct, gc=False):
    metadata: _NodeMeta
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)

    @property
    def internal_address(self) -> str:
        """The node's first internal address; empty if it has none."""
        return next((one.address for one in self.status.addresses if one.type == "InternalIP"), "")


class _KeySecret(msgspec.Struct, gc=False):
    data: dict[str, bytes] | None = None


_NODES, _SECRETS = NODES.with_shape(_MemberNode), SECRETS.with_shape(_KeySecret)


class KubeMembers:
    """``ports.watchdog.Members``. Needs the verb list on Nodes, and get on the Secret of the keys in lastcall-system."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read_membership(self) -> Membership:
        """``ports.watchdog.Members.read_membership``."""
        addresses = await self.list_addresses()
        try:
            return Membership(addresses=addresses, keys=await self.read_keys())
        except NotFound as error:
            raise LastcallError(f"Secret {names.SYSTEM_NAMESPACE}/{names.PEERS_SECRET} is missing") from error

    async def list_addresses(self) -> dict[str, str]:
        """The first internal address of each node; "" if it has none."""
        return {node.metadata.name: node.internal_address for node in (await self._client.list(_NODES)).items}

    async def read_keys(self) -> tuple[bytes, ...]:
        """The keys, the signing key first; none without such keys in the Secret. NotFound without a Secret."""
        secret = await self._client.get(_SECRETS, names.PEERS_SECRET, namespace=names.SYSTEM_NAMESPACE)
        return _ordered_keys(secret.data or {})


def _ordered_keys(data: dict[str, bytes]) -> tuple[bytes, ...]:
    """``key`` signs; the others, in the order of their names, are still or already accepted."""
    ordered = sorted(data, key=lambda name: (name != names.PEERS_KEY, name))
    return tuple(data[name] for name in ordered) if names.PEERS_KEY in data else ()
