"""The fencer ec2 against moto's server, and what is concluded from EC2's answers."""

import os

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
    SSLError,
)
from support.fencing.ec2_emulator import KEY, REGION, SECRET, ec2_emulator

from lastcall.adapters.fencing import ec2, ec2_worker
from lastcall.adapters.fencing.fence_worker import FenceAction, FenceQuestion
from lastcall.adapters.fencing.worker_process import FenceRequest
from lastcall.adapters.host.clock import SystemClock
from lastcall.errors import InvalidInput, TimedOut, Unavailable
from lastcall.model.power import InstanceState, PowerState

pytestmark = [pytest.mark.timeout(270), pytest.mark.xdist_group("ec2")]
LONG = 30.0
"""Seconds for what is expected to go well."""
ALONE = {"PATH": os.environ["PATH"], "AWS_EC2_METADATA_DISABLED": "true"}
"""Where there are no credentials; the address of AWS's metadata service is not asked."""


@pytest.fixture(scope="module")
def cloud():
    with ec2_emulator() as emulator:
        yield emulator


def fence(cloud, provider_id, *, patience=LONG, environ=ALONE, **changes):
    wanted = {"endpoint": cloud.endpoint, "credentials": (KEY, SECRET), **changes}
    settings = ec2.instance_settings(provider_id, **wanted)
    return ec2.ec2_fence("aws", settings, clock=SystemClock(), environ=environ, patience=patience)


async def test_off_and_on_and_no_other_instance(cloud):
    ours, other = cloud.instance(), cloud.instance()
    one = fence(cloud, ours)
    assert (await one.read_target()).provider_id == ours
    await one.switch_off(LONG)
    answer = await one.read_power()
    assert (answer.power, answer.instance) == (PowerState.OFF, InstanceState.STOPPED)
    assert (cloud.state(ours), cloud.state(other)) == ("stopped", "running")
    await one.switch_off(LONG)
    await one.switch_on(LONG)
    assert cloud.state(ours) == "running"


async def test_not_found_proves_nothing(cloud):
    elsewhere = fence(cloud, cloud.instance(), region="us-east-1")
    answer = await elsewhere.read_power()
    assert (answer.power, answer.instance) == (PowerState.UNKNOWN, InstanceState.NOT_FOUND)
    assert "region or account may be wrong" in answer.why
    for order in (elsewhere.read_target(), elsewhere.switch_off(LONG)):
        with pytest.raises(Unavailable, match="EC2 finds no i-"):
            await order


async def test_credentials_and_endpoint_from_the_environment(cloud):
    found = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ENDPOINT_URL": cloud.endpoint}
    one = fence(cloud, cloud.instance(), environ={**ALONE, **found}, endpoint="", credentials=None)
    assert (await one.read_power()).power is PowerState.ON
    answer = await fence(cloud, cloud.instance(), credentials=None).read_power()
    assert (answer.power, answer.why.partition(":")[0]) == (PowerState.UNKNOWN, "there are no credentials")


async def test_credentials_of_the_pods_service_account(cloud, tmp_path):
    """IRSA: a projected token is exchanged at STS for credentials of a role."""
    token = tmp_path / "token"
    token.write_text("a.b.c")
    role = {"AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/fence", "AWS_WEB_IDENTITY_TOKEN_FILE": str(token)}
    environ = {**ALONE, **role, "AWS_ENDPOINT_URL": cloud.endpoint}
    one = fence(cloud, cloud.instance(), environ=environ, endpoint="", credentials=None)
    assert (await one.read_power()).power is PowerState.ON


async def test_an_api_that_is_not_there_or_says_nothing(cloud):
    nowhere = await fence(cloud, f"aws:///{REGION}a/i-1", endpoint="http://127.0.0.1:1").read_power()
    cloud.pause()
    try:
        with pytest.raises(TimedOut):
            await fence(cloud, f"aws:///{REGION}a/i-1").switch_off(3)
    finally:
        cloud.go_on()
    assert nowhere.power is PowerState.UNKNOWN
    assert "no connection to EC2's API" in nowhere.why


@pytest.mark.parametrize(
    ("provider_id", "place"),
    [
        ("aws:///eu-central-1a/i-0123456789abcdef0", ("eu-central-1", "i-0123456789abcdef0")),
        ("aws:///us-gov-west-1b/i-1", ("us-gov-west-1", "i-1")),
        ("aws:///us-west-2-lax-1a/i-1", ("us-west-2", "i-1")),
        ("aws:////i-1", ("", "i-1")),
        ("aws:///eu-central-1a/0a1b/fargate-ip-10-0-0-1", None),
        ("gce://project/zone/i-1", None),
        ("aws:///eu-central-1a/i-1 ", None),
        ("", None),
    ],
)
def test_where_a_node_is(provider_id, place):
    assert ec2.parse_provider_id(provider_id) == place


FIELDS = {
    "no instance": ("gce://p/z/n", {}, 'spec.providerID of the Node is "gce://p/z/n": must be aws:'),
    "no region": ("aws:////i-1", {}, "region: empty: must be given, since aws:////i-1 names no zone"),
    "half of the credentials": (
        "aws:///eu-central-1a/i-1",
        {"credentials": (KEY, "")},
        "credentials: access key id or",
    ),
}


