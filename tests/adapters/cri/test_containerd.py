"""What is particular to a real containerd; what every runtime promises is in the contract suite."""

import asyncio
import logging
import time

import msgspec
import pytest
from support.runtimes.containerd_world import containerd_world, why_not
from support.runtimes.pod_scripts import OBEDIENT, STUBBORN, container, manifest, pod, says, shell, told
from support.runtimes.private_containerd import shared_containerd

from lastcall import names
from lastcall.adapters.cri import pod_cache
from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.adapters.cri.connection import CriConnection
from lastcall.adapters.cri.runtime import CriRuntime
from lastcall.adapters.cri.spec_sources import SpecSources
from lastcall.adapters.host.clock import SystemClock
from lastcall.aio import cancel_and_wait
from lastcall.errors import InvalidInput, Unavailable
from lastcall.model.pods import Pod

pytestmark = pytest.mark.xdist_group("containerd-cri")

SOON = 60.0


@pytest.fixture
async def world(tmp_path):
    if why_not():
        pytest.skip(why_not())
    async with containerd_world(tmp_path) as world:
        yield world


@pytest.fixture
async def containerd(world):
    """The session's containerd; it runs again afterwards, whatever a test does to it."""
    containerd = shared_containerd()
    yield containerd
    await asyncio.to_thread(containerd.restart)


@pytest.fixture
async def connection(world):
    connection = CriConnection(shared_containerd().endpoint)
    yield connection
    connection.close()


async def started(world, script, name="web", **fields):
    live = await world.runtime.start_pod(pod(world, name, container("main", script, **fields)))
    await says(world, f"{name}.main", "ready")
    return live, live.containers["main"]


async def state(world, container_id):
    return (await world.runtime.container_status(container_id)).state


class TestStop:
    async def test_a_caller_that_goes_away_leaves_the_container_alive_and_a_new_stop_ends_it(self, world):
        """Why the deadline of a stop's RPC lies after the grace: containerd sends no SIGKILL for nobody."""
        _, main = await started(world, STUBBORN)
        stopping = asyncio.create_task(world.runtime.stop_container(main, 10))
        await says(world, "web.main", "ready", "TERM")
        await cancel_and_wait(stopping)
        await asyncio.sleep(12)
        assert await state(world, main) == cri.CONTAINER_RUNNING
        assert await asyncio.wait_for(world.runtime.stop_container(main, 1), SOON) == 137
        assert told(world, "web.main") == ["ready", "TERM"]

    async def test_more_stops_under_way_than_a_node_has_pods_do_not_hold_up_a_kill(self, world):
        """Each is a stream of one connection, and containerd sets no limit to them."""
        _, main = await started(world, STUBBORN)
        stops = [asyncio.create_task(world.runtime.stop_container(main, 600)) for _ in range(250)]
        await says(world, "web.main", "ready", "TERM")
        await asyncio.wait_for(world.runtime.kill_container(main), SOON)
        assert set(await asyncio.wait_for(asyncio.gather(*stops), SOON)) == {137}


class TestRestart:
    """containerd goes away and comes back; containers live on."""

    async def test_a_stop_under_way_goes_on_with_the_time_that_is_left(self, world, containerd):
        _, main = await started(world, STUBBORN)
        begin = time.monotonic()
        stopping = asyncio.create_task(world.runtime.stop_container(main, 4))
        await says(world, "web.main", "ready", "TERM")
        await asyncio.sleep(1)
        await asyncio.to_thread(containerd.restart)
        assert await asyncio.wait_for(stopping, SOON) == 137
        assert time.monotonic() - begin > 3.5
        # containerd forgets with its restart that it has sent SIGTERM.
        assert told(world, "web.main") in (["ready", "TERM"], ["ready", "TERM", "TERM"])

    async def test_a_stop_under_way_learns_of_an_end_that_containerd_missed(self, world, containerd):
        script = OBEDIENT.replace("exit 7", "sleep 1; exit 7")
        _, main = await started(world, script)
        stopping = asyncio.create_task(world.runtime.stop_container(main, 20))
        await says(world, "web.main", "ready", "TERM")
        await asyncio.to_thread(containerd.stop)
        await asyncio.sleep(1.5)
        await asyncio.to_thread(containerd.start)
        assert await asyncio.wait_for(stopping, SOON) in (7, None)  # None: containerd 2
        assert told(world, "web.main") == ["ready", "TERM"]

    async def test_pods_are_listed_again_and_hooks_run(self, world, containerd):
        live, _ = await started(world, OBEDIENT)
        await asyncio.to_thread(containerd.restart)
        assert [one.containers for one in await world.runtime.refresh_pods()] == [live.containers]
        assert (await world.runtime.run_hook(live, "main", shell("exit 0"), 60)).ok

    async def test_what_ended_meanwhile_is_told(self, world, containerd):
        script = 'echo ready >> "$OUT"; sleep 1; exit 9'
        live, _ = await started(world, script)
        await asyncio.to_thread(containerd.stop)
        await asyncio.sleep(1.5)
        await asyncio.to_thread(containerd.start)
        uid, name, code = await asyncio.wait_for(world.runtime.next_ended(), SOON)
        assert (uid, name) == (live.pod.metadata.uid, "main")
        assert code in (9, None)  # None: containerd 2


