"""Cases of a failover, each with one fact changed, and what follows from them."""

from dataclasses import replace

from msgspec.structs import replace as changed

from lastcall.failover.decisions.case import (
    ApiRefusal,
    Case,
    CaseAttachment,
    CasePod,
    EffectivePolicy,
    FencerCall,
    FencerState,
    NodeSnapshot,
)
from lastcall.failover.decisions.decision_table import decide
from lastcall.failover.evidence.assessment import BootState, BootVerdict
from lastcall.failover.evidence.facts import Boot, PowerSeen
from lastcall.failover.evidence.out_of_service_taint import OURS
from lastcall.failover.evidence.owner_mark import OwnerMark, encode_mark
from lastcall.failover.limits.fence_targets import TargetJudgement, TargetMatch
from lastcall.model.fence_policy import FailoverMode
from lastcall.model.tolerations import Taint as Tainted

NOW = 1000.0
POLICY = EffectivePolicy(name="p", mode=FailoverMode.ENFORCE, suspect_after=40.0)
MARK = OwnerMark(boot_id="a", policy="p", began="2026-11-21T12:00:00Z", by="me")
SAME = TargetJudgement(TargetMatch.SAME, "it is the same machine")
OTHER = TargetJudgement(TargetMatch.OTHER, "it is another machine")
BMC = FencerState(name="bmc", judgement=SAME, judged=NOW)
DB = CasePod(uid="u1", namespace="shop", name="db-0", volumes=("v1",))
ENDING = replace(DB, terminating=True, grace=30)
STUCK = replace(ENDING, grace=0, finished=True, finalizers=("example.com/x",))
VA = CaseAttachment(uid="a1", name="va-1", volume="v1")
BY_HAND = Tainted(key=OURS.key, value="mine", effect="NoSchedule")


def verdict(state, *awaited):
    return BootVerdict(boot_id="a", state=state, reasons=("a reason",), awaited=awaited)


DEAD, UNKNOWN = verdict(BootState.DEAD), verdict(BootState.UNKNOWN)


def node(mark=None, *taints, boot="a", ready="Unknown", text=""):
    return NodeSnapshot(boot_id=boot, ready=ready, taints=taints, mark_text=encode_mark(mark) if mark else text)


def marked(*taints, boot="a", ready="Unknown", **changes):
    return node(changed(MARK, **changes), *taints, boot=boot, ready=ready)


SUSPECT = Case(
    name="n1",
    me="me",
    leader="me",
    wall=1_795_262_400.0,
    node=node(),
    policy=POLICY,
    observed=0.0,
    heard=NOW - 60,
    boot=Boot(id="a", system_uuid="m1", since=0.0),
    verdict=UNKNOWN,
    devices=(BMC,),
    pods=(DB,),
    attachments=(VA,),
)
PROVED = replace(SUSPECT, node=marked(OURS, tainted=True, switched_off=True, fencer="bmc"), verdict=DEAD)
BACK = replace(SUSPECT, node=marked(OURS, boot="b", ready="True", tainted=True), heard=NOW - 1, back_since=NOW - 5)
REFUSED = ApiRefusal(why="too many requests", again=NOW + 7)
AWAKE = NOW - 5


def check(case, kind, *, until=None, says="", **fields):
    step = decide(case, NOW)
    assert type(step) is kind, step
    assert says in step.why
    assert getattr(step, "until", None) == until
    for name, value in fields.items():
        assert getattr(step, name) == value


OFF_ORDERED = replace(BMC, offs=(FencerCall(began=NOW - 3, ended=NOW - 2),))


def said(device, power, at):
    return replace(device, answers=(PowerSeen(boot_id="a", source=device.name, power=power, asked=at, answered=at),))


SWITCHED = {"switched_off": True, "fencer": "bmc"}
