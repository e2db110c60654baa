"""A person's word that a machine is off: what it is as evidence, and when it is written."""

import asyncio
import base64

import pytest
from click.testing import CliRunner
from support.kube.api_servers import TOKEN, kube_cluster
from support.lab.https_server import serving

from lastcall import names
from lastcall.adapters.kube.resources import LEASES, NODES
from lastcall.cli.failover_acknowledge import acknowledge_boot
from lastcall.cli.main import cli
from lastcall.errors import Conflict, InvalidInput, RefusedForSafety
from lastcall.failover.evidence import acknowledgement
from lastcall.failover.evidence.assessment import BootState, assess
from lastcall.failover.evidence.facts import Boot, DeathAcknowledged, LeaseSeen

BOOT = "3f1c-a"


BEGUN = Boot(id=BOOT, system_uuid="m", since=0)
LAST = "2026-11-22T00:00:00.000000Z"


@pytest.mark.parametrize("written", [BOOT, f" {BOOT}\n", f"{BOOT} {LAST}", f" {BOOT}  {LAST} "])
def test_the_annotation_names_the_boot_that_is_over(written):
    fact = acknowledgement.acknowledgement_fact(written, BEGUN, seen=50, renewed=(LAST, 20))
    assert isinstance(fact, DeathAcknowledged)
    assert (fact.boot_id, fact.at) == (BOOT, 50)
    verdict = assess(BEGUN, [fact], 60)
    assert verdict.state is BootState.DEAD
    assert "by the annotation lastcall.dev/acknowledged-dead" in verdict.reasons[0]
    assert assess(BEGUN, [fact, LeaseSeen(boot_id=BOOT, at=55)], 60).state is BootState.ALIVE


@pytest.mark.parametrize("written", ["", "another", f"another {LAST}", f"{BOOT} {LAST} more", f"{BOOT} later", " "])
def test_no_word_on_this_boot_and_this_silence(written):
    assert acknowledgement.acknowledgement_fact(written, BEGUN, seen=50, renewed=(LAST, 20)) is None


def test_a_word_on_the_last_renewal_counts_for_who_finds_it_and_however_late_he_has_heard_of_that():
    for seen, renewed in ((0, 0), (50, 50.5)):
        fact = acknowledgement.acknowledgement_fact(f"{BOOT} {LAST}", BEGUN, seen=seen, renewed=(LAST, renewed))
        known = [fact, LeaseSeen(boot_id=BOOT, at=renewed)] if renewed else [fact]
        assert assess(BEGUN, known, 100).state is BootState.DEAD
    assert acknowledgement.acknowledgement_fact(f"{BOOT} {LAST}", BEGUN, seen=50, renewed=None) is None


def test_a_word_that_says_nothing_of_renewals_counts_only_for_who_has_seen_it_come():
    found = acknowledgement.acknowledgement_fact(BOOT, BEGUN, seen=0, renewed=(LAST, 0))
    assert assess(BEGUN, [found], 100).state is BootState.UNKNOWN


async def put(cluster, ready="Unknown", boot_id=BOOT, name="n1"):
    """The Node as its kubelet, and who misses it, have written it."""
    status = {"nodeInfo": node_info(boot_id), "conditions": [{"type": "Ready", "status": ready}] if ready else []}
    await cluster.admin.create(NODES, {"metadata": {"name": name}})
    await cluster.admin.patch(NODES, name, {"status": status}, subresource="status")


def node_info(boot_id):
    fields = ("architecture", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "kubeletVersion")
    machine = ("machineID", "operatingSystem", "osImage", "systemUUID")
    return {"bootID": boot_id, **dict.fromkeys((*fields, *machine), "x")}


async def written(cluster, name="n1"):
    found = await cluster.admin.get(NODES, name)
    return found["metadata"].get("annotations", {}).get(names.ACKNOWLEDGED_DEAD)


async def renew(cluster, at, name="n1"):
    """Its kubelet renews its Lease for the first time."""
    lease = {"metadata": {"name": name}, "spec": {"holderIdentity": name, "renewTime": at}}
    await cluster.admin.create(LEASES, lease, namespace="kube-node-lease")


@pytest.fixture
async def cluster(tmp_path):
    async with kube_cluster("lab", tmp_path) as cluster:
        yield cluster


@pytest.mark.parametrize("ready", ["Unknown", "False", ""])
async def test_it_is_written_and_may_be_said_again(cluster, ready):
    await put(cluster, ready)
    await acknowledge_boot(cluster.client, "n1", BOOT)
    await acknowledge_boot(cluster.client, "n1", BOOT)
    assert await written(cluster) == BOOT


async def test_it_names_the_last_renewal(cluster):
    await put(cluster)
    await renew(cluster, LAST)
    await acknowledge_boot(cluster.client, "n1", BOOT)
    assert await written(cluster) == f"{BOOT} {LAST}"


