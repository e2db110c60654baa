"""What becomes of preparations, and of pods, when something else decides: budgets, deletions around them, a lost node.

At the lab's API server with the webhooks and rights of the manifests, in virtual time.
"""

import pytest
from support.guard.guarded_cluster import SHOP, play_on_guarded_cluster

from lastcall.adapters.kube.resources import (
    BUDGETS,
    GUARD_POLICIES,
    NAMESPACES,
    NODES,
    PODS,
    STATEFUL_SETS,
    VALIDATING_WEBHOOKS,
)
from lastcall.manifests.guard_grants import NAME as GUARD
from lastcall.names import GUARD_ANNOTATION
from lastcall_lab.apiserver.admission.webhook_client import WebhookUnreachable


async def begin_to_prepare(cluster):
    """A person asks for db-0, whose application takes longer than the test."""
    cluster.database.seconds = 10**6
    assert (await cluster.remove("ann"))[0] == 429
    await cluster.until(lambda: cluster.database.calls == ["prepare"])


async def delete_policy(cluster):
    await cluster.client.delete(GUARD_POLICIES, "db", namespace=SHOP)


async def delete_namespace(cluster):
    await cluster.client.delete(NAMESPACES, SHOP)


async def uninstall(cluster):
    """In the order of ``docs/how-to/uninstall.md``: the rights go last."""
    await cluster.client.delete(VALIDATING_WEBHOOKS, GUARD)
    await cluster.client.delete(GUARD_POLICIES, "db", namespace=SHOP)


@pytest.mark.parametrize("delete", [delete_policy, delete_namespace, uninstall])
def test_what_was_prepared_for_a_policy_that_is_deleted_is_undone_and_nothing_waits_for_it(delete):
    async def scene(cluster):
        await begin_to_prepare(cluster)
        await delete(cluster)
        assert cluster.get(GUARD_POLICIES, "db") is None or delete is delete_namespace
        await cluster.until(lambda: len(cluster.database.calls) == 2)
        assert cluster.database.calls[1] in ("cancel", "release")
        if delete is delete_namespace:
            await cluster.until(lambda: cluster.get(NAMESPACES, SHOP) is None)
        else:
            assert (await cluster.remove("ann"))[0] == 200

    play_on_guarded_cluster(scene)


# -- budgets -----------------------------------------------------------------------------------------------------------


async def make_budget(cluster, name="db", most=0):
    spec = {"selector": {"matchLabels": {"app": "db"}}, "maxUnavailable": most}
    await cluster.client.create(BUDGETS, {"metadata": {"name": name}, "spec": spec}, namespace=SHOP)
    await cluster.until(lambda: (cluster.get(BUDGETS, name).get("status") or {}).get("expectedPods") == 3)


async def evict_when_ready(cluster):
    assert (await cluster.evict("ann"))[0] == 429
    await cluster.until(lambda: cluster.entries()["db-0"]["state"] == "Ready")


def test_nothing_is_prepared_for_an_eviction_that_a_budget_refuses():
    async def scene(cluster):
        await make_budget(cluster)
        assert (await cluster.evict("ann"))[0] == 429
        await cluster.clock.sleep(60)
        assert cluster.entries() == {}
        assert cluster.database.calls == []

    play_on_guarded_cluster(scene)


def test_a_ready_pod_that_its_budget_refuses_stays_prepared_for_the_next_try():
    async def scene(cluster):
        await evict_when_ready(cluster)
        await make_budget(cluster)
        code, said = await cluster.evict("ann")
        assert (code, said["message"]) == (429, "Cannot evict pod as it would violate the pod's disruption budget.")
        assert cluster.allowed[-1] == ("db-0", "ready", True)
        await cluster.clock.sleep(60)
        assert cluster.entries()["db-0"]["state"] == "Ready"
        await cluster.client.delete(BUDGETS, "db", namespace=SHOP)
        assert (await cluster.evict("ann"))[0] == 201
        assert cluster.database.calls == ["prepare"]

    play_on_guarded_cluster(scene)


