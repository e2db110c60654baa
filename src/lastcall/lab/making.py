"""Objects as they stand in manifests, made through the API."""

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import resource
from lastcall.errors import AlreadyExists
from lastcall.lab.apiserver.request import Object

_PLURALS = {"s": ("s", "ses"), "y": ("y", "ies")}
"""Endings of kinds whose plural is not made by an s alone."""


async def make(client: Client, obj: Object) -> None:
    """Makes the object; one that is there already stays as it is. NotFound if there is no such kind."""
    group, _, version = obj["apiVersion"].rpartition("/")
    try:
        await client.create(
            resource(group, version, _plural(obj["kind"])), obj, namespace=obj["metadata"].get("namespace", "")
        )
    except AlreadyExists:
        return


def _plural(kind: str) -> str:
    name = kind.lower()
    ending, plural = _PLURALS.get(name[-1], ("", "s"))
    return name.removesuffix(ending) + plural
