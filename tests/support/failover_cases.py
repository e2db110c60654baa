"""Cases of a failover, each with one fact changed, and what follows from them."""

from dataclasses import replace

from msgspec.structs import replace as changed

from lastcall.failover.deciding.case import AttachmentLeft, Case, Device, NodeNow, PodLeft, Policy, Refusal, Try
from lastcall.failover.deciding.course import decide
from lastcall.failover.knowing.evidence import State, Verdict
from lastcall.failover.knowing.facts import Boot, PowerSeen
from lastcall.failover.knowing.owner import OwnerMark, write
from lastcall.failover.knowing.taints import OURS
from lastcall.failover.limits.targets import Judgement, Match
from lastcall.model.fence_policy import Mode
from lastcall.model.tolerations import Taint as Tainted

NOW = 1000.0
POLICY = Policy(name="p", mode=Mode.ENFORCE, suspect_after=40.0)
MARK = OwnerMark(boot_id="a", policy="p", began="2026-11-21T12:00:00Z", by="me")
SAME = Judgement(Match.SAME, "it is the same machine")
OTHER = Judgement(Match.OTHER, "it is another machine")
BMC = Device(name="bmc", judgement=SAME, judged=NOW)
DB = PodLeft(uid="u1", namespace="shop", name="db-0", volumes=("v1",))
ENDING = replace(DB, terminating=True, grace=30)
STUCK = replace(ENDING, grace=0, finished=True, finalizers=("example.com/x",))
VA = AttachmentLeft(uid="a1", name="va-1", volume="v1")
BY_HAND = Tainted(key=OURS.key, value="mine", effect="NoSchedule")


def verdict(state, *awaited):
    return Verdict(boot_id="a", state=state, reasons=("a reason",), awaited=awaited)


DEAD, UNKNOWN = verdict(State.DEAD), verdict(State.UNKNOWN)


def node(mark=None, *taints, boot="a", ready="Unknown", text=""):
    return NodeNow(boot_id=boot, ready=ready, taints=taints, mark_text=write(mark) if mark else text)


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
REFUSED = Refusal(why="too many requests", again=NOW + 7)
AWAKE = NOW - 5


def check(case, kind, *, until=None, says="", **fields):
    step = decide(case, NOW)
    assert type(step) is kind, step
    assert says in step.why
    assert getattr(step, "until", None) == until
    for name, value in fields.items():
        assert getattr(step, name) == value


OFF_ORDERED = replace(BMC, offs=(Try(began=NOW - 3, ended=NOW - 2),))


def said(device, power, at):
    return replace(device, answers=(PowerSeen(boot_id="a", source=device.name, power=power, asked=at, answered=at),))


SWITCHED = {"switched_off": True, "fencer": "bmc"}