def test_a_ready_pod_that_two_budgets_refuse_for_ever_is_given_up():
    """The API server answers 500; nobody can evict the pod, and what was prepared is undone when nobody asks."""

    async def scene(cluster):
        await evict_when_ready(cluster)
        await make_budget(cluster, most=1)
        await make_budget(cluster, "db-too", most=1)
        assert (await cluster.evict("ann"))[0] == 500
        await cluster.clock.sleep(1300)
        assert cluster.database.calls == ["prepare", "cancel"]
        assert cluster.pod("db-0")

    play_on_guarded_cluster(scene)


def test_an_eviction_of_another_pod_of_that_name_leaves_the_preparation_for_the_next_try():
    async def scene(cluster):
        await evict_when_ready(cluster)
        assert (await cluster.evict("ann", preconditions={"uid": "another"}))[0] == 409
        await cluster.clock.sleep(60)
        assert cluster.entries()["db-0"]["state"] == "Ready"
        assert (await cluster.evict("ann"))[0] == 201
        assert cluster.database.calls == ["prepare"]

    play_on_guarded_cluster(scene)


# -- another webhook ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("evict", [False, True], ids=["delete", "evict"])
def test_a_ready_pod_that_another_webhook_denies_stays_prepared_while_somebody_asks(evict):
    """Even for longer than a silent request is kept."""

    async def scene(cluster):
        ask, done = (cluster.evict, 201) if evict else (cluster.remove, 200)
        await evict_when_ready(cluster)
        await cluster.add_other_webhook()
        for _ in range(100):
            code, said = await ask("ann")
            assert (code, said["message"].rpartition(": ")[2]) == (403, "a backup runs")
            assert cluster.allowed[-1] == ("db-0", "ready", True)
            await cluster.clock.sleep(20)
        assert cluster.entries()["db-0"]["state"] == "Ready"
        assert cluster.entries()["db-0"]["allowedAt"], "which guard status tells"
        cluster.other_denies = False
        assert (await ask("ann"))[0] == done
        assert cluster.database.calls == ["prepare"]
        await cluster.until(lambda: cluster.entries()["db-0"]["state"] == "Released")
        assert "allowedAt" not in cluster.entries()["db-0"]

    play_on_guarded_cluster(scene)


def test_what_another_webhook_denies_and_nobody_asks_for_again_is_undone():
    async def scene(cluster):
        await evict_when_ready(cluster)
        await cluster.add_other_webhook()
        assert (await cluster.evict("ann"))[0] == 403
        await cluster.clock.sleep(1300)
        assert cluster.database.calls == ["prepare", "cancel"]
        assert cluster.entries().get("db-0", {"state": "Released"})["state"] == "Released"

    play_on_guarded_cluster(scene)


def test_a_dry_run_begins_no_preparation_wherever_it_says_so():
    async def scene(cluster):
        path = f"/api/v1/namespaces/{SHOP}/pods/db-0"
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "db-0", "namespace": SHOP}}
        assert (await cluster.evict("ann", dryRun=["All"]))[0] == 429
        assert (await cluster.ask("ann", "POST", f"{path}/eviction?dryRun=All", body))[0] == 429
        assert (await cluster.remove("ann", dryRun=["All"]))[0] == 429
        assert (await cluster.ask("ann", "DELETE", f"{path}?dryRun=All"))[0] == 429
        await cluster.clock.sleep(60)
        assert cluster.entries() == {}
        assert cluster.database.calls == []

    play_on_guarded_cluster(scene)


def test_a_dry_run_that_is_allowed_is_not_told_of():
    async def scene(cluster):
        await evict_when_ready(cluster)
        assert (await cluster.evict("ann", dryRun=["All"]))[0] == 201
        await cluster.clock.sleep(2)
        assert (await cluster.evict("ann"))[0] == 201
        assert "allowedAt" not in cluster.entries()["db-0"]

    play_on_guarded_cluster(scene)


