"""Parses the output of ``sanlock client status -D`` and ``sanlock client host_status -D`` (pure; sanlock 3.8.5).

Both print one line for each object, followed by its fields as indented lines ``name=value``. Times are whole seconds of
CLOCK_MONOTONIC; the daemon reports the current value as ``monotime``.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from lastcall.errors import Unavailable
from lastcall.model.storage_lease import HostSeen
from lastcall.ports.storage import Lockspace

FIRE_TIMEOUT = 60
"""Seconds after which wdmd's watchdog fires (sanlock: ``watchdog_fire_timeout``), for daemons that do not report it."""

_MOST_DIGITS = 20
"""Digits of a 64 bit number."""


@dataclass(frozen=True)
class _OutputBlock:
    head: str
    values: Mapping[str, str]

    def number_field(self, name: str, default: int | None = None) -> int:
        text = self.values.get(name, "" if default is None else str(default))
        if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
            raise Unavailable(f"sanlock's output is malformed: {name}={text[:_MOST_DIGITS]} of {self.head}")
        return int(text)

    def text_field(self, name: str) -> str:
        if not self.values.get(name):
            raise Unavailable(f"sanlock's output is malformed: no {name} of {self.head}")
        return self.values[name]


@dataclass(frozen=True)
class LockspaceStatus:
    """The status of a lockspace that has been joined."""

    name: str
    daemon: _OutputBlock
    own: _OutputBlock


def parse_status(name: str, text: str) -> LockspaceStatus:
    """Parses the status. Raises Unavailable if the lockspace is not joined, or the text is malformed."""
    blocks = list(_split_blocks(text))
    daemon = next((one for one in blocks if one.head.startswith("daemon ")), None)
    own = next((one for one in blocks if one.head.startswith(f"s {name}:")), None)
    if daemon is None:
        raise Unavailable("sanlock's output is malformed: its status names no daemon")
    if own is None or own.values.get("list") != "spaces":
        raise Unavailable(f"lockspace {name} is not joined")
    return LockspaceStatus(name, daemon, own)


def parse_lockspace(of: LockspaceStatus, host_status: str) -> Lockspace:
    """Adds the hosts' state, which was read after the status. Raises Unavailable if that is malformed."""
    name, daemon, own = of.name, of.daemon, of.own
    number = own.head.removeprefix(f"s {name}:").partition(":")[0]
    host_id = _OutputBlock(own.head, {"host_id": number}).number_field("host_id")
    generation, owner = own.number_field("host_generation"), daemon.text_field("our_host_name")
    now, timeout = daemon.number_field("monotime"), own.number_field("io_timeout")
    hosts = [one for one in _split_blocks(host_status) if one.values.get("owner_name")]
    mine = [one for one in hosts if _holds_lease(one, host_id, generation, owner)]
    if not mine:
        raise Unavailable(f"lockspace {name} has been joined, and its own lease has not been read yet")
    looked = mine[0].number_field("timestamp")
    lost = own.number_field("space_dead", 0) > 0 or own.number_field("killing_pids", 0) > 0
    return Lockspace(
        host_id=host_id,
        generation=generation,
        owner=owner,
        timestamp=looked,
        interval=2.0 * timeout,
        dead_after=8.0 * timeout + daemon.number_field("watchdog_fire_timeout", FIRE_TIMEOUT),
        watchdog=daemon.number_field("use_watchdog") == 1,
        used=own.number_field("external_used") == 1,
        looks=not lost,
        others=() if lost else tuple(_other_hosts(hosts, host_id, now, looked)),
    )


def _holds_lease(host: _OutputBlock, host_id: int, generation: int, owner: str) -> bool:
    """Whether the host holds exactly this lease and has not released it."""
    lease = host.values.get("owner_id"), host.values.get("owner_generation"), host.values.get("owner_name")
    return lease == (str(host_id), str(generation), owner) and host.number_field("timestamp") > 0


def _other_hosts(hosts: Iterable[_OutputBlock], host_id: int, now: int, looked: int) -> Iterator[HostSeen]:
    """The hosts that hold a lease. A malformed entry is skipped, so that it does not hide the others."""
    for host in hosts:
        try:
            found = _parse_host(host, now, looked)
        except Unavailable:
            continue
        if found.timestamp and found.host_id not in (0, host_id):
            yield found


def _parse_host(host: _OutputBlock, now: int, looked: int) -> HostSeen:
    """``looked``: the reader's own timestamp on the storage when it began to read.

    The daemon reads all leases at once, then writes its own, which may hang for a minute and more. Only then does it
    store what it has read, as of that moment (``lockspace_thread``). So ``last_check`` does not tell when it read. Its
    own timestamp among the leases that it has read does: it was written before. The daemon may have read again since it
    reported the current time.
    """
    return HostSeen(
        host_id=host.number_field("owner_id"),
        generation=host.number_field("owner_generation"),
        owner=host.text_field("owner_name"),
        timestamp=host.number_field("timestamp"),
        renewed_ago=max(0, now - host.number_field("last_live")),
        looked_ago=max(0, now - looked),
    )


def _split_blocks(text: str) -> Iterator[_OutputBlock]:
    head, values = "", dict[str, str]()
    for line in text.splitlines():
        if line[:1].isspace():
            name, _, value = line.strip().partition("=")
            values[name] = value
            continue
        if head:
            yield _OutputBlock(head, values)
        head, values = line, {}
    if head:
        yield _OutputBlock(head, values)
