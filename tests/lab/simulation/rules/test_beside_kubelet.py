"""The rules for an agent beside a kubelet: each just broken, and just not."""

import pytest
from support.simulation.run_records import CRITICAL, Story

from lastcall_lab.simulation.truth import JobFailures, NodeObjectState, Noted, TerminationRequest

QUIET = NodeObjectState(unschedulable=False, marked=False, conditions=(), is_not_ready=False)
CORDONED = QUIET._replace(unschedulable=True)
DOWN = NodeObjectState(
    unschedulable=True,
    marked=True,
    conditions=("GracefulNodeShutdownInProgress", "DrainInProgress"),
    is_not_ready=True,
)
AGENT = "n1/agent"


class Beside(Story):
    """One machine, whose kubelet runs, and which is rebooted at 100 s unless the test says something else."""

    def __init__(self, **more):
        super().__init__(nodes=("n1",), end=900.0)
        self.more |= {"beside": True, "node_objects": [], "cordons": [], "endpoints": [], "job_failures": []} | more
        self.at(0.0, "n1", "kubelet started")
        self.node(0.0, QUIET)

    def node(self, at, state):
        self.more["node_objects"].append(Noted(at, "n1", state))
        return self

    def noted(self, what, at, who, value):
        self.more[what].append(Noted(at, who, value))
        return self

    def asked_by(self, at, uid, grace, by, *, forgotten=False):
        self.asked.append(TerminationRequest(at, uid, grace, forgotten, by))
        return self

    def goes_down(self, at=100.0, *, stopped=0.06):
        self.at(at, "n1", ("pressed", 40.0))
        if stopped is not None:
            self.at(at + stopped, "n1", "kubelet stopped")
        return self.node(at + 0.01, DOWN)

    def is_off(self, at):
        return self.at(at, "n1", "down", "off")

    def boots(self, at, state=QUIET):
        return self.at(at, "n1", "on").at(at + 5, "n1", "agent started", "kubelet started").node(at + 5.1, state)

    def is_cancelled(self, at, *, back=0.1, state=QUIET):
        self.at(at, "n1", "cancelled")
        if back is not None:
            self.at(at + back, "n1", "kubelet started")
        return self.node(at + 0.2, state)


def test_a_quiet_reboot_breaks_nothing():
    story = Beside().pod("web").goes_down().at(100.1, "web", "TERM").at(101.0, "web", "exit").is_off(101.1).boots(130.0)
    assert story.broken() == []


# -- the kubelet -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("back", "broken"), [(5.0, []), (9.0, ["KUBELET_BACK"]), (None, ["KUBELET_BACK"])])
def test_it_is_back_soon_after_a_cancellation(back, broken):
    assert Beside().goes_down().is_cancelled(110.0, back=back).broken() == broken


@pytest.mark.parametrize(("back", "broken"), [(205.0, []), (210.0, ["KUBELET_BACK"])])
def test_where_the_agent_is_dead_systemd_starts_it_a_minute_after_the_deadline(back, broken):
    story = Beside().goes_down().at(101.0, "n1", "agent killed").is_cancelled(110.0, back=None)
    story.at(back, "n1", "kubelet started").at(400.0, "n1", "agent started")
    assert story.broken() == broken


@pytest.mark.parametrize(("back", "broken"), [(10.0, []), (12.0, ["KUBELET_BACK"])])
def test_its_unit_starts_it_after_its_death(back, broken):
    assert Beside().at(50.0, "n1", "kubelet killed").at(50.0 + back, "n1", "kubelet started").broken() == broken


def test_nobody_stops_it_without_a_shutdown():
    assert Beside().at(50.0, "n1", "kubelet stopped").at(52.0, "n1", "kubelet started").broken() == ["KUBELET_BACK"]


@pytest.mark.parametrize(("order", "broken"), [(100.5, []), (101.0, ["NO_START"])])
def test_it_starts_pods_only_until_it_is_stopped(order, broken):
    story = Beside().goes_down(stopped=1.5).pod("late", began=order).at(order + 0.1, "late", "TERM")
    story.at(order + 0.2, "late", "exit")
    assert story.is_off(103.0).boots(130.0).broken() == broken


@pytest.mark.parametrize(("order", "broken"), [(125.5, []), (126.0, ["NO_START"])])
def test_an_agent_that_dies_before_it_has_stopped_it_stops_it_in_its_next_life(order, broken):
    story = Beside().goes_down(stopped=None).at(100.02, "n1", "agent killed").at(125.0, "n1", "agent started")
    story.pod("late", began=order).at(126.2, "n1", "kubelet stopped").at(126.3, "late", "TERM", "exit")
    assert story.is_off(126.5).boots(130.0).broken() == broken


