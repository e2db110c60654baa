"""The loop that asks a source, and the requests that it sends, in virtual time."""

import asyncio
import functools
import json

import pytest

from lastcall.aio import cancel_and_wait
from lastcall.errors import Unavailable
from lastcall.graceful.deadlines.findings import SourceFinding, UnreadableAnswer
from lastcall.graceful.deadlines.metadata_feeds import WAIT_SECONDS, AzureFeed, Ec2Feed, GcpFeed
from lastcall.graceful.deadlines.source_watch import SourceWatch
from lastcall.model.deadline_settings import AzureSettings
from lastcall.model.shutdown_notice import NoticeSource, ShutdownNotice
from lastcall.ports.deadlines import MetadataAnswer
from lastcall_lab import virtual

ACTION, ADVICE = "/latest/meta-data/spot/instance-action", "/latest/meta-data/events/recommendations/rebalance"
EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"
NAME = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"


def in_virtual_time(test):
    @functools.wraps(test)
    def wrapped():
        virtual.run(test())

    return wrapped


class Taker:
    """The agent, as a watch sees it."""

    def __init__(self):
        self.told = []

    def put_notice(self, notice):
        self.told.append(notice)
        return True

    def withdraw_notice(self, source):
        self.told.append(source)
        return True


class Service:
    """A metadata service that answers each path with the last of its answers, once each before that."""

    def __init__(self, **paths):
        self.answers = {path.replace("_", "/"): list(said) for path, said in paths.items()}
        self.asked = []

    def on(self, path, *answers):
        self.answers[path] = list(answers)
        return self

    async def request(self, method, path, headers, *, body=b"", within):
        self.asked.append((method, path, dict(headers), body, within))
        answers = self.answers.get(path, [MetadataAnswer(status=404)])
        said = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(said, Exception):
            raise said
        return said

    def paths(self, method="GET"):
        return [path for verb, path, *_ in self.asked if verb == method]


def ok(body=b"", **more):
    return MetadataAnswer(status=200, body=body if isinstance(body, bytes) else json.dumps(body).encode(), **more)


def status(number):
    return MetadataAnswer(status=number)


def notice(key="k"):
    return ShutdownNotice(source=NoticeSource.EC2, key=key, deadline=100.0, reason="r")


async def looks(*answers):
    """What the taker was told, and what was reported, after a look for each answer."""
    taker, reported, left = Taker(), [], list(answers)

    async def look():
        said = left.pop(0)
        if isinstance(said, Exception):
            raise said
        return said

    watch = SourceWatch(
        NoticeSource.EC2,
        look,
        taker,
        clock=virtual.VirtualClock(),
        pause=5,
        pause_after_failure=7,
        on_look=lambda *said: reported.append(said),
    )
    for _ in answers:
        await watch.look_once()
    return taker.told, reported


@in_virtual_time
async def test_a_source_that_fails_begins_and_withdraws_nothing():
    failures = [Unavailable("away"), UnreadableAnswer("garbage"), ZeroDivisionError("a bug")]
    told, reported = await looks(SourceFinding(notice=notice()), *failures)
    assert told == [notice()]
    assert reported == [("", ""), ("", "away"), ("", "garbage"), ("", "ZeroDivisionError: a bug")]


@in_virtual_time
async def test_a_source_that_says_no_withdraws_and_a_warning_is_no_notice():
    told, reported = await looks(SourceFinding(notice=notice()), SourceFinding(warning="take care"))
    assert told == [notice(), NoticeSource.EC2]
    assert reported[-1] == ("take care", "")


@in_virtual_time
async def test_polls_are_spaced_also_after_failures():
    clock, times = virtual.VirtualClock(), []

    async def look():
        times.append(clock.boottime())
        if len(times) == 2:
            raise Unavailable("away")
        return SourceFinding()

    watch = SourceWatch(NoticeSource.EC2, look, Taker(), clock=clock, pause=5, pause_after_failure=7)
    running = asyncio.create_task(watch.run())
    await clock.sleep(18)
    await cancel_and_wait(running)
    assert [round(at - times[0]) for at in times] == [0, 5, 12, 17]


@in_virtual_time
async def test_ec2_is_asked_with_a_token_which_is_renewed_when_it_is_refused():
    service = Service().on("/latest/api/token", ok(b"one"), ok(b"two"))
    service.on(ACTION, status(404), status(401), status(404))
    feed = Ec2Feed(service, virtual.VirtualClock())
    assert (await feed.look()).notice is None
    assert (await feed.look()).notice is None
    tokens = [headers.get("X-aws-ec2-metadata-token") for verb, path, headers, *_ in service.asked if path == ACTION]
    assert tokens == ["one", "one", "two"]
    assert [verb for verb, path, *_ in service.asked if path == "/latest/api/token"] == ["PUT", "PUT"]