async def test_while_containerd_is_down_everything_says_so_quietly(world, containerd, caplog):
    live, main = await started(world, STUBBORN)
    known = await world.runtime.refresh_pods()
    caplog.set_level(logging.INFO)
    await asyncio.to_thread(containerd.stop)
    where = rf"^{containerd.endpoint}: "
    with pytest.raises(Unavailable, match=where):
        await world.runtime.refresh_pods()
    with pytest.raises(Unavailable, match=where):
        await world.runtime.kill_container(main)
    with pytest.raises(Unavailable, match=where):
        await world.runtime.stop_container(main, 0.5)
    with pytest.raises(Unavailable, match=where):
        await world.runtime.tear_down_pod(live)
    result = await world.runtime.run_hook(live, "main", shell("exit 0"), 1)
    assert not result.ok
    assert result.message.startswith(containerd.endpoint)
    assert await world.runtime.list_pods() == known  # containers live on: the last list is good for a while
    assert caplog.records == []


class TestPods:
    async def test_sandboxes_and_containers_carry_what_a_kubelet_notes_on_them(self, world, connection):
        made = pod(
            world,
            "db",
            container(
                "main",
                OBEDIENT,
                lifecycle={"preStop": {"exec": {"command": ["leave"]}}},
                ports=[{"name": "sql", "containerPort": 5432}],
            ),
            namespace="shop",
            labels={"app": "db"},
            annotations={"example.com/a": "b"},
        )
        live = await world.runtime.start_pod(made)
        whose = {names.POD_NAME: "db", names.POD_NAMESPACE: "shop", names.POD_UID: made.metadata.uid}
        (box,) = (await connection.call("ListPodSandbox", cri.ListPodSandboxRequest())).items
        assert (box.metadata.name, box.metadata.namespace, box.metadata.uid) == ("db", "shop", made.metadata.uid)
        assert box.labels == {"app": "db", **whose}
        assert box.annotations == {"example.com/a": "b", names.CONFIG_SOURCE: "file"}
        (one,) = (await connection.call("ListContainers", cri.ListContainersRequest())).containers
        assert (one.id, one.pod_sandbox_id) == (live.containers["main"], live.sandbox)
        assert one.labels == {names.CONTAINER_NAME: "main", **whose}
        assert one.annotations == {
            names.CONTAINER_RESTARTS: "0",
            names.CONTAINER_GRACE: "5",
            names.CONTAINER_PRE_STOP: '{"exec":{"command":["leave"]}}',
            names.CONTAINER_PORTS: '[{"containerPort":5432,"name":"sql"}]',
        }

    async def test_the_sandbox_goes_after_the_last_container(self, world, connection):
        live = await world.runtime.start_pod(pod(world, "web", container("one", OBEDIENT), container("two", OBEDIENT)))
        await says(world, "web.one", "ready")
        await says(world, "web.two", "ready")

        async def sandbox():
            request = cri.PodSandboxStatusRequest(pod_sandbox_id=live.sandbox)
            return (await connection.call("PodSandboxStatus", request)).status.state

        for name in ("one", "two"):
            await world.runtime.tear_down_pod(live)
            assert await sandbox() == cri.SANDBOX_READY
            assert await world.runtime.stop_container(live.containers[name], 10) == 7
        await world.runtime.tear_down_pod(live)
        assert await sandbox() == cri.SANDBOX_NOTREADY
        assert told(world, "web.one") == told(world, "web.two") == ["ready", "TERM"]

    async def test_a_forgotten_container_has_no_exit_code_that_a_kubelet_could_find(self, world, connection):
        live, main = await started(world, OBEDIENT)
        await world.runtime.stop_container(main, 60)
        listed = cri.ListContainersRequest(filter=cri.ContainerFilter(pod_sandbox_id=live.sandbox))
        assert [one.id for one in (await connection.call("ListContainers", listed)).containers] == [main]
        await world.runtime.forget_container(main)
        assert not (await connection.call("ListContainers", listed)).containers

    async def test_an_agent_of_its_own_sees_what_the_node_runs(self, world):
        """The agent is another process than the node: it knows the manifests, and the pods from the CRI alone."""
        live, _ = await started(world, OBEDIENT)
        spec = msgspec.convert({"metadata": {"name": "web"}, "spec": {"priority": 1000}}, Pod)
        known = SpecSources(manifests={("default", "web"): spec})
        agent = CriRuntime(shared_containerd().endpoint, SystemClock(), sources=lambda: known)
        (seen,) = await agent.list_pods()
        await agent.close()
        assert (seen.containers, seen.sandbox) == (live.containers, live.sandbox)
        assert (seen.pod.metadata.uid, seen.pod.spec.priority) == (live.pod.metadata.uid, 1000)
        assert seen.pod.spec.termination_grace_period_seconds == 5

    async def test_what_others_start_is_noticed(self, world, connection, monkeypatch):
        """By an event where the runtime broadcasts them, else at the next look."""
        if not pod_cache.broadcasts_events(await connection.call("Version", cri.VersionRequest())):
            monkeypatch.setattr(pod_cache, "POLL", 0.5)
        agent = CriRuntime(shared_containerd().endpoint, SystemClock())
        await agent.open()
        await asyncio.sleep(0.2)
        assert list(await agent.list_pods()) == []
        await started(world, OBEDIENT)
        deadline = time.monotonic() + 60
        while not await agent.list_pods():
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        await agent.close()


