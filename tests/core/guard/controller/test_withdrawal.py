"""The webhooks of a guard that does not answer are withdrawn and come back: at the lab's API server, in virtual time."""

from copy import deepcopy

import pytest
from support.guard.withdrawal_cluster import CONFIGURATION, CONTROLLER_USER, WithdrawalCluster

from lastcall.adapters.kube.resources import ENDPOINT_SLICES, SERVICES, VALIDATING_WEBHOOKS, dict_resource
from lastcall.errors import ApiUnavailable
from lastcall.guard.decisions.webhook_withdrawal import NEVER
from lastcall.manifests.controller_grants import all_grants
from lastcall.manifests.rbac import AuditedRequest, ungranted_requests
from lastcall.names import GUARD_WITHDRAWN, SYSTEM_NAMESPACE
from lastcall_lab import virtual

HELD, REFUSED, ALLOWED = 429, 500, 200


def play(story, **how):
    async def main():
        cluster = await WithdrawalCluster(**how).start()
        await story(cluster)
        await cluster.close()

    virtual.run(main())


def without_times(configuration):
    """What must be the same: a write has a new revision, and the generation counts writes of the webhooks."""
    found = deepcopy(configuration)
    for name in ("resourceVersion", "generation"):
        del found["metadata"][name]
    return found


def in_force(configuration):
    return [one["name"] for one in configuration.get("webhooks") or ()]


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_both_replicas_are_killed_and_one_comes_back(policy):
    async def story(cluster):
        await cluster.install()
        await cluster.lead()
        await cluster.sleep(100)
        before = await cluster.stored()
        assert (await cluster.try_delete())[0] == HELD
        await cluster.set_ready(1)
        await cluster.sleep(100)
        assert await cluster.stored() == before, "one is enough"

        await cluster.set_ready(0)
        await cluster.sleep(55)
        code, message = await cluster.try_delete()
        assert code == (REFUSED if policy == "Fail" else ALLOWED)
        if policy == "Fail":
            assert 'failed calling webhook "delete.guard.lastcall.dev"' in message
        assert not cluster.watchdog.is_withdrawn
        await cluster.sleep(15)
        assert (await cluster.try_delete())[0] == ALLOWED
        assert in_force(await cluster.stored()) == []
        assert cluster.watchdog.is_withdrawn
        assert await cluster.events() == [("Warning", "WebhooksWithdrawn")]
        await cluster.sleep(600)
        assert (await cluster.try_delete())[0] == ALLOWED
        assert len(await cluster.events()) == 1

        await cluster.set_ready(1)
        await cluster.sleep(20)
        assert (await cluster.try_delete())[0] == HELD
        assert without_times(await cluster.stored()) == without_times(before)
        assert not cluster.watchdog.is_withdrawn
        assert await cluster.events() == [("Warning", "WebhooksWithdrawn"), ("Normal", "WebhooksRestored")]

    play(story, failure_policy=policy)


def test_a_cold_start_of_the_whole_cluster_with_fail():
    """No guard runs yet, the API server answers now and then: the controller waits, and the cluster gets going."""

    async def story(cluster):
        await cluster.install()
        await cluster.set_ready(0)
        before = await cluster.stored()
        calls = 0

        async def fail(method, target):
            nonlocal calls
            calls += 1
            if calls < 30:
                raise ApiUnavailable("the API server starts")

        cluster.transport.trouble = fail
        await cluster.lead()
        await cluster.sleep(140)
        assert (await cluster.try_delete())[0] == REFUSED
        assert "not known whether a guard answers: the API server starts" in cluster.watchdog.sentence
        await cluster.sleep(80)
        assert (await cluster.try_delete())[0] == ALLOWED
        await cluster.set_ready(2)
        await cluster.sleep(20)
        assert (await cluster.try_delete())[0] == HELD
        assert without_times(await cluster.stored()) == without_times(before)

    play(story)


def test_a_first_installation_whose_image_comes_late():
    """The guard has written neither path nor authority when its webhooks are withdrawn; it does so in the copy."""

    async def story(cluster):
        await cluster.lead()
        await cluster.sleep(100)
        assert cluster.watchdog.sentence == "no guard is installed"
        await cluster.install(ready=0)
        await cluster.sleep(100)
        assert (await cluster.try_delete())[0] == ALLOWED
        await cluster.ensure()
        assert in_force(await cluster.stored()) == []
        await cluster.set_ready(1)
        await cluster.sleep(20)
        assert (await cluster.try_delete())[0] == HELD

    play(story)