@in_virtual_time
async def test_ec2_that_refuses_every_token_is_asked_no_more_than_twice():
    service = Service().on("/latest/api/token", ok(b"one")).on(ACTION, status(401))
    with pytest.raises(UnreadableAnswer):
        await Ec2Feed(service, virtual.VirtualClock()).look()
    assert service.paths() == [ACTION, ACTION]


@in_virtual_time
async def test_a_machine_without_ec2_gives_no_token():
    for said in (status(404), ok(b""), ok(b"a\r\nX: b"), ok(b"x" * 1000)):
        with pytest.raises(UnreadableAnswer):
            await Ec2Feed(Service().on("/latest/api/token", said), virtual.VirtualClock()).look()


@in_virtual_time
async def test_a_rebalance_recommendation_does_not_hide_an_interruption():
    clock = virtual.VirtualClock()
    service = Service().on("/latest/api/token", ok(b"t")).on(ADVICE, ok({"noticeTime": "2025-11-27T12:00:00Z"}))
    feed = Ec2Feed(service, clock)
    found = await feed.look()
    assert found.notice is None
    assert found.warning
    service.on(ACTION, ok({"action": "stop", "time": "2025-11-27T12:01:00Z"}, date=1_764_244_800.0))
    found = await feed.look()
    assert found.notice.deadline == clock.boottime() + 60


@in_virtual_time
async def test_compute_engine_holds_the_request_until_something_changes():
    path = "/computeMetadata/v1/instance/preempted"
    waiting = f"{path}?wait_for_change=true&timeout_sec={WAIT_SECONDS}&last_etag=abc1"
    service = Service().on(path, ok(b"FALSE", etag="abc1")).on(waiting, Unavailable("cut"), ok(b"TRUE", etag="abc2"))
    feed = GcpFeed(service, virtual.VirtualClock())
    assert (await feed.look()).notice is None
    with pytest.raises(Unavailable):
        await feed.look()
    assert (await feed.look()).notice is None, "after an error it is read at once"
    assert (await feed.look()).notice is not None
    assert service.paths() == [path, waiting, path, waiting]
    assert all(headers == {"Metadata-Flavor": "Google"} for _, _, headers, *_ in service.asked)
    assert service.asked[1][4] > WAIT_SECONDS


def azure_event(resources=("vm_0",)):
    return {"EventId": "e1", "EventType": "Terminate", "Resources": list(resources), "EventStatus": "Scheduled",
            "NotBefore": "Thu, 27 Nov 2025 12:10:00 GMT"}  # fmt: skip


async def azure_posts(settings, *, ended=True, resources=("vm_0",), posted=200):
    service = Service().on(NAME, ok(b"vm_0")).on(EVENTS, ok({"Events": [azure_event(resources)]}, date=1_764_244_800.0))
    get = service.request

    async def request(method, path, headers, *, body=b"", within):
        answer = await get(method, path, headers, body=body, within=within)
        return status(posted) if method == "POST" else answer

    service.request = request
    feed = AzureFeed(service, virtual.VirtualClock(), settings, lambda: ended)
    for _ in range(2):
        assert (await feed.look()).notice.key == "e1"
    assert all(headers["Metadata"] == "true" for _, _, headers, *_ in service.asked)
    assert service.paths().count(NAME) == (0 if settings.resource_name else 1)
    return [json.loads(body) for verb, _, _, body, _ in service.asked if verb == "POST"]


@in_virtual_time
async def test_azure_starts_an_event_early_only_if_configured_and_when_the_pods_have_ended():
    wanted = AzureSettings(acknowledge=True)
    assert await azure_posts(wanted) == [{"StartRequests": [{"EventId": "e1"}]}], "once"
    assert await azure_posts(wanted, posted=500) == [{"StartRequests": [{"EventId": "e1"}]}] * 2, "until it is accepted"
    assert await azure_posts(wanted, ended=False) == []
    assert await azure_posts(wanted, resources=["vm_0", "vm_1"]) == []
    assert await azure_posts(AzureSettings()) == []
    assert await azure_posts(AzureSettings(resource_name="vm_0")) == []


@in_virtual_time
async def test_azure_that_does_not_tell_the_machine_s_name():
    for said in (status(500), ok(b""), ok(b"x" * 300)):
        feed = AzureFeed(Service().on(NAME, said), virtual.VirtualClock(), AzureSettings(), lambda: False)
        with pytest.raises(UnreadableAnswer):
            await feed.look()
