"""What proves that a boot is over, and what does not, as tables; each row says where its rule comes from."""

import math

import pytest

from lastcall.errors import InvalidInput
from lastcall.failover.evidence.assessment import BootState, assess, ended_pod_uids, fencing_held_until
from lastcall.failover.evidence.facts import (
    Boot,
    DeathAcknowledged,
    InstanceSeen,
    LeaseSeen,
    NodeSeen,
    PeerHeard,
    PowerSeen,
    RebootOrdered,
    ShutdownAnnounced,
    StorageLease,
    WatchdogSeen,
)
from lastcall.failover.evidence.proofs import ProofKind, ProofTerms
from lastcall.model.power import InstanceState, PowerState
from lastcall.model.watchdog import WatchdogTiming

BOOT = Boot(id="a", system_uuid="m1", since=0)
SETTINGS = WatchdogTiming(lease=20, pet=4, timeout=10, drift=0)
ON, OFF, NO_ANSWER = PowerState.ON, PowerState.OFF, PowerState.UNKNOWN
DEAD, ALIVE, UNKNOWN = BootState.DEAD, BootState.ALIVE, BootState.UNKNOWN
NOW = 1000.0


def bmc(power, asked, *, boot="a", source="bmc", took=0):
    return PowerSeen(boot_id=boot, source=source, power=power, asked=asked, answered=asked + took)


def cloud(state, asked):
    return InstanceSeen(boot_id="a", source="ec2", state=state, asked=asked, answered=asked)


def lease(at, boot="a"):
    return LeaseSeen(boot_id=boot, at=at)


def seen(boot, at, *, uuid="m1", ready="True"):
    return NodeSeen(boot_id=boot, system_uuid=uuid, ready=ready, at=at)


def watchdog(renewed, read, *, reachable=4, nodes=5):
    return WatchdogSeen(
        boot_id="a", settings=SETTINGS, renewed=renewed, read=read, reachable=reachable, nodes=nodes
    )  # its bound is 20 + 3 * 10 = 50


def disk(renewed, read, dead_after=140):
    return StorageLease(boot_id="a", source="lun0", renewed=renewed, read=read, dead_after=dead_after)


def person(at):
    return DeathAcknowledged(boot_id="a", how="the taint out-of-service", at=at)


def reboot(at):
    return RebootOrdered(boot_id="a", by="bmc", at=at)


def peer(at):
    return PeerHeard(boot_id="a", peer="n2", question=1, at=at)


