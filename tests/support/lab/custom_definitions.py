"""Definitions of custom resources, their objects, and owners, for tests of controllers."""

from lastcall.adapters.kube.resources import dict_resource

DEFINITIONS = dict_resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
WIDGETS = dict_resource("x.example.com", "v1", "widgets")
GADGETS = dict_resource("x.example.com", "v1", "gadgets")
API = "x.example.com/v1"


def definition(plural="widgets", kind="Widget", scope="Namespaced", versions=("v1",)):
    """Of a kind without rules; the first version is the stored one."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    served = [{"name": one, "served": True, "storage": one == versions[0], "schema": schema} for one in versions]
    names = {"plural": plural, "kind": kind}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.x.example.com"},
        "spec": {"group": "x.example.com", "scope": scope, "names": names, "versions": served},
    }


def custom(name, *owners, kind="Widget", api_version=API, **metadata):
    """An object of such a kind."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "ownerReferences": [*owners], **metadata},
    }


def owned(name, *owners, **metadata):
    """A ConfigMap."""
    return {"metadata": {"name": name, "ownerReferences": [*owners], **metadata}}


def owner(obj, api_version=API, kind="Widget", *, block=False):
    """The reference to one."""
    metadata = obj["metadata"]
    found = {"apiVersion": api_version, "kind": kind, "name": metadata["name"], "uid": metadata["uid"]}
    return {**found, "blockOwnerDeletion": block}
