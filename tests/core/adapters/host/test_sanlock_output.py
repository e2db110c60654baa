"""What sanlock 3.8.5 prints of itself, understood."""

import pytest

from lastcall.adapters.host import sanlock_output
from lastcall.errors import Unavailable
from lastcall.model.storage_lease import HostSeen

STATUS = """\
daemon host one
    our_host_name=host one
    use_watchdog=1
    kill_grace_seconds=40
    monotime=82401
p -1 helper
    ci=0
    pid=-1
s demo2:7:/dev/mapper/other:0
    list=spaces
    io_timeout=10
    host_generation=9
    external_used=0
s demo:1:/tmp/a\\:b:0
    list=spaces
    io_timeout=10
    host_generation=3
    external_used=1
r demo:RA:/dev/leases:1048576:1 p 77
    list=resources
    flags=0
"""
HOSTS = """\
1 timestamp 82378
    last_check=82400
    last_live=82400
    owner_id=1
    owner_generation=3
    timestamp=82378
    io_timeout=10
    owner_name=host one
2 timestamp 82230
    last_check=82400
    last_live=82233
    owner_id=2
    owner_generation=1
    timestamp=82230
    io_timeout=10
    owner_name=host2
3 timestamp 0
    last_check=82400
    last_live=82100
    owner_id=3
    owner_generation=4
    timestamp=0
    io_timeout=10
    owner_name=host3
"""


def found(status=STATUS, hosts=HOSTS, name="demo"):
    return sanlock_output.parse_lockspace(sanlock_output.parse_status(name, status), hosts)


def test_a_lockspace_and_its_hosts():
    known = found()
    assert (known.host_id, known.generation, known.owner, known.timestamp) == (1, 3, "host one", 82378)
    assert (known.interval, known.dead_after, known.watchdog, known.used) == (20, 140, True, True)
    two = HostSeen(host_id=2, generation=1, owner="host2", timestamp=82230, renewed_ago=168, looked_ago=23)
    assert known.others == (two,)  # host 3 has given its lease back


def test_no_age_is_more_than_is_true_if_the_daemon_has_looked_since_it_told_the_time():
    later = HOSTS.replace("=82400", "=82425").replace("=82378", "=82403")
    (two,) = found(hosts=later).others
    assert (two.renewed_ago, two.looked_ago) == (168, 0)


def test_a_look_is_as_old_as_its_beginning_however_late_it_is_noted():
    """The reader's own write hung for 45 s after it had read the others; it noted them when that was done."""
    late = HOSTS.replace("last_check=82400", "last_check=82445").replace("=82233", "=82300")
    status = STATUS.replace("monotime=82401", "monotime=82446")
    (two,) = found(status, late).others
    assert (two.renewed_ago, two.looked_ago) == (146, 68)


@pytest.mark.parametrize("lost", ["space_dead=1", "killing_pids=1"])
def test_a_lockspace_that_was_lost_and_is_marked_as_used_is_held_and_looked_at_no_more(lost):
    known = found(STATUS.replace("external_used=1", f"external_used=1\n    {lost}"))
    assert (known.looks, known.others) == (False, ())
    assert (known.used, known.timestamp) == (True, 82378)
    assert found(STATUS.replace("external_used=1", "external_used=1\n    space_dead=0\n    killing_pids=0")) == found()


@pytest.mark.parametrize("line", ["last_live=82233", "owner_id=2", "owner_generation=1", "timestamp=82230"])
@pytest.mark.parametrize("words", ["?", "", "0x2", "-1", "9" * 40])
def test_another_host_that_is_not_understood_hides_nobody_else(line, words):
    four = HOSTS[HOSTS.index("2 timestamp") : HOSTS.index("3 timestamp")].replace("owner_id=2", "owner_id=4")
    hosts = HOSTS.replace(f"    {line}\n", f"    {line.split('=')[0]}={words}\n") + four
    assert [one.host_id for one in found(hosts=hosts).others] == [4]


def test_a_place_of_no_host_is_passed_over():
    assert found(hosts=HOSTS.replace("owner_id=2", "owner_id=0")).others == ()


def test_what_the_daemon_says_of_its_watchdog():
    told = STATUS.replace("use_watchdog=1", "use_watchdog=0\n    watchdog_fire_timeout=30").replace("used=1", "used=0")
    known = found(told)
    assert (known.watchdog, known.used, known.dead_after) == (False, False, 110)


NOT_JOINED = {
    "unknown": STATUS.replace("s demo:", "s dem:"),
    "joining": STATUS.replace("s demo:1:/tmp/a\\:b:0\n    list=spaces", "s demo:1:/tmp/a\\:b:0 ADD\n    list=add"),
    "leaving": STATUS.replace("s demo:1:/tmp/a\\:b:0\n    list=spaces", "s demo:1:/tmp/a\\:b:0 REM\n    list=rem"),
}


@pytest.mark.parametrize("status", NOT_JOINED.values(), ids=NOT_JOINED)
def test_a_lockspace_that_is_not_joined(status):
    with pytest.raises(Unavailable, match="lockspace demo is not joined"):
        found(status)


GARBAGE = {
    "nothing": ("", HOSTS, "its status names no daemon"),
    "no time": (STATUS.replace("monotime=82401", "monotime="), HOSTS, "monotime= of daemon"),
    "no name": (STATUS.replace("our_host_name=host one\n", "x=\n"), HOSTS, "no our_host_name of daemon"),
    "no host id": (STATUS.replace("s demo:1:", "s demo:x:"), HOSTS, "host_id=x of s demo:x:"),
    "negative": (STATUS.replace("host_generation=3", "host_generation=-3"), HOSTS, "host_generation=-3 of s demo"),
    "not told whether it is used": (STATUS.replace("external_used=1", ""), HOSTS, "external_used= of s demo"),
    "no number of theirs": (STATUS.replace("82401", "8" * 5000), HOSTS, "monotime=8{20} of daemon"),
    "no hosts": (STATUS, "", "its own lease has not been read yet"),
    "another generation": (
        STATUS.replace("generation=3", "generation=4"),
        HOSTS,
        "its own lease has not been read yet",
    ),
}


@pytest.mark.parametrize(("status", "hosts", "told"), GARBAGE.values(), ids=GARBAGE)
def test_what_cannot_be_understood_is_told(status, hosts, told):
    with pytest.raises(Unavailable, match=told):
        found(status, hosts)