REFUSED = {
    "a node that is Ready": ({"ready": "True"}, "is Ready: its machine is alive"),
    "another boot": ({"boot_id": "later"}, f"shows boot id later, not {BOOT}"),
    "no boot at all": ({"boot_id": ""}, "has never reported a boot id"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_refused(cluster, case):
    node, why = REFUSED[case]
    await put(cluster, **node)
    with pytest.raises(RefusedForSafety, match=why):
        await acknowledge_boot(cluster.client, "n1", BOOT)
    assert await written(cluster) is None


@pytest.mark.parametrize(
    ("silent", "says"),
    [
        (None, "node n1 is Ready: its machine is alive"),
        (-5.0, "node n1 is Ready: its machine is alive"),
        (19.0, "node n1 is Ready: its machine is alive"),
        (
            43.4,
            "node n1 is still Ready (last renewed 43s ago): try again when it is NotReady, after some 50s of silence",
        ),
    ],
)
def test_a_node_that_is_silent_is_not_said_to_be_alive(silent, says):
    assert acknowledgement.list_objections("n1", ready="True", boot_id=BOOT, wanted=BOOT, silent=silent) == [says]
    assert acknowledgement.list_objections("n1", ready="Unknown", boot_id=BOOT, wanted=BOOT, silent=silent) == []


async def test_all_that_speaks_against_it_is_told_in_one_line(cluster):
    await put(cluster, ready="True", boot_id="later")
    await renew(cluster, "2020-01-31T12:00:00.000000Z")
    with pytest.raises(
        RefusedForSafety, match=r"^node n1 is still Ready \(last renewed .*; node n1 shows boot id later"
    ):
        await acknowledge_boot(cluster.client, "n1", BOOT)
    assert await written(cluster) is None


async def test_there_is_no_such_node(cluster):
    with pytest.raises(InvalidInput, match="there is no node n1"):
        await acknowledge_boot(cluster.client, "n1", BOOT)


class Late:
    """A client under whose hands the Node changes right after it was read."""

    def __init__(self, client, changes):
        self._client, self._changes = client, changes

    async def get(self, resource, *args, **rest):
        found = await self._client.get(resource, *args, **rest)
        if self._changes and resource is NODES:
            await self._changes.pop()()
        return found

    async def patch(self, *args, **rest):
        return await self._client.patch(*args, **rest)


async def change(cluster, **status):
    await cluster.admin.patch(NODES, "n1", {"status": status}, subresource="status")


async def test_a_node_that_becomes_ready_after_it_was_read_is_left_alone(cluster):
    await put(cluster)

    async def back():
        await change(cluster, conditions=[{"type": "Ready", "status": "True"}])

    with pytest.raises(RefusedForSafety):
        await acknowledge_boot(Late(cluster.client, [back]), "n1", BOOT)
    assert await written(cluster) is None


async def test_what_others_write_meanwhile_is_no_hindrance_but_for_ever(cluster):
    await put(cluster)
    count = iter(range(100))

    async def busy():
        await change(cluster, conditions=[{"type": "Ready", "status": "Unknown", "reason": f"r{next(count)}"}])

    await acknowledge_boot(Late(cluster.client, [busy, busy]), "n1", BOOT)
    assert await written(cluster) == BOOT
    with pytest.raises(Conflict):
        await acknowledge_boot(Late(cluster.client, [busy] * 10), "n1", BOOT)


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
clusters: [{{name: c, cluster: {{server: "{url}", certificate-authority-data: "{ca}"}}}}]
users: [{{name: c, user: {{token: "{token}"}}}}]
contexts: [{{name: c, context: {{cluster: c, user: c}}}}]
"""


async def test_the_command(cluster, tmp_path):
    await put(cluster)
    async with serving(cluster.server, tmp_path) as (url, authority):
        file = tmp_path / "config"
        ca = base64.b64encode(authority.encode()).decode()
        file.write_text(KUBECONFIG.format(url=url, ca=ca, token=TOKEN))

        def run(boot_id):
            return CliRunner().invoke(
                cli, ["failover", "acknowledge", "n1", "--boot-id", boot_id, "--kubeconfig", str(file)]
            )

        wrong = await asyncio.to_thread(run, "another")
        assert isinstance(wrong.exception, RefusedForSafety)
        assert wrong.exception.exit_code == 3
        right = await asyncio.to_thread(run, f" {BOOT} ")
        assert (right.exit_code, right.output) == (0, f"node n1: boot {BOOT} is acknowledged to be over\n")
        empty = await asyncio.to_thread(run, " ")
        assert isinstance(empty.exception, InvalidInput)
    assert await written(cluster) == BOOT
