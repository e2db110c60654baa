"""What agents say in their Leases of watchdogs and of leases on shared storage, as ``lastcall failover explain`` tells it."""

from support.failover.explain_command import CLUSTER, document, machine, policy
from support.failover.snapshots import lease

from lastcall.model.storage_lease import HostSeen, StorageRecord, to_annotations
from lastcall.model.watchdog import WatchdogTiming
from lastcall.model.watchdog_lease import WatchdogPromise
from lastcall.model.watchdog_lease import to_annotations as promised

SILENCE = "no armed watchdog is known of, so its silence proves nothing"
HELD = StorageRecord(
    boot_id="b-1", lockspace="demo", host_id=1, generation=3, owner="n1", timestamp=70, dead_after_seconds=140.0
)


def agent(name, annotations):
    """The Lease of a node's agent, which no watchdog renews."""
    found = lease(name, 0)
    found["metadata"] = {"name": name, "namespace": "lastcall-nodes", "annotations": annotations}
    found["spec"] = {}
    return found


def read(seconds):
    """What n2 says of the lease of n1."""
    host = HostSeen(host_id=1, generation=3, owner="n1", timestamp=90, renewed_ago=seconds, looked_ago=20.0)
    seen = StorageRecord(boot_id="b-2", lockspace="demo", host_id=2, generation=1, owner="n2", seen=(host,))
    return agent("n2", to_annotations(seen))


def explained(*more):
    """Of a node that was heard of 600 s ago."""
    found = document("n1", machine("n1", "Unknown"), lease("n1", 600), *CLUSTER[2:], policy(), *more)
    return str([found["known"], found["proofs"]])


def test_a_lease_on_shared_storage():
    assert SILENCE in explained()
    assert SILENCE in explained(read(500.0)), "the node does not say that it holds it"
    waiting = explained(agent("n1", to_annotations(HELD)), read(60.0))
    assert SILENCE not in waiting
    assert "that its lease on lockspace demo (read by node n2) is not renewed" in waiting
    over = explained(agent("n1", to_annotations(HELD)), read(500.0))
    assert "boot b-1 is DEAD: its lease on lockspace demo (read by node n2) was not renewed for 2m21.4s" in over
    stranger = read(500.0)
    stranger["metadata"]["name"] = "gone"
    assert SILENCE in explained(agent("n1", to_annotations(HELD)), stranger)


def test_a_watchdog():
    settings = WatchdogTiming(lease=40.0, pet=5.0, timeout=30.0)
    for boot, told in (("b-1", True), ("b-0", False)):
        promise = WatchdogPromise.from_timing(boot, settings)
        said = explained(agent("n1", promised(promise)))
        assert ("its agent tells of an armed watchdog" in said) is told
        assert (SILENCE in said) is not told
