"""What goes over the wire to a CRI runtime, and what becomes of its answers; the peer is scripted."""

import asyncio
import gc
import logging
import time

import grpclib.client
import grpclib.protocol
import pytest
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from support.runtimes.pod_scripts import eventually
from support.runtimes.scripted_cri import scripted_cri

from lastcall import names
from lastcall.adapters.cri import pod_cache
from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.adapters.cri.connection import CriConnection
from lastcall.adapters.cri.runtime import CriRuntime
from lastcall.adapters.host.clock import SystemClock
from lastcall.errors import InvalidInput, Unavailable
from lastcall.model.pods import ExecAction, LifecycleHandler, ObjectMetadata, Pod
from lastcall.ports.node import RunningPod

WEB = RunningPod(pod=Pod(metadata=ObjectMetadata(name="web", uid="u")), containers={"main": "c-1"}, sandbox="s-1")


@pytest.fixture
async def peer(tmp_path):
    async with scripted_cri(tmp_path) as (peer, endpoint):
        peer.answers["ContainerStatus"] = lambda *_: cri.ContainerStatusResponse(
            status=cri.ContainerStatus(exit_code=7, state=cri.CONTAINER_EXITED)
        )
        peer.answers["ListContainers"] = lambda *_: cri.ListContainersResponse()
        peer.endpoint = endpoint
        yield peer


@pytest.fixture
async def runtime(peer):
    runtime = CriRuntime(peer.endpoint, SystemClock())
    yield runtime
    await runtime.close()


def answers_in_turn(*replies):
    replies = list(replies)

    def answer(*_):
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply

    return answer


async def test_a_first_call_looks_for_no_library(peer, monkeypatch):
    looked = []
    monkeypatch.setattr(grpclib.client, "_googleapis_available", lambda: looked.append(True))
    connection = CriConnection(peer.endpoint)
    await connection.call("ListContainers", cri.ListContainersRequest())
    connection.close()
    assert not looked


def serve_pods(peer, *names):
    boxes = [cri.PodSandbox(id=f"s-{n}", metadata=cri.PodSandboxMetadata(name=n, uid=n, namespace="x")) for n in names]
    containers = [
        cri.Container(id=f"c-{n}", pod_sandbox_id=f"s-{n}", metadata=cri.ContainerMetadata(name="main")) for n in names
    ]
    peer.answers["ListPodSandbox"] = lambda *_: cri.ListPodSandboxResponse(items=boxes)
    peer.answers["ListContainers"] = lambda *_: cri.ListContainersResponse(containers=containers)


