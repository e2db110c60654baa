"""The user's own cluster for ``lastcall simulate``: from a file by kubectl, or live."""

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import click
import msgspec

from lastcall.cli import cluster_access, options
from lastcall.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lastcall.adapters.kube.client import Client
    from lastcall_lab.apiserver.resources.scheme import ServedResource
    from lastcall_lab.simulation.recorded_cluster.state_file import RecordedState


class OwnCluster(NamedTuple):
    """The source of the cluster: a ``file`` (``-`` is standard input), or ``live`` by a kubeconfig."""

    file: str | None
    live: bool
    kubeconfig: str | None
    context: str | None

    @property
    def source_option(self) -> str:
        """The option that was used; None without one. UsageError if the options contradict each other."""
        if (self.kubeconfig or self.context) and not self.live:
            raise click.UsageError("--kubeconfig and --context say which cluster --from-cluster means: it is not given")
        if self.live and self.file:
            raise click.UsageError("--state is a file, --from-cluster the cluster as it is: give one of them")
        return "--from-cluster" if self.live else "--state" if self.file else ""

    def read_state(self) -> "RecordedState":
        """Reads the cluster's state. InvalidInput lists every object that cannot be simulated, and why."""
        from lastcall_lab.simulation.recorded_cluster.state_file import read_state

        if self.live:
            return read_state(asyncio.run(self._fetch_objects()), "the cluster")
        file = self.file or "-"
        return read_state(options.read_content(file), "standard input" if file == "-" else file)

    async def _fetch_objects(self) -> bytes:
        async with cluster_access.open_client(self.kubeconfig, self.context, manager="lastcall-simulate") as client:
            return await list_objects(client)


async def list_objects(client: "Client") -> bytes:
    """A List, as JSON, of all objects of the simulated kinds; none of kinds that the cluster does not know.

    LastcallError if one of them may not be listed, or the API server does not answer.
    """
    from lastcall.adapters.kube.resources import dict_resource
    from lastcall_lab.simulation.recorded_cluster.kubectl_items import KINDS

    items: list[msgspec.Raw] = []
    for kind in KINDS.values():
        try:
            found, _ = await client.list_raw(dict_resource(kind.group, kind.version, kind.plural))
        except NotFound:
            continue
        items += _with_kind(found, kind)
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})


def _with_kind(items: "Sequence[msgspec.Raw]", resource: "ServedResource") -> "Iterator[msgspec.Raw]":
    """Adds the kind to the items: an API server leaves it out, because the list states it."""
    for item in items:
        fields = msgspec.json.decode(item, type=dict[str, msgspec.Raw])
        fields["apiVersion"] = msgspec.Raw(msgspec.json.encode(resource.api_version))
        fields["kind"] = msgspec.Raw(msgspec.json.encode(resource.kind))
        yield msgspec.Raw(msgspec.json.encode(fields))
