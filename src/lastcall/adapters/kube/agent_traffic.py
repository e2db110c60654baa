"""``ports.traffic.TrafficReader``: the agents' pages ``/metrics/traffic``, over TLS with a bearer token."""

import math
from collections.abc import Callable, Collection

from prometheus_client.parser import text_string_to_metric_families

from lastcall.adapters.kube.credentials import CredentialSource
from lastcall.adapters.kube.endpoint import ServerEndpoint, TransportLimits
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.traffic_page import MOST_ADDRESSES, TRAFFIC_PATH, ask_for_addresses
from lastcall.errors import Unavailable
from lastcall.model.node_traffic import NodeTraffic, read_traffic
from lastcall.ports.node import Clock

_LIMITS = TransportLimits(connect=1.0, answer=2.0, inactivity=1.0, body=1024 * 1024, connections=2)


class AgentTraffic:
    """Reads the page of each node's agent at ``locate(node)``; that returns None for a node without an address.

    ``credentials`` are those of a reader whom the agent's API server permits ``get`` of ``/metrics``. The agents end each
    connection after its answer.
    """

    def __init__(
        self, locate: Callable[[str], ServerEndpoint | None], credentials: CredentialSource, clock: Clock
    ) -> None:
        self._locate = locate
        self._credentials = credentials
        self._clock = clock
        self._transports: dict[ServerEndpoint, HttpsTransport] = {}

    async def read_traffic(self, node: str, addresses: Collection[str]) -> NodeTraffic:
        """As the port says, for ``MOST_ADDRESSES``. The node's time is taken for the middle of the request."""
        endpoint = self._locate(node)
        if endpoint is None:
            raise Unavailable(f"the Node {node} has no address")
        http = self._transports.get(endpoint)
        if http is None:
            http = self._transports[endpoint] = HttpsTransport(endpoint, self._credentials, limits=_LIMITS)
        asked = self._clock.boottime()
        target = ask_for_addresses(sorted(addresses)[:MOST_ADDRESSES])
        answer = await http.request("GET", target, {"accept": "text/plain"}, b"")
        made = (asked + self._clock.boottime()) / 2
        if answer.status != 200 or not isinstance(answer.body, bytes):
            raise Unavailable(f"the agent of {node} answers {answer.status} to GET {TRAFFIC_PATH}")
        return _parse_page(answer.body.decode(errors="replace"), node, made)

    def close(self) -> None:
        """Closes all connections."""
        for http in self._transports.values():
            http.close()


def _parse_page(text: str, node: str, made: float) -> NodeTraffic:
    try:
        families = text_string_to_metric_families(text)
        samples = [(one.name, one.labels, one.value) for family in families for one in family.samples]
        found = read_traffic([one for one in samples if math.isfinite(one[2])], at=made)
    except ValueError as error:
        raise Unavailable(f"the traffic page of {node} cannot be read: {error}") from error
    return found
