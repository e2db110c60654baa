"""What a provider may reach: ``ports.guard.NamespaceAccess`` by the API server and the pods' own addresses.

The address that is dialled is the one that was checked: no name is resolved, nothing is followed, and no proxy is used.
"""

import asyncio
import base64
import binascii
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

import msgspec

from lastcall.adapters.guard.address_rules import Address, forbidden_kind, parse_address
from lastcall.adapters.kube import tls
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import PODS, SECRETS
from lastcall.aio import timeout
from lastcall.errors import ApiNotPermitted, LastcallError, NotFound, RefusedForSafety, Unavailable
from lastcall.model.base import Facts
from lastcall.model.pods import Pod
from lastcall.model.selectors import LabelSelector
from lastcall.ports.guard import ExecResult, MemberStream

CONNECT_SECONDS = 3.0
"""Until a connection stands, TLS included."""

PodExecutor = Callable[[Pod, str, tuple[str, ...]], Awaitable[ExecResult]]
"""Runs a command in a container of a pod; ``pod_exec.PodExec.execute`` is one."""


class _SecretData(Facts, frozen=True):
    data: Mapping[str, str] = msgspec.field(default_factory=dict)


_PODS, _SECRETS = PODS.with_shape(Pod), SECRETS.with_shape(_SecretData)


@dataclass(frozen=True, kw_only=True)
class AddressPolicy:
    """``control`` gives the addresses of nodes and API server; ``allowed`` is the administrator's list of exceptions."""

    control: Callable[[], Awaitable[frozenset[Address]]]
    allowed: Sequence[IPv4Network | IPv6Network] = ()


class KubeNamespaceAccess:
    """Needs ``get`` and ``list`` of pods there, ``get`` of the Secrets that are named, and what ``execute`` needs."""

    def __init__(self, client: Client, namespace: str, *, addresses: AddressPolicy, execute: PodExecutor) -> None:
        self._client = client
        self._namespace = namespace
        self._addresses = addresses
        self._execute = execute

    async def connect(
        self, pod: Pod, port: int, *, tls_name: str = "", ca: str = "", certificate: str = "", key: str = ""
    ) -> MemberStream:
        """``NamespaceAccess.connect``; the pod is read again, because an address may have changed its owner."""
        address = await self._permitted_address(pod)
        context = tls.client_context(ca, certificate=certificate, key=key) if tls_name or ca else None
        try:
            async with timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(
                    str(address), port, ssl=context, server_hostname=(tls_name or str(address)) if context else None
                )
        except TimeoutError:
            raise Unavailable(f"pod {pod.key}: no connection to port {port} in {CONNECT_SECONDS:g} s") from None
        except OSError as error:  # ssl.SSLError is one
            raise Unavailable(f"pod {pod.key}: port {port}: {_error_text(error)}") from error
        return _TcpStream(reader, writer, f"pod {pod.key}: port {port}")

    async def list_pods(self, selector: LabelSelector) -> tuple[Pod, ...]:
        """``NamespaceAccess.list_pods``. Errors are those of the API client."""
        labels = ",".join(f"{key}={value}" for key, value in selector.match_labels.items())
        found = await self._client.list(_PODS, namespace=self._namespace, labels=labels)
        chosen = [
            one
            for one in found.items
            if one.status.pod_ip and not one.is_finished and selector.selects(one.metadata.labels or {})
        ]
        return tuple(sorted(chosen, key=lambda one: one.metadata.name))

    async def read_secret(self, name: str, key: str) -> str:
        """``NamespaceAccess.read_secret``, without trailing line ends, which editors add."""
        place = f"Secret {self._namespace}/{name}"
        try:
            secret = await self._client.get(_SECRETS, name, namespace=self._namespace)
        except NotFound:
            raise LastcallError(f"there is no {place}") from None
        except ApiNotPermitted as error:
            raise LastcallError(f"{place} may not be read: {error}") from error
        if key not in secret.data:
            raise LastcallError(f'{place} has no key "{key}"')
        try:
            return base64.b64decode(secret.data[key], validate=True).decode().rstrip("\r\n")
        except (binascii.Error, UnicodeDecodeError):
            raise LastcallError(f'"{key}" of {place} is no text') from None

    async def execute(self, pod: Pod, container: str, command: tuple[str, ...]) -> ExecResult:
        """``NamespaceAccess.execute``."""
        self._require_own(pod)
        return await self._execute(pod, container, command)

    async def _permitted_address(self, pod: Pod) -> Address:
        self._require_own(pod)
        try:
            current = await self._client.get(_PODS, pod.metadata.name, namespace=self._namespace)
        except NotFound:
            raise Unavailable(f"pod {pod.key} is gone") from None
        if current.metadata.uid != pod.metadata.uid or current.is_finished:
            raise Unavailable(f"pod {pod.key} is gone")
        address = parse_address(current.status.pod_ip)
        if address is None:
            raise Unavailable(f"pod {pod.key} has no address")
        await self._require_permitted(current, address)
        return address

    async def _require_permitted(self, pod: Pod, address: Address) -> None:
        if any(address in network for network in self._addresses.allowed):
            return
        kind = forbidden_kind(address, await self._addresses.control())
        if pod.spec.host_network:
            kind = "an address of its node, since it has hostNetwork"
        if kind:
            raise RefusedForSafety(
                f"pod {pod.key}: no connection to {address}: it is {kind}; an administrator may allow the address"
            )

    def _require_own(self, pod: Pod) -> None:
        if pod.metadata.namespace != self._namespace:
            raise RefusedForSafety(
                f"pod {pod.key} is not of the GuardPolicy's namespace {self._namespace}, and cannot be reached"
            )


class _TcpStream:
    """``ports.guard.MemberStream``."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, title: str) -> None:
        self._reader = reader
        self._writer = writer
        self._title = title

    async def read(self, most: int) -> bytes:
        try:
            return await self._reader.read(most)
        except OSError as error:
            raise Unavailable(f"{self._title}: {_error_text(error)}") from error

    async def write(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise Unavailable(f"{self._title}: {_error_text(error)}") from error

    def close(self) -> None:
        self._writer.transport.abort()


def _error_text(error: OSError) -> str:
    """The operating system's message: asyncio's own says "Connect call failed", whatever the reason is."""
    if error.errno and (error.strerror or "").startswith("Connect call failed"):
        return os.strerror(error.errno)
    return error.strerror or str(error) or type(error).__name__