class TestStop:
    @pytest.mark.parametrize(("grace", "seconds"), [(0, 1), (0.1, 1), (1, 1), (1.01, 2), (600, 600)])
    async def test_whole_seconds_rounded_up_and_a_deadline_well_after_them(self, peer, runtime, grace, seconds):
        peer.answers["StopContainer"] = lambda *_: cri.StopContainerResponse()
        assert await runtime.stop_container("c-1", grace) == 7
        (request,) = peer.asked["StopContainer"]
        assert (request.container_id, request.timeout) == ("c-1", seconds)
        assert peer.time_left["StopContainer"][0] > seconds + 20

    async def test_kill_is_a_stop_without_grace(self, peer, runtime):
        peer.answers["StopContainer"] = lambda *_: cri.StopContainerResponse()
        await runtime.kill_container("c-1")
        assert [request.timeout for request in peer.asked["StopContainer"]] == [0]

    @pytest.mark.parametrize("status", [Status.UNAVAILABLE, Status.CANCELLED, Status.DEADLINE_EXCEEDED, Status.UNKNOWN])
    async def test_a_stop_that_fails_is_repeated_with_the_time_that_is_left(self, peer, runtime, status):
        failures = [GRPCError(status, "not now")] * 6
        peer.answers["StopContainer"] = answers_in_turn(*failures, cri.StopContainerResponse())
        assert await runtime.stop_container("c-1", 60) == 7
        seconds = [request.timeout for request in peer.asked["StopContainer"]]
        assert len(seconds) == 7
        assert seconds[0] == 60
        assert seconds == sorted(seconds, reverse=True)
        assert seconds[-1] < 60

    async def test_a_runtime_that_has_heard_of_a_stop_and_begins_anew_is_not_told_again(self, peer, runtime):
        """It has sent SIGTERM and does not remember that: the container is only looked at."""

        async def broken_off(*_):
            await eventually(lambda: not runtime._confirming.running_count)
            raise GRPCError(Status.UNAVAILABLE, "it is restarted")

        runs = cri.ContainerStatusResponse(status=cri.ContainerStatus(state=cri.CONTAINER_RUNNING))
        over = cri.ContainerStatusResponse(status=cri.ContainerStatus(state=cri.CONTAINER_EXITED, exit_code=3))
        away = GRPCError(Status.UNAVAILABLE, "not yet")
        peer.answers["StopContainer"] = broken_off
        peer.answers["ContainerStatus"] = answers_in_turn(away, runs, runs, over)
        assert await runtime.stop_container("c-1", 60) == 3
        assert len(peer.asked["StopContainer"]) == 1

    @pytest.mark.parametrize("number", [1, 50])
    async def test_one_answer_does_not_prove_that_sigterm_was_sent(self, peer, runtime, number):
        """It may have read the stop in that moment only, and fifty take longer: no SIGTERM is worse than a second one."""
        version, told = peer.answers["Version"], asyncio.Event()

        def answer(*arguments):
            if len(peer.asked["StopContainer"]) >= number:
                asyncio.get_running_loop().call_soon(told.set)
            return version(*arguments)

        async def broken_off(request, _):
            if [one.container_id for one in peer.asked["StopContainer"]].count(request.container_id) > 1:
                return cri.StopContainerResponse()
            await told.wait()
            await asyncio.sleep(0.05)
            raise GRPCError(Status.UNAVAILABLE, "it is restarted")

        runs = cri.ContainerStatusResponse(status=cri.ContainerStatus(state=cri.CONTAINER_RUNNING))
        over = cri.ContainerStatusResponse(status=cri.ContainerStatus(state=cri.CONTAINER_EXITED, exit_code=3))
        again = 2 * number
        peer.answers |= {"Version": answer, "StopContainer": broken_off}
        peer.answers["ContainerStatus"] = lambda *_: over if len(peer.asked["StopContainer"]) == again else runs
        await asyncio.gather(*(runtime.stop_container(f"c-{one}", 30) for one in range(number)))
        asked = [one.container_id for one in peer.asked["StopContainer"]]
        assert {asked.count(f"c-{one}") for one in range(number)} == {2}
        assert 0 not in [one.timeout for one in peer.asked["StopContainer"]]

    @pytest.mark.parametrize("seconds", [0, 1.5], ids=["at once", "after the grace is over"])
    async def test_what_still_runs_then_when_the_grace_is_over_is_killed(self, peer, runtime, seconds):
        async def broken_off(request, _):
            if request.timeout == 0:
                return cri.StopContainerResponse()
            await eventually(lambda: not runtime._confirming.running_count)
            raise GRPCError(Status.UNAVAILABLE, "it is restarted")

        runs = cri.ContainerStatusResponse(status=cri.ContainerStatus(state=cri.CONTAINER_RUNNING))
        over = cri.ContainerStatusResponse(status=cri.ContainerStatus(state=cri.CONTAINER_EXITED, exit_code=137))

        async def status(*_):
            await asyncio.sleep(seconds)
            return over if len(peer.asked["StopContainer"]) == 2 else runs

        peer.answers["StopContainer"] = broken_off
        peer.answers["ContainerStatus"] = status
        assert await runtime.stop_container("c-1", 5) == 137
        assert [request.timeout for request in peer.asked["StopContainer"]] == [5, 0]

    async def test_when_the_grace_is_over_the_last_try_is_a_kill(self, peer, runtime):
        peer.answers["StopContainer"] = answers_in_turn(GRPCError(Status.UNAVAILABLE, "gone fishing"))
        with pytest.raises(Unavailable, match=r"unix:///.*StopContainer: gone fishing"):
            await runtime.stop_container("c-1", 1)
        *tries, last = [request.timeout for request in peer.asked["StopContainer"]]
        assert (set(tries), last) == ({1}, 0)

    async def test_what_is_not_found_has_ended(self, peer, runtime):
        peer.answers["StopContainer"] = answers_in_turn(GRPCError(Status.NOT_FOUND, "no such container"))
        assert await runtime.stop_container("c-1", 5) is None
        await runtime.kill_container("c-1")

    async def test_an_exit_code_that_the_runtime_does_not_know_is_none(self, peer, runtime):
        peer.answers["StopContainer"] = lambda *_: cri.StopContainerResponse()
        status = cri.ContainerStatus(exit_code=255, state=cri.CONTAINER_EXITED, reason="Unknown")
        peer.answers["ContainerStatus"] = lambda *_: cri.ContainerStatusResponse(status=status)
        assert await runtime.stop_container("c-1", 5) is None

    async def test_an_exit_code_that_is_lost_is_none(self, peer, runtime):
        peer.answers["StopContainer"] = lambda *_: cri.StopContainerResponse()
        peer.answers["ContainerStatus"] = answers_in_turn(GRPCError(Status.NOT_FOUND, "removed"))
        assert await runtime.stop_container("c-1", 5) is None


