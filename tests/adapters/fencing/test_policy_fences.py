"""From a FencePolicy and a Node to fences: where each setting comes from, and what is said of one that is missing."""

import base64

import pytest
import yaml
from support.kube.api_servers import kube_cluster

from lastcall.adapters.fencing import ec2, redfish
from lastcall.adapters.fencing.fence_agent import FenceAgents
from lastcall.adapters.fencing.policy_fences import PolicyFences
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.resources import dict_resource
from lastcall.errors import ApiNotPermitted, InvalidInput, Unavailable
from lastcall.model import fence_policy_reader
from lastcall.model.fence_node import FenceNode
from lastcall.model.power import PowerState

SECRETS = dict_resource("", "v1", "secrets")
PASSWORD = "open-sesame"
NODE = FenceNode(
    name="n1",
    system_uuid="7b21e7c4-3a4f-4d5e-9c1d-6f0d9a5e0001",
    provider_id="aws:///eu-central-1a/i-1",
    labels={"rack": "r7"},
    annotations={"example.com/bmc": "https://10.0.0.1", "example.com/plug": " 4 ", "example.com/empty": ""},
)

POLICY = """
metadata: {name: bare-metal}
spec:
  fencers:
  - name: bmc
    timeoutSeconds: 7
    redfish:
      address: {annotation: example.com/bmc}
      systemID: {byNode: {n1: System.1, n2: System.2}}
      credentials: {secretName: "bmc-{node}", passwordKey: word}
      caSecret: {name: authority, key: ca.crt}
  - name: aws
    ec2: {region: eu-west-1, credentials: {secretName: cloud}}
  - name: plug
    agent:
      program: fence_plug
      parameters: {ip: 10.0.0.9}
      parametersByNode: {port: {n1: "3"}}
      parametersFrom: {plug: {annotation: example.com/plug}, group: {label: rack}}
      secretParameters: {password: {name: "plugs", key: "{node}"}}
  - name: person
    manual: {}
"""
HELD = {
    "bmc-n1": {"username": "admin", "word": f"{PASSWORD}\n"},
    "authority": {"ca.crt": "-----BEGIN CERTIFICATE-----\n"},
    "cloud": {"username": "AKIA", "password": PASSWORD},
    "plugs": {"n1": PASSWORD},
}


class Cluster:
    """The lab, in whose namespace lastcall's Secrets are."""

    def __init__(self, cluster, directory):
        self.cluster = cluster
        agents = FenceAgents([str(directory)])
        environ = {"AWS_ROLE_ARN": "arn:1", "KUBERNETES_SERVICE_HOST": "h", "PATH": "/usr/bin:/bin"}
        self.fences = PolicyFences(
            cluster.client, cluster.namespace, clock=SystemClock(), environ=environ, agents=agents
        )

    async def hold(self, secrets=None):
        for name, values in (secrets or HELD).items():
            data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
            await self.cluster.admin.create(
                SECRETS, {"metadata": {"name": name}, "data": data}, namespace=self.cluster.namespace
            )

    async def of(self, text=POLICY, node=NODE):
        return await self.fences.make_fences(node, fence_policy_reader.parse_policy(yaml.safe_load(text)))


AGENT = """#!/usr/bin/python3
import sys
given = dict(line.split("=", 1) for line in sys.stdin.read().splitlines() if "=" in line)
if given.pop("action") == "metadata":
    print('<resource-agent name="fence_plug"><parameters>')
    for name in ("action", "ip", "port", "plug", "group", "password"):
        print(f'<parameter name="{name}"><content type="string"/></parameter>')
    print('</parameters><actions><action name="off"/><action name="on"/><action name="status"/></actions></resource-agent>')
else:
    open(__file__ + ".told", "w").write(repr(given))
    print("Status: ON")
"""


@pytest.fixture
async def cluster(tmp_path):
    program = tmp_path / "fence_plug"
    program.write_text(AGENT)
    program.chmod(0o755)
    async with kube_cluster("lab", tmp_path) as cluster:
        yield Cluster(cluster, tmp_path)


def errand(fence):
    return fence._errand


async def test_every_kind_in_the_policys_order(cluster, tmp_path):
    await cluster.hold()
    bmc, aws, plug, person = await cluster.of()
    assert [one.name for one in (bmc, aws, plug, person)] == ["bmc", "aws", "plug", "person"]
    assert errand(bmc).settings == redfish.RedfishSettings(
        address="https://10.0.0.1",
        system_id="System.1",
        username="admin",
        password=PASSWORD,
        authority="-----BEGIN CERTIFICATE-----",
    )
    assert bmc._patience == 7
    assert errand(aws).settings == ec2.instance_settings(
        NODE.provider_id, region="eu-west-1", credentials=("AKIA", PASSWORD)
    )
    assert errand(aws).environment == {"AWS_ROLE_ARN": "arn:1", "PATH": "/usr/bin:/bin"}
    assert (await plug.read_power()).power is PowerState.ON
    told = eval((tmp_path / "fence_plug.told").read_text())
    assert told == {"ip": "10.0.0.9", "port": "3", "plug": "4", "group": "r7", "password": PASSWORD}


