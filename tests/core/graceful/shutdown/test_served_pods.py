"""A network plugin and DNS end after the pods of their phase that need them, within the phase's own time."""

import math

import pytest
from msgspec.structs import replace
from support.agents.shutdown_run import Shutdown
from support.agents.virtual_parts import phases, pod

from lastcall.model.pods import HostPath, OwnerReference, Volume
from lastcall.model.shutdown import HookStarted, NoteWritten, PhaseEnd, PhaseEnded, PodEnded, PodOutcome, PodStarted
from lastcall_lab.fakes.actor_runtime import ActorRuntime, ContainerScript

ONE = phases((0, 40))
QUICK, SLOW, ENDLESS = (ContainerScript(after_term=seconds) for seconds in (0.5, 6, math.inf))


class Recorder(ActorRuntime):
    """Notes when sandboxes are torn down, which takes half a second."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.torn_down = {}

    async def tear_down_pod(self, live):
        await self._clock.sleep(0.5)
        self.torn_down[live.pod.metadata.uid] = self._clock.boottime()


def dns(**options):
    made = pod("dns", uid="dns", **options)
    return replace(made, metadata=replace(made.metadata, labels={"k8s-app": "kube-dns"}))


def network(**options):
    made = pod("cni", uid="cni", **options)
    owners = (OwnerReference(kind="DaemonSet", name="cni", controller=True),)
    volumes = (Volume(name="bin", host_path=HostPath(path="/opt/cni/bin")),)
    spec = replace(made.spec, host_network=True, dns_policy="Default", volumes=volumes)
    return replace(made, metadata=replace(made.metadata, owner_references=owners), spec=spec)


def terms(shutdown):
    return {d.uid: round(d.at, 1) for d in shutdown.deliveries("TERM")}


def played(*pods, plan=ONE, **options):
    return Shutdown(plan, [(one, {"main": script}) for one, script in pods], **options)


def test_dns_gets_sigterm_after_its_users_and_the_network_after_both():
    shutdown = played((network(), QUICK), (dns(), QUICK), (pod("web", uid="web"), SLOW), runtime=Recorder)
    # Each user's sandbox is torn down before the network plugin goes.
    assert terms(shutdown) == {"web": 0, "dns": 6.5, "cni": 7.5}
    assert {uid: round(at, 1) for uid, at in shutdown.runtime.torn_down.items()} == {"web": 6.5, "dns": 7.5, "cni": 9.5}
    assert {event.uid: round(event.at, 1) for event in shutdown.of(PodStarted)} == terms(shutdown)
    assert shutdown.of(NoteWritten) == []


def test_a_pod_that_nobody_needs_waits_for_nobody():
    host = pod("host", uid="host")
    host = replace(host, spec=replace(host.spec, host_network=True))
    assert terms(played((network(), QUICK), (dns(), QUICK))) == {"dns": 0, "cni": 0.5}
    assert terms(played((network(), QUICK), (host, SLOW))) == {"cni": 0, "host": 0}


def test_its_hook_and_its_grace_period_begin_after_its_users():
    shutdown = played((dns(hook=5, grace=10), ENDLESS), (pod("web", uid="web"), SLOW))
    [hook] = shutdown.of(HookStarted)
    assert round(hook.at) == 6
    assert terms(shutdown) == {"web": 0, "dns": 11}
    [kill] = shutdown.deliveries("KILL")
    assert (kill.uid, round(kill.at)) == ("dns", 16), "the whole grace period"


@pytest.mark.parametrize(("grace", "term"), [(10, 29.9), (0, 37.9), (None, 19.9), (60, 19.9)])
def test_a_user_that_does_not_end_takes_neither_its_grace_period_nor_more_than_half_of_the_phase(grace, term):
    shutdown = played((dns(grace=grace), QUICK), (pod("web", uid="web", grace=60), ENDLESS))
    assert terms(shutdown) == {"web": 0, "dns": pytest.approx(term, abs=0.2)}
    outcomes = {event.uid: event.outcome for event in shutdown.of(PodEnded)}
    assert outcomes == {"dns": PodOutcome.GRACEFUL, "web": PodOutcome.KILLED}
    assert [event.text for event in shutdown.of(NoteWritten)] == [
        "default/dns ends beside pods that need it: default/web"
    ]


@pytest.mark.parametrize("seconds", [1, 3, 10])
def test_the_phase_takes_no_more_than_its_own_time(seconds):
    shutdown = played((network(grace=30), ENDLESS), (pod("web", uid="web"), ENDLESS), plan=phases((0, seconds), (1, 5)))
    assert [event.end for event in shutdown.of(PhaseEnded)] == [PhaseEnd.DONE, PhaseEnd.EMPTY]
    assert all(event.at <= seconds for event in shutdown.of(PhaseEnded))
    assert {d.uid for d in shutdown.deliveries("TERM")} == {"cni", "web"}


def test_volumes_of_a_user_that_has_ended_are_not_waited_for():
    shutdown = played((network(), QUICK), (pod("web", uid="web"), SLOW), slow_end={"web": 10}, runtime=Recorder)
    assert terms(shutdown) == {"web": 0, "cni": 6.5}


def test_a_phase_that_is_shortened_shortens_the_wait():
    async def bring_forward(shutdown, clock):
        await clock.sleep(2)
        shutdown.run.cap_deadline(12)

    shutdown = played((dns(), QUICK), (pod("web", uid="web", grace=60), ENDLESS), until=bring_forward)
    assert 2 < terms(shutdown)["dns"] <= 6.1


def test_a_cancelled_shutdown_leaves_it_alone():
    async def cancel(shutdown, clock):
        await clock.sleep(2)
        shutdown.run.stop()

    shutdown = played((dns(hook=1), QUICK), (pod("web", uid="web", grace=60), ENDLESS), until=cancel)
    assert terms(shutdown) == {"web": 0}
    assert shutdown.of(NoteWritten) == []
    assert [event.uid for event in shutdown.of(PodStarted)] == ["web"]
    assert [name for _, name, *_ in shutdown.node.begun] == ["web"]


def test_it_waits_for_no_pod_of_a_later_phase():
    later = pod("db", uid="db", priority=2_000_000_000)
    shutdown = played((dns(), SLOW), (later, QUICK), plan=phases((0, 20), (2_000_000_000, 10)))
    assert terms(shutdown) == {"dns": 0, "db": 6}


def test_a_driver_may_wait_for_volumes_until_two_seconds_before_its_sigkill():
    driver = pod("csi", uid="csi")
    volumes = (Volume(name="socket", host_path=HostPath(path="/var/lib/kubelet/plugins/x")),)
    driver = replace(driver, spec=replace(driver.spec, volumes=volumes))
    shutdown = played((driver, QUICK), (pod("web", uid="web"), QUICK), traffic={"csi": 100.0, "web": 100.0})
    assert terms(shutdown) == {"web": pytest.approx(10, abs=0.2), "csi": 30}, "all of its grace period, of 30 seconds"
