"""Objects as they stand in manifests, made through the API."""

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import dict_resource
from lastcall.errors import AlreadyExists
from lastcall_lab.apiserver.values.request import Object

_PLURALS = {"s": ("s", "ses"), "y": ("y", "ies")}
"""Endings of kinds whose plural is not made by an s alone."""


async def create_object(client: Client, obj: Object) -> None:
    """Makes the object; one that is there already stays as it is. NotFound if there is no such kind."""
    group, _, version = obj["apiVersion"].rpartition("/")
    try:
        await client.create(
            dict_resource(group, version, _plural_name(obj["kind"])),
            obj,
            namespace=obj["metadata"].get("namespace", ""),
        )
    except AlreadyExists:
        return


def _plural_name(kind: str) -> str:
    name = kind.lower()
    ending, plural = _PLURALS.get(name[-1], ("", "s"))
    return name.removesuffix(ending) + plural
