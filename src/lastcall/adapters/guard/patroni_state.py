"""A Patroni cluster as its REST API tells it: ``GET /cluster``, ``/patroni`` and ``/config`` (no I/O).

``/cluster`` is what the members have written into the DCS, up to ``ttl`` seconds ago, and a member answers from a cache: it
says who should lead. Whether that one does, what a member has replayed, and who streams from it, is its own word in
``/patroni``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from lastcall.adapters.guard.application_answers import shorten_message
from lastcall.errors import LastcallError
from lastcall.model.base import Facts
from lastcall.model.pods import Pod

LEADERS: Final = ("leader", "standby_leader", "master", "primary")
"""Roles of who leads, in ``/cluster`` and ``/patroni``; the later ones depend on Patroni's version."""

SYNCHRONOUS: Final = ("sync_standby", "quorum_standby")
RUNNING: Final = ("running", "streaming")
ON: Final = ("on", "true", "yes", "1", "quorum")


class ListedMember(Facts, frozen=True):
    """A member in ``/cluster``."""

    name: str
    role: str
    state: str
    hosts: tuple[str, ...] = ()


class PatroniCluster(Facts, frozen=True):
    """``/cluster``, and the modes of ``/config``. ``scheduled_at`` is "" without a scheduled switchover."""

    members: tuple[ListedMember, ...]
    is_paused: bool = False
    scheduled_at: str = ""
    is_synchronous: bool = False
    is_strict: bool = False
    """Whether writes wait for a synchronous standby although there is none."""

    @property
    def leader(self) -> str:
        """The name of the member that leads; "" if none does."""
        return next((one.name for one in self.members if one.role in LEADERS), "")

    def find_member(self, name: str) -> ListedMember | None:
        """The member of this name."""
        return next((one for one in self.members if one.name == name), None)

    def describe_obstacle(self) -> str:
        """Why nobody but a person may move the leadership; "" if nothing is in the way."""
        if self.is_paused:
            return "the Patroni cluster is paused"
        return f"a switchover is scheduled at {self.scheduled_at}" if self.scheduled_at else ""


class MemberStatus(Facts, frozen=True):
    """What a member says of itself (``/patroni``). Positions are bytes of the write-ahead log."""

    role: str
    state: str
    name: str = ""
    """Patroni before 3.1 does not tell it."""
    timeline: int = 0
    position: int = 0
    """What a leader has written or, in a standby cluster, received."""
    replayed: int = 0
    is_replay_paused: bool = False
    is_electable: bool = True
    has_leader: bool = True
    """Whether the DCS answers it, and names a leader."""
    senders: tuple[str, ...] = ()
    """Who streams from it."""

    @property
    def is_leading(self) -> bool:
        """Whether its PostgreSQL runs as one that leads, and it has not lost the DCS."""
        return self.role in LEADERS and self.state in RUNNING and self.has_leader


class PatroniView(Facts, frozen=True):
    """The statuses by the names of the pods, or why one says nothing; ``names`` are the members' by those of the pods."""

    cluster: PatroniCluster
    statuses: Mapping[str, MemberStatus]
    silent: Mapping[str, str]
    names: Mapping[str, str]

    @property
    def leading_pod(self) -> str:
        """The name of the pod whose member leads; "" if it is no pod of the application."""
        return next((pod for pod, name in self.names.items() if name == self.cluster.leader), "")

    def describe_silence(self) -> str:
        """``; redis-2: ...`` for each that says nothing."""
        return "".join(f"; {name}: {why}" for name, why in sorted(self.silent.items()))

    def describe_fault(self, pod: str, most_lag: int) -> str:
        """Why the member is no replica that has what the leader has; "" if it is one."""
        leader, status = self.statuses.get(self.leading_pod), self.statuses.get(pod)
        listed = self.cluster.find_member(self.names.get(pod, ""))
        if status is None or listed is None or leader is None:
            return "says nothing" if status is None else "cannot be compared with the leader"
        for state in (status.state, listed.state):
            if state not in RUNNING:
                return f"is {state or 'in no known state'}"
        if not status.has_leader:
            return "knows of no leader in its DCS"
        if status.role in LEADERS:
            return "runs as primary and is not the leader"
        if not any(listed.name in one.senders for one in self.statuses.values()):
            return "does not stream from another member"
        if status.is_replay_paused:
            return "has its replay paused"
        if status.timeline != leader.timeline:
            return f"is on timeline {status.timeline}, and the leader on {leader.timeline}"
        lag = leader.position - status.replayed
        return f"is {lag} bytes behind" if lag > most_lag else ""

    def list_successors(self, pod: str, most_lag: int) -> list[str]:
        """The pods that can take the leadership of this one over."""
        return [one for one in self.statuses if one != pod and self._is_successor(one, most_lag)]

    def _is_successor(self, pod: str, most_lag: int) -> bool:
        listed = self.cluster.find_member(self.names.get(pod, ""))
        if listed is None or (self.cluster.is_synchronous and listed.role not in SYNCHRONOUS):
            return False
        return self.statuses[pod].is_electable and not self.describe_fault(pod, most_lag)