@pytest.mark.parametrize(("order", "broken"), [(110.7, []), (112.9, ["NO_START"])])
def test_an_agent_without_a_bus_cannot_stop_it(order, broken):
    story = Beside().goes_down(stopped=None).at(100.3, "n1", "no bus").at(110.0, "n1", "no bus over")
    story.pod("late", began=order).at(113.0, "n1", "kubelet stopped").at(113.1, "late", "TERM", "exit")
    assert story.is_off(113.2).boots(130.0).broken() == broken


@pytest.mark.parametrize(("order", "broken"), [(106.2, []), (106.5, ["NO_START"])])
def test_one_that_somebody_starts_is_stopped_again(order, broken):
    story = Beside().goes_down().at(105.0, "n1", "kubelet started").at(109.0, "n1", "kubelet stopped")
    story.pod("again", began=order).at(109.1, "again", "TERM").at(109.2, "again", "exit")
    assert story.is_off(112.0).boots(150.0).broken() == broken


def test_what_such_a_kubelet_has_started_is_ended_before_the_machine_goes():
    story = Beside().goes_down().at(105.0, "n1", "kubelet started").pod("again", began=106.0)
    assert story.at(107.0, "n1", "kubelet stopped").is_off(111.0).boots(150.0).broken() == ["LOCK_LOST"]


# -- the Node ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "left", [QUIET._replace(marked=True), QUIET._replace(conditions=("DrainInProgress",)), CORDONED]
)
def test_nothing_of_a_shutdown_is_left(left):
    assert Beside().goes_down().is_cancelled(110.0, state=left).broken() == ["UNDONE"]
    assert Beside().goes_down().is_off(101.0).boots(130.0, left).broken() == ["UNDONE"]


def test_what_is_left_while_the_api_server_is_away_does_not_count():
    story = Beside(clear_network=[Noted(105.0, "", False)]).goes_down().is_cancelled(110.0, state=DOWN)
    assert story.broken() == []


def test_an_administrators_cordon_stays():
    story = Beside().noted("cordons", 50.0, "n1", True).node(50.0, CORDONED).goes_down()
    assert story.is_cancelled(110.0, state=CORDONED).broken() == []
    story = Beside().noted("cordons", 50.0, "n1", True).node(50.0, CORDONED).goes_down()
    assert story.is_cancelled(110.0, state=QUIET).broken() == ["OTHERS"]


def test_an_administrator_may_uncordon_again():
    story = Beside().noted("cordons", 50.0, "n1", True).node(50.0, CORDONED)
    assert story.noted("cordons", 60.0, "n1", False).node(60.0, QUIET).broken() == []
    story.noted("cordons", 60.02, "n1", True).node(60.02, CORDONED)
    assert story.broken() == [], "another administrator cordons it at once"


@pytest.mark.parametrize("lacks", ["unschedulable", "is_not_ready", "conditions"])
def test_a_node_says_that_it_goes_down(lacks):
    said = DOWN._replace(**{lacks: () if lacks == "conditions" else False})
    story = Beside().pod("web").goes_down().node(100.02, said).at(100.1, "web", "TERM").at(108.0, "web", "exit")
    assert set(story.is_off(108.0).boots(130.0).broken()) == {"UNDONE"}


# -- pods --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("term", "broken"), [(102.0, []), (101.5, ["TRAFFIC"])])
def test_no_sigterm_while_services_send_traffic_until_the_wait_is_over(term, broken):
    story = Beside().pod("web").noted("endpoints", 2.0, "web", True).goes_down()
    story.at(term, "web", "TERM").at(103.0, "web", "exit")
    assert story.is_off(103.1).boots(130.0).broken() == broken


@pytest.mark.parametrize(
    ("began", "deleted", "broken"),
    [(100.3, 100.1, []), (99.0, 100.1, ["TRAFFIC"]), (100.3, None, ["TRAFFIC"]), (100.3, 100.55, ["TRAFFIC"])],
    ids=["deleted", "no kubelet was started", "not deleted", "deleted after that"],
)
def test_a_kubelet_that_somebody_has_started_ends_without_any_wait_what_is_being_deleted(began, deleted, broken):
    story = Beside().goes_down()
    if deleted:
        story.asked_by(deleted, "web", 30.0, AGENT)
    if began > 100:
        story.at(began, "n1", "kubelet started").at(100.6, "n1", "kubelet stopped")
    story.pod("web").noted("endpoints", 10.0, "web", True).at(100.5, "web", "TERM").at(101.0, "web", "exit")
    assert story.is_off(102.0).boots(130.0).broken() == broken


def test_a_pod_that_is_out_of_its_slices_waits_no_longer():
    story = Beside().pod("web").noted("endpoints", 2.0, "web", True).goes_down()
    story.noted("endpoints", 100.2, "web", False).at(100.7, "web", "TERM").at(103.0, "web", "exit")
    assert story.is_off(103.1).boots(130.0).broken() == []


def test_a_pod_with_little_time_does_not_wait():
    story = Beside().pod("web", grace=2).noted("endpoints", 2.0, "web", True).goes_down()
    assert story.at(100.1, "web", "TERM").at(101.0, "web", "exit").is_off(101.1).boots(130.0).broken() == []


