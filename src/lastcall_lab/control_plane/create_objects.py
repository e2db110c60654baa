"""Creates objects of manifests through the API."""

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import dict_resource
from lastcall.errors import AlreadyExists
from lastcall_lab.apiserver.values.request import Object

_PLURALS = {"s": ("s", "ses"), "y": ("y", "ies")}
"""Endings of kinds whose plural does not simply add an s."""


async def create_object(client: Client, obj: Object) -> None:
    """Creates the object; an existing one stays as it is. Raises NotFound if there is no such kind."""
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