def match_members(cluster: PatroniCluster, pods: Sequence[Pod], statuses: Mapping[str, MemberStatus]) -> dict[str, str]:
    """The members' names by those of the pods: by the name that the member tells, or the pod's, or the address."""
    listed = {one.name for one in cluster.members}
    found = {}
    for pod in pods:
        name, address = pod.metadata.name, pod.status.pod_ip
        told = statuses[name].name if name in statuses else ""
        by_address = (one.name for one in cluster.members if address and address in one.hosts)
        chosen = next((one for one in (told, name) if one in listed), None) or next(by_address, None)
        if chosen:
            found[name] = chosen
    return found


def parse_cluster(value: Any, config: Any) -> PatroniCluster:
    """Reads the answers to ``/cluster`` and ``/config``. LastcallError if the first is none."""
    listed = value.get("members") if isinstance(value, dict) else None
    if not isinstance(listed, list):
        raise LastcallError("the answer to /cluster has no members")
    scheduled, modes = _object(value.get("scheduled_switchover")), _object(config)
    members = tuple(_parse_member(one) for one in listed if isinstance(one, dict))
    is_synchronous = str(modes.get("synchronous_mode", "")).lower() in ON
    return PatroniCluster(
        members=members,
        is_paused=value.get("pause") is True,
        scheduled_at=shorten_message(str(scheduled.get("at", "an unknown time"))) if scheduled else "",
        is_synchronous=is_synchronous or any(one.role in SYNCHRONOUS for one in members),  # /config is not read anew
        is_strict=str(modes.get("synchronous_mode_strict", "")).lower() in ON,
    )


def parse_status(value: Any) -> MemberStatus:
    """Reads the answer to ``/patroni``. LastcallError if it is none."""
    if not isinstance(value, dict) or "state" not in value:
        raise LastcallError("the answer to /patroni is not understood")
    log, tags = _object(value.get("xlog") or value.get("wal")), _object(value.get("tags"))
    replayed, received = _number(log.get("replayed_location")), _number(log.get("received_location"))
    return MemberStatus(
        role=_text(value.get("role")),
        state=_text(value.get("state")),
        name=_text(_object(value.get("patroni")).get("name")),
        timeline=_number(value.get("timeline")),
        position=_number(log.get("location")) or max(replayed, received),
        replayed=replayed,
        is_replay_paused=log.get("paused") is True,
        is_electable=not tags.get("nofailover") and value.get("watchdog_failed") is not True,
        has_leader=value.get("cluster_unlocked") is not True,
        senders=tuple(_list_senders(value.get("replication"))),
    )


def _parse_member(value: Mapping[str, Any]) -> ListedMember:
    return ListedMember(
        name=_text(value.get("name")),
        role=_text(value.get("role")),
        state=_text(value.get("state")),
        hosts=tuple(_list_hosts(value)),
    )


def _list_hosts(value: Mapping[str, Any]) -> Iterator[str]:
    try:
        yield urlsplit(_text(value.get("api_url"))).hostname or ""
    except ValueError:
        pass
    yield _text(value.get("host"))


def _list_senders(value: Any) -> Iterator[str]:
    """PostgreSQL's ``pg_stat_replication``: Patroni has each member name itself there."""
    rows: Iterable[Any] = value if isinstance(value, list) else ()
    for row in rows:
        if isinstance(row, dict) and row.get("state") == "streaming":
            yield _text(row.get("application_name"))


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return shorten_message(value) if isinstance(value, str) else ""


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0