def test_the_agents_own_deletion_is_no_reason_to_end_a_pod_out_of_turn():
    story = Beside().pod("web").pod("store", priority=CRITICAL).goes_down()
    story.asked_by(100.1, "web", 30.0, AGENT).asked_by(100.1, "store", 10.0, AGENT)
    story.at(100.2, "web", "TERM").at(100.2, "store", "TERM").at(101.0, "store", "exit").at(105.0, "web", "exit")
    assert story.is_off(105.1).boots(130.0).broken() == ["ORDER"]


def test_a_deletion_of_others_is_one():
    story = Beside().pod("web").pod("store", priority=CRITICAL).asked_by(99.9, "store", 30.0, "").goes_down()
    story.at(100.01, "store", "TERM").at(100.2, "web", "TERM").at(101.0, "store", "exit").at(105.0, "web", "exit")
    assert story.is_off(105.1).boots(130.0).broken() == []


def test_a_grace_period_that_the_agent_has_made_shorter_is_no_reason_for_sigkill():
    story = Beside().pod("web", grace=20).goes_down().asked_by(100.1, "web", 1.0, AGENT)
    story.at(100.2, "web", "TERM").at(101.3, "web", "KILL", "exit")
    assert story.is_off(101.5).boots(130.0).broken() == ["KILL"]


@pytest.mark.parametrize(
    ("term", "kill", "broken"), [(100.25, 109.9, []), (100.25, 109.8, ["KILL"]), (100.5, 109.9, ["KILL"])]
)
def test_a_phase_may_have_begun_before_a_first_sigterm_that_waited_for_a_list(term, kill, broken):
    story = Beside(clear_network=[Noted(50.0, "", False)]).pod("logs", priority=CRITICAL).goes_down()
    story.at(term, "logs", "TERM").at(kill, "logs", "KILL", "exit")
    assert story.is_off(110.3).boots(160.0).broken() == broken


@pytest.mark.parametrize(("named", "broken"), [(True, []), (False, ["KILL"])])
def test_a_phase_may_have_begun_before_a_first_sigterm_that_waited_for_services(named, broken):
    story = Beside().pod("dns", priority=CRITICAL).noted("endpoints", 2.0, "dns", named).goes_down()
    assert story.at(102.0, "dns", "TERM").at(109.9, "dns", "KILL", "exit").is_off(110.1).boots(160.0).broken() == broken


@pytest.mark.parametrize(("kill", "broken"), [(110.2, []), (109.9, ["KILL"])])
def test_a_phase_began_when_the_agent_deleted_its_first_pod(kill, broken):
    story = Beside().pod("dns", priority=CRITICAL).noted("endpoints", 2.0, "dns", True).goes_down()
    story.asked_by(100.4, "dns", 10.0, AGENT).at(102.0, "dns", "TERM").at(kill, "dns", "KILL", "exit")
    assert story.is_off(110.3).boots(160.0).broken() == broken


@pytest.mark.parametrize(("deleted", "broken"), [(100.1, []), (None, ["UNASKED"])])
def test_a_pod_whose_wait_for_services_began_before_it_was_called_off_is_ended(deleted, broken):
    story = Beside().pod("web", grace=30).noted("endpoints", 2.0, "web", True).goes_down()
    if deleted:
        story.asked_by(deleted, "web", 30.0, AGENT)
    story.is_cancelled(100.5).at(102.0, "web", "TERM").at(129.9, "web", "KILL", "exit")
    assert story.broken() == broken


def test_only_a_pod_that_has_ended_loses_its_object():
    story = Beside().pod("web").goes_down().asked_by(100.3, "web", 0.0, AGENT, forgotten=True)
    story.at(100.2, "web", "TERM").at(101.0, "web", "exit")
    assert story.is_off(101.1).boots(130.0).broken() == ["FORGOTTEN"]


@pytest.mark.parametrize("label", ["ignores-disruption", "other"])
def test_a_job_that_ignores_disruptions_counts_no_failure(label):
    story = Beside().pod("work", owner="Job").goes_down().at(100.2, "work", "TERM").at(101.0, "work", "exit")
    story.pods["work"].metadata.labels[label] = "true"
    story.noted("job_failures", 102.0, "Job", JobFailures("Job", "careful", 1)).is_off(101.1).boots(130.0)
    assert story.broken() == (["JOB"] if label == "ignores-disruption" else [])


def test_a_failure_without_the_api_server_is_excused():
    story = Beside(clear_network=[Noted(99.0, "", False), Noted(110.0, "", True)])
    story.pod("work", owner="Job").goes_down().at(100.2, "work", "TERM").at(101.0, "work", "exit")
    story.pods["work"].metadata.labels["ignores-disruption"] = "true"
    story.noted("job_failures", 140.0, "Job", JobFailures("Job", "careful", 1)).is_off(101.1).boots(130.0)
    assert story.broken() == []