def test_an_authority_that_was_replaced_meanwhile():
    """The guard writes it into the copy too: with Fail, webhooks with the old one would refuse every deletion."""

    async def story(cluster):
        await cluster.install()
        await cluster.lead()
        await cluster.set_ready(0)
        await cluster.sleep(80)
        cluster.guards.authorities, cluster.guards.path = "another pem", "/review/another"
        await cluster.ensure()
        await cluster.ensure()
        revision = (await cluster.stored())["metadata"]["resourceVersion"]
        await cluster.ensure()
        assert (await cluster.stored())["metadata"]["resourceVersion"] == revision, "nothing is written that is there"
        await cluster.set_ready(2)
        await cluster.sleep(20)
        assert (await cluster.try_delete())[0] == HELD

    play(story)


@pytest.mark.parametrize("ready", [0, 2])
def test_the_manifests_are_applied_again_while_the_webhooks_are_withdrawn(ready):
    async def story(cluster):
        await cluster.install()
        await cluster.lead()
        await cluster.set_ready(0)
        await cluster.sleep(80)
        [_, configuration] = cluster.manifests
        for one in configuration["webhooks"]:
            one["timeoutSeconds"] = 7
        await cluster.set_ready(ready)
        await cluster.apply(configuration)
        await cluster.sleep(20)
        assert (await cluster.try_delete())[0] == (HELD if ready else ALLOWED)
        await cluster.set_ready(2)
        await cluster.sleep(20)
        assert (await cluster.try_delete())[0] == HELD
        stored = await cluster.stored()
        assert {one["timeoutSeconds"] for one in stored["webhooks"]} == {7}
        assert GUARD_WITHDRAWN not in stored["metadata"].get("annotations", {})

    play(story)


def test_a_changed_manifest_does_not_conflict_after_the_webhooks_came_back():
    """The fields belong to Helm again, so its next upgrade may change them."""

    async def story(cluster):
        await cluster.install()
        await cluster.lead()
        await cluster.set_ready(0)
        await cluster.sleep(80)
        await cluster.set_ready(2)
        await cluster.sleep(20)
        [_, configuration] = cluster.manifests
        for one in configuration["webhooks"]:
            one["failurePolicy"] = "Ignore"
        await cluster.apply(configuration)
        assert {one["failurePolicy"] for one in (await cluster.stored())["webhooks"]} == {"Ignore"}
        assert (await cluster.try_delete())[0] == HELD, "what the guard wrote has stayed"

    play(story)


def test_an_uninstallation_in_any_order():
    async def story(cluster):
        await cluster.install()
        await cluster.lead()
        await cluster.sleep(10)
        await cluster.admin.delete(SERVICES, "lastcall-guard", namespace=SYSTEM_NAMESPACE)
        await cluster.admin.delete(ENDPOINT_SLICES, "lastcall-guard-x", namespace=SYSTEM_NAMESPACE)
        assert (await cluster.try_delete())[0] == REFUSED
        await cluster.sleep(80)
        assert (await cluster.try_delete())[0] == ALLOWED
        await cluster.admin.delete(VALIDATING_WEBHOOKS, "lastcall-guard")
        await cluster.sleep(80)
        assert cluster.watchdog.sentence == "no guard is installed"
        assert not cluster.watchdog.is_withdrawn
        await cluster.install()
        await cluster.sleep(200)
        assert (await cluster.try_delete())[0] == HELD

    play(story)


def test_a_controller_that_was_suspended_counts_anew():
    async def story(cluster):
        await cluster.install()
        await cluster.lead()
        await cluster.set_ready(0)
        await cluster.sleep(30)
        cluster.clock.lost += 3600
        await cluster.sleep(50)
        assert in_force(await cluster.stored())
        await cluster.sleep(20)
        assert not in_force(await cluster.stored())

    play(story)


def test_the_next_leader_counts_anew_and_puts_back_what_another_has_withdrawn():
    async def story(cluster):
        await cluster.install()
        await cluster.lead()
        await cluster.set_ready(0)
        await cluster.sleep(50)
        await cluster.lead()
        await cluster.sleep(50)
        assert in_force(await cluster.stored())
        await cluster.sleep(20)
        assert not in_force(await cluster.stored())
        before = cluster.watchdog
        await cluster.lead(after=NEVER)
        assert not before.is_withdrawn, "only the one that leads says so"
        await cluster.set_ready(1)
        await cluster.sleep(20)
        assert (await cluster.try_delete())[0] == HELD

    play(story)


