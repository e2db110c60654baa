"""When nothing is fenced although it might be: each rule, and that no order of events exceeds a limit."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastcall.errors import InvalidInput
from lastcall.failover.limits.storms import HOUR, Fencing, Limit, Member, StormLimits, StormView, may_fence

NOW = 10_000.0
OPEN = StormLimits(min_healthy=0, per_domain=100, per_hour=100)


def node(name, *, healthy=True, lost=False, **more):
    return Member(name=name, healthy=healthy, lost=lost, **more)


def gone(name, **more):
    return node(name, healthy=False, lost=True, **more)


def fencing(name, began=NOW - 10, *, boot="old", domain="", control_plane=False, is_open=True):
    return Fencing(node=name, boot_id=boot, domain=domain, control_plane=control_plane, began=began, open=is_open)


def workers(count, first=1):
    return [node(f"w{number}") for number in range(first, count + first)]


def ask(members, limits=OPEN, *, name="x", boot="b", **view):
    return may_fence(name, boot, StormView(members=members, **view), limits, NOW)


def test_one_lost_node_of_many_is_fenced():
    answer = ask([gone("x"), *workers(4)], StormLimits())
    assert (answer.allowed, answer.again) == (True, None)
    assert answer.why == "no limit stands against fencing node x"


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ({"api_failed": NOW - 10}, "the API server failed 10s ago"),
        ({"clock_stepped": NOW - 10}, "the controller's clock jumped 10s ago"),
        ({"most_lost": NOW - 10}, "more than half of the nodes were lost at once 10s ago"),
    ],
)
def test_a_sick_view_fences_nobody_until_it_has_settled(fault, why):
    answer = ask([gone("x"), *workers(4)], **fault)
    assert (answer.allowed, answer.why, answer.again) == (False, why, NOW + 50)
    view = StormView(members=[gone("x"), *workers(4)], **fault)
    assert may_fence("x", "b", view, OPEN, NOW + 50).allowed


def test_more_than_half_of_the_nodes_lost_is_the_controllers_own_fault():
    half = [gone("x"), gone("y"), *workers(2)]
    assert ask(half).allowed
    answer = ask([*half, gone("z")])
    assert not answer.allowed
    assert answer.why == "3 of 5 nodes are lost at once: rather the controller is cut off than they"


def test_a_sick_view_holds_back_also_what_is_under_way():
    answer = ask([gone("x"), *workers(4)], fencings=[fencing("x", boot="b")], api_failed=NOW)
    assert not answer.allowed


def test_a_fencing_under_way_goes_on_and_counts_once():
    one = StormLimits(per_domain=1, per_hour=1)
    members = [gone("x"), *workers(4)]
    assert ask(members, one, fencings=[fencing("x", boot="b")]).allowed
    assert not ask(members, one, fencings=[fencing("x", boot="a")]).allowed
    assert not ask(members, one, fencings=[fencing("x", boot="b", is_open=False)]).allowed


def test_min_healthy_is_rounded_up_and_leaves_out_the_node_itself():
    members = [gone("x"), gone("y"), *workers(3)]
    assert ask(members, replace(OPEN, min_healthy="60%")).allowed
    answer = ask(members, replace(OPEN, min_healthy="61%"))
    assert answer.why == "3 of 5 nodes are healthy without it, and 4 have to be"
    assert answer.again == NOW + OPEN.settle
    assert ask(members, replace(OPEN, min_healthy=3)).allowed
    assert not ask(members, replace(OPEN, min_healthy=4)).allowed


def test_a_node_that_is_healthy_itself_is_not_counted_as_what_is_left():
    assert not ask([node("x"), *workers(2)], replace(OPEN, min_healthy=3)).allowed


def test_a_node_that_is_being_fenced_counts_as_away_although_it_looks_healthy():
    members = [gone("x"), *workers(3)]
    limits = replace(OPEN, min_healthy=3)
    assert ask(members, limits).allowed
    assert not ask(members, limits, fencings=[fencing("w1")]).allowed
    assert ask(members, limits, fencings=[fencing("w1", is_open=False)]).allowed


def test_a_domain_has_a_limit_until_its_nodes_are_back():
    members = [gone("x", domain="east"), gone("y", domain="east"), *workers(4)]
    limits = replace(OPEN, per_domain=1)
    answer = ask(members, limits, fencings=[fencing("y", domain="east", began=NOW - 9 * HOUR)])
    assert answer.why == "in failure domain east node y is not back yet, and 1 may be away"
    assert ask(members, limits, fencings=[fencing("y", domain="west")]).allowed
    assert ask(members, limits, fencings=[fencing("y", domain="east", is_open=False)]).allowed
    assert ask(members, limits, fencings=[fencing("x", domain="east")]).allowed  # an earlier life of the same node


def test_nodes_without_a_failure_domain_have_no_limit_of_one():
    members = [gone("x"), gone("y"), *workers(4)]
    assert ask(members, replace(OPEN, per_domain=1), fencings=[fencing("y")]).allowed
    answer = ask(members, replace(OPEN, per_domain=1, min_healthy=5), fencings=[fencing("y")])
    assert answer.limit is Limit.MIN_HEALTHY
    assert ask(members, replace(OPEN, per_domain=1, per_hour=1), fencings=[fencing("y")]).limit is Limit.PER_HOUR


def test_a_node_that_is_failed_over_takes_no_place_in_its_domain_and_counts_everywhere_else():
    members = [gone("x", domain="east", control_plane=True), gone("y", domain="east"), *workers(4)]
    done = replace(fencing("y", domain="east", control_plane=True), failed_over=True)
    assert ask(members, replace(OPEN, per_domain=1), fencings=[replace(done, control_plane=False)]).allowed
    assert ask(members, replace(OPEN, per_domain=1), fencings=[done]).limit is Limit.CONTROL_PLANE
    workers_alone = [gone("x", domain="east"), *members[1:]]
    assert ask(workers_alone, replace(OPEN, per_hour=1), fencings=[done]).limit is Limit.PER_HOUR
    away = [replace(fencing("w1"), failed_over=True)]
    assert ask(workers_alone, replace(OPEN, min_healthy=4), fencings=away).limit is Limit.MIN_HEALTHY


def test_before_the_first_order_the_limits_are_asked_although_the_node_is_marked():
    own = replace(fencing("x", boot="b"), ordered=False)
    members = [gone("x", domain="east"), gone("y", domain="east"), *workers(4)]
    limits = replace(OPEN, per_domain=1, per_hour=1)
    assert ask(members, limits, fencings=[own]).allowed, "it does not stand in its own way"
    others = [fencing("y", domain="east")]
    assert not ask(members, limits, fencings=[own, *others]).allowed
    assert ask(members, limits, fencings=[replace(own, ordered=True), *others]).allowed


def test_an_hour_has_a_limit_also_for_those_that_are_back():
    limits = replace(OPEN, per_hour=2)
    past = [fencing("w1", NOW - 3000, is_open=False), fencing("w2", NOW - 1000, is_open=False)]
    answer = ask([gone("x"), *workers(4)], limits, fencings=past)
    assert answer.why == "2 nodes were fenced within the last hour, and 2 may be"
    assert answer.again == NOW + 600
    assert may_fence("x", "b", StormView(members=[gone("x"), *workers(4)], fencings=past), limits, NOW + 600).allowed


def test_one_node_of_the_control_plane_at_a_time():
    members = [gone("x", control_plane=True), node("cp2", control_plane=True), *workers(4)]
    away = [fencing("cp2", control_plane=True)]
    assert not ask(members, fencings=away).allowed
    assert ask(members, fencings=[fencing("w1")]).allowed
    assert ask([gone("x"), *members[1:]], fencings=away).allowed  # a worker may


@pytest.mark.parametrize(
    ("voters", "healthy", "allowed"),
    [
        (3, 2, True),
        (3, 1, False),
        (5, 3, True),
        (5, 2, False),
        (2, 1, False),
        (1, 0, False),
        (4, 3, True),
        (4, 2, False),
    ],
)
def test_the_quorum_of_etcd_is_kept_without_the_node(voters, healthy, allowed):
    """etcd needs ``n // 2 + 1`` of its members."""
    others = [node(f"e{number}", healthy=number < healthy, etcd=True) for number in range(voters - 1)]
    answer = ask([gone("x", etcd=True), *others, *workers(9)])
    assert answer.allowed is allowed
    assert ask([gone("x"), *others, *workers(9)]).allowed  # a node without a member costs none


