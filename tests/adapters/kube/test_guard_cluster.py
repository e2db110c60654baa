"""The guard's view of a cluster and its records, at the lab's API server in virtual time."""

import asyncio
import json
from datetime import UTC, datetime
from random import Random
from weakref import ref

import pytest
from msgspec.structs import replace
from support.guard.reviews import deletion, eviction
from support.lab.virtual_server import Asked

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.guard_facts import KubeGuardFacts
from lastcall.adapters.kube.guard_policies import KubeGuardPolicies
from lastcall.adapters.kube.guard_records import KubeGuardActions, KubeGuardRecords
from lastcall.adapters.kube.node_shutdown_marks import NodeShutdownMarks
from lastcall.adapters.kube.recent_reads import RecentReads
from lastcall.aio import cancel_and_wait
from lastcall.errors import Unavailable
from lastcall.guard.decisions.reservations import application_of
from lastcall.model.admission import parse_review
from lastcall.model.guard_config import GuardConfig
from lastcall.model.guard_policy import GuardPolicy, HeldPod, PreparationState
from lastcall.model.pods import StatusCondition
from lastcall.names import GUARD_READY, NODE_SHUTDOWN_MARK
from lastcall_lab import virtual
from lastcall_lab.apiserver.server.in_process import InProcessTransport

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "guardpolicies.lastcall.dev"},
    "spec": {
        "group": "lastcall.dev",
        "scope": "Namespaced",
        "names": {"plural": "guardpolicies", "kind": "GuardPolicy"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
POLICIES = "/apis/lastcall.dev/v1alpha1/namespaces/shop/guardpolicies"
WHEN = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)


class CountedTransport(InProcessTransport):
    """Counts what is asked; ``fails`` names paths that are not answered."""

    def __init__(self, server):
        super().__init__(server)
        self.asked, self.fails = [], ()

    async def request(self, method, target, headers, body, *, stream=False):
        path = target.partition("?")[0]
        self.asked.append(f"{method} {path.rpartition('/')[2]}")
        if any(path.endswith(one) for one in self.fails):
            raise Unavailable("no answer")
        return await super().request(method, target, headers, body, stream=stream)


class Shop:
    """A namespace with a StatefulSet of two pods, and a policy."""

    def __init__(self):
        self.clock = virtual.VirtualClock()
        self.server = Asked(self.clock)
        self.transport = CountedTransport(self.server)
        self.client = Client(self.transport)
        self.facts = KubeGuardFacts(self.client, self.clock)
        self.records = KubeGuardRecords(self.client)

    async def fill(self):
        good = self.server.good
        await good("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
        await self.clock.sleep(10)
        await good(
            "POST",
            "/api/v1/namespaces",
            {"metadata": {"name": "shop", "labels": {"lastcall.dev/guard-enabled": "true"}}},
        )
        await good("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})
        await good("POST", "/api/v1/namespaces/shop/serviceaccounts", {"metadata": {"name": "default"}})
        template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
        spec = {"selector": {"matchLabels": {"app": "db"}}, "serviceName": "db", "template": template, "replicas": 2}
        self.set = await good(
            "POST", "/apis/apps/v1/namespaces/shop/statefulsets", {"metadata": {"name": "db"}, "spec": spec}
        )
        self.pods = [await self.make_pod(f"db-{number}", "apps/v1", "StatefulSet", self.set) for number in range(2)]
        policy = {
            "apiVersion": "lastcall.dev/v1alpha1",
            "kind": "GuardPolicy",
            "metadata": {"name": "db"},
            "spec": {"selector": {"matchLabels": {"app": "db"}}, "provider": {"http": {}}},
        }
        await good("POST", POLICIES, policy)
        return self

    async def make_pod(self, name, version, kind, owner):
        reference = {"apiVersion": version, "kind": kind, "controller": True}
        reference |= {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        pod = {
            "metadata": {"name": name, "labels": {"app": "db"}, "ownerReferences": [reference]},
            "spec": {"nodeName": "n1", "containers": [{"name": "a", "image": "b"}]},
        }
        return await self.server.good("POST", "/api/v1/namespaces/shop/pods", pod)

    async def policy(self):
        return (await self.facts.read_namespace_facts("shop")).policies[0]


def in_shop(test):
    """Runs the test in virtual time."""

    def run(**arguments):
        async def main():
            await test(await Shop().fill(), **arguments)

        virtual.run(main())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def removal(review):
    return parse_review(json.dumps(review).encode(), "review").removal


@in_shop
async def test_what_surrounds_a_pod_is_read(shop):
    facts = await shop.facts.read_removal_facts(removal(eviction("db-0")), fresh=False)
    pod = facts.find_pod("shop", "db-0")
    assert pod.metadata.uid == shop.pods[0]["metadata"]["uid"]
    assert application_of(pod, facts.policies[0], facts) == shop.set["metadata"]["uid"]
    assert facts.owners[shop.set["metadata"]["uid"]].spec.replicas == 2
    assert list(facts.nodes) == ["n1"]
    assert facts.namespaces["shop"].metadata.labels["lastcall.dev/guard-enabled"] == "true"


@in_shop
async def test_the_administrators_settings_are_part_of_all_that_is_read(shop):
    config = GuardConfig(ready_seconds=20)
    shop.facts = KubeGuardFacts(shop.client, shop.clock, config)
    asked = [removal(eviction("db-0")), removal(eviction("nobody"))]
    asked.append(replace(asked[0], namespace="default"))
    found = [await shop.facts.read_removal_facts(one, fresh=fresh) for one in asked for fresh in (False, True)]
    found += [await shop.facts.read_namespace_facts("shop"), await shop.facts.read_pod_facts("shop")]
    assert {one.config for one in found} == {config}


@in_shop
async def test_what_was_read_a_moment_ago_is_not_read_again_unless_it_has_to_be_fresh(shop):
    asked = removal(eviction("db-0"))
    await shop.facts.read_removal_facts(asked, fresh=False)
    shop.transport.asked.clear()
    await shop.facts.read_removal_facts(asked, fresh=False)
    assert shop.transport.asked == []
    await shop.facts.read_removal_facts(asked, fresh=True)
    every = [
        "deployments",
        "guardpolicies",
        "n1",
        "poddisruptionbudgets",
        "pods",
        "replicasets",
        "shop",
        "statefulsets",
    ]
    assert sorted(shop.transport.asked) == [f"GET {one}" for one in every], "an owner may be new, too"
    await shop.clock.sleep(3)
    await shop.facts.read_removal_facts(asked, fresh=False)
    assert len(shop.transport.asked) == 8 + 8


@in_shop
async def test_what_is_forgotten_is_read_again(shop):
    asked = removal(deletion(shop.pods[0]))
    await shop.facts.read_removal_facts(asked, fresh=False)
    shop.transport.asked.clear()
    shop.facts.forget("shop")
    await shop.facts.read_removal_facts(asked, fresh=False)
    assert "GET guardpolicies" in shop.transport.asked


@in_shop
async def test_what_was_read_a_moment_ago_is_known_without_a_question(shop):
    asked = removal(deletion(shop.pods[0]))
    assert shop.facts.recall_removal_facts(asked) is None
    found = await shop.facts.read_removal_facts(asked, fresh=False)
    shop.transport.asked.clear()
    assert shop.facts.recall_removal_facts(asked) == found
    assert shop.transport.asked == []
    await shop.clock.sleep(1.6)
    assert shop.facts.recall_removal_facts(asked) == found
    await shop.clock.sleep(0.1)
    assert len(shop.transport.asked) == 7, "it is read again before its time is over"
    await shop.clock.sleep(1.6)
    assert shop.facts.recall_removal_facts(asked) is not None
    await shop.clock.sleep(3)
    assert shop.facts.recall_removal_facts(asked) is None


@in_shop
async def test_what_was_recalled_counts_for_a_moment(shop):
    """It is looked for again before it is two seconds old, and when the guard has changed something itself."""
    asked, other = removal(deletion(shop.pods[0])), removal(deletion(shop.pods[1]))
    await shop.facts.read_removal_facts(asked, fresh=False)
    found = shop.facts.recall_removal_facts(asked)
    assert shop.facts.counts_still(asked, found)
    assert shop.facts.recall_removal_facts(asked) is found
    assert not shop.facts.counts_still(asked, replace(found)), "equal facts may be of another time"
    await shop.clock.sleep(0.3)
    assert not shop.facts.counts_still(asked, found)
    assert shop.facts.recall_removal_facts(asked) is found
    assert shop.facts.counts_still(asked, found)
    shop.facts.forget("shop")
    assert not shop.facts.counts_still(asked, found)
    await shop.facts.read_removal_facts(other, fresh=False)
    assert shop.facts.recall_removal_facts(asked) is not found, "it is read anew"


@in_shop
async def test_facts_that_are_too_old_are_not_kept(shop):
    """Those of a large namespace have megabytes."""
    asked = removal(deletion(shop.pods[0]))
    await shop.facts.read_removal_facts(asked, fresh=False)
    old = ref(shop.facts.recall_removal_facts(asked))
    await shop.facts.read_removal_facts(asked, fresh=True)
    assert shop.facts.recall_removal_facts(asked)
    assert old() is None


@in_shop
async def test_what_is_not_remembered_whole_is_not_known(shop):
    """An eviction does not show its pod, and owners of other kinds are read one by one."""
    evicted = removal(eviction("db-0"))
    job = await shop.make_pod("job-1", "batch/v1", "Job", {"metadata": {"name": "gone", "uid": "uid-gone"}})
    for asked in (evicted, removal(deletion(job))):
        await shop.facts.read_removal_facts(asked, fresh=False)
        assert shop.facts.recall_removal_facts(asked) is None
    await shop.server.good("DELETE", f"{POLICIES}/db")
    unguarded = removal(deletion(shop.pods[0]))
    shop.facts.forget("shop")
    await shop.facts.read_removal_facts(unguarded, fresh=False)
    assert shop.facts.recall_removal_facts(unguarded) is None


@in_shop
async def test_the_pods_of_a_namespace_cost_three_requests(shop):
    shop.transport.asked.clear()
    facts = await shop.facts.read_pod_facts("shop")
    assert sorted(shop.transport.asked) == ["GET guardpolicies", "GET pods", "GET shop"]
    assert {pod.metadata.name for pod in facts.pods} == {"db-0", "db-1"}
    assert list(facts.namespaces) == ["shop"]
    assert [one.name for one in facts.policies] == ["db"]


@in_shop
async def test_a_namespace_without_policies_costs_one_request(shop):
    await shop.server.good("DELETE", f"{POLICIES}/db")
    found = await shop.facts.read_removal_facts(removal(deletion(shop.pods[0])), fresh=False)
    assert found.policies == ()
    assert shop.transport.asked == ["GET guardpolicies"]


@in_shop
async def test_an_owner_of_a_kind_that_may_not_be_read_counts_as_existing(shop):
    """As one of the same kind in another API group does."""
    for number, version in enumerate(("kruise.io/v1", "x.example.com/v1")):
        owner = {"metadata": {"name": "db", "uid": f"uid-{number}"}}
        pod = await shop.make_pod(f"other-{number}", version, "StatefulSet", owner)
        facts = await shop.facts.read_removal_facts(removal(deletion(pod)), fresh=False)
        assert f"uid-{number}" in facts.owners


@pytest.mark.parametrize(
    ("version", "kind", "path"),
    [
        ("batch/v1", "Job", ""),
        ("apps/v1", "DaemonSet", ""),
        ("v1", "ReplicationController", ""),
        ("apps/v1", "ReplicaSet", ""),
    ],
)
def test_an_owner_that_does_not_exist_is_missing(version, kind, path):
    @in_shop
    async def check(shop):
        pod = await shop.make_pod("job-1", version, kind, {"metadata": {"name": "gone", "uid": "uid-gone"}})
        facts = await shop.facts.read_removal_facts(removal(deletion(pod)), fresh=False)
        assert "uid-gone" not in facts.owners

    check()


@in_shop
async def test_the_taints_of_a_pod_are_those_of_its_node_now(shop):
    pod = (await shop.facts.read_pod_facts("shop")).find_pod("shop", "db-0")
    assert "NoExecute" not in {one.effect for one in (await shop.facts.read_pod_taints(pod)).taints}
    taint = {"key": "k", "effect": "NoExecute"}
    await shop.server.good("PATCH", "/api/v1/nodes/n1", {"spec": {"taints": [taint]}})
    found = await shop.facts.read_pod_taints(pod)
    assert [(one.key, one.effect) for one in found.taints] == [("k", "NoExecute")]
    assert "node.kubernetes.io/unreachable" in {one.key for one in found.tolerations}
    facts = await shop.facts.read_removal_facts(removal(deletion(shop.pods[0])), fresh=False)
    await shop.facts.read_pod_taints(pod)
    assert shop.facts.recall_removal_facts(removal(deletion(shop.pods[0]))) == facts, "what is remembered stays"
    other = replace(pod, metadata=replace(pod.metadata, uid="other"))
    assert (await shop.facts.read_pod_taints(other)).taints == ()


@in_shop
async def test_a_cluster_that_does_not_answer_is_an_error_and_is_asked_again(shop):
    asked = removal(deletion(shop.pods[0]))
    shop.transport.fails = ("/statefulsets",)
    with pytest.raises(Unavailable):
        await shop.facts.read_removal_facts(asked, fresh=False)
    shop.transport.fails = ()
    assert (await shop.facts.read_removal_facts(asked, fresh=False)).pods


def entry(uid, **fields):
    return HeldPod(name="db-0", uid=uid, state=PreparationState.PREPARING, since=WHEN, **fields)


@in_shop
async def test_an_entry_is_written_changed_and_removed(shop):
    policy = await shop.policy()
    await shop.records.change_entry(policy, "u1", lambda _, held: entry("u1", percent=5))
    await shop.records.change_entry(policy, "u2", lambda _, held: entry("u2"))
    stored = await shop.server.good("GET", f"{POLICIES}/db")
    fields = {"attempts": 0, "name": "db-0", "since": "2026-11-28T12:00:00Z", "state": "Preparing"}
    assert stored["status"]["pods"] == [{**fields, "uid": "u2"}, {**fields, "uid": "u1", "percent": 5}], "newest first"
    assert (stored["status"]["heldPods"], stored["status"]["readyPods"]) == (2, 0)
    found = await shop.records.change_entry(policy, "u1", lambda _, held: None)
    assert found.percent == 5
    await shop.records.remove_entry(policy, "u1")
    await shop.records.remove_entry(policy, "u1")
    assert [one.uid for one in (await shop.policy()).status.pods] == ["u2"]


@in_shop
async def test_two_writers_lose_nothing(shop):
    policy = await shop.policy()
    seen = []

    def change(current: GuardPolicy, held):
        seen.append(len(current.status.pods))
        return entry("u1")

    original, raced = shop.client.patch, []

    async def patch(*arguments, **more):
        if not raced:
            raced.append(1)
            await KubeGuardRecords(Client(shop.transport)).change_entry(policy, "u2", lambda *_: entry("u2"))
        return await original(*arguments, **more)

    shop.client.patch = patch
    await shop.records.change_entry(policy, "u1", change)
    assert seen == [0, 1], "it decides again on what is stored now"
    assert {one.uid for one in (await shop.policy()).status.pods} == {"u1", "u2"}


@in_shop
async def test_a_policy_that_is_gone_or_made_anew_is_not_written(shop):
    policy = await shop.policy()
    old = (await shop.server.good("GET", f"{POLICIES}/db"))["spec"]
    await shop.server.good("DELETE", f"{POLICIES}/db")
    assert await shop.records.change_entry(policy, "u1", lambda *_: entry("u1")) is None
    again = {"apiVersion": "lastcall.dev/v1alpha1", "kind": "GuardPolicy", "metadata": {"name": "db"}, "spec": old}
    await shop.server.good("POST", POLICIES, again)
    assert await shop.records.change_entry(policy, "u1", lambda *_: entry("u1")) is None
    assert (await shop.policy()).status.pods == ()


@in_shop
async def test_exactly_one_pod_is_deleted_and_events_stand_on_pod_and_owner(shop):
    actions = KubeGuardActions(shop.client, shop.client, shop.clock, instance="me")
    facts = await shop.facts.read_namespace_facts("shop")
    pod = facts.find_pod("shop", "db-0")
    await actions.write_event(pod, "PreparationStalled", "a replica does not follow", is_warning=True)
    found = (await shop.server.good("GET", "/api/v1/namespaces/shop/events"))["items"]
    assert sorted(one["involvedObject"]["kind"] for one in found) == ["Pod", "StatefulSet"]
    assert {one["type"] for one in found} == {"Warning"}
    await actions.delete_pod(pod, 7)
    left = await shop.server.good("GET", "/api/v1/namespaces/shop/pods/db-0")
    assert left["metadata"]["deletionGracePeriodSeconds"] == 7
    await shop.server.good("DELETE", "/api/v1/namespaces/shop/pods/db-0?gracePeriodSeconds=0")
    await shop.make_pod("db-0", "apps/v1", "StatefulSet", shop.set)
    await actions.delete_pod(pod, None)
    assert "deletionTimestamp" not in (await shop.server.good("GET", "/api/v1/namespaces/shop/pods/db-0"))["metadata"]


@in_shop
async def test_the_condition_is_written_and_removed_of_exactly_one_pod_and_others_stay(shop):
    async def conditions(name="db-0"):
        pod = await shop.server.good("GET", f"/api/v1/namespaces/shop/pods/{name}")
        return {one["type"]: one for one in pod["status"].get("conditions", ())}

    own = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    await shop.server.good("PATCH", "/api/v1/namespaces/shop/pods/db-0/status", own)
    actions = KubeGuardActions(shop.client, shop.client, shop.clock, instance="me")
    pod = (await shop.facts.read_namespace_facts("shop")).find_pod("shop", "db-0")
    said = StatusCondition(GUARD_READY, "True", "Ready", "all of it", last_probe_time="2026-11-28T12:00:00Z")
    await actions.write_condition(pod, said)
    found = await conditions()
    assert set(found) == {"Ready", GUARD_READY}
    first = found[GUARD_READY]
    assert first["lastProbeTime"] == "2026-11-28T12:00:00Z"
    assert (first["status"], first["reason"], first["message"]) == ("True", "Ready", "all of it")
    await shop.clock.sleep(10)
    pod = (await shop.facts.read_namespace_facts("shop")).find_pod("shop", "db-0")
    await actions.write_condition(pod, replace(said, message="again"))
    again = (await conditions())[GUARD_READY]
    assert (again["message"], again["lastTransitionTime"]) == ("again", first["lastTransitionTime"])
    await actions.write_condition(pod, replace(said, status="False", last_probe_time=None))
    lost = (await conditions())[GUARD_READY]
    assert lost["lastTransitionTime"] > first["lastTransitionTime"]
    assert lost.get("lastProbeTime") is None
    await actions.write_condition(pod, None)
    assert set(await conditions()) == {"Ready"}
    await shop.server.good("DELETE", "/api/v1/namespaces/shop/pods/db-0?gracePeriodSeconds=0")
    await actions.write_condition(pod, said)
    await shop.make_pod("db-0", "apps/v1", "StatefulSet", shop.set)
    await actions.write_condition(pod, said)
    assert GUARD_READY not in await conditions()


@in_shop
async def test_recorded_shutdowns_of_nodes_are_followed(shop):
    marks = NodeShutdownMarks(shop.client, shop.clock, Random(1))
    following = asyncio.ensure_future(marks.run())
    await shop.clock.sleep(1)
    assert (marks.changes, marks.deadlines) == (0, {})
    mark = {"metadata": {"annotations": {NODE_SHUTDOWN_MARK: '{"bootId": "b", "cordoned": true}'}}}
    await shop.server.good("PATCH", "/api/v1/nodes/n1", mark)
    await shop.clock.sleep(1)
    assert marks.changes == 0, "an older agent records no deadline"
    text = '{"bootId": "b", "cordoned": true, "deadline": "2026-11-28T12:00:00Z"}'
    await shop.server.good("PATCH", "/api/v1/nodes/n1", {"metadata": {"annotations": {NODE_SHUTDOWN_MARK: text}}})
    seen = await marks.wait_for_change(0)
    assert marks.deadlines == {"n1": WHEN}
    await shop.server.good("PATCH", "/api/v1/nodes/n1", {"metadata": {"labels": {"a": "b"}}})
    await shop.clock.sleep(1)
    assert marks.changes == seen
    await shop.server.good("DELETE", "/api/v1/nodes/n1")
    await marks.wait_for_change(seen)
    assert marks.deadlines == {}
    await cancel_and_wait(following)


@in_shop
async def test_policies_are_followed(shop):
    policies = KubeGuardPolicies(shop.client, shop.clock, Random(1))
    following = asyncio.ensure_future(policies.run())
    assert policies.changes == -1
    seen = await policies.wait_for_change(-1)
    assert list(policies.by_key) == [("shop", "db")]
    await shop.records.change_entry(policies.by_key["shop", "db"], "u1", lambda *_: entry("u1"))
    await policies.wait_for_change(seen)
    assert policies.by_key["shop", "db"].status.pods[0].uid == "u1"
    await cancel_and_wait(following)


def test_what_is_asked_for_all_the_time_is_read_again_before_it_is_too_old():
    """So nobody waits for it; a failure is tried again, and no answer is older than asked."""

    async def main():
        clock = virtual.VirtualClock()
        reads, begun = RecentReads(clock), []

        async def load():
            begun.append(clock.boottime())
            await clock.sleep(0.1)
            if len(begun) == 2:
                raise Unavailable("away")
            return begun[-1]

        await reads.read("key", load, seconds=2)
        for _ in range(200):
            before = clock.boottime()
            found = await reads.read("key", load, seconds=2)
            assert clock.boottime() == before
            assert before - found < 2
            await clock.sleep(0.05)
        assert len(begun) == 8

    virtual.run(main())


def test_what_is_forgotten_is_read_again_though_it_was_being_renewed():
    async def main():
        clock = virtual.VirtualClock()
        reads, begun = RecentReads(clock), []

        async def load():
            begun.append(clock.boottime())
            await clock.sleep(0.1)
            return begun[-1]

        first = await reads.read("key", load, seconds=2)
        await clock.sleep(1.6)
        assert await reads.read("key", load, seconds=2) == first
        await clock.sleep(0.05)
        reads.forget("key")
        forgotten = clock.boottime()
        assert await reads.read("key", load, seconds=2) == forgotten
        assert await reads.read("key", load, seconds=2) == forgotten
        assert len(begun) == 3

    virtual.run(main())


def test_who_is_cancelled_does_not_take_the_answer_away_from_others():
    async def main():
        clock = virtual.VirtualClock()
        reads, loads = RecentReads(clock), []

        async def load():
            loads.append(1)
            await clock.sleep(1)
            return "answer"

        first = asyncio.ensure_future(reads.read("key", load, seconds=5))
        second = asyncio.ensure_future(reads.read("key", load, seconds=5))
        await clock.sleep(0.5)
        await cancel_and_wait(first)
        assert await second == "answer"
        assert loads == [1]

    virtual.run(main())
