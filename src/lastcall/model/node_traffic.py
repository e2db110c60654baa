"""What an agent tells about the traffic of its node (pure): its kube-proxy's times, and the connections to its pods.

It is the page ``/metrics/traffic``, in Prometheus' text format; ``?address=`` asks for pods of other nodes. A reader's clock differs from the node's, so the page has
the time at which it was made.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lastcall import names
from lastcall.model.proxy_sync import ProxySync


class PodConnections(NamedTuple):
    """Established TCP connections by the pod's address."""

    counts: Mapping[str, int]
    complete: bool
    """An address without a count has no connections; otherwise nothing is known of it."""

    def count_of(self, address: str) -> int | None:
        """The connections to this address; None if that is unknown."""
        return self.counts.get(address, 0 if self.complete else None)


class NodeTraffic(NamedTuple):
    """One reading; None for what the node does not tell."""

    sync: ProxySync | None = None
    latency: float | None = None
    """The seconds in which its kube-proxy followed 99 % of the changes since it started."""
    connections: PodConnections | None = None
    named: Mapping[str, bool] | None = None
    """Whether NAT rules of its kernel send connections to an address, for those that were asked for."""

    def names(self, address: str) -> bool | None:
        """Whether its rules name the address; None if that is unknown."""
        return (self.named or {}).get(address)


def render_traffic(found: NodeTraffic, at: float) -> bytes:
    """The page; ``at`` is the node's time now, in seconds since 1970, as are the times of ``found.sync``."""
    values: list[tuple[str, str, float]] = [(names.M_TRAFFIC_READ, "", at)]
    if found.sync:
        values += [
            (names.M_SYNC_QUEUED, "", found.sync.queued),
            (names.M_SYNC_FINISHED, "", found.sync.finished),
            (names.M_SYNC_LONGEST, "", found.sync.longest),
            (names.M_SYNC_PENDING, "", found.sync.pending),
        ]
    if found.latency is not None:
        values.append((names.M_PROXY_LATENCY, "", found.latency))
    if found.connections:
        values.append((names.M_CONNECTIONS_COMPLETE, "", int(found.connections.complete)))
        values += [
            (names.M_POD_CONNECTIONS, f'{{address="{address}"}}', count)
            for address, count in sorted(found.connections.counts.items())
        ]
    values += [
        (names.M_RULES_NAME, f'{{address="{one}"}}', int(is_named)) for one, is_named in _sort_by_address(found.named)
    ]
    typed = dict.fromkeys(name for name, _, _ in values)
    lines = [f"# TYPE {name} gauge" for name in typed] + [f"{name}{labels} {value!r}" for name, labels, value in values]
    return "".join(f"{line}\n" for line in lines).encode()


def read_traffic(samples: Iterable[tuple[str, Mapping[str, str], float]], *, at: float) -> NodeTraffic:
    """The reading from the samples of a page; ``at`` is the reader's time when the page was made.

    The times of the result are the reader's. ValueError if the page lacks what each has.
    """
    plain: dict[str, float] = {}
    counts: dict[str, int] = {}
    named: dict[str, bool] = {}
    for name, labels, value in samples:
        if name == names.M_POD_CONNECTIONS:
            counts[labels.get("address", "")] = int(value)
        elif name == names.M_RULES_NAME:
            named[labels.get("address", "")] = bool(value)
        else:
            plain[name] = float(value)
    if names.M_TRAFFIC_READ not in plain:
        raise ValueError(f"there is no {names.M_TRAFFIC_READ}")
    complete = plain.get(names.M_CONNECTIONS_COMPLETE)
    return NodeTraffic(
        _read_sync(plain, at - plain[names.M_TRAFFIC_READ]),
        plain.get(names.M_PROXY_LATENCY),
        None if complete is None else PodConnections(counts, bool(complete)),
        named or None,
    )


def _sort_by_address(named: Mapping[str, bool] | None) -> Iterable[tuple[str, bool]]:
    return sorted((named or {}).items())


def _read_sync(plain: Mapping[str, float], ahead: float) -> ProxySync | None:
    wanted = (names.M_SYNC_QUEUED, names.M_SYNC_FINISHED, names.M_SYNC_LONGEST, names.M_SYNC_PENDING)
    if not all(name in plain for name in wanted):
        return None
    queued, finished, longest, pending = (plain[name] for name in wanted)
    return ProxySync(queued, finished, longest, int(pending)).shift(ahead)
