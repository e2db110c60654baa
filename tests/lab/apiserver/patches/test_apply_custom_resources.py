"""Custom resources and server-side apply: lists merge as the definition says."""

from support.lab.apply_requests import L, on_server, record

WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "how"],
                    "items": {
                        "type": "object",
                        "required": ["port"],
                        "properties": {
                            "port": {"type": "integer"},
                            "how": {"type": "string", "default": "fast"},
                            "name": {"type": "string"},
                        },
                    },
                },
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "one": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "additionalProperties": {"type": "string"},
                },
            },
        },
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    },
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": SCHEMA},
            }
        ],
    },
}


def widget(**fields):
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": fields}


async def with_widgets(api):
    await api.good("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    await api.clock.sleep(10)


@on_server
async def test_custom_resources_merge_as_their_definition_says(api):
    await with_widgets(api)
    _, made = await api.apply(
        "one", f"{WIDGETS}/w", widget(ports=[{"port": 1}], tags=["a"], any={"x": 1}, one={"a": "1"})
    )
    key = 'k:{"how":"fast","port":1}'
    spec_fields = {
        "f:any": {"f:x": L},
        "f:one": L,
        "f:ports": {key: {".": L, "f:port": L}},
        "f:tags": {'v:"a"': L},
    }
    assert record(made) == [("one", "Apply", {"f:spec": spec_fields})]
    code, after = await api.apply(
        "two", f"{WIDGETS}/w", widget(ports=[{"port": 2, "name": "n"}], tags=["b"], any={"y": [1]})
    )
    assert (code, after["spec"]["tags"], after["spec"]["any"]) == (200, ["a", "b"], {"x": 1, "y": [1]})
    assert [one["port"] for one in after["spec"]["ports"]] == [1, 2]
    code, after = await api.apply("one", f"{WIDGETS}/w", widget(tags=["b"]))
    assert (code, after["spec"]["tags"], [one["port"] for one in after["spec"]["ports"]]) == (200, ["b"], [2])
    assert "one" not in after["spec"]
    code, refused = await api.apply("one", f"{WIDGETS}/w", widget(nope=1))
    assert (code, refused["message"]) == (
        500,
        "failed to create typed patch object (/w; example.com/v1, Kind=Widget): .spec.nope: field not declared in schema",
    )


@on_server
async def test_custom_resources_take_no_strategic_patches(api):
    await with_widgets(api)
    made = await api.good("POST", WIDGETS, widget(tags=["a"]))
    assert record(made) == [("tester", "Update", {"f:spec": {".": L, "f:tags": {".": L, 'v:"a"': L}}})]
    code, refused = await api.ask("PATCH", f"{WIDGETS}/w", {}, kind="application/strategic-merge-patch+json")
    assert (code, refused["message"]) == (
        415,
        (
            "the body of the request was in an unknown format - accepted media types include:"
            " application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
        ),
    )
    after = await api.good(
        "PATCH", f"{WIDGETS}/w/status", {"status": {"phase": "x"}}, kind="application/merge-patch+json"
    )
    assert record(after)[1] == ("tester", "Update", {"f:status": {".": L, "f:phase": L}}, "status")
