"""Calls webhooks over HTTPS, at a URL or through a Service."""

import base64
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import urljoin, urlsplit, urlunsplit

from lastcall.adapters.kube.credentials import Credential, StaticCredentials
from lastcall.adapters.kube.https_transport import HttpsTransport, ServerEndpoint, TransportLimits
from lastcall.adapters.kube.transport import ApiResponse
from lastcall.errors import InvalidInput, Unavailable
from lastcall_lab.apiserver.storage.store import StorageKey, Store

HEADERS: Mapping[str, str] = {
    "user-agent": "kube-apiserver-admission",
    "accept": "application/json, */*",
    "content-type": "application/json",
}


@dataclass(frozen=True)
class WebhookDestination:
    """``webhook_url`` is for messages; ``dial`` is host and port if they differ; ``bundle`` is the CA (PEM)."""

    url: str
    dial: tuple[str, int] | None = None
    bundle: str = ""


@dataclass(frozen=True)
class WebhookReply:
    """An HTTP response."""

    status: int
    content_type: str
    body: bytes
    retry_after: str = ""
    """The Retry-After header."""

    @property
    def retry_seconds(self) -> int | None:
        """The response's Retry-After in seconds; None without one (``client-go/rest/with_retry.go``)."""
        if self.status != HTTPStatus.TOO_MANY_REQUESTS and self.status < HTTPStatus.INTERNAL_SERVER_ERROR:
            return None
        return max(int(self.retry_after), 0) if _NUMBER.fullmatch(self.retry_after) else None


class WebhookUnreachable(Exception):
    """No response; the text is what Go's HTTP client prints after ``Post "URL": ``."""


class WebhookCaller(Protocol):
    """Sends reviews to webhooks."""

    async def call(self, destination: WebhookDestination, body: bytes) -> WebhookReply:
        """The response; WebhookUnreachable without one. Cancelled at the timeout."""
        ...


@dataclass
class _Client:
    """The connections to one destination."""

    http: HttpsTransport
    calls: int = 0
    """Calls in progress."""


class HttpsCaller:
    """Calls over the network, and keeps connections to the most recent destinations."""

    def __init__(self) -> None:
        self._clients: dict[tuple[str, tuple[str, int] | None, str], _Client] = {}
        """Ordered by last call, the latest at the end."""

    async def call(self, destination: WebhookDestination, body: bytes) -> WebhookReply:
        """One POST, following redirects like Go's HTTP client."""
        method = "POST"
        for _ in range(_REQUESTS):
            answer = await self._answer(method, destination, body)
            location = answer.headers.get("location", "")
            if answer.status not in (*_TO_GET, *_AS_BEFORE) or not location:
                assert isinstance(answer.body, bytes)
                headers = answer.headers
                return WebhookReply(
                    answer.status, headers.get("content-type", ""), answer.body, headers.get("retry-after", "")
                )
            if answer.status in _TO_GET:
                method, body = "GET", b""
            destination = _redirect_destination(destination, location)
        raise WebhookUnreachable(f"stopped after {_REQUESTS} redirects")

    async def _answer(self, method: str, destination: WebhookDestination, body: bytes) -> ApiResponse:
        base, target = _split(destination.url)
        try:
            client = self._client(base, destination)
            client.calls += 1
            try:
                return await client.http.request(method, target, HEADERS, body)
            finally:
                client.calls -= 1
        except Unavailable as error:
            raise WebhookUnreachable(
                _go_error_text(error.__cause__ or error, urlsplit(destination.url).netloc)
            ) from error
        except InvalidInput as error:
            raise WebhookUnreachable(str(error)) from error

    def close(self) -> None:
        """Closes all connections."""
        for client in self._clients.values():
            client.http.close()
        self._clients = {}

    def _client(self, base: str, destination: WebhookDestination) -> _Client:
        key = (base, destination.dial, destination.bundle)
        found = self._clients.pop(key, None) or _Client(_transport_to(base, destination))
        self._forget()
        self._clients[key] = found
        return found

    def _forget(self) -> None:
        """Evicts a connection pool: addresses and certificates change, and redirects can lead anywhere."""
        idle = [key for key, client in self._clients.items() if not client.calls]
        for key in idle[: max(len(self._clients) - _KEPT + 1, 0)]:
            self._clients.pop(key).http.close()


def _transport_to(base: str, destination: WebhookDestination) -> HttpsTransport:
    endpoint = ServerEndpoint.from_url(base, authority=destination.bundle)
    if destination.dial:
        host, port = destination.dial
        endpoint = replace(endpoint, host=host, port=port, server_name=endpoint.host)
    return HttpsTransport(endpoint, StaticCredentials(Credential()), limits=_LIMITS)


_KEPT = 32
"""Destinations whose connections are kept, in addition to those with calls in progress."""

