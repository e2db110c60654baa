"""Requests of all kinds with values of all kinds in them: every one is answered, none is an internal error."""

import json
import logging
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.lab.custom_definitions import DEFINITIONS, custom, definition

from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.values.request import Request

SPACE = "/api/v1/namespaces/default"
META = {
    "name": "x",
    "labels": {"a": "b"},
    "finalizers": ["a.b/c"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u"}],
}
SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
POD = {
    "containers": [
        {"name": "c", "image": "i", "ports": [{"containerPort": 80}], "resources": {"requests": {"cpu": "1"}}}
    ],
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "terminationGracePeriodSeconds": 5,
    "nodeName": "x",
}
WORKLOAD = {"replicas": 1, "selector": SELECTOR, "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD}}
OBJECTS = {
    f"{SPACE}/pods": {"spec": POD, "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
    "/api/v1/nodes": {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}, "status": {"capacity": {"cpu": "1"}}},
    f"{SPACE}/configmaps": {"data": {"a": "b"}, "binaryData": {"c": "YQ=="}},
    f"{SPACE}/services": {"spec": {"selector": {"a": "b"}, "ports": [{"port": 80, "targetPort": "x"}]}},
    f"{SPACE}/events": {"involvedObject": {"kind": "Pod", "namespace": "default"}, "count": 1, "source": {"component": "c"}},
    "/apis/events.k8s.io/v1/namespaces/default/events": {"regarding": {"namespace": "default"}, "series": {"count": 2}},
    "/apis/apps/v1/namespaces/default/deployments": {"spec": WORKLOAD, "status": {"replicas": 1}},
    "/apis/apps/v1/namespaces/default/statefulsets": {"spec": {**WORKLOAD, "serviceName": "s"}, "status": {"replicas": 1}},
    "/apis/batch/v1/namespaces/default/jobs": {"spec": {"template": {"spec": POD}}, "status": {"active": 1, "ready": 1}},
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets": {"spec": {"minAvailable": "50%", "selector": SELECTOR}},
    "/apis/coordination.k8s.io/v1/namespaces/default/leases": {"spec": {"holderIdentity": "h", "leaseDurationSeconds": 1}},
    "/apis/x.example.com/v1/namespaces/default/widgets": {"spec": {"a": [1, {"b": None}]}, "status": {"c": 1}},
    DEFINITIONS.path(): definition("gadgets", "Gadget"),
}  # fmt: skip
JSON, YAML = "application/json", "application/yaml"
PATCHES = [f"application/{one}" for one in ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")]  # fmt: skip
TEXTS = [
    "",
    "x",
    "a/b/c",
    "\ud800",
    "\x00\n",
    "é",
    "9" * 5000,
    "1e1000000000",
    "-1",
    "10Gi",
    "50%",
    "../..",
    "{{",
    "(",
    "All",
]
NUMBERS = [0, -1, 2**31, 2**63, 2**70, -(2**70), 1.5, 1e300]
ODD = st.one_of(
    st.sampled_from([None, True, [], {}, [None], [[]], {"": None}, [{}], {"$patch": "delete"}, {"$patch": 5}]),
    st.sampled_from(NUMBERS),
    st.sampled_from(TEXTS),
    st.recursive(st.none(), lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2), max_leaves=5),
)  # fmt: skip
QUERY = ["limit", "continue", "resourceVersion", "labelSelector", "fieldSelector", "timeoutSeconds", "dryRun", "fieldManager", "fieldValidation", "gracePeriodSeconds", "propagationPolicy", "watch", "force", "sendInitialEvents", "timeout", "pretty"]  # fmt: skip
EXPECTED = ("failed to create typed patch object", "list element types", "unknown patch type", "merge key", "expected a ", "resourceVersion should not be set", "strconv.")  # fmt: skip
"""Of answers with 500 that a real server gives, too."""


def as_query(text):
    """A query is read from bytes, so that it is always Unicode."""
    return [text.encode(errors="replace").decode()]


def places(value, path=()):
    """The paths of all parts of a value."""
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*path, key))