class TestFinish:
    async def test_a_sandbox_that_cannot_be_torn_down_holds_nothing_up(self, peer, runtime, caplog):
        peer.answers["StopPodSandbox"] = answers_in_turn(GRPCError(Status.UNKNOWN, "failed to destroy network"))
        await runtime.tear_down_pod(WEB)
        assert "failed to destroy network" in caplog.text

    async def test_a_runtime_that_is_away_is_told(self, peer, runtime):
        peer.answers["StopPodSandbox"] = answers_in_turn(GRPCError(Status.UNAVAILABLE, "later"))
        with pytest.raises(Unavailable):
            await runtime.tear_down_pod(WEB)

    async def test_a_container_that_was_started_since_keeps_its_sandbox(self, peer, runtime, caplog):
        """It runs in the place of one that has ended, and StopPodSandbox would kill it."""
        peer.answers["StopContainer"] = lambda *_: cri.StopContainerResponse()
        serve_pods(peer, "1")  # its container is "c-1"
        peer.answers["StopPodSandbox"] = lambda *_: cri.StopPodSandboxResponse()
        old = RunningPod(pod=WEB.pod, containers={"main": "c-0"}, sandbox="s-1")
        await runtime.stop_container("c-0", 5)
        await runtime.tear_down_pod(old)
        assert peer.asked["StopPodSandbox"] == []
        assert "container main still runs" in caplog.text
        await runtime.stop_container("c-1", 5)
        await runtime.tear_down_pod(old)
        assert [request.pod_sandbox_id for request in peer.asked["StopPodSandbox"]] == ["s-1"]

    async def test_the_runtime_is_asked_for_this_sandbox_alone(self, peer, runtime):
        peer.answers["StopPodSandbox"] = lambda *_: cri.StopPodSandboxResponse()
        await runtime.tear_down_pod(WEB)
        (request,) = peer.asked["ListContainers"]
        assert request.filter.pod_sandbox_id == "s-1"
        assert request.filter.state.state == cri.CONTAINER_RUNNING


