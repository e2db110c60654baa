"""Tables: what kubectl get shows is made by the server."""

import pytest
from support.conformance.api_client import unique
from support.conformance.objects import NOWHERE, config_map, job, meta, pod, running, service, workload

from lastcall.adapters.kube.resources import (
    BUDGETS,
    CLAIMS,
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUMES,
    dict_resource,
)

source = pytest.mark.source
PRINTERS = "pkg/printers/internalversion/printers.go"
API = "https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
SECRETS = dict_resource("", "v1", "secrets")
ACCOUNTS = dict_resource("", "v1", "serviceaccounts")


async def table(api, resource, name="", **query):
    """A table of one object, or of all."""
    return await api.ask("GET", api.at(resource, name), accept=TABLE, **query)


def columns(table, priority=0):
    """The names of its columns."""
    return [one["name"] for one in table["columnDefinitions"] if one["priority"] <= priority]


@source(PRINTERS)
@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (PODS, "Name Ready Status Restarts Age"),
        (SERVICES, "Name Type Cluster-IP External-IP Port(s) Age"),
        (CONFIG_MAPS, "Name Data Age"),
        (SECRETS, "Name Type Data Age"),
        (ACCOUNTS, "Name Age"),
        (EVENTS, "Last Seen Type Reason Object Message"),
        (NAMESPACES, "Name Status Age"),
        (NODES, "Name Status Roles Age Version"),
        (
            VOLUMES,
            "Name Capacity Access Modes Reclaim Policy Status Claim StorageClass VolumeAttributesClass Reason Age",
        ),
        (CLAIMS, "Name Status Volume Capacity Access Modes StorageClass VolumeAttributesClass Age"),
        (DEPLOYMENTS, "Name Ready Up-to-date Available Age"),
        (REPLICA_SETS, "Name Desired Current Ready Age"),
        (STATEFUL_SETS, "Name Ready Age"),
        (DAEMON_SETS, "Name Desired Current Ready Up-to-date Available Node Selector Age"),
        (JOBS, "Name Status Completions Duration Age"),
        (BUDGETS, "Name Min Available Max Unavailable Allowed Disruptions Age"),
        (PRIORITY_CLASSES, "Name Value Global-Default Age PreemptionPolicy"),
        (LEASES, "Name Holder Age"),
        (STORAGE_CLASSES, "Name Provisioner ReclaimPolicy VolumeBindingMode AllowVolumeExpansion Age"),
    ],
    ids=lambda value: getattr(value, "plural", ""),
)
async def test_the_columns_of_a_kind(api, kind, names):
    """Those that are shown without -o wide; an empty list has them too."""
    found = await table(api, kind, fieldSelector="metadata.name=no-such-object")
    assert found["kind"] == "Table"
    assert " ".join(columns(found)) == names


@source(PRINTERS)
async def test_wide_columns_of_pods(api):
    """Priority 1."""
    found = await table(api, PODS)
    assert columns(found, 1)[5:] == ["IP", "Node", "Nominated Node", "Readiness Gates"]


@source(PRINTERS)
@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({"phase": "Pending"}, "Pending"),
        ({"phase": "Running"}, "Running"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        (
            {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
            "ImagePullBackOff",
        ),
        (
            {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]},
            "ExitCode:3",
        ),
        (
            {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"signal": 9, "exitCode": 137}}}]},
            "Signal:9",
        ),
        (
            {
                "phase": "Succeeded",
                "containerStatuses": [{"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}],
            },
            "Completed",
        ),
    ],
)
async def test_the_status_of_a_pod_in_a_word(api, status, shown):
    """The reason of a container goes before the phase."""
    await api.create(PODS, pod(node=NOWHERE))
    for one in status.get("containerStatuses", []):
        one.update(name="c", ready=False, restartCount=0, image="i", imageID="")
    await api.patch(PODS, "p", {"status": status}, sub="status")
    assert (await table(api, PODS, "p"))["rows"][0]["cells"][2] == shown


@source(PRINTERS)
async def test_a_terminating_pod_in_a_word(api):
    """Terminating; on a lost node Unknown."""
    await running(api, "p")
    await api.delete(PODS, "p")
    assert (await table(api, PODS, "p"))["rows"][0]["cells"][2] == "Terminating"
    await api.patch(PODS, "p", {"status": {"reason": "NodeLost"}}, sub="status")
    assert (await table(api, PODS, "p"))["rows"][0]["cells"][2] == "Unknown"


@source(PRINTERS)
async def test_ready_containers_are_counted(api):
    """How many of how many."""
    containers = [{"name": name, "image": "i"} for name in "ab"]
    await api.create(PODS, pod(node=NOWHERE, containers=containers))
    base = {"restartCount": 4, "image": "i", "imageID": "", "state": {"running": {}}}
    statuses = [{**base, "name": "a", "ready": True}, {**base, "name": "b", "ready": False}]
    await api.patch(PODS, "p", {"status": {"phase": "Running", "containerStatuses": statuses}}, sub="status")
    cells = (await table(api, PODS, "p"))["rows"][0]["cells"]
    assert (cells[1], cells[3]) == ("1/2", "8")


