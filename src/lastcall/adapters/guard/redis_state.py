"""The replication of a Redis as one of its members tells it: ``INFO replication`` (no I/O)."""

from collections.abc import Mapping, Sequence

from lastcall.model.base import Facts

MASTER, REPLICA = "master", "slave"
"""``role``, in Redis' own words."""


class ReplicaLink(Facts, frozen=True):
    """A replica as its master sees it; ``lag`` are the seconds since it last confirmed what it has."""

    address: str
    port: int
    is_online: bool
    offset: int
    lag: int


class Replication(Facts, frozen=True):
    """A member's view. ``offset`` is how many bytes of the replication it has written, or received."""

    role: str
    offset: int = 0
    replicas: tuple[ReplicaLink, ...] = ()
    master_address: str = ""
    master_port: int = 0
    is_linked: bool = False
    """A replica: whether it is connected to its master."""
    is_syncing: bool = False
    failover: str = "no-failover"
    """``master_failover_state``: no-failover, waiting-for-sync or failover-in-progress."""
    is_cluster: bool = False
    is_sentinel: bool = False
    is_watched: bool = False
    """Whether Sentinels are subscribed to their channel at this member."""
    run_id: str = ""
    """Names the process. A Sentinel tells it of each server that it knows."""
    history: str = ""
    """``master_replid``: a master and all that follow it, also by way of others, have the same."""
    followers: int = 0
    """How many replicas are connected to this member."""


def parse_info(text: str) -> Replication:
    """Reads the answers to INFO of the sections replication, server and cluster."""
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    role = fields.get("role", "")
    offset = fields.get("master_repl_offset" if role == MASTER else "slave_repl_offset", "0")
    return Replication(
        role=role,
        offset=_number(offset),
        replicas=tuple(_list_replicas(fields)),
        master_address=fields.get("master_host", ""),
        master_port=_number(fields.get("master_port", "0")),
        is_linked=fields.get("master_link_status") == "up",
        is_syncing=fields.get("master_sync_in_progress") == "1",
        failover=fields.get("master_failover_state", "no-failover"),
        is_cluster=fields.get("cluster_enabled") == "1",
        is_sentinel=fields.get("redis_mode") == "sentinel",
        run_id=fields.get("run_id", ""),
        history=fields.get("master_replid", ""),
        followers=_number(fields.get("connected_slaves", "0")),
    )


def _list_replicas(fields: Mapping[str, str]) -> Sequence[ReplicaLink]:
    found = []
    number = 0
    while (text := fields.get(f"slave{number}")) is not None:
        said = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
        found.append(
            ReplicaLink(
                address=said.get("ip", ""),
                port=_number(said.get("port", "0")),
                is_online=said.get("state") == "online",
                offset=_number(said.get("offset", "0")),
                lag=_number(said.get("lag", "-1")),
            )
        )
        number += 1
    return found


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return 0
