"""A TiKV cluster as its Placement Driver tells it: stores, regions and evictions of leaders (no I/O).

The shapes are those of ``/pd/api/v1``: ``stores``, ``regions/check/...``, ``scheduler-config/evict-leader-scheduler/list``.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from lastcall.adapters.guard.application_answers import shorten_message
from lastcall.adapters.guard.member_hosts import is_host_of, short_host
from lastcall.errors import LastcallError
from lastcall.model.base import Facts
from lastcall.ports.guard import GuardedMember

UP: Final = "Up"
TOMBSTONE: Final = "Tombstone"
LEARNERS: Final = ("tiflash", "tiflash_compute")
"""Values of the label ``engine`` of stores whose peers do not vote."""


class TikvStore(Facts, frozen=True):
    """A store; ``state`` is PD's ``state_name``: Up, Offline, Tombstone, Disconnected or Down."""

    id: int
    host: str
    state: str
    leaders: int = 0

    @property
    def name(self) -> str:
        """The name of its pod, if its address has one; otherwise the host."""
        return short_host(self.host)

    @property
    def is_removed(self) -> bool:
        """Whether it has given all its regions to others for good."""
        return self.state == TOMBSTONE


class TikvView(Facts, frozen=True):
    """The stores whose peers vote, the ids of those whose leaders are moved away, and the number of regions."""

    stores: tuple[TikvStore, ...]
    evicted: frozenset[int]
    regions: int

    @property
    def unknown_leaders(self) -> int:
        """Of how many regions PD does not know the leader: it learns them anew within minutes after it was started."""
        return max(0, self.regions - sum(one.leaders for one in self.stores))

    def list_absent(self, own: TikvStore | None) -> Iterator[str]:
        """Each store but ``own`` that is not up."""
        for one in self.stores:
            if one.state != UP and (own is None or one.id != own.id):
                yield f"{one.name} (store {one.id}) is {one.state}"

    def list_evictions(self, own: TikvStore | None) -> Iterator[str]:
        """Each store but ``own`` whose leaders are moved away."""
        for one in self.stores:
            if one.id in self.evicted and (own is None or one.id != own.id):
                yield f"leaders are moved away from {one.name} (store {one.id}) too"


def find_store(stores: Sequence[TikvStore], member: GuardedMember) -> TikvStore | None:
    """The member's store, by its address; of a member that is gone also by that of the pod that has its name now."""
    name = member.pod.metadata.name
    pods = [member.pod, *(one for one in member.others if one.metadata.name == name)]
    return next((one for pod in pods for one in stores if is_host_of(one.host, pod)), None)


def parse_stores(value: Any) -> tuple[TikvStore, ...]:
    """Reads the answer to ``/stores``, without those that keep learners alone. LastcallError if it is none."""
    listed = value.get("stores") if isinstance(value, dict) else None
    if not isinstance(listed, list):
        raise LastcallError("PD's answer to /stores has no stores")
    found = (one for one in listed if isinstance(one, dict))
    return tuple(_parse_store(one) for one in found if not _is_learner_store(_object(one.get("store"))))


def parse_evictions(value: Any) -> frozenset[int]:
    """Reads the configuration of evict-leader-scheduler: the ids of its stores."""
    ranges = _object(_object(value).get("store-id-ranges"))
    return frozenset(int(one) for one in ranges if one.isdigit())


def parse_count(value: Any) -> int:
    """Reads the ``count`` of a list of regions. LastcallError if there is none."""
    found = _object(value).get("count")
    if not isinstance(found, int):
        raise LastcallError("PD's answer has no count of regions")
    return found


def count_voting(value: Any, peers: str, own: TikvStore | None) -> int:
    """How many of the regions have a voter among their ``peers`` (a field) that is of another store than ``own``."""
    regions = _object(value).get("regions")
    listed = regions if isinstance(regions, list) else []
    return sum(any(_is_foreign_voter(one, own) for one in _list_peers(region, peers)) for region in listed)


def _list_peers(region: Any, field: str) -> Iterator[Mapping[str, Any]]:
    """``pending_peers`` are peers, ``down_peers`` have one each."""
    found = _object(region).get(field)
    for one in found if isinstance(found, list) else ():
        yield _object(_object(one).get("peer")) or _object(one)


def _is_foreign_voter(peer: Mapping[str, Any], own: TikvStore | None) -> bool:
    is_learner = peer.get("is_learner") is True or peer.get("role_name") == "Learner"
    return not is_learner and (own is None or peer.get("store_id") != own.id)


def _parse_store(value: Mapping[str, Any]) -> TikvStore:
    meta, status = _object(value.get("store")), _object(value.get("status"))
    return TikvStore(
        id=_number(meta.get("id")),
        host=_text(meta.get("address")).rpartition(":")[0].strip("[]"),
        state=_text(meta.get("state_name")),
        leaders=_number(status.get("leader_count")),
    )


def _is_learner_store(meta: Mapping[str, Any]) -> bool:
    labels = meta.get("labels")
    found = [_object(one) for one in labels] if isinstance(labels, list) else []
    return any(one.get("key") == "engine" and one.get("value") in LEARNERS for one in found)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return shorten_message(value) if isinstance(value, str) else ""


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0