class TestLookAgain:
    async def test_a_container_that_was_started_since_comes_with_its_hook(self, peer, runtime):
        serve_pods(peer, "1")
        reply = peer.answers["ListContainers"]()
        reply.containers[0].annotations[names.CONTAINER_PRE_STOP] = '{"exec":{"command":["leave"]}}'
        peer.answers["ListContainers"] = lambda *_: reply
        now = await runtime.reread_pod(WEB)
        assert (now.containers, now.sandbox, now.pod.metadata.uid) == ({"main": "c-1"}, "s-1", "1")
        assert now.pod.spec.containers[0].pre_stop == LifecycleHandler(exec=ExecAction(command=("leave",)))
        assert [request.filter.id for request in peer.asked["ListPodSandbox"]] == ["s-1"]

    async def test_none_if_nothing_of_it_runs(self, peer, runtime):
        assert await runtime.reread_pod(WEB) is None

    async def test_pods_that_end_together_share_a_look(self, peer, runtime):
        serve_pods(peer, "1", "2")
        pods = [RunningPod(pod=WEB.pod, containers={}, sandbox=f"s-{number}") for number in range(9)]
        seen = await asyncio.gather(*map(runtime.reread_pod, pods))
        assert [now and now.containers for now in seen] == [None, {"main": "c-1"}, {"main": "c-2"}, *[None] * 6]
        assert [request.filter.pod_sandbox_id for request in peer.asked["ListContainers"]] == [""]

    async def test_a_look_that_has_begun_answers_nobody_who_asks_later(self, peer, runtime):
        """It may not show what has been started since."""
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def answer(*_):
            begun.set()
            await go_on.wait()
            return cri.ListContainersResponse()

        peer.answers["ListContainers"] = answer
        first = asyncio.ensure_future(runtime.reread_pod(WEB))
        await begun.wait()
        later = [asyncio.ensure_future(runtime.reread_pod(WEB)) for _ in range(3)]
        await asyncio.sleep(0.05)
        serve_pods(peer, "1")
        go_on.set()
        assert await first is None
        assert [now.containers for now in await asyncio.gather(*later)] == [{"main": "c-1"}] * 3
        assert len(peer.asked["ListContainers"]) == 2

    async def test_a_look_that_fails_fails_for_all_who_share_it_and_for_nobody_else(self, peer, runtime):
        peer.answers["ListContainers"] = answers_in_turn(
            GRPCError(Status.UNAVAILABLE, "restarts"), cri.ListContainersResponse()
        )
        looks = [runtime.reread_pod(WEB) for _ in range(3)]
        assert {type(seen) for seen in await asyncio.gather(*looks, return_exceptions=True)} == {Unavailable}
        assert await runtime.reread_pod(WEB) is None

    async def test_one_who_gives_up_takes_the_look_from_nobody(self, peer, runtime):
        serve_pods(peer, "1")
        going, waiting = (asyncio.ensure_future(runtime.reread_pod(WEB)) for _ in range(2))
        await asyncio.sleep(0)
        going.cancel()
        assert (await waiting).containers == {"main": "c-1"}

    async def test_a_look_under_way_ends_with_the_runtime(self, peer, runtime):
        peer.answers["ListContainers"] = lambda *_: asyncio.sleep(1000)
        looking = [asyncio.ensure_future(runtime.reread_pod(WEB)) for _ in range(2)]
        await eventually(lambda: peer.asked["ListContainers"])
        looking.append(asyncio.ensure_future(runtime.reread_pod(WEB)))
        await asyncio.sleep(0)
        await runtime.close()
        assert {type(seen) for seen in await asyncio.gather(*looking, return_exceptions=True)} == {Unavailable}


class TestHooks:
    async def test_a_hook_that_is_cut_off_is_called_off_at_the_runtime_too(self, peer, runtime):
        over = asyncio.Event()

        async def answer(*_):
            try:
                await asyncio.sleep(1000)
            finally:
                over.set()

        peer.answers["ExecSync"] = answer
        hook = LifecycleHandler(exec=ExecAction(command=("leave",)))
        result = await runtime.run_hook(WEB, "main", hook, 1)
        assert (result.ok, result.timed_out) == (False, True)
        await asyncio.wait_for(over.wait(), 60)
        (request,) = peer.asked["ExecSync"]
        assert (list(request.cmd), request.timeout) == (["leave"], 1)

    @pytest.mark.parametrize(
        ("reply", "message"),
        [
            (cri.ExecSyncResponse(exit_code=2, stdout=b"a\nb\n"), "exit code 2: b"),
            (cri.ExecSyncResponse(exit_code=2, stdout=b"a", stderr=b"why\n\n"), "exit code 2: why"),
            (cri.ExecSyncResponse(exit_code=2), "exit code 2: no output"),
            (cri.ExecSyncResponse(exit_code=2, stderr=b"\xff" * 900), "exit code 2: " + "\ufffd" * 200),
            (GRPCError(Status.UNKNOWN, "no such program"), "no such program"),
        ],
    )
    async def test_why_a_hook_failed(self, peer, runtime, reply, message):
        peer.answers["ExecSync"] = answers_in_turn(reply)
        result = await runtime.run_hook(WEB, "main", LifecycleHandler(exec=ExecAction(command=("leave",))), 60)
        assert not result.ok
        assert message in result.message


