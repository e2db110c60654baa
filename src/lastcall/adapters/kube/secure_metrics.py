"""Metrics over TLS on an address that others reach: a certificate from files, and readers that the API server permits."""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lastcall.adapters.kube.credentials import read_text
from lastcall.adapters.kube.metrics_readers import PATH, Verdict
from lastcall.adapters.kube.tls import load_certificate
from lastcall.aio import cancel_and_wait, timeout
from lastcall.errors import LastcallError, Unavailable

KUBELET_CERTIFICATES = (
    ("kubelet-server-current.pem", "kubelet-server-current.pem"),
    ("kubelet.crt", "kubelet.key"),
)
"""The kubelet's serving certificate and key below its ``pki`` directory: signed by the cluster, or by itself."""

RELOAD_SECONDS = 60.0
"""Seconds between two reads of the certificate, and between two attempts to begin."""

_PATIENCE = 5.0
_MOST_BYTES = 32 * 1024
"""A request's head: tokens have up to some kilobytes."""
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 503: "Unavailable"}

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class SecureMetricsSettings:
    """Where metrics are served over TLS, and with which certificate; "" for the kubelet's in ``kubelet_pki``."""

    address: tuple[str, int]
    certificate: str = ""
    key: str = ""
    kubelet_pki: Path = Path("/var/lib/kubelet/pki")

    def find_files(self) -> tuple[Path, Path]:
        """Certificate and key. Unavailable if none is named and the kubelet has none. Blocks for a moment."""
        if self.certificate:
            return Path(self.certificate), Path(self.key)
        for certificate, key in KUBELET_CERTIFICATES:
            if (self.kubelet_pki / certificate).exists():
                return self.kubelet_pki / certificate, self.kubelet_pki / key
        names = " or ".join(certificate for certificate, _ in KUBELET_CERTIFICATES)
        raise Unavailable(
            f"there is no {names} in {self.kubelet_pki}: name files by --tls-cert-file and --tls-private-key-file"
        )


class SecureMetrics:
    """Serves ``page`` at ``/metrics`` to readers whom ``judge`` allows, as long as ``run`` runs.

    ``more`` are pages below ``/metrics`` that are made when they are asked for, and get the query of the request; the same readers may read them. ``judge``
    gets the bearer token, "" for none. What is wrong is logged once, and tried again each minute, because the
    kubelet may write its certificate after the agent has started, and replaces it later.
    """

    def __init__(
        self,
        settings: SecureMetricsSettings,
        page: Callable[[], bytes],
        judge: Callable[[str], Awaitable[Verdict]],
        *,
        more: Mapping[str, Callable[[str], Awaitable[bytes]]] | None = None,
    ) -> None:
        self._settings = settings
        self._page = page
        self._more = dict(more or {})
        self._judge = judge
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._loaded = ("", "")
        self._server: asyncio.Server | None = None
        self._told = ""
        self.port = 0
        """The port that is listened on; 0 before."""

    async def run(self) -> None:
        """Serves without end; cancel it to stop."""
        try:
            while True:
                await self._start_or_reload()
                await asyncio.sleep(RELOAD_SECONDS)
        finally:
            if self._server:
                self._server.close()

    async def _start_or_reload(self) -> None:
        host, port = self._settings.address
        try:
            certificate, key = await asyncio.to_thread(self._read_certificate)
            if (certificate, key) != self._loaded:
                load_certificate(self._context, certificate, key)
                self._loaded = certificate, key
            if self._server is None:
                self._server = await asyncio.start_server(
                    self._serve_client, host, port, ssl=self._context, limit=_MOST_BYTES
                )
                self.port = self._server.sockets[0].getsockname()[1]
                log.info("metrics at https://%s:%s%s for readers whom the API server permits", host, self.port, PATH)
            self._told = ""
        except (LastcallError, OSError) as error:
            if str(error) != self._told:
                log.warning("metrics at https://%s:%s%s: %s", host, port, PATH, error)
            self._told = str(error)

    def _read_certificate(self) -> tuple[str, str]:
        certificate, key = self._settings.find_files()
        text = read_text(certificate)
        return text, text if key == certificate else read_text(key)

    async def _serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                async with timeout(_PATIENCE):
                    request = await reader.readuntil(b"\r\n\r\n")
                writer.write(await self._answer_request(request))
                async with timeout(_PATIENCE):
                    await writer.drain()
        finally:
            writer.close()

    async def _answer_request(self, request: bytes) -> bytes:
        first, *headers = request.decode("latin-1").split("\r\n")
        words = first.split()
        if len(words) != 3 or words[0] != "GET":
            return _response(400, "only GET\n")
        path, _, query = words[1].partition("?")
        if path not in (PATH, *self._more):
            return _response(404, "".join(f"there is: {one}\n" for one in (PATH, *self._more)))
        try:
            verdict = await self._judge(bearer_token(headers))
        except LastcallError as error:
            return _response(503, f"the API server cannot be asked who may read: {error}\n")
        if verdict is Verdict.ALLOWED:
            page = await self._more[path](query) if path in self._more else self._page()
            return _response(200, page, "text/plain; version=0.0.4; charset=utf-8")
        if verdict is Verdict.UNAUTHENTICATED:
            return _response(401, "Unauthorized\n")
        return _response(403, f'the user of this token may not "get" the path {PATH}\n')


def bearer_token(headers: Sequence[str]) -> str:
    """The token of the Authorization header; "" if there is none."""
    for line in headers:
        name, _, value = line.partition(":")
        if name.strip().lower() == "authorization":
            scheme, _, token = value.strip().partition(" ")
            return token.strip() if scheme.lower() == "bearer" else ""
    return ""


def _response(status: int, body: str | bytes, kind: str = "text/plain; charset=utf-8") -> bytes:
    data = body.encode() if isinstance(body, str) else body
    challenge = "WWW-Authenticate: Bearer\r\n" if status == 401 else ""
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n{challenge}"
    return head.encode() + b"Connection: close\r\n\r\n" + data


@contextlib.asynccontextmanager
async def serve_secure_metrics(server: SecureMetrics) -> AsyncIterator[None]:
    """Runs the server while the context lasts."""
    running = asyncio.create_task(server.run(), name="secure metrics")
    try:
        yield
    finally:
        await cancel_and_wait(running)
