"""Definitions of custom resources with schemas and rules, for tests of what they refuse."""

STRING, INTEGER = {"type": "string"}, {"type": "integer"}


def definition(spec=None, **version):
    """Of widgets with a ``spec`` of that schema, in one version, which may say more."""
    schema = {"type": "object", "properties": {"spec": spec or {"type": "object"}, "status": {"type": "object"}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.x.example.com"},
        "spec": {
            "group": "x.example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
            ],
        },
    }


def objects(**properties):
    """The schema of an object with these fields."""
    return {"type": "object", "properties": properties}


def ruled(rule, **more):
    """The part of a schema that is a rule."""
    return {"x-kubernetes-validations": [{"rule": rule, **more}]}


def said(causes):
    """Causes as a client reads them."""
    return [f"{cause.field}: {cause.message}" for cause in causes]
