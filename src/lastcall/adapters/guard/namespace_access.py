"""What a provider may reach: ``ports.guard.NamespaceAccess`` by the API server and the pods' own addresses.

The address that is dialled is the one that was checked: no name is resolved, nothing is followed, and no proxy is used.
"""

import asyncio
import base64
import binascii
import os
import ssl
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

REFUSED = "it closes the TLS connection without an answer: it may ask for another client certificate"

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
        name = (tls_name or str(address)) if context else None
        return await open_stream(str(address), port, f"pod {pod.key}: port {port}", context=context, name=name)

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


async def open_stream(
    address: str, port: int, title: str, *, context: ssl.SSLContext | None = None, name: str | None = None
) -> MemberStream:
    """A connection to an address, with TLS if there is a context. Errors begin with ``title``.

    Unavailable if nobody answers. LastcallError if the certificate is not accepted, or what is spoken is no TLS: then the
    application is there, and a person has to look at it.
    """
    try:
        async with timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(address, port, ssl=context, server_hostname=name)
    except TimeoutError:
        raise Unavailable(f"{title}: no connection in {CONNECT_SECONDS:g} s") from None
    except OSError as error:
        raise _translate(error, title) from error
    return _TcpStream(reader, writer, title, is_tls=context is not None)


class _TcpStream:
    """``ports.guard.MemberStream``.

    A server that does not accept a client's certificate closes the connection when the client has begun to speak. So who
    closes one with TLS without a word refuses it, and is not away.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, title: str, *, is_tls: bool) -> None:
        self._reader = reader
        self._writer = writer
        self._title = title
        self._may_refuse = is_tls

    async def read(self, most: int) -> bytes:
        try:
            data = await self._reader.read(most)
        except OSError as error:
            raise self._translate(error) from error
        if not data and self._may_refuse:
            raise LastcallError(f"{self._title}: {REFUSED}")
        self._may_refuse = False
        return data

    async def write(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise self._translate(error) from error

    def close(self) -> None:
        self._writer.transport.abort()

    def _translate(self, error: OSError) -> LastcallError:
        if self._may_refuse and isinstance(error, (ConnectionError, ssl.SSLError)):
            return LastcallError(f"{self._title}: {REFUSED}")
        return _translate(error, self._title)


def _translate(error: OSError, title: str) -> LastcallError:
    """A lost connection is Unavailable. A fault of TLS is the other side's word, and no sign of its absence."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return LastcallError(f"{title}: its certificate is not accepted: {error.verify_message}")
    if isinstance(error, ssl.SSLError) and not isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        reason = (error.reason or "").replace("_", " ").lower()
        return LastcallError(f"{title}: TLS fails: {reason or error}")
    return Unavailable(f"{title}: {_error_text(error)}")


def _error_text(error: OSError) -> str:
    """The operating system's message: asyncio's own says "Connect call failed", whatever the reason is."""
    if error.errno and (error.strerror or "").startswith("Connect call failed"):
        return os.strerror(error.errno)
    return error.strerror or str(error) or type(error).__name__