class TestStart:
    async def test_users_and_volumes(self, world):
        made = manifest(world, "web", container("main", 'touch /scratch/x; id -u >> "$OUT"; sleep 1000'))
        made["spec"]["volumes"].append({"name": "scratch", "emptyDir": {}})
        main = made["spec"]["containers"][0]
        main["volumeMounts"].append({"name": "scratch", "mountPath": "/scratch"})
        main["securityContext"] = {"runAsUser": 4711}
        live = await world.runtime.start_pod(msgspec.convert(made, Pod))
        await says(world, "web.main", "4711")
        directory = shared_containerd().directory / "pods" / live.pod.metadata.uid
        assert (directory / "volumes" / "scratch" / "x").exists()
        await world.runtime.remove_pod(live.pod.metadata.uid)
        assert not directory.exists()

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            ({"image": "localhost/nobody/has:it"}, r'container main: image "localhost/nobody/has:it" is not in'),
            (
                {"volumeMounts": [{"name": "lost", "mountPath": "/x"}]},
                "container main: volumeMounts: .* no volume lost",
            ),
            ({"command": ["/no/such/program"]}, "/no/such/program"),
        ],
    )
    async def test_what_cannot_be_started_is_told_and_leaves_nothing(self, world, connection, change, says):
        made = manifest(world, "web", container("main", OBEDIENT))
        made["spec"]["containers"][0].update(change)
        with pytest.raises(InvalidInput, match=f"pod default/web: .*{says}"):
            await world.runtime.start_pod(msgspec.convert(made, Pod))
        assert list((await connection.call("ListPodSandbox", cri.ListPodSandboxRequest())).items) == []

    async def test_volumes_of_other_kinds_are_refused(self, world):
        made = manifest(world, "web", container("main", OBEDIENT))
        made["spec"]["volumes"].append({"name": "secrets", "secret": {"secretName": "x"}})
        with pytest.raises(InvalidInput, match="volume secrets: must be a hostPath or an emptyDir"):
            await world.runtime.start_pod(msgspec.convert(made, Pod))