EAST = fencing("y", domain="east", control_plane=True)
HOURLY = [fencing("w2", NOW - 1000, is_open=False), fencing("w1", NOW - 3000, is_open=False)]
LOST = ("l1", "l2", "l3", "l4", "l5", "x")
LATER = NOW + 50


@pytest.mark.parametrize(
    ("view", "limits", "limit", "blocked_by", "not_before"),
    [
        ({"fencings": HOURLY}, {"per_hour": 2}, Limit.PER_HOUR, ("w1", "w2"), NOW + 600),
        ({"fencings": [EAST]}, {"per_domain": 1}, Limit.PER_DOMAIN, ("y",), None),
        ({"fencings": [EAST]}, {}, Limit.CONTROL_PLANE, ("y",), None),
        ({}, {}, Limit.QUORUM, ("y",), None),
        ({"etcd": False}, {"min_healthy": 5}, Limit.MIN_HEALTHY, ("y",), None),
        ({"etcd": False, "fencings": [fencing("w4")]}, {"min_healthy": 4}, Limit.MIN_HEALTHY, ("w4", "y"), None),
        ({"api_failed": NOW - 10, "api_trouble": "5 requests failed"}, {}, Limit.API_SERVER, (), LATER),
        ({"clock_stepped": NOW - 10}, {}, Limit.CLOCK, (), LATER),
        ({"most_lost": NOW - 10}, {}, Limit.NODES_LOST, (), LATER),
        ({"more": [gone("l1"), gone("l2"), gone("l3"), gone("l4"), gone("l5")]}, {}, Limit.NODES_LOST, LOST, None),
    ],
)
def test_a_limit_names_the_nodes_that_fill_it_and_its_end_if_nodes_do_not_change_it(
    view, limits, limit, blocked_by, not_before
):
    view = {**view}
    place = {"domain": "east", "control_plane": True, "etcd": view.pop("etcd", True)}
    members = [gone("x", **place), node("y", healthy=False, **place), *workers(4), *view.pop("more", ())]
    answer = ask(members, replace(OPEN, **limits), **view)
    assert (answer.limit, answer.blocked_by, answer.not_before) == (limit, blocked_by, not_before)
    assert " ago" not in answer.cause
    assert answer.why.startswith(answer.cause)