ROWS = {
    # Fences: off, then OFF by status twice. An `off` that succeeded is no fact at all.
    "OFF twice": (DEAD, bmc(OFF, 900), bmc(OFF, 902)),
    "OFF once": (UNKNOWN, bmc(OFF, 900)),
    "OFF twice at one moment is one answer": (UNKNOWN, bmc(OFF, 900), bmc(OFF, 900.5)),
    "OFF twice, the second asked for as soon as a slow first one had come": (
        *(UNKNOWN, bmc(OFF, 900, took=1.5)),
        bmc(OFF, 901.7),
    ),
    "OFF twice, the first of them slow": (DEAD, bmc(OFF, 900, took=1.5), bmc(OFF, 902.5)),
    "OFF once each from two sources": (UNKNOWN, bmc(OFF, 900), bmc(OFF, 902, source="pdu")),
    "OFF, no answer, OFF": (DEAD, bmc(OFF, 900), bmc(NO_ANSWER, 901), bmc(OFF, 902)),
    "OFF, ON, OFF": (ALIVE, bmc(OFF, 900), bmc(ON, 901), bmc(OFF, 902)),
    "ON a moment ago, now OFF twice": (DEAD, bmc(ON, 990), bmc(OFF, 995), bmc(OFF, 997)),
    "OFF twice, then ON": (ALIVE, bmc(OFF, 900), bmc(OFF, 902), bmc(ON, 950)),
    "OFF twice, then no answer: what is over is over": (DEAD, bmc(OFF, 900), bmc(OFF, 902), bmc(NO_ANSWER, 950)),
    "OFF twice, ON later by another device": (ALIVE, bmc(OFF, 900), bmc(OFF, 902), bmc(ON, 903, source="pdu")),
    "a device that does not answer": (UNKNOWN, bmc(NO_ANSWER, 900), bmc(NO_ANSWER, 902)),
    "OFF twice of the boot before": (UNKNOWN, bmc(OFF, 900, boot="z"), bmc(OFF, 902, boot="z")),
    "OFF twice, before the boot was first seen": (UNKNOWN, bmc(OFF, -20), bmc(OFF, -10)),
    "a BMC that says OFF of a node that is heard of": (ALIVE, bmc(OFF, 995), bmc(OFF, 997), lease(990)),
    "heard of between the two OFF": (ALIVE, bmc(OFF, 900), bmc(OFF, 905), lease(903)),
    "seen late: a little after the first pair, OFF again": (
        DEAD,
        bmc(OFF, 900),
        lease(901),
        bmc(OFF, 902),
        bmc(OFF, 904),
    ),
    "a BMC that said OFF a minute before a sign of life": (
        ALIVE,
        bmc(OFF, 840),
        lease(900),
        bmc(OFF, 920),
        bmc(OFF, 922),
    ),
    "another device than the one that lied": (
        *(DEAD, bmc(OFF, 840), lease(900)),
        *(bmc(OFF, 920, source="pdu"), bmc(OFF, 922, source="pdu")),
    ),
    # Clouds: EC2's stopping and shutting-down are RUNNING for us; an id that is not found proves nothing.
    "stopped twice": (DEAD, cloud(InstanceState.STOPPED, 900), cloud(InstanceState.STOPPED, 902)),
    "terminated": (DEAD, cloud(InstanceState.STOPPED, 900), cloud(InstanceState.TERMINATED, 902)),
    "running": (ALIVE, cloud(InstanceState.RUNNING, 995)),
    "instance not found": (UNKNOWN, cloud(InstanceState.NOT_FOUND, 900), cloud(InstanceState.NOT_FOUND, 902)),
    "a cloud that does not know": (UNKNOWN, cloud(InstanceState.UNKNOWN, 900), cloud(InstanceState.UNKNOWN, 902)),
    # Boot ids: random(4) makes one anew at each boot.
    "another boot of the machine": (DEAD, seen("a", 900), seen("b", 995)),
    "another boot, a moment after the last sign": (DEAD, lease(994), seen("b", 995)),
    "another boot, and the power is on": (DEAD, seen("b", 900), bmc(ON, 998)),
    "a boot that was gone before it reported twice": (DEAD, seen("b", 900, ready="Unknown")),
    "another machine of that name": (UNKNOWN, seen("b", 900, uuid="m2")),
    "a changed systemUUID": (ALIVE, seen("a", 995, uuid="m2")),
    "the boot before this one": (UNKNOWN, seen("z", -5)),
    "two machines that take turns": (ALIVE, seen("b", 900), seen("a", 905), seen("b", 910)),
    "two machines that take turns, seen from the other": (ALIVE, seen("z", -5), seen("z", 900)),
    "another boot, but a peer still hears this one": (ALIVE, seen("b", 900), peer(995)),
    # Watchdogs: lease + 3 * timeout, stretched by drift; and the Lease read again after that.
    "the bound is over": (DEAD, watchdog(900, 950)),
    "the bound is not over": (UNKNOWN, watchdog(900, 949.9)),
    "the Lease was not read again since": (UNKNOWN, watchdog(900, 901)),
    "an older renewal's bound": (ALIVE, watchdog(900, 950), watchdog(960, 961)),
    "a majority may have let it live on": (UNKNOWN, watchdog(900, 980, reachable=2)),
    "half of the nodes had the API server": (DEAD, watchdog(900, 980, reachable=2, nodes=4)),
    "of no node is it known": (UNKNOWN, watchdog(900, 980, reachable=0, nodes=0)),
    "over, but a peer hears it": (ALIVE, watchdog(900, 980), peer(999)),
    # Storage: sanlock's host_dead_seconds, 8 * 10 s of I/O timeouts and 60 s of its watchdog (src/timeouts.c).
    "a storage lease of 140 s": (DEAD, disk(800, 940)),
    "a storage lease not read again": (UNKNOWN, disk(800, 939)),
    "a storage lease without a watchdog": (UNKNOWN, disk(10, 1000, None)),
    "a storage lease that is renewed": (ALIVE, disk(990, 995)),
    # A person (KEP-2268), unless something says ALIVE.
    "a taint set by hand": (DEAD, person(900)),
    "a taint set by hand on a node that is heard of": (ALIVE, person(999), lease(990)),
    "a taint from before the last sign of life": (ALIVE, person(100), lease(200)),
    "a taint set by hand while the power is on": (ALIVE, person(995), bmc(ON, 990)),
    "a taint from before this boot": (UNKNOWN, person(-10)),
    "a person, and a kubelet that says Ready=False": (ALIVE, person(999), seen("a", 995, ready="False")),
    "a person, and others say Ready=Unknown": (DEAD, person(900), seen("a", 999, ready="Unknown")),
    # What never proves anything.
    "nothing": (UNKNOWN,),
    "a Lease of long ago": (UNKNOWN, lease(10)),
    "a Lease of now": (ALIVE, lease(990)),
    "a reboot command": (UNKNOWN, reboot(900), reboot(950)),
    "its last word": (UNKNOWN, ShutdownAnnounced(boot_id="a", written=100, deadline=200, gone=frozenset({"u1"}))),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=list(ROWS))
