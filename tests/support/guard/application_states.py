"""The states in which a guarded application is asked for a member, and what came of each: for tests and the bench.

An application is a ``GuardedLab``. Without a guard the same is done, and what is lost is counted.
"""

import time
from concurrent.futures import ThreadPoolExecutor
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
    condition: dict | None = None
    """What the guard said on the pod at that time."""
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
    said = application(f"rollout status statefulset {application.name} --timeout=240s")
    assert "complete" in said or "successfully" in said, said
    return Asked(leader, [said])


class KubectlDelete:
    """A person who deletes the pod, and asks again every second."""

    options = ""

    def ask(self, application, name):
        """Asks for the member; what was answered."""
        return application(f"delete pod {name} --wait=false {self.options}")

    def choose(self, application):
        """Whom to ask for."""
        return application.leading_pod()

    def finish(self, application):
        """Nothing is left to be done when the member is gone."""

    def shorten_grace(self, application):
        """From now on a pod has one second to end."""
        self.options = "--grace-period=1"


class KubectlDrain(KubectlDelete):
    """A person who drains the member's node, and begins again when kubectl gives up."""

    def __init__(self):
        self._cordoned = set()

    def ask(self, application, name):
        self._cordoned.add(node := application.find(name)["spec"]["nodeName"])
        flags = "--ignore-daemonsets --delete-emptydir-data --force --timeout=6s"
        return application(f"drain {node} {flags} {self.options}")

    def finish(self, application):
        for node in self._cordoned:
            application(f"uncordon {node}")


class RolloutRestart(KubectlDelete):
    """The controller of the StatefulSet, which begins with the last pod and asks again by itself."""

    def __init__(self):
        self._is_begun = False

    def ask(self, application, name):
        if self._is_begun:
            return ""
        self._is_begun = True
        return application(f"rollout restart statefulset {application.name}")

    def choose(self, application):
        """The one that leads, where the application can be told who that is: it has most to lose."""
        application.lead_by(name := f"{application.name}-2")
        return name

    def finish(self, application):
        said = application(f"rollout status statefulset {application.name} --timeout=240s")
        assert "complete" in said or "successfully" in said, said

    def shorten_grace(self, application):
        """The pods get their grace period when they are made: so all of them are replaced first."""
        change = '{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":1}}}}'
        application(f"patch statefulset {application.name} --type=merge -p {change}")
        self.finish(application)
        wait(application.is_whole, "all members")
        wait(lambda: not application.held(), "release of the last place")


def ask_while_replicas_are_frozen(application, way=KubectlDelete):
    """All replicas are frozen; without a guard until the member is gone."""
    asked_for = way()
    name = asked_for.choose(application)
    application.freeze(*application.replica_pods())
    time.sleep(3)
    return _ask_for(application, name, asked_for)


def ask_one_member_short(application, way=KubectlDelete):
    """One replica of two is frozen."""
    asked_for = way()
    name = asked_for.choose(application)
    application.freeze(application.replica_pods()[0])
    time.sleep(3)
    return _ask_for(application, name, asked_for)


def ask_in_short_grace(application, way=KubectlDelete):
    """The grace period is shorter than the shutdown takes: the pod is killed in the midst of it."""
    asked_for = way()
    asked_for.shorten_grace(application)
    name = asked_for.choose(application)
    application.slow_down(True)
    try:
        return _ask_until_gone(application, Asked(name), asked_for)
    finally:
        application.slow_down(False)


def ask_for_two_at_once(application, way=KubectlDelete):
    """The leader and a replica at the same time, until both have been replaced, one after the other."""
    ways = {application.leading_pod(): KubectlDelete(), application.replica_pods()[0]: way()}
    if way is KubectlDrain:
        ways = {name: KubectlDrain() for name in ways}
    asked = Asked(next(iter(ways)))
    before = {name: application.find(name)["metadata"]["uid"] for name in ways}
    end = time.monotonic() + 120
    with ThreadPoolExecutor(len(ways)) as threads:
        while left := [name for name in ways if _uid(application, name) == before[name]]:
            assert time.monotonic() < end, asked
            running = [threads.submit(ways[name].ask, application, name) for name in left]
            while not all(one.done() for one in running):
                asked.most_gone = max(asked.most_gone, _count_gone(application))
                time.sleep(0.1)
            asked.said += [one.result() for one in running]
            asked.most_gone = max(asked.most_gone, _count_gone(application))
            time.sleep(0.5)
    for one in ways.values():
        one.finish(application)
    return asked


def _count_gone(application):
    pods = application.pods().values()
    return 3 - len([pod for pod in pods if "deletionTimestamp" not in pod["metadata"]])


def _uid(application, name):
    pod = application.find(name)
    return pod["metadata"]["uid"] if pod else ""


def _ask_for(application, name, way, policy=""):
    """Asks for a pod that is held; it goes when the application is mended. Without a guard, it goes at once."""
    asked, uid = Asked(name), _uid(application, name)
    end = time.monotonic() + (HELD_SECONDS if application.guarded else 60)
    while time.monotonic() < end and _uid(application, name) == uid:
        _ask_once(application, asked, way)
        time.sleep(1)
    asked.held = application.held(policy).get(name, {})
    asked.condition = application.guard_condition(name)
    application.thaw()
    if _uid(application, name) == uid:
        _ask_until_gone(application, asked, way, uid)
    else:
        way.finish(application)
    return asked


def _ask_until_gone(application, asked, way, uid=""):
    uid = uid or _uid(application, asked.name)
    end = time.monotonic() + 120
    while _uid(application, asked.name) == uid:
        assert time.monotonic() < end, asked
        _ask_once(application, asked, way)
        time.sleep(1)
    way.finish(application)
    return asked


def _ask_once(application, asked, way):
    pod = application.find(asked.name)
    if pod and "deletionTimestamp" not in pod["metadata"] and (said := way.ask(application, asked.name)):
        asked.said.append(said)


def delete_etcd_one_member_short(application):
    """Of Patroni's etcd: one member of three is frozen, and another one is asked for. A quorum needs two."""
    application.freeze("etcd-2")
    return _ask_for(application, "etcd-0", KubectlDelete(), "etcd")
