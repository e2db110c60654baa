"""The states in which a guarded application is asked for a member, and what came of each: for tests and the bench.

An application is a ``GuardedLab``. Without a guard the same is done, and what is lost is counted.
"""

import time
from dataclasses import dataclass, field

from support.guard.guarded_lab import wait

HELD_SECONDS = 8.0
"""So long a member is held that can never be ready in its state."""


@dataclass
class Asked:
    """The member that was asked for, what was answered, and what the policy said of it while it was held."""

    name: str
    said: list = field(default_factory=list)
    held: dict = field(default_factory=dict)
    most_gone: int = 1
    """So many members were away at a time."""


@dataclass
class Observed:
    """What a client and a person saw. ``pause`` is the longest time in seconds without an acknowledged write."""

    asked: Asked
    acknowledged: int
    lost: int
    pause: float
    events: str


def observe(application, play, *, size=1):
    """Plays a state while a client writes values of that size, until all members are there again.

    The guard has another look at a replacement before it gives its place to the next one.
    """
    wait(lambda: not application.held(), "release of the last place")
    with application.client(size=size) as client:
        wait(lambda: len(client.acknowledged) >= 20, "acknowledged writes")
        asked = play(application)
        application.thaw()
        wait(application.is_whole, lambda: f"all members: {asked}", 120)
        before = len(client.acknowledged)
        wait(lambda: len(client.acknowledged) >= before + 20, "writes afterwards")
    gaps = [later - earlier for earlier, later in zip(client.times, client.times[1:], strict=False)]
    return Observed(
        asked=asked,
        acknowledged=len(client.acknowledged),
        lost=client.count_lost(),
        pause=max(gaps),
        events=application("get events -o jsonpath={.items[*].reason}"),
    )


def delete_leader(application):
    """Healthy: ``kubectl delete``, repeated by a person who is refused."""
    leader = application.leading_pod()
    return Asked(leader, application.delete_until_gone(leader))


def drain_leader(application):
    """Healthy: ``kubectl drain`` of the leader's node."""
    leader = application.leading_pod()
    node = application.find(leader)["spec"]["nodeName"]
    said = application(f"drain {node} --ignore-daemonsets --delete-emptydir-data --force --timeout=120s")
    application(f"uncordon {node}")
    assert f"node/{node} drained" in said, said
    return Asked(leader, [said])


def roll(application):
    """Healthy: ``kubectl rollout restart``."""
    leader = application.leading_pod()
    application(f"rollout restart statefulset {application.name}")
    said = application(f"rollout status statefulset {application.name} --timeout=180s")
    assert "complete" in said or "successfully" in said, said
    return Asked(leader, [said])


def delete_while_replicas_are_frozen(application):
    """All replicas are frozen; without a guard until the leader is gone."""
    leader = application.leading_pod()
    application.freeze(*application.replica_pods())
    time.sleep(3)
    return _ask_for(application, leader)


def delete_one_member_short(application):
    """One replica of two is frozen."""
    leader = application.leading_pod()
    application.freeze(application.replica_pods()[0])
    time.sleep(3)
    return _ask_for(application, leader)


def delete_in_short_grace(application):
    """The grace period is shorter than the shutdown takes: the leader's pod is killed in the midst of it."""
    leader = application.leading_pod()
    application.slow_down(True)
    try:
        return Asked(leader, application.delete_until_gone(leader, "--grace-period=1"))
    finally:
        application.slow_down(False)


def delete_two_at_once(application):
    """The leader and a replica in one request, several times; then until both have been replaced, one after the other."""
    names = [application.leading_pod(), application.replica_pods()[0]]
    asked = Asked(names[0])
    before = {name: application.find(name)["metadata"]["uid"] for name in names}
    end = time.monotonic() + 120
    while left := [name for name in names if _uid(application, name) == before[name]]:
        assert time.monotonic() < end, asked
        asked.said.append(application(f"delete pod {' '.join(left)} --wait=false"))
        gone = [pod for pod in application.pods().values() if "deletionTimestamp" in pod["metadata"]]
        missing = 3 - len(application.pods())
        asked.most_gone = max(asked.most_gone, len(gone) + missing)
        time.sleep(0.5)
    return asked


def _uid(application, name):
    pod = application.find(name)
    return pod["metadata"]["uid"] if pod else ""


def _ask_for(application, name, policy=""):
    """Deletes a pod that is held; it goes when the application is mended. Without a guard, it goes at once."""
    asked, uid = Asked(name), _uid(application, name)
    end = time.monotonic() + (HELD_SECONDS if application.guarded else 60)
    while time.monotonic() < end and _uid(application, name) == uid:
        pod = application.find(name)
        if pod and "deletionTimestamp" not in pod["metadata"]:
            asked.said.append(application(f"delete pod {name} --wait=false"))
        time.sleep(1)
    asked.held = application.held(policy).get(name, {})
    application.thaw()
    if application.guarded:
        asked.said += application.delete_until_gone(name, seconds=120)
    return asked


def delete_etcd_one_member_short(application):
    """Of Patroni's etcd: one member of three is frozen, and another one is asked for. A quorum needs two."""
    application.freeze("etcd-2")
    return _ask_for(application, "etcd-0", "etcd")