def test_an_api_server_that_fails_for_a_while_is_no_evidence():
    async def story(cluster):
        await cluster.install()
        await cluster.lead()
        await cluster.set_ready(0)
        await cluster.sleep(40)

        async def fail(method, target):
            raise ApiUnavailable("etcd has no leader")

        cluster.transport.trouble = fail
        await cluster.sleep(40)
        cluster.transport.trouble = None
        await cluster.sleep(55)
        assert in_force(await cluster.stored())
        await cluster.sleep(15)
        assert not in_force(await cluster.stored())

    play(story)


def test_never():
    async def story(cluster):
        await cluster.install()
        await cluster.lead(after=NEVER)
        await cluster.set_ready(0)
        before = await cluster.stored()
        await cluster.sleep(3600)
        assert await cluster.stored() == before
        assert (await cluster.try_delete())[0] == REFUSED

    play(story)


@pytest.mark.parametrize("writes", [1, 2, 3])
def test_another_client_writes_at_the_same_time(writes):
    """Before the withdrawal, before the return, or between its two writes."""

    async def story(cluster):
        await cluster.install()
        await cluster.lead()
        await cluster.set_ready(0)
        seen = 0

        async def interfere(method, target):
            nonlocal seen
            seen += method == "PUT"
            if method == "PUT" and seen == writes:
                cluster.guards.authorities = f"{cluster.guards.authorities} {seen}"
                await cluster.ensure()

        cluster.transport.trouble = interfere
        await cluster.sleep(90)
        assert (await cluster.try_delete())[0] == ALLOWED
        await cluster.set_ready(2)
        await cluster.sleep(30)
        assert seen >= 3
        assert (await cluster.try_delete())[0] == HELD
        stored = await cluster.stored()
        assert GUARD_WITHDRAWN not in stored["metadata"].get("annotations", {})
        assert {one["clientConfig"]["caBundle"] for one in stored["webhooks"]} == {cluster.bundle()}

    play(story)


def test_what_a_person_emptied_stays_empty():
    async def story(cluster):
        await cluster.install()
        await cluster.lead()
        await cluster.ask("PATCH", CONFIGURATION, {"webhooks": []}, "application/merge-patch+json")
        await cluster.sleep(100)
        assert not in_force(await cluster.stored())
        assert "has no webhooks, so nothing is guarded" in cluster.watchdog.sentence
        assert await cluster.events() == []

    play(story)


def test_it_asks_for_nothing_beyond_its_rights_and_without_a_guard_for_one_thing_alone():
    async def story(cluster):
        await cluster.lead()
        await cluster.sleep(100)
        requests = asked(cluster)
        assert {(one.verb, one.resource, one.name) for one in requests} == {
            ("get", "validatingwebhookconfigurations", "lastcall-guard")
        }
        await cluster.install()
        await cluster.set_ready(0)
        await cluster.sleep(100)
        await cluster.set_ready(2)
        await cluster.sleep(20)
        assert {one.verb for one in asked(cluster)} == {"get", "update", "list", "create"}
        assert ungranted_requests(all_grants(SYSTEM_NAMESPACE, detach=False), asked(cluster)) == []
        assert [one for one in cluster.server.audit.records if one.code == 403] == []

    play(story)


def test_without_the_right_it_says_so_and_asks_seldom():
    """As after an upgrade of the program without its roles; it needs no restart when the right is there."""

    async def story(cluster):
        roles = dict_resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
        binding = await cluster.admin.get(roles, "lastcall-controller")
        await cluster.admin.delete(roles, "lastcall-controller")
        await cluster.install()
        await cluster.set_ready(0)
        await cluster.lead()
        await cluster.sleep(299)
        assert len(asked(cluster)) == 10
        assert "not looked after: " in cluster.watchdog.sentence
        assert "cannot get resource" in cluster.watchdog.sentence
        del binding["metadata"]["resourceVersion"]
        await cluster.create(roles, binding)
        await cluster.sleep(100)
        assert (await cluster.try_delete())[0] == ALLOWED

    play(story)


def asked(cluster):
    return [
        AuditedRequest(**{field: getattr(one, field) for field in AuditedRequest._fields})
        for one in cluster.server.audit.records
        if one.user == CONTROLLER_USER.name
    ]
