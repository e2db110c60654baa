"""What the metadata services say, in their documented form and in none."""

import json

import pytest

from lastcall.graceful.deadlines.cloud_answers import (
    AZURE_SECONDS,
    EC2_SECONDS,
    GCP_SECONDS,
    STARTED_SECONDS,
    azure_events,
    azure_finding,
    events_to_start,
    preemption_finding,
    rebalance_warning,
    spot_finding,
)
from lastcall.graceful.deadlines.findings import UnreadableAnswer
from lastcall.model.deadline_settings import AzureEventType
from lastcall.ports.deadlines import MetadataAnswer

NOON = 1_764_244_800.0  # 2025-11-27T12:00:00Z
TYPES = [one.value for one in AzureEventType]


def answer(document="", status=200, date=NOON):
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return MetadataAnswer(status=status, body=body, date=date)


def spot(time="2025-11-27T12:01:30Z", action="terminate", **more):
    return spot_finding(answer({"action": action, "time": time}, **more), now=1000.0, wall=NOON)


def test_a_spot_instance_is_interrupted_at_the_time_that_ec2_names():
    notice = spot().notice
    assert (notice.deadline, notice.reason) == (1090.0, "spot instance: terminate")
    assert spot(action="hibernate").notice.reason == "spot instance: hibernate"
    assert spot_finding(answer(b"not found", 404), now=0, wall=NOON).notice is None


def test_the_service_s_clock_counts_and_not_the_machine_s():
    assert (
        spot_finding(answer({"action": "stop", "time": "2025-11-27T12:01:30Z"}), now=0, wall=NOON + 9e6).notice.deadline
        == 90
    )
    assert spot(date=None).notice.deadline == 1090.0, "without a Date header there is only the machine's"


def test_ec2_never_gives_more_than_two_minutes():
    assert spot(time="2025-11-28T12:00:00Z").notice.deadline == 1000.0 + EC2_SECONDS
    assert spot(time="2025-11-27T11:59:00Z").notice.deadline == 940.0, "over is over"


@pytest.mark.parametrize(
    "said",
    [
        answer("", 500),
        answer("", 401),
        answer(b"<html>", 200),
        answer(b"", 200),
        answer({"action": "stop"}),
        answer({"action": 7, "time": "2025-11-27T12:00:00Z"}),
        answer({"action": "stop", "time": "soon"}),
        answer({"action": "stop", "time": "9999999-01-01T00:00:00Z"}),
        answer(b"[" * 100_000),
    ],
)
def test_nothing_is_concluded_from_what_ec2_does_not_document(said):
    with pytest.raises(UnreadableAnswer):
        spot_finding(said, now=0, wall=NOON)


def test_a_rebalance_recommendation_is_a_warning_and_no_notice():
    assert rebalance_warning(answer("", 404)) == ""
    assert "recommends" in rebalance_warning(answer({"noticeTime": "2025-11-27T12:00:00Z"}))
    with pytest.raises(UnreadableAnswer):
        rebalance_warning(answer("", 503))


@pytest.mark.parametrize(
    ("said", "deadline"), [(b"FALSE", None), (b"TRUE", 5 + GCP_SECONDS), (b"true\n", 5 + GCP_SECONDS)]
)
def test_a_preempted_machine_has_half_a_minute(said, deadline):
    notice = preemption_finding(answer(said), now=5.0).notice
    assert (notice and notice.deadline) == deadline


@pytest.mark.parametrize("said", [answer(b"TRUE", 503), answer(b""), answer(b"TRUEST"), answer(b"FALSE", 404)])
def test_nothing_is_concluded_from_what_compute_engine_does_not_document(said):
    with pytest.raises(UnreadableAnswer):
        preemption_finding(said, now=0)


def event(type_="Reboot", resources=("vm_0",), before="Thu, 27 Nov 2025 12:10:00 GMT", id_="e1", status="Scheduled"):
    return {
        "EventId": id_,
        "EventStatus": status,
        "EventType": type_,
        "ResourceType": "VirtualMachine",
        "Resources": list(resources),
        "NotBefore": before,
        "Description": "Host server is undergoing maintenance.",
        "EventSource": "Platform",
        "DurationInSeconds": -1,
    }


def azure(*events, types=TYPES, machine="vm_0", wall=NOON):
    said = answer({"DocumentIncarnation": 1, "Events": list(events)})
    return azure_finding(azure_events(said), said, machine=machine, types=types, now=100.0, wall=wall)


def test_an_azure_event_ends_the_machine_not_before_its_time():
    notice = azure(event()).notice
    assert (notice.deadline, notice.key, notice.reason) == (700.0, "e1", "scheduled event: Reboot")
    assert azure(event(), wall=0).notice.deadline == 700.0, "by the service's clock"
    assert azure().notice is None


def test_events_of_other_machines_and_of_other_kinds_end_nothing():
    assert azure(event(resources=["vm_1"])).notice is None
    frozen = azure(event("Freeze"))
    assert (frozen.notice, frozen.warning) == (None, "Freeze is scheduled")
    assert azure(event("Reboot"), types=["Preempt"]).notice is None


def test_the_earliest_event_counts_and_a_started_one_has_no_time():
    both = azure(event(id_="late"), event("Preempt", before="Thu, 27 Nov 2025 12:00:30 GMT", id_="soon"))
    assert (both.notice.key, both.notice.deadline) == ("soon", 130.0)
    assert azure(event(before="", status="Started")).notice.deadline == 100 + STARTED_SECONDS
    assert azure(event(before="Fri, 28 Nov 2025 12:00:00 GMT")).notice.deadline == 100 + AZURE_SECONDS
    assert azure(event(resources=["VM_0"])).notice, "names of Azure's resources have no case"


def test_only_an_event_of_this_machine_alone_may_be_started():
    def start(*events):
        return events_to_start(azure_events(answer({"Events": list(events)})), machine="vm_0", types=TYPES)

    assert start(event()) == ["e1"]
    assert start(event(resources=["vm_0", "vm_1"])) == [], "it would start for both machines"
    assert start(event(resources=["vm_1"])) == []
    assert start(event(status="Started")) == []
    assert start(event("Freeze")) == []


@pytest.mark.parametrize(
    "said", [answer("", 500), answer(b"{"), answer({"Events": None}), answer({"Events": [{"EventId": 1}]}), answer([])]
)
def test_nothing_is_concluded_from_what_azure_does_not_document(said):
    with pytest.raises(UnreadableAnswer):
        azure_events(said)


def test_an_event_with_a_time_that_is_none():
    with pytest.raises(UnreadableAnswer):
        azure(event(before="tomorrow"))
