"""The guard's view of a cluster, at the lab's API server in virtual time."""

from weakref import ref

import pytest
from msgspec.structs import replace
from support.guard.reviews import deletion, eviction
from support.guard.shop import POLICIES, in_shop, removal

from lastcall.adapters.kube.guard_facts import KubeGuardFacts
from lastcall.errors import Unavailable
from lastcall.guard.decisions.reservations import application_of
from lastcall.model.guard_config import GuardConfig


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