@pytest.mark.parametrize("case", FIELDS)
def test_settings_that_are_wrong(case):
    provider_id, changes, why = FIELDS[case]
    with pytest.raises(InvalidInput) as raised:
        ec2.instance_settings(provider_id, source="FencePolicy p", **changes)
    assert str(raised.value).startswith(f"FencePolicy p: {why}")


def test_the_region_of_the_policy_goes_first():
    assert ec2.instance_settings("aws:///eu-central-1a/i-1", region="us-east-1").region == "us-east-1"


class Client:
    """EC2 as it may answer."""

    def __init__(self, *instances, error=None):
        self.instances, self.error, self.told = instances, error, []

    def describe_instances(self, **wanted):
        if self.error:
            raise self.error
        return {"Reservations": [{"Instances": list(self.instances)}] if self.instances else []}

    def stop_instances(self, **wanted):
        self.told.append(wanted)


def ask(monkeypatch, client, action=FenceAction.STATUS):
    monkeypatch.setattr(ec2_worker, "_make_client", lambda turn: client)
    settings = ec2.instance_settings("aws:///eu-central-1a/i-1", credentials=(KEY, SECRET))
    deadline = SystemClock().boottime() + LONG
    return ec2_worker.answer_question(
        FenceRequest(FenceQuestion(action=action, deadline=deadline, parent=1, settings=settings), SystemClock())
    )


def instance(state, name="i-1"):
    return {"InstanceId": name, "State": {"Name": state}, "Placement": {"AvailabilityZone": "eu-central-1a"}}


@pytest.mark.parametrize(
    ("state", "power"),
    [
        ("pending", PowerState.ON),
        ("running", PowerState.ON),
        ("shutting-down", PowerState.ON),
        ("stopping", PowerState.ON),
        ("stopped", PowerState.OFF),
        ("terminated", PowerState.OFF),
        ("resting", PowerState.UNKNOWN),
        ("", PowerState.UNKNOWN),
    ],
)
def test_what_each_state_means(monkeypatch, state, power):
    answer = ask(monkeypatch, Client(instance(state))).answer
    assert answer.power is power
    assert bool(answer.why) == (power is PowerState.UNKNOWN)


def test_an_empty_answer_proves_nothing(monkeypatch):
    assert ask(monkeypatch, Client()).answer.instance is InstanceState.NOT_FOUND


@pytest.mark.parametrize("others", [["i-2"], ["i-1", "i-2"], ["i-1", "i-1"]])
def test_an_answer_about_others_is_none(monkeypatch, others):
    with pytest.raises(Unavailable, match="asked for i-1, and answered for others"):
        ask(monkeypatch, Client(*(instance("stopped", name) for name in others)))


@pytest.mark.parametrize("state", ["running", "stopping", "stopped"])
def test_it_is_stopped_without_asking_its_system(monkeypatch, state):
    client = Client(instance(state))
    ask(monkeypatch, client, FenceAction.OFF)
    assert client.told == [{"InstanceIds": ["i-1"], "Force": True, "SkipOsShutdown": True}]


def test_an_instance_that_is_terminated_needs_no_stop(monkeypatch):
    client = Client(instance("terminated"))
    ask(monkeypatch, client, FenceAction.OFF)
    assert client.told == []


def test_an_api_that_does_not_answer_is_told_nothing(monkeypatch):
    client = Client(error=ReadTimeoutError(endpoint_url="https://e"))
    with pytest.raises(TimedOut):
        ask(monkeypatch, client, FenceAction.OFF)
    assert client.told == []


def refusal(code):
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "DescribeInstances")


@pytest.mark.parametrize(
    ("error", "kind", "why"),
    [
        (refusal("AuthFailure"), Unavailable, "EC2 refuses the credentials, or what they may do (AuthFailure): no"),
        (refusal("UnauthorizedOperation"), Unavailable, "EC2 refuses the credentials, or what they may do"),
        (refusal("RequestLimitExceeded"), Unavailable, "EC2 refuses (RequestLimitExceeded): no"),
        (refusal("IncorrectInstanceState"), Unavailable, "EC2 refuses (IncorrectInstanceState): no"),
        (NoCredentialsError(), Unavailable, "there are no credentials"),
        (SSLError(endpoint_url="https://e", error="bad"), Unavailable, "the certificate of EC2's API is not trusted"),
        (EndpointConnectionError(endpoint_url="https://e"), Unavailable, "no connection to EC2's API"),
        (ConnectTimeoutError(endpoint_url="https://e"), Unavailable, "no connection to EC2's API"),
        (ReadTimeoutError(endpoint_url="https://e"), TimedOut, "accepted the connection, but does not answer"),
        (RuntimeError("odd"), Unavailable, "EC2: RuntimeError: odd"),
        (ModuleNotFoundError("no", name="boto3"), Unavailable, "boto3 is not installed: pip install 'lastcall[ec2]'"),
    ],
    ids=lambda value: "" if isinstance(value, (str, type)) else None,
)
def test_what_is_wrong_is_told_apart(monkeypatch, error, kind, why):
    with pytest.raises(kind) as raised:
        ask(monkeypatch, Client(error=error))
    assert why in str(raised.value)
