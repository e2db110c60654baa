"""What holds of every decision, whatever a Case says: also for cases that nothing in a cluster would bring about."""

from hypothesis import given, settings
from hypothesis import strategies as st
from support.failover.cases import BMC, DB, DEAD, NOW, OTHER, POLICY, UNKNOWN, VA, node

from lastcall.failover.decisions import remaining
from lastcall.failover.decisions.case import ApiRefusal, Case, FencerCall, FencerState
from lastcall.failover.decisions.decision_table import decide
from lastcall.failover.decisions.fencer_choice import HOLDS
from lastcall.failover.decisions.steps import (
    AskPower,
    AskTarget,
    Delete,
    Detach,
    Done,
    ForceDelete,
    Mark,
    SwitchOff,
    SwitchOn,
    TaintNode,
    Unmark,
    Untaint,
    Wait,
)
from lastcall.failover.evidence.facts import Boot, PowerSeen
from lastcall.failover.evidence.out_of_service_taint import OURS
from lastcall.failover.evidence.owner_mark import OwnerMark
from lastcall.failover.limits.storms import LimitAnswer
from lastcall.failover.reporting.explanation import explain_node, explain_pod
from lastcall.model.fence_policy import FailoverMode
from lastcall.model.power import PowerState

AGES = st.sampled_from([0.0, 0.5, 1.0, 5.0, 19.0, 20.0, 39.0, 40.0, 59.0, 60.0, 500.0])
PAST = AGES.map(lambda age: NOW - age)
MOMENTS = AGES.map(lambda age: NOW - 60 + 2 * age)
FLAGS = st.booleans()
REFUSALS = st.none() | st.builds(ApiRefusal, why=st.just("no"), again=MOMENTS)
TRIES = st.lists(
    PAST.map(lambda at: FencerCall(began=at - 1, ended=at))
    | PAST.map(lambda at: FencerCall(began=at, ended=at, error="failed")),
    max_size=3,
)


def edited(struct, **parts):
    """The same with some of its fields changed."""
    return st.builds(lambda **found: type(struct)(**{**fields(struct), **found}), **parts)


def fields(struct):
    return {name: getattr(struct, name) for name in struct.__dataclass_fields__}


MARKS = st.builds(
    OwnerMark,
    boot_id=st.sampled_from(["a", "a", "b"]),
    policy=st.just("p"),
    began=st.just("2026-11-21T12:00:00Z"),
    by=st.sampled_from(["me", "me", "other"]),
    fencer=st.sampled_from(["", "bmc", "pdu"]),
    switched_off=FLAGS,
    tainted=FLAGS,
    powered_on=FLAGS,
)
NODES = st.builds(
    lambda mark, taints, ready, text, boot: node(mark, *taints, boot=boot, ready=ready, text=text),
    st.none() | MARKS,
    st.sampled_from([(), (OURS,)]),
    st.sampled_from(["True", "False", "Unknown", ""]),
    st.sampled_from(["", "", "{"]),
    st.sampled_from(["a", "a", "a", ""]),
)
PODS = st.lists(
    edited(
        DB,
        uid=st.sampled_from(["u1", "u2"]),
        terminating=FLAGS,
        grace=st.sampled_from([None, 0, 30]),
        finished=FLAGS,
        finalizers=st.sampled_from([(), ("x",)]),
        tolerates=FLAGS,
        patient=FLAGS,
        disabled=FLAGS,
        mirror=FLAGS,
        refused=REFUSALS,
    ),
    max_size=3,
).map(tuple)
ANSWERS = st.builds(
    lambda power, asked: PowerSeen(boot_id="a", source="bmc", power=power, asked=asked, answered=asked),
    st.sampled_from(PowerState),
    PAST,
)
DEVICES = st.lists(
    st.builds(
        FencerState,
        name=st.sampled_from(["bmc", "pdu"]),
        trouble=st.sampled_from(["", "", "none"]),
        judgement=st.sampled_from([None, BMC.judgement, OTHER]),
        judged=st.sampled_from([NOW, NOW - 1, NOW - 59, NOW - 60]),
        offs=TRIES.map(tuple),
        ons=TRIES.map(tuple),
        answers=st.lists(ANSWERS, max_size=3).map(lambda found: tuple(sorted(found, key=lambda one: one.asked))),
    ),
    max_size=2,
    unique_by=lambda one: one.name,
).map(tuple)
POLICIES = edited(
    POLICY, mode=st.sampled_from(FailoverMode), suspect_after=st.sampled_from([5.0, 40.0]), power_on=FLAGS, detach=FLAGS
)
CASES = st.builds(
    Case,
    name=st.just("n1"),
    me=st.just("me"),
    leader=st.sampled_from(["me", "me", "me", "other"]),
    wall=st.just(1e9),
    node=st.none() | NODES | NODES,
    policy=st.none() | POLICIES | POLICIES,
    observed=PAST,
    heard=st.none() | PAST,
    boot=st.just(Boot(id="a", system_uuid="m", since=0.0)),
    verdict=st.sampled_from([DEAD, UNKNOWN]),
    held_until=st.none() | MOMENTS,
    gone=st.sampled_from([frozenset(), frozenset({"u1"})]),
    storm=st.builds(LimitAnswer, allowed=FLAGS, why=st.just("why"), again=st.none() | MOMENTS),
    devices=DEVICES,
    pods=PODS,
    attachments=st.lists(edited(VA, deleting=FLAGS, refused=REFUSALS), max_size=2).map(tuple),
    back_since=st.none() | PAST,
)