@source(PRINTERS)
async def test_init_containers_in_a_word(api):
    """How many of them are done."""
    containers = [{"name": name, "image": "i"} for name in "ab"]
    await api.create(PODS, pod(node=NOWHERE, initContainers=containers))
    done = {"name": "a", "ready": True, "restartCount": 0, "image": "i", "imageID": ""}
    done["state"] = {"terminated": {"exitCode": 0}}
    waits = {"name": "b", "ready": False, "restartCount": 0, "image": "i", "imageID": "", "state": {"running": {}}}
    await api.patch(PODS, "p", {"status": {"initContainerStatuses": [done, waits]}}, sub="status")
    assert (await table(api, PODS, "p"))["rows"][0]["cells"][2] == "Init:1/2"


@source(PRINTERS)
async def test_a_gated_pod_in_a_word(api):
    """SchedulingGated."""
    await api.create(PODS, pod(schedulingGates=[{"name": "example.com/x"}]))
    assert (await table(api, PODS, "p"))["rows"][0]["cells"][2] == "SchedulingGated"


@source(PRINTERS)
async def test_a_node_in_words(api):
    """Ready or not, cordoned, its roles and version."""
    name = unique("node")
    labels = {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "old"}
    await api.create(NODES, {**meta(name, labels=labels), "spec": {"unschedulable": True}})
    status = {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1.2.3"}}
    await api.patch(NODES, name, {"status": status}, sub="status")
    cells = (await table(api, NODES, name))["rows"][0]["cells"]
    assert cells[:3] == [name, "Ready,SchedulingDisabled", "old,worker"]
    assert cells[4] == "v1.2.3"


@source(PRINTERS)
async def test_a_service_in_words(api):
    """Its ports with protocols and node ports."""
    made = await api.create(SERVICES, service(type="NodePort", ports=[{"port": 80}, {"name": "b", "port": 81}][:1]))
    port = made["spec"]["ports"][0]["nodePort"]
    cells = (await table(api, SERVICES, "s"))["rows"][0]["cells"]
    assert cells[1] == "NodePort"
    assert cells[3:5] == ["<none>", f"80:{port}/TCP"]


@source(PRINTERS)
async def test_a_budget_in_words(api):
    """What is not said is N/A."""
    await api.create(BUDGETS, {**meta("b"), "spec": {"selector": {"matchLabels": {"a": "b"}}, "maxUnavailable": "50%"}})
    assert (await table(api, BUDGETS, "b"))["rows"][0]["cells"][:4] == ["b", "N/A", "50%", 0]


@source(PRINTERS)
async def test_a_job_in_words(api):
    """Suspended, none of one done."""
    await api.create(JOBS, job("j"))
    cells = (await table(api, JOBS, "j"))["rows"][0]["cells"]
    assert cells[1] in ("Suspended", "Running")
    assert cells[2] == "0/1"


@source(PRINTERS)
async def test_a_deployment_in_words(api):
    """Ready of wanted."""
    await api.create(DEPLOYMENTS, workload("d", paused=True))
    assert (await table(api, DEPLOYMENTS, "d"))["rows"][0]["cells"][:4] == ["d", "0/0", 0, 0]


@source(API)
@pytest.mark.parametrize(("policy", "kind"), [("", "PartialObjectMetadata"), ("Object", "ConfigMap")])
async def test_what_a_row_carries(api, policy, kind):
    """The metadata, or the object."""
    await api.create(CONFIG_MAPS, config_map())
    query = {"includeObject": policy} if policy else {}
    (row,) = (await table(api, CONFIG_MAPS, "m", **query))["rows"]
    assert row["object"]["kind"] == kind


@source(API)
async def test_a_row_may_carry_nothing(api):
    """includeObject=None."""
    await api.create(CONFIG_MAPS, config_map())
    (row,) = (await table(api, CONFIG_MAPS, "m", includeObject="None"))["rows"]
    assert row["object"] is None


@source(API)
async def test_tables_have_pages(api):
    """limit and continue as in lists."""
    for name in "ab":
        await api.create(LEASES, meta(name))
    first = await table(api, LEASES, limit=1)
    second = await table(api, LEASES, limit=1, **{"continue": first["metadata"]["continue"]})
    assert [one["rows"][0]["cells"][0] for one in (first, second)] == ["a", "b"]


@source(API)
async def test_a_table_or_else(api):
    """Clients offer tables first, and take what comes."""
    reply = await api.ask("GET", api.at(CONFIG_MAPS), accept=f"{TABLE},application/json").reply()
    assert reply.body["kind"] == "Table"
    other = await api.ask(
        "GET", api.at(CONFIG_MAPS), accept="application/json;as=Table;g=x;v=v1,application/json"
    ).reply()
    assert other.body["kind"] == "ConfigMapList"


@source(API)
async def test_an_error_is_no_table(api):
    """A Status."""
    await api.ask("GET", api.at(CONFIG_MAPS, "x"), accept=TABLE).refused(404, "NotFound")


@source("staging/src/k8s.io/apiserver/pkg/registry/rest/table.go")
async def test_kinds_without_columns_of_their_own(api):
    """Name and time of creation."""
    roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{api.namespace}/roles"
    found = await api.ask("GET", roles, accept=TABLE)
    assert columns(found) == ["Name", "Created At"]
