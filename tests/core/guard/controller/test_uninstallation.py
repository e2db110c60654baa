"""An uninstallation waits until the guard has undone its preparations, for a bounded time, and is never refused.

At the lab's API server with the webhooks and rights of the manifests, in virtual time.
"""

import pytest
from support.guard.guarded_cluster import play_on_guarded_cluster

from lastcall.adapters.kube.resources import VALIDATING_WEBHOOKS
from lastcall.errors import Unavailable
from lastcall.guard.controller.uninstallation import UNDO_SECONDS
from lastcall_lab.apiserver.admission.webhook_client import WebhookUnreachable


async def hold(cluster, *pods):
    """Their application takes longer than the test."""
    cluster.database.seconds = 10**6
    for name in pods:
        assert (await cluster.remove("ann", name))[0] == 429
    await cluster.until(lambda: cluster.database.calls == ["prepare"] * len(pods))


def holds(cluster):
    return cluster.get(VALIDATING_WEBHOOKS, "lastcall-guard").get("webhooks", [])


def test_what_is_prepared_is_undone_before_the_uninstallation_goes_on():
    async def scene(cluster):
        await hold(cluster, "db-0")
        code, seconds = await cluster.uninstall()
        assert cluster.database.calls == ["prepare", "cancel"]
        assert (code, holds(cluster)) == (201, [])
        assert seconds < UNDO_SECONDS
        entry = cluster.entries()["db-0"]
        assert (entry["state"], entry["message"]) == ("Released", "the guard is uninstalled")
        assert "preparedAt" not in entry
        assert "undoRequestedAt" not in entry, "a guard that is installed again begins anew"
        asked = cluster.asked
        assert (await cluster.remove("ann"))[0] == 200
        assert cluster.asked == asked, "no deletion is shown to it any more"

    play_on_guarded_cluster(scene)


def test_the_place_of_a_pod_that_is_gone_already_is_given_back():
    """Its replacement is not waited for."""

    async def scene(cluster):
        assert (await cluster.remove("ann"))[0] == 429
        await cluster.until(lambda: cluster.entries()["db-0"]["state"] == "Ready")
        cluster.kubelet.ready_after = lambda pod: None
        uid = cluster.pod()["metadata"]["uid"]
        assert (await cluster.remove("ann"))[0] == 200
        await cluster.until(lambda: not cluster.pod() or cluster.pod()["metadata"]["uid"] != uid)
        await cluster.clock.sleep(5)  # until the leader has seen it
        assert (await cluster.uninstall())[0] == 201
        assert cluster.database.calls == ["prepare", "release"]

    play_on_guarded_cluster(scene)


@pytest.mark.parametrize("trouble", ["hangs", "fails"])
def test_a_provider_that_cannot_undo_delays_it_for_a_bounded_time(trouble, caplog):
    async def scene(cluster):
        await hold(cluster, "db-0")

        async def cancel(member):
            cluster.database.calls.append("cancel")
            if trouble == "fails":
                raise Unavailable("db-0 does not answer")
            await cluster.clock.sleep(10**6)

        cluster.database.cancel = cancel
        code, seconds = await cluster.uninstall()
        assert (code, UNDO_SECONDS <= seconds < 30) == (201, True)
        said = "pod shop/db-0 (GuardPolicy db): its preparation is not undone"
        assert any(record.getMessage().startswith(said) for record in caplog.records)
        assert cluster.entries()["db-0"]["undoRequestedAt"], "a guard that is installed again goes on with it"
        assert cluster.database.calls.count("cancel") == (1 if trouble == "hangs" else 4), "later each time"

    play_on_guarded_cluster(scene)


def test_what_was_not_undone_is_undone_by_the_next_guard():
    async def scene(cluster):
        await hold(cluster, "db-0")
        cancel, failing = cluster.database.cancel, True

        async def cancel_or_fail(member):
            if failing:
                raise Unavailable("db-0 does not answer")
            await cancel(member)

        cluster.database.cancel = cancel_or_fail
        assert (await cluster.uninstall())[0] == 201
        failing = False
        await cluster.until(lambda: cluster.entries()["db-0"]["state"] == "Released")
        assert cluster.database.calls == ["prepare", "cancel"]

    play_on_guarded_cluster(scene)


def test_without_a_guard_nothing_is_waited_for():
    async def scene(cluster):
        async def call(destination, body):
            raise WebhookUnreachable("connection refused")

        cluster.call = call
        assert await cluster.uninstall() == (201, 0)
        assert len(holds(cluster)) == 2

    play_on_guarded_cluster(scene)


def test_a_dry_run_changes_nothing():
    async def scene(cluster):
        await hold(cluster, "db-0")
        assert await cluster.uninstall(dry_run=True) == (201, 0)
        await cluster.clock.sleep(10)
        assert cluster.database.calls == ["prepare"]
        assert len(holds(cluster)) == 2

    play_on_guarded_cluster(scene)


def test_who_is_not_the_api_server_changes_nothing():
    async def scene(cluster):
        await hold(cluster, "db-0")
        cluster.is_authenticated = False
        assert await cluster.uninstall() == (201, 0)
        await cluster.clock.sleep(10)
        assert cluster.database.calls == ["prepare"]
        assert len(holds(cluster)) == 2

    play_on_guarded_cluster(scene)


def test_no_other_config_map_is_shown_to_the_guard():
    async def scene(cluster):
        cluster.call = None
        path = "/api/v1/namespaces/{}/configmaps"
        for namespace, name in (("lastcall-system", "another"), ("shop", "lastcall-guard-uninstall")):
            assert (await cluster.ask("ann", "POST", path.format(namespace), {"metadata": {"name": name}}))[0] == 201

    play_on_guarded_cluster(scene)
