"""What the guard writes, at the lab's API server in virtual time."""

from msgspec.structs import replace
from support.guard.shop import POLICIES, entry, in_shop

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.guard_records import KubeGuardActions, KubeGuardRecords
from lastcall.model.guard_policy import GuardPolicy
from lastcall.model.pods import StatusCondition
from lastcall.names import GUARD_READY


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
