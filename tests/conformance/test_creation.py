"""Creation: what is answered and refused, and which generation is the first."""

import pytest
from support.conformance.api_client import unique
from support.conformance.objects import config_map, pod, workload

from lastcall.adapters.kube.resources import CONFIG_MAPS, DEPLOYMENTS, PODS, REPLICA_SETS

source = pytest.mark.source
STORE = "staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go"
CREATE = "staging/src/k8s.io/apiserver/pkg/endpoints/handlers/create.go"


@source(CREATE)
async def test_creation_answers_201_with_the_object(api):
    """201, and the object as it is stored."""
    reply = await api.create(CONFIG_MAPS, config_map()).reply()
    assert reply.status == 201
    assert (reply.body["kind"], reply.body["apiVersion"]) == ("ConfigMap", "v1")
    assert reply.body == await api.get(CONFIG_MAPS, "m")


@source(STORE)
async def test_a_name_that_is_taken(api):
    """409, reason AlreadyExists, with the object's name and resource in the details."""
    await api.create(CONFIG_MAPS, config_map())
    status = await api.create(CONFIG_MAPS, config_map()).refused(409, "AlreadyExists")
    assert status["message"] == 'configmaps "m" already exists'
    assert status["details"] == {"name": "m", "kind": "configmaps"}


@source(STORE)
async def test_a_taken_name_in_a_group_names_the_group(api):
    """The message has the qualified resource."""
    await api.create(REPLICA_SETS, workload("r"))
    status = await api.create(REPLICA_SETS, workload("r")).refused(409, "AlreadyExists")
    assert status["message"] == 'replicasets.apps "r" already exists'
    assert status["details"] == {"name": "r", "group": "apps", "kind": "replicasets"}


@source("https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run")
async def test_a_dry_run_creates_nothing(api):
    """The answer is as if; defaults and uid are in it, but the object is not stored."""
    reply = await api.create(PODS, pod(), dryRun="All").reply()
    assert reply.status == 201
    assert reply.body["metadata"]["uid"]
    assert reply.body["spec"]["restartPolicy"] == "Always"
    assert "resourceVersion" not in reply.body["metadata"]
    assert await api.gone(PODS, "p")


@source("https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run")
async def test_a_dry_run_finds_taken_names(api):
    """A dry run is refused for what would be refused."""
    await api.create(CONFIG_MAPS, config_map())
    await api.create(CONFIG_MAPS, config_map(), dryRun="All").refused(409, "AlreadyExists")


@source(CREATE)
async def test_nothing_is_created_at_an_objects_path(api):
    """POST goes to the collection."""
    await api.ask("POST", api.at(CONFIG_MAPS, "m"), config_map()).refused(405, "MethodNotAllowed")


@source("staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go")
async def test_nothing_is_created_in_a_namespace_that_is_not_there(api):
    """404 that names the namespace."""
    path = CONFIG_MAPS.path(unique("missing"))
    status = await api.ask("POST", path, config_map()).refused(404, "NotFound")
    assert status["details"]["kind"] == "namespaces"


@source("pkg/registry/apps/deployment/strategy.go")
async def test_the_first_generation_is_one(api):
    """For kinds that count generations."""
    assert (await api.create(DEPLOYMENTS, workload("d", paused=True)))["metadata"]["generation"] == 1


@source("pkg/registry/core/configmap/strategy.go")
async def test_some_kinds_count_no_generations(api):
    """ConfigMaps have none."""
    assert "generation" not in (await api.create(CONFIG_MAPS, config_map()))["metadata"]


@source("pkg/registry/core/pod/strategy.go")
async def test_pods_count_generations(api):
    """Since 1.35 a pod's generation is set, and its status tells which one was seen (KEP-5067)."""
    assert (await api.create(PODS, pod()))["metadata"]["generation"] == 1
