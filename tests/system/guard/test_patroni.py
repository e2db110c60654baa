"""A guarded Patroni with PostgreSQL and etcd in the lab: real servers, the real kubectl, a client that counts its writes.

All states are played on one cluster, one after the other. ``make bench ARGS=guard-states`` does the same without a guard.
"""

import pytest
from support.guard import application_states as states
from support.guard.guarded_patroni import GuardedPatroni, why_not

pytestmark = [
    pytest.mark.timeout(270),
    pytest.mark.xdist_group("patroni-lab"),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


@pytest.fixture(scope="module")
def patroni(tmp_path_factory):
    made = GuardedPatroni(tmp_path_factory.mktemp("patroni"), guarded=True)
    try:
        yield made.start()
    finally:
        made.end()


def test_the_leader_hands_over_before_it_goes_and_nothing_is_lost(patroni):
    found = states.observe(patroni, states.delete_leader)
    assert "denied the request: pod default/" in found.asked.said[0]
    assert "its application begins to prepare" in found.asked.said[0]
    assert found.asked.said[-1].startswith(f'pod "{found.asked.name}" deleted')
    assert patroni.leading_pod() != found.asked.name
    assert found.lost == 0
    assert {"PreparingForDeletion", "ReadyForDeletion"} <= {*found.events.split()}


def test_a_drain_goes_on_when_the_member_is_ready(patroni):
    found = states.observe(patroni, states.drain_leader)
    assert "will retry after 5s" in found.asked.said[0]
    assert found.lost == 0


def test_a_roll_of_the_stateful_set_needs_nobody(patroni):
    assert states.observe(patroni, states.roll).lost == 0


def test_while_its_replicas_are_frozen_the_leader_is_held_and_a_person_is_told(patroni):
    found = states.observe(patroni, states.ask_while_replicas_are_frozen, size=50_000)
    assert "TooManyRequests" in found.asked.said[1]
    assert found.asked.held["state"] in ("Unhealthy", "Stalled")
    assert "no answer" in found.asked.held["message"]
    assert "ApplicationUnhealthy" in found.events
    assert found.lost == 0


def test_one_member_short_the_leader_is_held_and_a_person_is_told(patroni):
    found = states.observe(patroni, states.ask_one_member_short)
    assert any("its application is short of members already" in one for one in found.asked.said)
    assert found.asked.held["state"] == "Unhealthy"
    assert found.lost == 0


def test_with_one_member_of_its_etcd_away_another_one_is_held(patroni):
    found = states.observe(patroni, states.delete_etcd_one_member_short)
    assert found.asked.held["state"] == "Unhealthy"
    assert "etcd-2" in found.asked.held["message"]
    assert found.lost == 0
    assert found.pause < 60, "writes went on"


def test_a_leader_that_would_be_killed_in_its_shutdown_leads_no_more(patroni):
    found = states.observe(patroni, states.ask_in_short_grace, size=50_000)
    assert "denied the request" in found.asked.said[0]
    assert patroni.leading_pod() != found.asked.name
    assert found.lost == 0


def test_two_members_that_are_asked_for_at_once_never_go_together(patroni):
    found = states.observe(patroni, states.ask_for_two_at_once)
    assert found.asked.most_gone == 1
    assert found.lost == 0
