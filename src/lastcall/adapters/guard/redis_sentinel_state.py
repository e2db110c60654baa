"""A Redis under Sentinels, as the Sentinels and the servers tell it (no I/O).

A Sentinel names servers by their addresses, and by the ids of their processes (``run_id``). The ids tell pods apart also
where Sentinels announce host names.
"""

from collections.abc import Iterator, Mapping, Sequence

from lastcall.adapters.guard.redis_state import MASTER, REPLICA, Replication
from lastcall.model.base import Facts

_AWAY = frozenset({"s_down", "o_down", "disconnected"})
IN_PROGRESS = "failover_in_progress"


class KnownReplica(Facts, frozen=True):
    """A replica in a Sentinel's list, which keeps those that are gone."""

    run_id: str
    address: str
    port: int
    flags: frozenset[str]
    priority: int

    @property
    def is_electable(self) -> bool:
        """Whether the Sentinel could make it the master (``sentinelSelectSlave``)."""
        return self.priority > 0 and not self.flags & _AWAY


class SentinelAnswer(Facts, frozen=True):
    """What one Sentinel says of the master of a group; ``count`` are all Sentinels that it has ever known, and itself."""

    run_id: str
    address: str
    port: int
    flags: frozenset[str]
    count: int
    quorum: int
    down_after_milliseconds: int
    replicas: tuple[KnownReplica, ...] = ()
    shortage: str = ""
    """What ``SENTINEL CKQUORUM`` misses."""
    is_tilted: bool = False
    """Whether it does nothing for half a minute, since its clock has jumped."""

    @property
    def required_count(self) -> int:
        """So many Sentinels are needed to find a master down, and to have a failover done."""
        return max(self.quorum, self.count // 2 + 1)

    @property
    def server(self) -> tuple[str, int]:
        """The master's address."""
        return self.address, self.port

    @property
    def is_fit(self) -> bool:
        """Whether it can begin a failover now."""
        return self.flags == {"master"} and not self.is_tilted


class SentinelView(Facts, frozen=True):
    """The Sentinels by pod, or why one says nothing. ``leaving`` is the pod whose Sentinel goes with it; "" if none does."""

    answers: Mapping[str, SentinelAnswer]
    silent: Mapping[str, str]
    leaving: str = ""

    @property
    def remaining(self) -> Mapping[str, SentinelAnswer]:
        """Those that are there when the pod is gone."""
        return {name: one for name, one in self.answers.items() if name != self.leaving}

    @property
    def required_count(self) -> int:
        """As of one answer; the most that one of them needs."""
        return max((one.required_count for one in self.answers.values()), default=1)

    @property
    def master(self) -> SentinelAnswer | None:
        """An answer that as many of the remaining Sentinels give as are needed; None if they do not agree."""
        answers = list(self.remaining.values())
        for one in answers:
            if one.run_id and sum(other.run_id == one.run_id for other in answers) >= self.required_count:
                return one
        return None

    @property
    def is_failing_over(self) -> bool:
        """Whether one of them is at it."""
        return any(IN_PROGRESS in one.flags for one in self.answers.values())

    @property
    def pause_bound(self) -> int:
        """So many milliseconds a master may leave a Sentinel without an answer, and no more than that is noticed.

        A pause of writes stops Sentinel's own PUBLISH, and its PING behind that. After half the time it reconnects.
        """
        return min((one.down_after_milliseconds for one in self.answers.values()), default=0) // 2

    def are_all_for(self, run_id: str) -> bool:
        """Whether all are heard, and all have this process as the master of a group that is at rest."""
        answers = self.answers.values()
        return not self.silent and not self.is_failing_over and all(one.run_id == run_id for one in answers)

    def describe_shortage(self) -> str:
        """Why too few remain; "" if enough do."""
        fit = [name for name, one in self.remaining.items() if not one.is_tilted]
        if len(fit) >= self.required_count:
            return ""
        tilted = [f"{name} is in TILT mode" for name in self.remaining if name not in fit]
        reasons = [*tilted, *(f"{name}: {why}" for name, why in sorted(self.silent.items()))]
        leaving = f" without {self.leaving}" if self.leaving in self.answers else ""
        known = max((one.count for one in self.answers.values()), default=0)
        text = f"{len(fit)} Sentinels answer{leaving}, and {self.required_count} of {known} that are known are needed"
        return "; ".join([text, *reasons])

    def list_faults(self) -> Iterator[str]:
        """What is in the way of a failover."""
        if shortage := self.describe_shortage():
            yield shortage
        for name, one in self.answers.items():
            if one.shortage:
                yield f"{name}: {one.shortage}"
            if strange := one.flags - {"master"}:
                yield f"{name}: the master is {', '.join(sorted(strange))}"
        if len({one.run_id for one in self.answers.values()}) > 1:
            yield "the Sentinels do not agree on the master"


class SentinelGroup(Facts, frozen=True):
    """The servers by pod, or why one says nothing, and their Sentinels."""

    members: Mapping[str, Replication]
    silent: Mapping[str, str]
    sentinels: SentinelView

    @property
    def leading(self) -> str:
        """The pod that the Sentinels agree on as the master; "" without one."""
        master = self.sentinels.master
        run_id = master.run_id if master else ""
        return next((name for name, one in self.members.items() if run_id and one.run_id == run_id), "")

    @property
    def masters(self) -> Sequence[str]:
        """The pods that say that they are the master."""
        return [name for name, one in self.members.items() if one.role == MASTER]

    def list_faults(self, most_lag: int, *, fenced: str = "") -> Iterator[str]:
        """What is in the way of a failover. ``fenced`` is the pod of a master that takes no writes any more."""
        yield from self.sentinels.list_faults()
        yield from self.list_silent()
        for name, one in self.members.items():
            if one.is_cluster:
                yield f"{name} belongs to a Redis Cluster"
        if self.sentinels.master and not self.leading and not self.silent:
            yield "the master that the Sentinels name is no pod of the application"
        if self.leading:
            yield from self._list_faults_of_replication(most_lag, fenced)
        yield from self._list_faults_of_election()

    def list_silent(self) -> Iterator[str]:
        """The servers that do not answer."""
        yield from (f"{name}: {why}" for name, why in sorted(self.silent.items()))

    def describe_unsettled(self, leaving: str) -> str:
        """Why the pod may not go yet, although another one is the master; "" if it may."""
        master = self.members[self.leading]
        if self.masters != [self.leading]:
            return f"masters are {', '.join(self.masters) or 'none'}"
        for name, one in self.members.items():
            if name != self.leading and (fault := _describe_link(one, master)):
                return f"{name} {fault}"
        if count := self.members[leaving].followers:
            return f"{count} replicas follow it still"
        return ""

    def _list_faults_of_replication(self, most_lag: int, fenced: str) -> Iterator[str]:
        master = self.members[self.leading]
        if self.masters != ([] if fenced else [self.leading]):
            yield f"{self.leading} is the master for the Sentinels, but masters are {', '.join(self.masters) or 'none'}"
        for name, one in self.members.items():
            if name in (self.leading, fenced) or one.role != REPLICA:
                continue
            if fault := _describe_link(one, master):
                yield f"{name} {fault}"
            elif master.offset - one.offset > most_lag:
                yield f"{name} is {master.offset - one.offset} bytes behind"

    def _list_faults_of_election(self) -> Iterator[str]:
        if len(self.members) + len(self.silent) < 2:
            yield "there is no other member"
            return
        own = {one.run_id for one in self.members.values()}
        electable = [one for answer in self.sentinels.answers.values() for one in answer.replicas if one.is_electable]
        for address in sorted({f"{one.address}:{one.port}" for one in electable if one.run_id not in own}):
            if not self.silent:
                yield f"{address} is no pod of the application, and may become the master"
        if self.sentinels.answers and not electable:
            yield "no Sentinel knows a replica that may become the master"


def _describe_link(one: Replication, master: Replication) -> str:
    if not one.is_linked or one.is_syncing:
        return "is not connected to its master yet"
    return "" if one.history == master.history else "does not follow the master"


def parse_master(fields: Mapping[str, str]) -> SentinelAnswer:
    """Reads the answer to ``SENTINEL MASTER``."""
    return SentinelAnswer(
        run_id=fields.get("runid", ""),
        address=fields.get("ip", ""),
        port=_number(fields, "port"),
        flags=_flags(fields),
        count=_number(fields, "num-other-sentinels") + 1,
        quorum=_number(fields, "quorum"),
        down_after_milliseconds=_number(fields, "down-after-milliseconds"),
    )


def parse_replica(fields: Mapping[str, str]) -> KnownReplica:
    """Reads one item of the answer to ``SENTINEL REPLICAS``."""
    return KnownReplica(
        run_id=fields.get("runid", ""),
        address=fields.get("ip", ""),
        port=_number(fields, "port"),
        flags=_flags(fields),
        priority=_number(fields, "slave-priority"),
    )


def _flags(fields: Mapping[str, str]) -> frozenset[str]:
    return frozenset(fields.get("flags", "").split(","))


def _number(fields: Mapping[str, str], name: str) -> int:
    text = fields.get(name, "")
    return int(text) if text.isdecimal() else 0
