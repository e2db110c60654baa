"""Init containers that a shutdown interrupts: their work must not count as done after the boot."""

import pytest
from msgspec.structs import replace
from support.agents.shutdown_run import Shutdown
from support.agents.virtual_parts import phases, pod

from lastcall.errors import LastcallError
from lastcall.graceful.shutdown.container_termination import FORGET_SECONDS
from lastcall.model.pods import Container
from lastcall.model.shutdown import ContainerEnded, NoteWritten, PodEnded
from lastcall_lab.fakes.actor_runtime import ActorRuntime, ContainerScript

PLAN = phases((0, 20))


def initialising(**code):
    """A pod whose init container runs, beside a sidecar that was started before it."""
    one = pod("web", containers=(), sidecars=("proxy",))
    init = (*one.spec.init_containers, Container(name="prepare"))
    scripts = {name: ContainerScript(code=code.get(name, 0)) for name in ("proxy", "prepare")}
    return replace(one, spec=replace(one.spec, init_containers=init)), scripts


def forgotten(shutdown):
    return [name.rpartition("/")[2] for name in shutdown.runtime.forgotten]


def test_one_that_ends_with_0_is_removed_and_its_sidecar_is_not():
    shutdown = Shutdown(PLAN, [initialising()])
    assert forgotten(shutdown) == ["prepare"]
    assert [event.container for event in shutdown.of(ContainerEnded)] == ["prepare", "proxy"]


def test_one_that_ends_with_an_error_runs_again_anyway():
    assert forgotten(Shutdown(PLAN, [initialising(prepare=143)])) == []


def test_main_containers_keep_their_exit_codes():
    assert forgotten(Shutdown(PLAN, [(pod("web"), {"main": ContainerScript(code=0)})])) == []


@pytest.mark.parametrize("fault", ["hangs", "fails"])
def test_a_removal_that_fails_is_noted_and_holds_up_nothing(fault):
    class Faulty(ActorRuntime):
        async def forget_container(self, container_id):
            if fault == "hangs":
                await self._clock.sleep(1e6)
            raise LastcallError("not now")

    shutdown = Shutdown(PLAN, [initialising()], runtime=Faulty)
    [note] = shutdown.of(NoteWritten)
    assert note.text.startswith("default/web: the interrupted init container prepare counts as completed: ")
    [end] = shutdown.of(PodEnded)
    assert end.at <= FORGET_SECONDS + 1