def test_verdict(row):
    state, *facts = row
    assert assess(BOOT, facts, NOW).state is state
    assert assess(BOOT, reversed(facts * 2), NOW).state is state


def test_reasons_name_what_decides_and_what_proves_nothing():
    facts = [
        bmc(OFF, 995),
        bmc(NO_ANSWER, 999),
        reboot(900),
        cloud(InstanceState.NOT_FOUND, 990),
        seen("b", 1, uuid="m2"),
    ]
    verdict = assess(BOOT, [lease(940), *facts], NOW)
    assert verdict.state is UNKNOWN
    assert verdict.reasons == (
        "it renewed its Lease 1m0s ago, and no sign of life has followed",
        "ec2 does not find the instance, which proves nothing: region or account may be wrong",
        "bmc says UNKNOWN",
        "bmc ordered a reboot, which proves nothing",
        "no armed watchdog is known of, so its silence proves nothing",
        "machine m2 has reported under its name: its own machine may run on",
    )
    assert [one.what for one in verdict.awaited][0] == "a second OFF from bmc, 1 s after the first or later"


def test_a_death_is_told_with_its_proof_and_awaits_nothing():
    verdict = assess(BOOT, [bmc(OFF, 900.001), bmc(OFF, 903), watchdog(900, 989.6)], NOW)
    assert (verdict.boot_id, verdict.awaited) == ("a", ())
    assert set(verdict.reasons) == {
        "bmc said OFF twice, 1m39s ago",
        "its watchdog has reset it, as no renewal followed in (20 s lease + 3 * 10 s timeout) * 1 = 50 s, 50s ago",
    }


def test_what_is_awaited_has_its_latest_time():
    word = ShutdownAnnounced(boot_id="a", written=900, deadline=1030)
    verdict = assess(BOOT, [watchdog(975, 990), disk(970, 990), word], NOW)
    assert [one.at for one in verdict.awaited] == [1025, 1110, None], (
        "a node that says that it goes down proves nothing"
    )
    assert "(20 s lease + 3 * 10 s timeout) * 1 = 50 s" in verdict.awaited[0].what


def test_a_bound_that_proves_nothing_is_not_awaited():
    verdict = assess(BOOT, [watchdog(980, 990, reachable=1)], NOW)
    assert [one.at for one in verdict.awaited] == [None]
    assert any("only 1 of 5 nodes surely had the API server" in reason for reason in verdict.reasons)


def test_a_proof_that_a_fresh_sign_outweighs_stands_when_no_other_follows():
    facts = [lease(992), bmc(OFF, 995), bmc(OFF, 997)]
    verdict = assess(BOOT, facts, NOW)
    assert verdict.state is ALIVE
    assert (verdict.awaited[0].what, verdict.awaited[0].at) == ("that no other sign of life follows", 1012)
    assert assess(BOOT, facts, 1011.9).state is ALIVE
    assert assess(BOOT, facts, 1012).state is DEAD


def test_a_node_that_says_that_it_goes_down_is_not_fenced_before_its_deadline():
    """A planned reboot is not a crash."""
    word = ShutdownAnnounced(boot_id="a", written=900, deadline=1030)
    assert fencing_held_until(BOOT, [word], 1000) == 1030
    assert fencing_held_until(BOOT, [word], 1030) is None
    assert fencing_held_until(Boot(id="b", system_uuid="m1", since=950), [word], 1000) is None
    assert fencing_held_until(BOOT, [], 1000) is None


def test_a_cancelled_shutdown_holds_nothing_back():
    word = ShutdownAnnounced(boot_id="a", written=900, deadline=1030)
    stays = ShutdownAnnounced(boot_id="a", written=910, deadline=1030, cancelled=True)
    anew = ShutdownAnnounced(boot_id="a", written=920, deadline=1050)
    assert fencing_held_until(BOOT, [stays, word], 1000) is None
    assert fencing_held_until(BOOT, [anew, stays, word], 1000) == 1050


