"""The next steps of a drain: a table, and stories in which the run dies after any step and another one goes on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lastcall.drain.decisions.drain_course import DrainCourse, NodeProgress
from lastcall.drain.decisions.next_steps import MOST_REQUESTS, decide_steps
from lastcall.drain.decisions.pod_progress import (
    AnswerKind,
    PodAnswer,
    PodProgress,
    PodTarget,
    SeenPod,
    SeenRoom,
    apply_answer,
)
from lastcall.drain.decisions.steps import (
    CordonNode,
    DeletePod,
    EvictPod,
    FailPod,
    FinishNode,
    NodeOutcome,
    SkipPod,
    TakeOwnership,
)
from lastcall.model.drain_limits import FORCE_GRACE, DrainLimits, TimeoutPolicy
from lastcall.model.drain_settings import DrainSettings

NOW = 1000.0
STAYS = SeenPod()
ENDS = SeenPod(terminating_since=990.0, grace=30)
GIVEN_MUCH = SeenPod(terminating_since=10.0, grace=600)


def target(name, **more):
    return PodTarget(uid=f"uid-{name}", namespace="n", name=name, node="n1", owner=more.pop("owner", name), **more)


def pod(name="a", *, owner="", tier=0, depended=False, **progress):
    return PodProgress(target=target(name, owner=owner or name, tier=tier, is_depended_on=depended), **progress)


def course(*pods, seen=None, nodes=("n1",), cordoned=True, trouble="", settings=None, **more):
    known = (
        {one.target.uid: STAYS for one in pods} if seen is None else {f"uid-{name}": how for name, how in seen.items()}
    )
    return DrainCourse(
        settings=settings or DrainSettings(),
        limits=more.pop("limits", DrainLimits()),
        nodes=tuple(NodeProgress(name=name, is_cordoned=cordoned, trouble=trouble) for name in nodes),
        is_owned=more.pop("owned", True),
        pods=more.pop("chosen", pods),
        seen=known,
        **more,
    )


def said(step):
    """A step in short."""
    match step:
        case TakeOwnership():
            return f"own {' '.join(step.nodes)}"
        case CordonNode():
            return f"cordon {step.node}"
        case EvictPod():
            return f"evict {step.target.name}"
        case DeletePod():
            return f"delete {step.target.name} {step.grace}{' forced' if step.forced else ''}"
        case FailPod() | SkipPod():
            return f"{type(step).__name__[:4].lower()} {step.target.name}"
        case FinishNode():
            return f"{step.outcome.value} {step.node}"


REFUSED = {"refusal": "not now", "last_asked": 990.0, "first_asked": 900.0}
STOP = DrainLimits(timeout=100)
DELETE = DrainLimits(timeout=100, on_timeout=TimeoutPolicy.DELETE)
FORCE = DrainLimits(timeout=100, on_timeout=TimeoutPolicy.FORCE)
OVER = {"deadline": NOW - 1}

TABLE = {
    "the nodes are not ours": (course(nodes=("n2", "n1"), owned=False, cordoned=False, chosen=None), ["own n1 n2"]),
    "they are ours": (course(nodes=("n2", "n1"), cordoned=False, chosen=None), ["cordon n1", "cordon n2"]),
    "their pods are not known": (course(chosen=None), []),
    "no node can be drained": (course(trouble="lost", owned=False, cordoned=False, chosen=None), ["failed n1"]),
    "there are no pods": (course(), ["drained n1"]),
    "all pods of a tier at once": (course(pod("a"), pod("b"), pod("c", tier=1)), ["evict a", "evict b"]),
    "the next tier waits": (course(pod("a", accepted_at=1.0), pod("b", tier=1), seen={"a": ENDS, "b": STAYS}), []),
    "the next tier comes": (course(pod("a"), pod("b", tier=1), seen={"b": STAYS}), ["evict b"]),
    "one is asked for already": (course(pod("a"), asked=frozenset({"uid-a"})), []),
    "deletions": (course(pod("a"), settings=DrainSettings(disable_eviction=True)), ["delete a None"]),
    "deletions with a grace period": (
        course(pod("a"), settings=DrainSettings(disable_eviction=True, grace_period=7)),
        ["delete a 7"],
    ),
    "what was accepted is not asked for again": (course(pod("a", accepted_at=1.0)), []),
    "what somebody else has deleted is not asked for": (course(pod("a"), seen={"a": GIVEN_MUCH}), []),
    "unless less time is asked for": (
        course(pod("a"), seen={"a": GIVEN_MUCH}, settings=DrainSettings(grace_period=7)),
        ["evict a"],
    ),
    "once": (
        course(pod("a", accepted_at=1.0), seen={"a": GIVEN_MUCH}, settings=DrainSettings(grace_period=7)),
        [],
    ),
    "and not for more": (course(pod("a"), seen={"a": ENDS}, settings=DrainSettings(grace_period=30)), []),
    "a refusal is young": (course(pod("a", retry_at=NOW + 1, **REFUSED)), []),
    "a refusal is old": (course(pod("a", retry_at=NOW, **REFUSED)), ["evict a"]),
    "one pod of a refused workload at a time": (
        course(
            *(
                pod(name, owner="w", retry_at=NOW - 1, **REFUSED | {"last_asked": at})
                for name, at in (("a", 9.0), ("b", 3.0))
            )
        ),
        ["evict b"],
    ),
    "a workload waits together": (
        course(pod("a", owner="w", retry_at=NOW + 1, **REFUSED), pod("b", owner="w", retry_at=NOW - 1, **REFUSED)),
        [],
    ),
    "its budget is spent": (
        course(pod("a", retry_at=NOW - 1, **REFUSED), rooms={"uid-a": SeenRoom(is_open=False, changed_at=1.0)}),
        [],
    ),
    "its budget has long been spent": (
        course(
            pod("a", retry_at=NOW - 26, **REFUSED | {"last_asked": NOW - 31}),
            rooms={"uid-a": SeenRoom(is_open=False, changed_at=1.0)},
        ),
        ["evict a"],
    ),
    "its budget has made room": (
        course(pod("a", retry_at=NOW + 4, **REFUSED), rooms={"uid-a": SeenRoom(is_open=True, changed_at=991.0)}),
        ["evict a"],
    ),
    "its budget had room before it was asked for": (
        course(pod("a", retry_at=NOW + 4, **REFUSED), rooms={"uid-a": SeenRoom(is_open=True, changed_at=989.0)}),
        [],
    ),
    "a held pod on its own": (
        course(
            pod("a", owner="w", retry_at=NOW, is_held=True, **REFUSED),
            pod("b", owner="w", retry_at=NOW, is_held=True, **REFUSED),
        ),
        ["evict a", "evict b"],
    ),
    "workloads in turn": (
        course(pod("a1", owner="a"), pod("a2", owner="a"), pod("b1", owner="b")),
        ["evict a1", "evict b1", "evict a2"],
    ),
    "a pod has failed": (course(pod("a", failure="no"), pod("b", tier=1)), ["evict b"]),
    "others depend on it": (course(pod("a", failure="no"), pod("b", tier=1, depended=True)), ["fail b"]),
    "the drain of a node failed": (course(pod("a", failure="no")), ["failed n1"]),
    "the node is lost": (course(pod("a"), trouble="lost"), ["fail a"]),
    "not sure of the Lease": (course(pod("a"), is_sure=False), []),
    "not sure at the end of the time": (course(pod("a"), is_sure=False, limits=FORCE, **OVER), []),
    "not sure at the end of the time, and to stop": (
        course(pod("a"), is_sure=False, limits=STOP, **OVER),
        ["fail a"],
    ),
    "not sure long after the end of the time": (
        course(pod("a"), is_sure=False, limits=FORCE, deadline=NOW - 60),
        ["fail a"],
    ),
    "the time is over, and their pods are not known": (
        course(chosen=None, limits=STOP, watched_since=NOW - 30, **OVER),
        ["failed n1"],
    ),
    "the time was over before their pods can be known": (
        course(chosen=None, limits=STOP, watched_since=NOW - 1, **OVER),
        [],
    ),
    "stop": (course(pod("a"), pod("b"), seen={"a": STAYS, "b": ENDS}, limits=STOP, **OVER), ["fail a", "fail b"]),
    "delete": (course(pod("a", retry_at=NOW + 4, **REFUSED), limits=DELETE, **OVER), ["delete a None forced"]),
    "delete waits for its end": (course(pod("a"), seen={"a": ENDS}, limits=DELETE, **OVER), []),
    "delete is refused by a guard": (
        course(pod("a", retry_at=NOW + 4, **REFUSED | {"last_asked": NOW, "is_held": True}), limits=DELETE, **OVER),
        [],
    ),
    "delete never what a guard speaks of": (
        course(pod("a"), seen={"a": SeenPod(is_guarded=True)}, limits=DELETE, **OVER),
        [],
    ),
    "delete gives a guarded pod up": (
        course(pod("a"), seen={"a": SeenPod(is_guarded=True)}, limits=DELETE, deadline=NOW - 91),
        ["fail a"],
    ),
    "delete gives up": (course(pod("a"), limits=DELETE, deadline=NOW - 91), ["fail a"]),
    "delete waits as long as somebody else has given": (
        course(pod("a"), seen={"a": GIVEN_MUCH}, limits=DELETE, deadline=NOW - 659),
        [],
    ),
    "delete gives up after that": (
        course(pod("a"), seen={"a": GIVEN_MUCH}, limits=DELETE, deadline=NOW - 660),
        ["fail a"],
    ),
    "force": (course(pod("a"), limits=FORCE, **OVER), [f"delete a {FORCE_GRACE} forced"]),
    "force what ends": (course(pod("a"), seen={"a": ENDS}, limits=FORCE, **OVER), [f"delete a {FORCE_GRACE} forced"]),
    "force waits for the kubelet": (course(pod("a", forced_at=NOW - 9), seen={"a": ENDS}, limits=FORCE, **OVER), []),
    "force gives up": (course(pod("a", forced_at=NOW - 62), seen={"a": ENDS}, limits=FORCE, **OVER), ["fail a"]),
    "force never what a webhook holds": (course(pod("a", is_held=True, **REFUSED), limits=FORCE, **OVER), ["fail a"]),
    "force never what a guard speaks of": (
        course(pod("a"), seen={"a": SeenPod(is_guarded=True)}, limits=FORCE, **OVER),
        ["fail a"],
    ),
    "force those that others need last": (
        course(pod("a"), pod("b", tier=1, depended=True), limits=FORCE, **OVER),
        [f"delete a {FORCE_GRACE} forced"],
    ),
    "force what ends though a guard has held it": (
        course(pod("a", is_held=True, **REFUSED), seen={"a": ENDS}, limits=FORCE, **OVER),
        [f"delete a {FORCE_GRACE} forced"],
    ),
    "the time of all is over before that of one pod": (
        course(pod("a", first_asked=950.0), limits=DrainLimits(timeout=100, pod_timeout=90), **OVER),
        ["fail a"],
    ),
    "the time of one pod is over before that of all": (
        course(pod("a", first_asked=900.0), limits=DrainLimits(timeout=100, pod_timeout=90), deadline=NOW + 9),
        ["fail a"],
    ),
    "the time of one pod": (
        course(
            pod("a", first_asked=900.0),
            pod("b", first_asked=950.0, accepted_at=950.0),
            limits=DrainLimits(pod_timeout=90),
        ),
        ["fail a"],
    ),
    "deleted not so long ago": (
        course(
            pod("a"),
            seen={"a": SeenPod(terminating_since=1.0, overdue_since=920.0)},
            settings=DrainSettings(skip_wait_for_delete_timeout=90),
        ),
        [],
    ),
    "deleted long ago": (
        course(
            pod("a"),
            seen={"a": SeenPod(terminating_since=1.0, overdue_since=900.0)},
            settings=DrainSettings(skip_wait_for_delete_timeout=90),
        ),
        ["skip a"],
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_steps(name):
    case, expected = TABLE[name]
    assert list(map(said, decide_steps(case, NOW).steps)) == expected


@pytest.mark.parametrize(("asked", "seconds"), [(None, 5.0), (10.0, 10.0), (0.1, 1.0)])
def test_a_time_that_the_server_asks_for_is_waited(asked, seconds):
    answer = PodAnswer(kind=AnswerKind.REFUSED, message="not now", retry_after=asked)
    assert apply_answer(pod("a"), answer, forced=False, now=NOW).retry_at == NOW + seconds


def test_requests_are_bounded():
    case = course(*(pod(f"p{number}") for number in range(200)), asked=frozenset({"x"}))
    assert len(decide_steps(case, NOW).steps) == MOST_REQUESTS - 1


def test_nothing_is_left():
    case = course()
    done = replace(case, nodes=(replace(case.nodes[0], outcome=NodeOutcome.DRAINED),))
    assert decide_steps(done, NOW).is_over


PODS = st.fixed_dictionaries(
    {
        "tier": st.integers(0, 2),
        "owner": st.sampled_from(["w", "x", ""]),
        "refusals": st.integers(0, 4),
        "ends_after": st.integers(0, 40),
        "held": st.booleans(),
        "fails": st.sampled_from([False, False, False, True]),
    }
)


class Story:
    """A cluster in little. A run knows only what it has read or asked itself; ``die`` begins another one."""

    def __init__(self, pods, limits):
        self.limits, self.now = limits, 0.0
        self.world = {f"p{number}": dict(made, here=True, deleted=None) for number, made in enumerate(pods)}
        self.cordoned = self.owned = False
        self.deadline = limits.timeout or None
        self.die()

    def die(self):
        self.course = DrainCourse(
            settings=DrainSettings(), limits=self.limits, nodes=(NodeProgress(name="n1"),), deadline=self.deadline
        )
        self.owned = False

    def look(self):
        for name, facts in self.world.items():
            if facts["deleted"] is not None and self.now >= facts["deleted"]:
                self.world[name]["here"] = False
        here = {name: facts for name, facts in self.world.items() if facts["here"]}
        seen = {
            f"uid-{name}": SeenPod(terminating_since=None if facts["deleted"] is None else self.now)
            for name, facts in here.items()
        }
        self.course = replace(self.course, seen=seen)
        if self.course.pods is None and self.cordoned and self.course.nodes[0].is_cordoned:
            chosen = tuple(
                pod(name, owner=facts["owner"], tier=facts["tier"], depended=facts["tier"] == 2)
                for name, facts in here.items()
            )
            self.course = replace(self.course, pods=chosen)

    def take(self, step):
        match step:
            case TakeOwnership():
                self.owned = True
                self.course = replace(self.course, is_owned=True)
            case CordonNode():
                assert self.owned
                self.cordoned = True
                self.change_node(is_cordoned=True)
            case EvictPod() | DeletePod():
                assert self.owned
                assert self.cordoned
                self.ask(step)
            case FailPod() | SkipPod():
                self.change_pod(step.target, failure=step.why)
            case FinishNode():
                self.change_node(outcome=step.outcome)

    def ask(self, step):
        facts = self.world[step.target.name]
        others = [one for one in self.world.values() if one["here"] and one["tier"] < facts["tier"]]
        forced = isinstance(step, DeletePod) and step.forced
        assert forced or all(self.is_failed(name) for name, one in self.world.items() if one in others)
        if facts["held"]:
            assert not (forced and step.grace == FORCE_GRACE and self.knows_guard(step.target)), "never past a guard"
            answer = PodAnswer(kind=AnswerKind.REFUSED, message="held", is_held=True)
        elif facts["fails"]:
            answer = PodAnswer(kind=AnswerKind.FAILED, message="no")
        elif facts["refusals"] and not forced:
            facts["refusals"] -= 1
            answer = PodAnswer(kind=AnswerKind.REFUSED, message="budget")
        else:
            facts["deleted"] = self.now + (1 if forced else facts["ends_after"])
            answer = PodAnswer(kind=AnswerKind.ACCEPTED)
        self.change_pod(
            step.target, first_asked=self.progress(step.target).first_asked or self.now, last_asked=self.now
        )
        found = apply_answer(self.progress(step.target), answer, forced=forced, now=self.now)
        pods = tuple(found if one.target.uid == step.target.uid else one for one in self.course.pods)
        self.course = replace(self.course, pods=pods)

    def knows_guard(self, wanted):
        return self.progress(wanted).is_held

    def is_failed(self, name):
        return any(one.failure for one in self.course.pods if one.target.name == name)

    def progress(self, wanted):
        return next(one for one in self.course.pods if one.target.uid == wanted.uid)

    def change_pod(self, wanted, **changes):
        pods = tuple(replace(one, **changes) if one.target.uid == wanted.uid else one for one in self.course.pods)
        self.course = replace(self.course, pods=pods)

    def change_node(self, **changes):
        self.course = replace(self.course, nodes=(replace(self.course.nodes[0], **changes),))

    @property
    def outcome(self):
        return self.course.nodes[0].outcome


@given(
    st.lists(PODS, max_size=6),
    st.sampled_from([DrainLimits(timeout=60, on_timeout=policy) for policy in TimeoutPolicy]),
    st.lists(st.integers(0, 30), max_size=4),
)
def test_a_run_may_die_after_each_step(pods, limits, deaths):
    story = Story(pods, limits)
    taken = 0
    for _ in range(2000):
        story.look()
        decision = decide_steps(story.course, story.now)
        if decision.is_over:
            break
        for step in decision.steps:
            story.take(step)
            taken += 1
            if taken in deaths:
                story.die()
                break
        if not decision.steps:
            story.now = decision.wake_at if decision.wake_at is not None else story.now + 1
            assert not (decision.wake_at is None and not any(one["deleted"] for one in story.world.values()))
    assert story.outcome is not None, "it comes to an end"
    left = [name for name, facts in story.world.items() if facts["here"]]
    assert (story.outcome is NodeOutcome.DRAINED) is (not left)
    assert story.cordoned
    held = {name for name, facts in story.world.items() if facts["held"]}
    assert held <= set(left)
