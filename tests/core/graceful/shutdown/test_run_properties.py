"""Shutdowns of any pods in any phases, and what holds of each."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st
from support.agents.shutdown_run import Shutdown
from support.agents.virtual_parts import phases, pod

from lastcall.graceful.planning.phase_assignment import index_for
from lastcall.model.pods import ExecAction, LifecycleHandler
from lastcall.model.shutdown import PhaseEnd, PhaseEnded, PhaseStarted, PodStarted
from lastcall_lab.fakes.actor_runtime import ContainerScript

EXEC = LifecycleHandler(exec=ExecAction(command=("true",)))
seconds = st.integers(0, 40)
priorities = st.sampled_from([-100, 0, 999, 1000, 50_000, 2_000_000_000, 2_000_001_000])
behaviours = st.builds(
    ContainerScript,
    after_term=st.sampled_from([0.0, 0.5, 3.0, 17.0, math.inf]),
    after_kill=st.sampled_from([0.0, 0.02, 0.05]),
    hook=st.sampled_from([0.0, 1.5, 12.0, 100.0]),
)
pods_ = st.lists(
    st.tuples(
        priorities,
        st.none() | seconds,
        st.sampled_from([None, EXEC, 3]),
        st.integers(1, 2),
        st.integers(0, 2),
        behaviours,
        st.sampled_from(["Running", "Running", "Running", "Succeeded", "Failed"]),
    ),
    max_size=8,
)
plans = st.lists(st.tuples(st.sampled_from([0, 1000, 50_000, 2_000_000_000]), seconds), min_size=1, max_size=4).map(
    lambda pairs: phases(*sorted(dict(pairs).items()))
)
granteds = st.sampled_from([math.inf, 100.0, 30.0, 12.3, 5.0])


def build(specs):
    made = []
    for i, (priority, grace, hook, mains, cars, behaviour, phase) in enumerate(specs):
        names = [f"m{n}" for n in range(mains)] + [f"s{n}" for n in range(cars)]
        made.append(
            (
                pod(
                    f"p{i}",
                    uid=f"p{i}",
                    priority=priority,
                    grace=grace,
                    hook=hook,
                    containers=names[:mains],
                    sidecars=names[mains:],
                    phase=phase,
                ),
                dict.fromkeys(names, behaviour),
            )
        )
    return made


@settings(max_examples=300, deadline=None)
@given(plans, pods_, granteds)
def test_whatever_the_pods_do(plan, specs, granted):
    pods = build(specs)
    shutdown = Shutdown(plan, pods, granted=granted)
    unfinished = {spec.metadata.uid: spec for spec, _ in pods if not spec.is_finished}
    hooks = {
        f"p{i}": 3 if handler == 3 else behaviour.hook for i, (_, _, handler, _, _, behaviour, _) in enumerate(specs)
    }
    ran_out = any(e.end is PhaseEnd.RAN_OUT for e in shutdown.of(PhaseEnded))

    started = [e.uid for e in shutdown.of(PodStarted)]
    assert sorted(started) == sorted(unfinished), "every unfinished pod is in exactly one phase"
    assert shutdown.over <= shutdown.deadline + 1e-6, "never beyond what is granted"

    given_ = {e.index: e for e in shutdown.of(PhaseStarted)}
    for event in shutdown.of(PodStarted):
        spec = unfinished[event.uid]
        assert event.phase == index_for(plan, spec.spec.priority)
        phase = given_[event.phase]
        assert phase.seconds <= plan[event.phase].seconds
        assert event.grace <= phase.seconds
        left = min(phase.seconds, shutdown.deadline - phase.at)
        deliveries = [d for d in shutdown.runtime.deliveries if d.uid == event.uid]
        as_promised(spec, phase, deliveries, left=left, hook=hooks[event.uid])

    ends = {e.index: e for e in shutdown.of(PhaseEnded)}
    for index, phase in given_.items():
        for earlier in range(index):
            assert ends[earlier].at <= phase.at + 1e-9, "no phase before its predecessor is over"
    if not ran_out:
        last_exit = {}
        for d in shutdown.deliveries("exit"):
            last_exit[d.uid] = d.at
        for event in shutdown.of(PodStarted):
            for other in shutdown.of(PodStarted):
                if other.phase < event.phase:
                    assert last_exit[other.uid] <= given_[event.phase].at + 1e-9


def as_promised(spec, phase, deliveries, *, left, hook):
    """Whether one pod, whose hooks take ``hook`` seconds, was ended in the order, and in the time, that it is promised.

    The kubelet promises its hooks and its main containers the grace period, which is no longer than the phase, and each
    container two seconds between SIGTERM and SIGKILL. A phase, of which ``left`` seconds could be had, is never
    overrun: where both do not fit, the two seconds are the last of it, but never more than half.
    """
    term, kill = [d for d in deliveries if d.what == "TERM"], [d for d in deliveries if d.what == "KILL"]
    own = math.inf if asked_of(spec) is None else asked_of(spec)
    assert len(term) == len({d.container for d in term}), "SIGTERM once"
    for d in kill:
        assert d.at <= phase.at + min(own + 2, max(phase.seconds, 0.1)) + 1e-6, "grace and two seconds, capped"
        full = min(own, phase.seconds) - 0.11
        assert d.at >= phase.at + min(full, phase.seconds / 2) - 1e-6, "no kill while there is time left"
    hooks = {d.container: d.at for d in deliveries if d.what == "hook over"}
    two = min(2, max(0, left - 0.11) / 2)
    killed = {d.container: d.at for d in kill}
    for d in term:
        assert d.at >= hooks.get(d.container, 0), "SIGTERM only after the hook"
        assert killed.get(d.container, math.inf) >= d.at + two - 1e-6, "two seconds between SIGTERM and SIGKILL"
    for container, over in hooks.items():
        begun = next(d.at for d in deliveries if d.what == "hook" and d.container == container)
        assert over >= min(begun + hook, phase.at + min(own, left - 0.11 - two)) - 1e-6, "no hook cut off too early"
    mains = [d.at for d in deliveries if d.what == "exit" and d.container.startswith("m")]
    for d in term:
        if d.container.startswith("s") and len(mains) == len(spec.spec.containers):
            polite = phase.at + min(own, left - 0.11 - two)
            assert d.at >= min(max(mains), polite) - 1e-6, "sidecars last"


def asked_of(spec):
    return spec.spec.termination_grace_period_seconds