def replaced(value, path, new):
    """The value with another part."""
    if not path:
        return new
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[path[0]] = replaced(value[path[0]], path[1:], new)
    return copied


@st.composite
def requests(draw):
    """Method, path, query, headers, body."""
    path = draw(st.sampled_from(list(OBJECTS)))
    whole = {"metadata": META, **OBJECTS[path]}
    where = draw(st.sampled_from(list(places(whole))))
    said = replaced(whole, where, draw(ODD))
    kind, method = draw(st.sampled_from([JSON, JSON, YAML, *PATCHES, *PATCHES])), "PATCH"
    if kind in (JSON, YAML):
        method = draw(st.sampled_from(["POST", "PUT", "GET", "DELETE"]))
    if kind == PATCHES[0]:
        pointer = "/" + "/".join(str(step).replace("/", "~1") for step in where)
        said = [{"op": draw(st.sampled_from(["add", "replace", "remove", "copy", "test"])), "path": pointer, "from": "/metadata", "value": draw(ODD)}]  # fmt: skip
    name = definition("gadgets", "Gadget")["metadata"]["name"] if path == DEFINITIONS.path() else "x"
    sub = draw(st.sampled_from(["", "", "/status", "/scale", "/nope", "//"]))
    target = path if method == "POST" else f"{path}/{name}{sub}"
    query = draw(st.dictionaries(st.sampled_from(QUERY), st.sampled_from(TEXTS).map(as_query), max_size=2))
    accept = draw(st.sampled_from(["", "*/*", "application/json;as=Table;v=v1;g=meta.k8s.io", YAML, "é,;q=x"]))
    return Request(method, target, query, {"content-type": kind, "accept": accept}, json.dumps(said).encode())


async def prepared():
    server = ApiServer(virtual.VirtualClock(), Random(1))
    await server.handle(Request("POST", f"{SPACE}/serviceaccounts", body=b'{"metadata": {"name": "default"}}'))
    await server.handle(Request("POST", DEFINITIONS.path(), body=json.dumps(definition()).encode()))
    for path, obj in OBJECTS.items():
        whole = {**custom("x"), **obj} if "widgets" in path else {"metadata": {"name": "x"}, **obj}
        await server.handle(Request("POST", path, body=json.dumps(whole).encode()))
    return server


def merge(path, **said):
    return [Request("PATCH", path, headers={"content-type": PATCHES[1]}, body=json.dumps(said).encode())]


@pytest.mark.timeout(600)
@example(merge("/apis/apps/v1/namespaces/default/deployments/x/status", status={"replicas": -1}))
@example(merge("/apis/batch/v1/namespaces/default/jobs/x/status", status={"active": -1}))
@example([Request("GET", f"{SPACE}/configmaps", {"limit": ["9" * 5000]})])
@example([Request("POST", f"{SPACE}/configmaps", body=rb'{"metadata": {"name": "y"}, "data": {"k": "\ud800"}}')])
@settings(max_examples=100, deadline=None)
@given(st.lists(requests(), min_size=1, max_size=15))
def test_every_request_is_answered(asked):
    """And what is stored afterwards can still be listed in every form."""

    async def run():
        server = await prepared()
        for request in asked:
            response = await server.handle(request)
            if not isinstance(response.body, bytes):
                await response.body.aclose()
            elif response.status == 500:
                message = response.body.decode()
                assert any(one in message for one in EXPECTED), (request, message)
        for path in OBJECTS:
            for accept in (JSON, YAML, "application/json;as=Table;v=v1;g=meta.k8s.io"):
                assert (await server.handle(Request("GET", path, headers={"accept": accept}))).status == 200

    logger = logging.getLogger("lastcall")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        virtual.run(run())
    finally:
        logger.setLevel(before)
