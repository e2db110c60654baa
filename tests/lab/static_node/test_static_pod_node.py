"""The lab's node in virtual time: manifests, ends and status, while what is around it fails."""

import asyncio

import pytest
from support.agents.virtual_parts import pod

from lastcall.errors import Unavailable
from lastcall.ports.node import RunningPod
from lastcall_lab import virtual
from lastcall_lab.static_node import static_pod_node as lab


class Runtime:
    """Starts what it is told to; ``away`` while it cannot be reached."""

    def __init__(self):
        self.started, self.away, self._ends = [], False, asyncio.Queue()

    async def refresh_pods(self):
        if self.away:
            raise Unavailable("the runtime is away")
        return []

    async def start_pod(self, spec):
        self.started.append(spec.metadata.name)

    async def next_ended(self):
        return await self._ends.get()

    def end(self, spec, code=0):
        self._ends.put_nowait((spec.metadata.uid, "main", code))


class Status:
    """StatusFiles in memory; a full disk raises OSError."""

    def __init__(self):
        self.full, self.ready, self.pods = False, [], {}

    def read_pod(self, namespace, name):
        return self.pods.get(name)

    def write_pod(self, document):
        self.pods[document["metadata"]["name"]] = document
        if self.full:
            raise OSError(28, "No space left on device")

    def write_node(self, document):
        self.ready.append(document["status"]["conditions"][0]["status"])


class World:
    def __init__(self, monkeypatch):
        self.clock, self.runtime, self.status = virtual.VirtualClock(), Runtime(), Status()
        self.pods, self.directory_is_there = [], True
        monkeypatch.setattr(lab, "read_directory", self._read)
        self.node = lab.StaticPodNode(
            "n1", manifests="/manifests", runtime=self.runtime, status=self.status, clock=self.clock
        )
        self.task = asyncio.create_task(self.node.run())

    def _read(self, directory, name):
        if not self.directory_is_there:
            raise FileNotFoundError(2, "No such file or directory", directory)
        return list(self.pods), []

    def phase(self, spec):
        return self.node.pods[spec.metadata.namespace + "/" + spec.metadata.name]["status"]["phase"]


@pytest.fixture
def on_node(monkeypatch):
    """Runs a coroutine function with a world in virtual time."""

    def run(test):
        async def main():
            world = World(monkeypatch)
            await test(world)
            assert not world.task.done()

        virtual.run(main())

    return run


def test_a_directory_that_vanishes_is_told_once_and_looked_for_again(on_node, caplog):
    async def test(world):
        web, late = pod("web"), pod("late")
        world.pods.append(web)
        await world.clock.sleep(1.5)
        world.directory_is_there = False
        await world.clock.sleep(10)
        world.runtime.end(web)
        await world.clock.sleep(1)
        assert world.phase(web) == "Succeeded", "ends are noted all the same"
        world.pods.append(late)
        world.directory_is_there = True
        await world.clock.sleep(2)
        assert world.runtime.started == ["web", "late"]

    on_node(test)
    assert [record.getMessage() for record in caplog.records] == ["[Errno 2] No such file or directory: '/manifests'"]


def test_a_runtime_that_is_away_at_the_start_is_waited_for(on_node):
    async def test(world):
        world.runtime.away = True
        world.pods.append(pod("web"))
        await world.clock.sleep(5)
        assert world.runtime.started == []
        world.runtime.away = False
        await world.clock.sleep(2)
        assert world.runtime.started == ["web"]
        assert world.status.ready == ["True"]

    on_node(test)


def test_a_full_disk_does_not_end_the_node(on_node):
    async def test(world):
        web = pod("web")
        world.pods.append(web)
        await world.clock.sleep(1.5)
        world.status.full = True
        world.runtime.end(web)
        await world.clock.sleep(1)
        world.status.full = False
        world.pods.append(pod("late"))
        await world.clock.sleep(2)
        assert world.runtime.started == ["web", "late"]

    on_node(test)


def test_a_pod_that_ended_by_itself_in_a_shutdown_that_was_called_off(on_node):
    async def test(world):
        job, web = pod("job"), pod("web")
        world.pods += [job, web]
        await world.clock.sleep(1.5)
        world.node.refuse_pods()
        await world.node.begin_shutdown(100.0)
        world.runtime.end(job)
        world.runtime.end(web)
        await world.clock.sleep(1)
        await world.node.report_pod_ended(RunningPod(pod=web, containers={}), {"main": 0})
        await world.node.mark_ready()
        assert (world.phase(job), world.phase(web)) == ("Succeeded", "Failed")
        assert world.status.ready == ["True", "False", "True"]

    on_node(test)


def test_a_pod_that_ended_while_no_agent_ran_is_not_refused_as_if_it_were_new(on_node, caplog):
    """The agent was killed in a shutdown and is started again: the pod's manifest is there, its process is not."""

    async def test(world):
        caplog.set_level("INFO", "lastcall_lab.static_node.static_pod_node")
        ended, new = pod("ended"), pod("new")
        world.status.pods["ended"] = {
            "metadata": {"name": "ended", "namespace": ended.metadata.namespace, "uid": ended.metadata.uid},
            "status": {"phase": "Running"},
        }
        world.node.refuse_pods()
        world.pods += [ended, new]
        await world.clock.sleep(1.5)
        statuses = {name: world.status.pods[name]["status"] for name in ("ended", "new")}
        assert {name: (one["phase"], one["reason"]) for name, one in statuses.items()} == {
            "ended": ("Failed", "Terminated"),
            "new": ("Failed", "NodeShutdown"),
        }
        assert [line for line in caplog.messages if "ended" in line] == [f"{ended.key} has ended while no agent ran"]
        assert [line for line in caplog.messages if "refused" in line] == [
            f"{new.key} is refused: Pod was rejected as the node is shutting down."
        ]

    on_node(test)