class TestFreshness:
    @pytest.fixture(autouse=True)
    def _quick(self, monkeypatch):
        monkeypatch.setattr(pod_cache, "SETTLE", 0.01)

    def names(self, pods):
        return [live.pod.metadata.name for live in pods]

    async def test_an_event_makes_the_list_anew(self, peer, runtime):
        self.broadcasting(peer)
        serve_pods(peer, "one")
        await runtime.open()
        await eventually(lambda: len(peer.asked["GetContainerEvents"]) == 1)
        assert self.names(await runtime.list_pods()) == ["one"]
        serve_pods(peer, "one", "two")
        assert self.names(await runtime.list_pods()) == ["one"]
        await peer.events.put(cri.ContainerEventResponse(container_id="c-two"))
        await self.eventually_listed(runtime, ["one", "two"])

    async def test_a_stream_that_breaks_off_is_opened_again_and_the_list_made_anew(self, peer, runtime):
        self.broadcasting(peer)
        serve_pods(peer, "one")
        await runtime.open()
        await eventually(lambda: len(peer.asked["GetContainerEvents"]) == 1)
        assert self.names(await runtime.list_pods()) == ["one"]
        serve_pods(peer, "two")
        await peer.events.put(GRPCError(Status.UNAVAILABLE, "containerd stops"))
        await self.eventually_listed(runtime, ["two"])
        await eventually(lambda: len(peer.asked["GetContainerEvents"]) == 2)

    async def test_where_listening_takes_events_from_the_kubelet_there_is_only_looking(
        self, peer, runtime, monkeypatch
    ):
        monkeypatch.setattr(pod_cache, "POLL", 0.05)
        serve_pods(peer, "one")
        await runtime.open()
        assert self.names(await runtime.list_pods()) == ["one"]
        serve_pods(peer, "two")
        await self.eventually_listed(runtime, ["two"])
        assert peer.asked["GetContainerEvents"] == []

    async def test_the_last_list_is_good_for_a_while_when_the_runtime_is_away(self, peer, runtime, monkeypatch):
        serve_pods(peer, "one")
        await runtime.open()
        assert self.names(await runtime.refresh_pods()) == ["one"]
        peer.answers["ListContainers"] = answers_in_turn(GRPCError(Status.UNAVAILABLE, "restarts"))
        with pytest.raises(Unavailable, match="restarts"):
            await runtime.refresh_pods()
        assert self.names(await runtime.list_pods()) == ["one"]
        runtime._mirror._good_until = 0.0  # long after
        with pytest.raises(Unavailable, match="restarts"):
            await runtime.list_pods()

    async def test_while_containers_are_stopped_the_list_is_read_for_those_alone_who_need_it(self, peer, runtime):
        self.broadcasting(peer)
        serve_pods(peer, "one")
        await runtime.open()
        await eventually(lambda: len(peer.asked["GetContainerEvents"]) == 1)
        over = asyncio.Event()

        async def answer(*_):
            await over.wait()
            return cri.StopContainerResponse()

        peer.answers["StopContainer"] = answer
        assert self.names(await runtime.list_pods()) == ["one"]
        stopping = asyncio.ensure_future(runtime.stop_container("c-one", 60))
        await eventually(lambda: peer.asked["StopContainer"])
        serve_pods(peer, "two")
        assert self.names(await runtime.refresh_pods()) == ["two"]
        asked = len(peer.asked["ListPodSandbox"])
        await peer.events.put(cri.ContainerEventResponse(container_id="c-two"))
        await asyncio.sleep(0.2)
        assert len(peer.asked["ListPodSandbox"]) == asked
        serve_pods(peer, "three")
        over.set()
        await stopping
        await self.eventually_listed(runtime, ["three"])

    async def test_an_annotation_that_makes_no_sense_is_told_once(self, peer, runtime, caplog):
        container = cri.Container(
            id="c",
            pod_sandbox_id="s",
            metadata=cri.ContainerMetadata(name="main"),
            annotations={"io.kubernetes.container.preStopHandler": "{broken"},
        )
        peer.answers["ListPodSandbox"] = lambda *_: cri.ListPodSandboxResponse()
        peer.answers["ListContainers"] = lambda *_: cri.ListContainersResponse(containers=[container])
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                assert len(await runtime.refresh_pods()) == 1
        assert caplog.text.count("{broken") == 1

    def broadcasting(self, peer):
        peer.answers["Version"] = lambda *_: cri.VersionResponse(runtime_name="containerd", runtime_version="v2.1.9")

    async def eventually_listed(self, runtime, names):
        deadline = time.monotonic() + 60
        while self.names(await runtime.list_pods()) != names:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("containerd", "1.6.20~ds1", False),
        ("containerd", "v1.7.24", False),
        ("containerd", "v2.1.9", True),
        ("containerd", "2.0.0-rc.1", True),
        ("containerd", "v10.0.0", True),
        ("containerd", "", False),
        ("containerd", "unknown", False),
        ("cri-o", "2.0.0", False),
    ],
)
def test_who_broadcasts_events(name, version, expected):
    assert pod_cache.broadcasts_events(cri.VersionResponse(runtime_name=name, runtime_version=version)) is expected