async def test_secrets_are_read_when_fences_are_made_and_again_the_next_time(cluster):
    await cluster.hold()
    await cluster.of()
    changed = {"data": {"word": base64.b64encode(b"new").decode()}}
    await cluster.cluster.admin.patch(SECRETS, "bmc-n1", changed, namespace=cluster.cluster.namespace)
    assert errand((await cluster.of())[0]).settings.password == "new"


async def test_the_person_is_asked_and_never_answers(cluster, caplog):
    await cluster.hold()
    person = (await cluster.of())[-1]
    assert (await person.read_target()).system_uuid == NODE.system_uuid
    await person.switch_off(1)
    assert "switch the machine of node n1 off" in caplog.text
    assert NODE.system_uuid in caplog.text
    assert "lastcall failover acknowledge n1 --boot-id" in caplog.text
    await person.switch_on(1)
    answer = await person.read_power()
    assert answer.power is PowerState.UNKNOWN
    assert "lastcall failover acknowledge n1" in answer.why


OF_BMC = "FencePolicy bare-metal: spec.fencers[bmc].redfish"
OF_PLUG = "FencePolicy bare-metal: spec.fencers[plug].agent"
SETTINGS = {
    "an annotation that the node has not": (
        ("annotation: example.com/bmc", "annotation: example.com/other"),
        f"{OF_BMC}.address.annotation: node n1 has no annotation example.com/other, or an empty one",
    ),
    "an empty annotation": (
        ("annotation: example.com/plug", "annotation: example.com/empty"),
        f"{OF_PLUG}.parametersFrom[plug].annotation: node n1 has no annotation example.com/empty, or an empty one",
    ),
    "a label that the node has not": (
        ("label: rack", "label: row"),
        f"{OF_PLUG}.parametersFrom[group].label: node n1 has no label row, or an empty one",
    ),
    "nothing by its name": (
        ("byNode: {n1: System.1, n2", "byNode: {n2"),
        f"{OF_BMC}.systemID.byNode: has nothing for node n1",
    ),
    "no parameter by its name": (
        ('port: {n1: "3"}', 'port: {n2: "3"}'),
        f"{OF_PLUG}.parametersByNode[port]: has nothing for node n1",
    ),
    "a value that cannot be": (
        ("System.1", "a/b"),
        f"{OF_BMC}: systemID: must be the id of a member of /redfish/v1/Systems, or its path",
    ),
}


@pytest.mark.parametrize("case", SETTINGS)
async def test_a_setting_that_is_missing_or_wrong_is_named(cluster, case):
    (old, new), why = SETTINGS[case]
    await cluster.hold()
    assert old in POLICY
    with pytest.raises(InvalidInput) as raised:
        await cluster.of(POLICY.replace(old, new))
    assert str(raised.value) == why


async def test_a_node_that_is_no_instance(cluster):
    await cluster.hold()
    with pytest.raises(InvalidInput) as raised:
        await cluster.of(node=FenceNode(name="n1", annotations=NODE.annotations, labels=NODE.labels))
    assert str(raised.value).startswith("FencePolicy bare-metal: spec.fencers[aws].ec2: spec.providerID of the Node is")


SECRET = {
    "none of that name": ({}, ".credentials.usernameKey: there is no Secret {}/bmc-n1"),
    "no such key": ({"bmc-n1": {"username": "admin"}}, '.credentials.passwordKey: Secret {}/bmc-n1 has no key "word"'),
    "an empty value": (
        {"bmc-n1": {"username": "admin", "word": "\n"}},
        '.credentials.passwordKey: "word" of Secret {}/bmc-n1 is empty',
    ),
    "another secret": (
        {"bmc-n1": HELD["bmc-n1"], "authority": {"other": "x"}},
        '.caSecret: Secret {}/authority has no key "ca.crt"',
    ),
}


@pytest.mark.parametrize("case", SECRET)
async def test_a_secret_that_is_missing_is_named(cluster, case):
    secrets, why = SECRET[case]
    if secrets:
        await cluster.hold(secrets)
    with pytest.raises(InvalidInput) as raised:
        await cluster.of()
    assert str(raised.value) == OF_BMC + why.format(cluster.cluster.namespace)
    assert PASSWORD not in str(raised.value)


async def test_a_secret_that_is_no_text(cluster):
    await cluster.hold({**HELD, "bmc-n1": {"username": "admin", "word": "x"}})
    binary = {"data": {"word": base64.b64encode(b"\xff\xfe").decode()}}
    await cluster.cluster.admin.patch(SECRETS, "bmc-n1", binary, namespace=cluster.cluster.namespace)
    with pytest.raises(InvalidInput, match='"word" of Secret .*/bmc-n1 is no text'):
        await cluster.of()


class Refusing:
    """A client that may not read."""

    async def get(self, *_, **__):
        raise ApiNotPermitted("secrets is forbidden", code=403)


async def test_secrets_that_cannot_be_read_now(cluster):
    fences = PolicyFences(Refusing(), "ns", clock=SystemClock(), environ={}, agents=FenceAgents())
    with pytest.raises(Unavailable, match=r"usernameKey: Secret ns/bmc-n1 cannot be read: secrets is forbidden"):
        await fences.make_fences(NODE, fence_policy_reader.parse_policy(yaml.safe_load(POLICY)))
