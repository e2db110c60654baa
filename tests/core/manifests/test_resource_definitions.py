"""The CustomResourceDefinitions: the API server refuses what the struct refuses, and fills in what the struct fills in."""

import json
from random import Random

import msgspec
import pytest
from support.agents import shutdown_records
from support.failover.policy_cases import BROKEN, GOOD, TOLD_LATER, policy
from support.virtual_time.worker import in_virtual_time

from lastcall.manifests import resource_definitions
from lastcall.model.fence_policy_reader import parse_policy
from lastcall.model.node_shutdown_export import to_node_shutdown
from lastcall.model.node_shutdown_object import NodeShutdown
from lastcall.model.shutdown_fold import fold_events
from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.values.request import Request

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLICIES = "/apis/lastcall.dev/v1alpha1/fencepolicies"
SHUTDOWNS = "/apis/lastcall.dev/v1alpha1/nodeshutdowns"


class Api:
    """A lab's API server with a definition."""

    def __init__(self):
        self.server = ApiServer(virtual.VirtualClock(), Random(1))

    async def ask(self, method, target, body):
        request = Request.of(
            method, target, headers={"content-type": "application/json"}, body=json.dumps(body).encode()
        )
        response = await self.server.handle(request)
        return response.status, json.loads(response.body)

    async def defines(self, definition):
        code, said = await self.ask("POST", DEFINITIONS, definition)
        assert code == 201, said
        return self


def nameless(**spec):
    return policy(**spec) | {"metadata": {"generateName": "p-"}}


@in_virtual_time
async def test_what_the_struct_takes_the_server_takes():
    api = await Api().defines(resource_definitions.fence_policy_definition())
    for spec in [*GOOD.values(), *(spec for spec, _ in TOLD_LATER)]:
        code, said = await api.ask("POST", f"{POLICIES}?fieldValidation=Strict", nameless(**spec))
        assert code == 201, said


@in_virtual_time
async def test_what_the_struct_refuses_the_server_refuses():
    api = await Api().defines(resource_definitions.fence_policy_definition())
    for spec, _ in BROKEN:
        code, said = await api.ask("POST", POLICIES, nameless(**spec))
        assert code in (400, 422), spec
        assert "spec" in said["message"]


@in_virtual_time
async def test_the_server_says_which_rule_is_broken():
    api = await Api().defines(resource_definitions.fence_policy_definition())
    code, said = await api.ask("POST", POLICIES, policy(suspectAfter="2h", fencers=[{"name": "f"}]))
    assert code == 422
    assert {(one["field"], one["message"]) for one in said["details"]["causes"]} == {
        ("spec.suspectAfter", 'Invalid value: "2h": must be 1s to 1h'),
        ("spec.fencers[0]", "Invalid value: must be exactly one of agent, redfish, ec2, manual"),
    }


@in_virtual_time
async def test_the_server_fills_in_the_defaults_of_the_struct():
    api = await Api().defines(resource_definitions.fence_policy_definition())
    for spec in GOOD.values():
        _, said = await api.ask("POST", POLICIES, nameless(**spec))
        stored, wanted = said["spec"], parse_policy(policy(**spec)).spec
        assert parse_policy(policy(**stored)).spec == wanted
        assert (stored["mode"], stored["suspectAfter"]) == (wanted.mode.value, wanted.suspect_after)
        assert stored["limits"] == msgspec.to_builtins(wanted.limits)
        assert stored.get("fencers", []) == spec.get("fencers", []), "kubectl apply compares lists as a whole"


@in_virtual_time
async def test_the_status_is_written_apart_from_the_spec():
    api = await Api().defines(resource_definitions.fence_policy_definition())
    _, made = await api.ask("POST", POLICIES, policy())
    assert "status" not in made
    condition = {"type": "Accepted", "status": "True", "reason": "Accepted", "message": "it is heeded"}
    condition["lastTransitionTime"] = "2026-11-21T12:00:00Z"
    found = made | {"status": {"nodes": 3, "observedGeneration": 1, "conditions": [condition]}}
    code, said = await api.ask("PUT", f"{POLICIES}/p/status", found)
    assert (code, said["status"]) == (200, found["status"])
    _, table = await api.ask("PUT", f"{POLICIES}/p/status", said)
    assert table["metadata"]["resourceVersion"] == said["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    "definition", [resource_definitions.fence_policy_definition(), resource_definitions.node_shutdown_definition()]
)
def test_every_field_is_described(definition):
    def missing(schema, path):
        for name, inner in (schema.get("properties") or {}).items():
            if name not in ("apiVersion", "kind", "metadata") and not inner.get("description"):
                yield f"{path}.{name}"
            yield from missing(inner, f"{path}.{name}")
        for part in ("items", "additionalProperties"):
            if part in schema:
                yield from missing(schema[part], f"{path}[]")

    [version] = definition["spec"]["versions"]
    assert list(missing(version["schema"]["openAPIV3Schema"], "")) == []


@in_virtual_time
async def test_every_record_of_a_shutdown_fits_its_definition():
    api = await Api().defines(resource_definitions.node_shutdown_definition())
    for events in (shutdown_records.dozen(), shutdown_records.cancelled()):
        obj = to_node_shutdown(fold_events(events))
        code, said = await api.ask("POST", f"{SHUTDOWNS}?fieldValidation=Strict", obj)
        assert code == 201, said
        assert (said["spec"], said["status"]) == (obj["spec"], obj["status"])
        assert msgspec.convert(said, NodeShutdown).spec.boot_id == obj["spec"]["bootID"]
