"""``ports.cluster.ProxyLatency``, and the times of synchronizations: from the metrics of this node's kube-proxy.

kube-proxy serves its metrics on 127.0.0.1:10249 unless its ``metricsBindAddress`` says otherwise, without authentication.
"""

from collections.abc import Mapping, Sequence

from prometheus_client.parser import text_string_to_metric_families

from lastcall.adapters.kube.credentials import Credential, StaticCredentials
from lastcall.adapters.kube.endpoint import ServerEndpoint, TransportLimits
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.errors import Unavailable
from lastcall.model.proxy_latency import PROGRAMMING_BUCKET, latency_bound, sum_buckets
from lastcall.model.proxy_sync import SYNC_SAMPLES, ProxySync, read_proxy_sync

KUBE_PROXY = "http://127.0.0.1:10249"
"""Where kube-proxy serves its metrics by default."""

_LIMITS = TransportLimits(connect=0.25, answer=1.0, inactivity=1.0, body=8 * 1024 * 1024)


class KubeProxyMetrics:
    """Reads the metrics of the kube-proxy at ``url``."""

    def __init__(self, url: str = KUBE_PROXY) -> None:
        self._endpoint = ServerEndpoint.from_url(url)

    async def read_latency(self) -> float | None:
        """As the port says; the metrics are at most 8 MiB."""
        samples = _samples(await self._read_page(), (PROGRAMMING_BUCKET,))
        return latency_bound(sum_buckets((labels, value) for _, labels, value in samples))

    async def read_sync(self) -> tuple[ProxySync | None, float | None]:
        """The times of synchronizations, in seconds since 1970, and the latency; errors as for ``read_latency``."""
        samples = _samples(await self._read_page(), (PROGRAMMING_BUCKET, *SYNC_SAMPLES))
        programming = [(labels, value) for name, labels, value in samples if name == PROGRAMMING_BUCKET]
        try:
            return read_proxy_sync(samples), latency_bound(sum_buckets(programming))
        except ValueError as error:
            raise Unavailable(f"kube-proxy's metrics cannot be read: {error}") from error

    async def _read_page(self) -> str:
        http = HttpsTransport(self._endpoint, StaticCredentials(Credential()), limits=_LIMITS)
        try:
            answer = await http.request("GET", "/metrics", {"accept": "text/plain"}, b"")
        finally:
            http.close()
        if answer.status != 200 or not isinstance(answer.body, bytes):
            raise Unavailable(f"kube-proxy at {self._endpoint.netloc} answers {answer.status} to GET /metrics")
        return answer.body.decode(errors="replace")


def _samples(text: str, wanted: Sequence[str]) -> Sequence[tuple[str, Mapping[str, str], float]]:
    """The samples of these names; only their lines are parsed, since a page has thousands of others."""
    starts = tuple(f"{name}{end}" for name in wanted for end in "{ ")
    lines = "".join(f"{line}\n" for line in text.splitlines() if line.startswith(starts))
    try:
        families = text_string_to_metric_families(lines)
        return [(one.name, one.labels, one.value) for family in families for one in family.samples]
    except ValueError as error:
        raise Unavailable(f"kube-proxy's {wanted[0]} cannot be read: {error}") from error