_LIMITS = TransportLimits(connect=30.0, answer=30.0, inactivity=30.0, body=4 * 1024 * 1024)
"""Longer than any webhook timeout, which is 30 seconds at most and ends the call first."""


_HTTP, _HTTPS = 80, 443
_REQUESTS = 10
"""The maximum number of requests of one call."""
_TO_GET = (HTTPStatus.MOVED_PERMANENTLY, HTTPStatus.FOUND, HTTPStatus.SEE_OTHER)
_AS_BEFORE = (HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.PERMANENT_REDIRECT)
_NUMBER = re.compile(r"[+-]?0*[0-9]{1,18}")
"""What fits into 64 bits, except the largest numbers."""


def _redirect_destination(destination: WebhookDestination, location: str) -> WebhookDestination:
    """The target of a redirect. WebhookUnreachable if it is no URL.

    A Service's address is valid only for its own name and port.
    """
    try:
        url = urljoin(destination.url, location)
        same = _host_and_port(url) == _host_and_port(destination.url)
    except ValueError as error:
        raise WebhookUnreachable(f'failed to parse Location header "{location}": {error}') from None
    return replace(destination, url=url, dial=destination.dial if same else None)


def _host_and_port(url: str) -> tuple[str | None, int]:
    """ValueError if the URL has an invalid host or port."""
    parts = urlsplit(url)
    return parts.hostname, parts.port or (_HTTP if parts.scheme == "http" else _HTTPS)


def _split(url: str) -> tuple[str, str]:
    """Scheme and authority, and the request target."""
    parts = urlsplit(url)
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}", f"{parts.path or '/'}{query}"


def _go_error_text(error: BaseException, endpoint: str) -> str:
    """The error as Go prints it; ``endpoint`` is host and port."""
    if isinstance(error, ssl.SSLCertVerificationError):
        known = {18: _UNKNOWN, 19: _UNKNOWN, 20: _UNKNOWN, 10: "x509: certificate has expired or is not yet valid"}
        return f"tls: failed to verify certificate: {known.get(error.verify_code, 'x509: ' + error.verify_message)}"
    if isinstance(error, ssl.SSLError):
        return f"tls: {error.reason}"
    if isinstance(error, OSError) and error.errno and error.errno > 0:
        return f"dial tcp {endpoint}: connect: {os.strerror(error.errno).lower()}"
    return "EOF" if "closed the connection" in str(error) else str(error)


_UNKNOWN = "x509: certificate signed by unknown authority"


# -- services ----------------------------------------------------------------------------------------------------------


def webhook_url(client: Mapping[str, Any], *, seconds: int) -> str:
    """The URL of a clientConfig, with the webhook's timeout."""
    service = client.get("service")
    if not service:
        return _with_timeout(client.get("url") or "", seconds)
    authority = f"{service['name']}.{service['namespace']}.svc:{service.get('port') or 443}"
    return _with_timeout(f"https://{authority}/{(service.get('path') or '').lstrip('/')}", seconds)


def find_destination(client: Mapping[str, Any], store: Store, *, seconds: int) -> WebhookDestination:
    """The destination of a clientConfig. WebhookUnreachable if its Service has no endpoint."""
    bundle = base64.b64decode(client.get("caBundle") or "").decode(errors="replace")
    service = client.get("service")
    dial = (
        _resolve_endpoint(store, service["namespace"], service["name"], service.get("port") or 443) if service else None
    )
    return WebhookDestination(webhook_url(client, seconds=seconds), dial, bundle)


def _with_timeout(url: str, seconds: int) -> str:
    parts = urlsplit(url)
    query = f"{parts.query}&timeout={seconds}s" if parts.query else f"timeout={seconds}s"
    return urlunsplit((parts.scheme, parts.netloc, parts.path or "/", query, ""))


def _resolve_endpoint(store: Store, namespace: str, name: str, number: int) -> tuple[str, int]:
    """A ready endpoint; the same one while it stays ready."""
    service = store.get(StorageKey("services", namespace, name))
    if service is None:
        raise WebhookUnreachable(f'service "{name}" not found')
    port = next((one for one in service.to_object()["spec"].get("ports") or () if one["port"] == number), None)
    if port is None:
        raise WebhookUnreachable(f'no service port {number} found for service "{name}"')
    for stored in store.objects("endpointslices.discovery.k8s.io", namespace):
        if stored.labels.get("kubernetes.io/service-name") == name:
            found = _first_ready_endpoint(stored.to_object(), port.get("name") or "")
            if found:
                return found
    raise WebhookUnreachable(f'no endpoints available for service "{name}"')


def _first_ready_endpoint(endpoints: Mapping[str, Any], name: str) -> tuple[str, int] | None:
    ports = [one["port"] for one in endpoints.get("ports") or () if (one.get("name") or "") == name and one.get("port")]
    for one in endpoints.get("endpoints") or ():
        if ports and (one.get("conditions") or {}).get("ready") is not False:
            return one["addresses"][0], ports[0]
    return None