def test_a_last_word_frees_the_pods_that_it_lists_and_proves_no_death():
    words = [
        ShutdownAnnounced(boot_id="a", written=900, deadline=910, gone=frozenset({"u1"})),
        ShutdownAnnounced(boot_id="z", written=0, deadline=1, gone=frozenset({"u2"})),
    ]
    assert ended_pod_uids(BOOT, words) == {"u1"}
    assert (
        ended_pod_uids(BOOT, [*words, ShutdownAnnounced(boot_id="a", written=950, deadline=960, cancelled=True)])
        == set()
    )
    assert ended_pod_uids(BOOT, []) == set()
    assert assess(BOOT, words, NOW).state is UNKNOWN


def test_of_a_node_without_a_boot_id_nothing_can_be_asked():
    with pytest.raises(InvalidInput, match="id: empty"):
        Boot(id="", system_uuid="m1", since=0)


def test_the_bound_of_a_watchdog():
    """A pet that was decided on at the end of the lease is as late as the device allows, and so is the kernel's at the end."""
    settings = WatchdogTiming(lease=40, pet=10, timeout=60, drift=0.01)
    assert settings.reset_bound == pytest.approx(222.2)
    assert settings.bound_arithmetic == "(40 s lease + 3 * 60 s timeout) * 1.01 = 222.2 s"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"timeout": 20}, "timeout: 20: must be more than 2 * 10 s pet * 1.01 = 20.2 s"),
        ({"lease": 20}, "lease: 20: must be more than 2 * 10 s pet = 20 s"),
        ({"pet": 0}, "pet: 0: must be more than 0 s"),
        ({"drift": -0.01}, "drift: -0.01: must be from 0 to 0.1"),
        ({"drift": 0.2}, "drift: 0.2: must be from 0 to 0.1"),
        ({"drift": math.nan}, "drift: nan: must be from 0 to 0.1"),
        ({"timeout": math.nan}, "timeout: nan: must be more than"),
        ({"timeout": math.inf}, "must be finite"),
        ({"survives_close": False}, "the device is disarmed when the agent is killed"),
    ],
)
def test_unsafe_watchdogs_are_refused_with_the_arithmetic(change, told):
    with pytest.raises(InvalidInput) as caught:
        WatchdogTiming(**{"lease": 40, "pet": 10, "timeout": 60, **change})
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("facts", "kinds"),
    [
        ((bmc(OFF, 900), bmc(OFF, 902)), {ProofKind.FENCE}),
        ((cloud(InstanceState.STOPPED, 900), cloud(InstanceState.TERMINATED, 902)), {ProofKind.INSTANCE}),
        ((watchdog(900, 960),), {ProofKind.WATCHDOG}),
        ((disk(800, 950),), {ProofKind.STORAGE}),
        ((seen("b", 900),), {ProofKind.NEW_BOOT}),
        ((person(900),), {ProofKind.PERSON}),
        ((bmc(OFF, 900), bmc(OFF, 902), person(950)), {ProofKind.FENCE, ProofKind.PERSON}),
        ((bmc(OFF, 900), person(950)), {ProofKind.PERSON}),
        ((bmc(OFF, 900), bmc(OFF, 902), lease(903)), set()),
        ((bmc(OFF, 900),), set()),
    ],
)
def test_of_which_kinds_are_the_proofs_that_stand(facts, kinds):
    assert assess(BOOT, facts, NOW).kinds == kinds


@pytest.mark.parametrize(
    ("uuid", "proved"),
    [
        ("", False),
        ("00000000-0000-0000-0000-000000000000", False),
        ("FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", False),
        ("03000200-0400-0500-0006-000700080009", False),
        ("4c4c4544-0051-3510-8052-b4c04f4a3332", True),
    ],
)
def test_another_boot_ends_this_one_only_on_a_machine_that_is_known_to_be_the_same(uuid, proved):
    """Two machines that take one name, and report no system UUID of their own, are not proved to be one."""
    boot = Boot(id="a", system_uuid=uuid, since=10.0)
    facts = [
        NodeSeen(boot_id="a", system_uuid=uuid, ready="True", at=10.0),
        NodeSeen(boot_id="b", system_uuid=uuid, ready="True", at=50.0),
    ]
    found = assess(boot, facts, 100.0, ProofTerms())
    assert (found.state is BootState.DEAD) is proved