def test_a_node_that_nobody_knows_is_not_fenced():
    answer = ask(workers(3))
    assert (answer.allowed, answer.why) == (False, "no node x is known of")


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"min_healthy": "half"}, "min_healthy: half: must be a number from 0, or a percentage from 0% to 100%"),
        ({"min_healthy": "101%"}, "min_healthy: 101%"),
        ({"min_healthy": -1}, "min_healthy: -1"),
        ({"per_domain": 0}, "per_domain: 0: must be 1 or more"),
        ({"per_hour": 0}, "per_hour: 0: must be 1 or more"),
        ({"settle": -1}, "settle: -1"),
    ],
)
def test_limits_that_mean_nothing_are_refused(limits, told):
    with pytest.raises(InvalidInput) as caught:
        StormLimits(**limits)
    assert told in str(caught.value)


NAMES = ["c1", "c2", "c3", "w1", "w2", "w3", "w4", "w5"]
DOMAIN = {name: "ab"[number % 2] for number, name in enumerate(NAMES)}
EVENTS = st.lists(
    st.tuples(st.sampled_from(["lose", "return", "fence", "fence", "fence"]), st.sampled_from(NAMES))
    | st.tuples(st.sampled_from(["api", "jump", "cut", "heal"]), st.none())
    | st.tuples(st.just("wait"), st.sampled_from([5.0, 70.0, 1000.0, 4000.0])),
    min_size=8,
    max_size=60,
)
LIMITS = st.builds(
    StormLimits,
    min_healthy=st.sampled_from([0, 3, "51%"]),
    per_domain=st.integers(1, 3),
    per_hour=st.integers(1, 4),
    settle=st.just(60.0),
)


class World:
    """Does what it may, and counts for itself."""

    def __init__(self, limits, voters):
        self.limits, self.voters, self.now = limits, voters, 0.0
        self.lost, self.off, self.boots = set(), set(), dict.fromkeys(NAMES, 0)
        self.fencings, self.began, self.view_failed, self.stepped = [], [], None, None

    def step(self, what, value):
        match what:
            case "wait":
                self.now += value
            case "lose":
                self.lost.add(value)
            case "cut":
                self.lost |= set(NAMES[:5])
            case "heal":
                self.lost = set(self.off)
            case "api":
                self.view_failed = self.now
            case "jump":
                self.stepped = self.now
            case "return":
                self.lost.discard(value)
                self.off.discard(value)
                self.boots[value] += 1
                self.fencings = [replace(one, open=one.open and one.node != value) for one in self.fencings]
            case "fence":
                self.fence(value)

    def fence(self, name):
        members = [
            Member(
                name=one,
                healthy=one not in self.lost,
                lost=one in self.lost,
                domain=DOMAIN[one],
                control_plane=one[0] == "c",
                etcd=one in self.voters,
            )
            for one in NAMES
        ]
        boot = str(self.boots[name])
        view = StormView(
            members=members, fencings=tuple(self.fencings), api_failed=self.view_failed, clock_stepped=self.stepped
        )
        answer = may_fence(name, boot, view, self.limits, self.now)
        assert answer.allowed or (answer.again > self.now and answer.why)
        if answer.allowed:
            self.check_view()
            if name not in self.off:
                self.began.append(self.now)
                self.fencings.append(
                    fencing(name, self.now, boot=boot, domain=DOMAIN[name], control_plane=name[0] == "c")
                )
                self.off.add(name)
                self.check(name)

    def check_view(self):
        assert 2 * len(self.lost) <= len(NAMES)
        assert all(at is None or self.now - at >= 60 for at in (self.view_failed, self.stepped))

    def check(self, name):
        assert sum(at > self.now - 3600 for at in self.began) <= self.limits.per_hour
        assert sum(DOMAIN[one] == DOMAIN[name] for one in self.off) <= self.limits.per_domain
        if name[0] == "c":
            assert sum(one[0] == "c" for one in self.off) <= 1
        if name in self.voters:
            assert 2 * len(self.voters - self.off - self.lost) > len(self.voters)
        least = {0: 0, 3: 3, "51%": 5}[self.limits.min_healthy]
        assert len(NAMES) - len(self.off | self.lost) >= least


@settings(max_examples=300)
@given(LIMITS, st.sampled_from([{"c1", "c2", "c3"}, {"w1"}, set()]), EVENTS)
def test_no_order_of_events_exceeds_a_limit(limits, voters, events):
    world = World(limits, voters)
    for what, value in events:
        world.step(what, value)
