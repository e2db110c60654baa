"""``ports.cluster.ProxyLatency``: the histogram that kube-proxy on this node serves.

kube-proxy serves its metrics on 127.0.0.1:10249 unless its ``metricsBindAddress`` says otherwise, without authentication.
"""

from collections.abc import Iterable, Mapping

from prometheus_client.parser import text_string_to_metric_families

from lastcall.adapters.kube.credentials import Credential, StaticCredentials
from lastcall.adapters.kube.endpoint import ServerEndpoint, TransportLimits
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.errors import Unavailable
from lastcall.model.proxy_latency import PROGRAMMING_BUCKET, latency_bound, sum_buckets

KUBE_PROXY = "http://127.0.0.1:10249"
"""Where kube-proxy serves its metrics by default."""

_LIMITS = TransportLimits(connect=0.25, answer=1.0, inactivity=1.0, body=8 * 1024 * 1024)


class KubeProxyMetrics:
    """Reads the metrics of the kube-proxy at ``url``."""

    def __init__(self, url: str = KUBE_PROXY) -> None:
        self._endpoint = ServerEndpoint.from_url(url)

    async def read_latency(self) -> float | None:
        """As the port says; the metrics are at most 8 MiB."""
        http = HttpsTransport(self._endpoint, StaticCredentials(Credential()), limits=_LIMITS)
        try:
            answer = await http.request("GET", "/metrics", {"accept": "text/plain"}, b"")
        finally:
            http.close()
        if answer.status != 200 or not isinstance(answer.body, bytes):
            raise Unavailable(f"kube-proxy at {self._endpoint.netloc} answers {answer.status} to GET /metrics")
        return latency_bound(sum_buckets(_samples(answer.body.decode(errors="replace"))))


def _samples(text: str) -> Iterable[tuple[Mapping[str, str], float]]:
    """The histogram's samples; only its lines are parsed, since a page has thousands of others."""
    lines = "".join(f"{line}\n" for line in text.splitlines() if line.startswith(f"{PROGRAMMING_BUCKET}{{"))
    try:
        return [(one.labels, one.value) for family in text_string_to_metric_families(lines) for one in family.samples]
    except ValueError as error:
        raise Unavailable(f"kube-proxy's {PROGRAMMING_BUCKET} cannot be read: {error}") from error