@settings(max_examples=600)
@given(CASES)
def test_every_step_has_its_reasons(case):
    step = decide(case, NOW)
    mark = case.mark
    assert step.why
    if isinstance(step, Done | Wait):
        assert isinstance(step, Done) or step.until is None or step.until > NOW
        return
    assert case.node
    assert case.leader == case.me
    assert isinstance(step, Delete | ForceDelete | Mark) or (mark and mark.by == "me") or acts_on_another_boot(case)
    check(step, case, mark)


def acts_on_another_boot(case):
    """What is taken away then is taken away by whoever leads."""
    return case.mark is not None and case.mark.boot_id != case.node.boot_id


def check(step, case, mark):
    silent = NOW - case.quiet_since
    match step:
        case SwitchOff():
            assert silent >= case.policy.suspect_after
            assert case.held_until is None or case.held_until <= NOW
            assert case.limits.allowed
            assert case.policy.mode is not FailoverMode.OBSERVE
            assert (mark.boot_id, mark.fencer, mark.switched_off) == (case.node.boot_id, step.fencer, True)
            assert not mark.powered_on
            device = next(one for one in case.devices if one.name == step.fencer)
            assert device.judgement.allows(unchecked=device.unchecked)
            assert NOW - device.judged < HOLDS
            assert not [one for one in device.offs if one.ended > device.judged]
            assert not device.trouble
        case TaintNode():
            assert case.dead
            assert step.mark.tainted
        case Delete() | ForceDelete():
            removed(step, case, mark)
        case Detach():
            assert case.dead
            assert case.policy.detach
            assert mark.boot_id == case.node.boot_id
        case SwitchOn():
            assert mark.switched_off
            assert mark.powered_on
            assert case.policy.power_on
            assert not remaining.has_anything_to_remove(case)
        case Untaint() | Unmark():
            assert mark
        case Mark():
            assert step.mark.by == "me"
        case _:
            assert isinstance(step, AskTarget | AskPower)


def removed(step, case, mark):
    """Pods that may go, for a boot that is over, or because the node has ended them itself."""
    assert case.policy.mode is FailoverMode.ENFORCE
    assert step.boot_id == case.node.boot_id
    for pod in step.pods:
        assert not remaining.stay_reason(pod)
        assert not (isinstance(step, Delete) and (pod.terminating or case.dead))
        assert pod.terminating or isinstance(step, Delete) or case.dead
        assert pod.refused is None or pod.refused.again <= NOW
    if not {pod.uid for pod in step.pods} <= case.gone:
        assert case.dead
        assert remaining.has_our_taint(case)
        assert mark.boot_id == case.node.boot_id
        assert not mark.powered_on
        assert OURS in case.node.taints


@settings(max_examples=200)
@given(CASES)
def test_every_decision_can_be_explained(case):
    found = explain_node(case, NOW)
    assert bool(found.hurdles) is isinstance(decide(case, NOW), Wait | Done)
    for pod in case.pods:
        assert explain_pod(case, pod, NOW).next