def test_an_allowance_of_an_earlier_preparation_is_not_told_of():
    async def scene(cluster):
        await evict_when_ready(cluster)
        await cluster.add_other_webhook()
        assert (await cluster.evict("ann"))[0] == 403
        await cluster.clock.sleep(1300)
        cluster.other_denies = False
        await evict_when_ready(cluster)
        assert (await cluster.evict("ann"))[0] == 201
        assert "allowedAt" not in cluster.entries()["db-0"], "it goes at once"

    play_on_guarded_cluster(scene)


def test_a_controller_whose_deletion_another_webhook_denies_is_told_of_in_the_entry():
    """The guard deletes for it, is denied, and tries again: later each time."""

    async def scene(cluster):
        controller = "system:serviceaccount:kube-system:statefulset-controller"
        await cluster.add_other_webhook()
        cluster.other_denies = False
        spec = {"template": {"metadata": {"annotations": {"version": "2"}}}}
        await cluster.client.patch(STATEFUL_SETS, "db", {"spec": spec}, namespace=SHOP)
        cluster.other_denies = True
        await cluster.until(lambda: cluster.entries().get("db-2", {}).get("requestedBy") == controller)
        await cluster.until(lambda: cluster.entries()["db-2"].get("message", "").endswith(": a backup runs"))
        assert cluster.entries()["db-2"]["state"] == "Ready"
        cluster.other_denies = False
        await cluster.until(lambda: cluster.entries()["db-2"]["state"] == "Released")
        assert cluster.database.calls[:2] == ["prepare", "release"]

    play_on_guarded_cluster(scene)


# -- annotations -------------------------------------------------------------------------------------------------------


def test_a_pod_that_is_opted_in_by_its_annotation_goes_on_running():
    """The annotation is the pod's own: a template that is changed would replace all pods."""

    async def scene(cluster):
        before = {one: cluster.pod(one)["metadata"]["uid"] for one in cluster.ready_pods()}
        revision = cluster.get(STATEFUL_SETS, "db")["status"]["updateRevision"]
        await cluster.client.patch(GUARD_POLICIES, "db", {"spec": {"selector": None}}, namespace=SHOP)
        await cluster.client.patch(
            PODS, "db-0", {"metadata": {"annotations": {GUARD_ANNOTATION: "db"}}}, namespace=SHOP
        )
        await cluster.clock.sleep(300)
        assert {one: cluster.pod(one)["metadata"]["uid"] for one in cluster.ready_pods()} == before
        assert cluster.get(STATEFUL_SETS, "db")["status"]["updateRevision"] == revision
        assert cluster.database.calls == []
        assert (await cluster.remove("ann", "db-0"))[0] == 429
        assert (await cluster.remove("ann", "db-1"))[0] == 200, "no policy guards it"

    play_on_guarded_cluster(scene)


# -- a lost node -------------------------------------------------------------------------------------------------------


async def lose_all_guards(cluster):
    async def call(destination, body):
        raise WebhookUnreachable("connection refused")

    cluster.call = call
    assert (await cluster.remove("ann"))[0] == 500, "failurePolicy Fail"


def test_the_garbage_collector_of_pods_goes_on_though_both_guards_were_on_the_lost_node():
    async def scene(cluster):
        pod = cluster.pod("db-0")
        await lose_all_guards(cluster)
        await cluster.client.delete(NODES, pod["spec"]["nodeName"])
        await cluster.until(lambda: cluster.is_going(pod["metadata"]["uid"]))

    play_on_guarded_cluster(scene)


def test_a_failover_goes_on_though_both_guards_were_on_the_lost_node():
    """It marks the pod Failed first, as the garbage collector of pods does."""

    async def scene(cluster):
        user = "system:serviceaccount:lastcall-system:lastcall-controller"
        await lose_all_guards(cluster)
        assert (await cluster.remove(user, gracePeriodSeconds=0))[0] == 500
        path = f"/api/v1/namespaces/{SHOP}/pods/db-0/status"
        failed = {"status": {"phase": "Failed"}}
        assert (await cluster.ask(user, "PATCH", path, failed, "application/merge-patch+json"))[0] == 200
        assert (await cluster.remove(user, gracePeriodSeconds=0))[0] == 200

    play_on_guarded_cluster(scene)