class TestAway:
    @pytest.mark.parametrize("endpoint", ["", "tcp://127.0.0.1:1", "run/containerd.sock", "npipe:////./pipe/x"])
    def test_an_endpoint_must_be_a_unix_socket(self, endpoint):
        with pytest.raises(InvalidInput, match="must be a unix socket"):
            CriRuntime(endpoint, SystemClock())

    async def test_no_socket(self, tmp_path, caplog):
        runtime = CriRuntime(f"unix://{tmp_path}/no.sock", SystemClock())
        with pytest.raises(Unavailable, match=r"^unix:///.*/no\.sock: No such file or directory$"):
            await runtime.list_pods()
        await runtime.close()
        assert caplog.records == []

    @pytest.mark.parametrize("greeting", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x00" * 100])
    async def test_somebody_else_on_the_socket(self, tmp_path, caplog, greeting):
        async def serve(reader, writer):
            writer.write(greeting)
            await writer.drain()
            writer.close()

        path = tmp_path / "other.sock"
        server = await asyncio.start_unix_server(serve, path)
        runtime = CriRuntime(f"unix://{path}", SystemClock())
        with pytest.raises(Unavailable, match=r"other\.sock"):
            await runtime.refresh_pods()
        await runtime.close()
        server.close()
        assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []

    async def test_a_runtime_that_hangs(self, tmp_path):
        left = asyncio.Event()

        async def serve(reader, writer):
            await reader.read()
            writer.close()
            left.set()

        server = await asyncio.start_unix_server(serve, tmp_path / "hangs.sock")
        runtime = CriRuntime(f"unix://{tmp_path}/hangs.sock", SystemClock())
        with pytest.raises(Unavailable, match="Version: no answer in time"):
            await runtime.connection.call("Version", cri.VersionRequest(), within=0.3)
        await runtime.close()
        await left.wait()
        server.close()
        await asyncio.sleep(0)


async def test_a_runtime_that_was_closed_is_not_connected_to_again(peer):
    serve_pods(peer, "web")
    runtime = CriRuntime(peer.endpoint, SystemClock())
    await runtime.refresh_pods()
    await runtime.close()
    with pytest.raises(Unavailable, match="has been closed"):
        await runtime.kill_container("c-1")
    assert not peer.asked["StopContainer"]


async def test_a_connection_that_is_closed_while_it_connects_does_not_stay_open(peer):
    connection = CriConnection(peer.endpoint)
    call = asyncio.create_task(connection.call("Version", cri.VersionRequest()))
    await asyncio.sleep(0)  # it has begun to connect
    connection.close()
    await asyncio.gather(call, return_exceptions=True)
    await asyncio.sleep(0.01)
    del connection, call
    gc.collect()  # a channel that is still open warns when it is collected, and the warning fails this test


async def test_a_connection_that_is_lost_while_a_call_begins_is_made_anew(peer, monkeypatch):
    create, lost = grpclib.protocol.Connection.create_stream, []

    def create_stream(self, **rest):
        if not lost:
            lost.append(self)
            connection._channel._protocol.connection_lost(None)
        return create(self, **rest)

    monkeypatch.setattr(grpclib.protocol.Connection, "create_stream", create_stream)
    connection = CriConnection(peer.endpoint)
    request = cri.ContainerStatusRequest(container_id="c-1")
    with pytest.raises(Unavailable, match="ContainerStatus: the connection was lost"):
        await connection.call("ContainerStatus", request)
    assert (await connection.call("ContainerStatus", request)).status.exit_code == 7
    connection.close()


async def test_the_agents_own_pod_is_in_no_list(peer):
    serve_pods(peer, "agent", "web")
    runtime = CriRuntime(peer.endpoint, SystemClock(), own_pod="agent")
    try:
        for pods in (await runtime.list_pods(), await runtime.refresh_pods()):
            assert [one.pod.metadata.name for one in pods] == ["web"]
    finally:
        await runtime.close()
