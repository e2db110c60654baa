"""Access to the cluster of a kubeconfig, for verbs with a few requests."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from lastcall.aio import timeout
from lastcall.errors import ApiNotPermitted, LastcallError, NotConnected

if TYPE_CHECKING:
    from lastcall.adapters.kube.client import Client

_COMPLETION_SECONDS = 2.0

_CONNECT_MEND = "is it up, and do --kubeconfig and --context name the right cluster?"


def cluster_options(function: Callable[..., None]) -> Callable[..., None]:
    """The options ``kubeconfig`` and ``context``; None if kubectl's own rules apply."""
    context = click.option("--context", metavar="NAME", help="A context in it.  [default: the current one]")
    file = click.option("--kubeconfig", metavar="FILE", help="As kubectl has it.  [default: as kubectl finds it]")
    return file(context(function))


@contextlib.asynccontextmanager
async def open_client(
    kubeconfig: str | None, context: str | None, *, manager: str, drains: bool = False
) -> "AsyncIterator[Client]":
    """A client, closed at the end; it writes as field manager ``manager``. InvalidInput if there is no such cluster.

    A refusal that leaves the body says which role has the right; ``drains``: to drain a node.
    """
    from lastcall.adapters.host.clock import SystemClock
    from lastcall.adapters.kube import kubeconfig as files
    from lastcall.adapters.kube.client import Client
    from lastcall.adapters.kube.https_transport import HttpsTransport
    from lastcall.adapters.kube.refusals import explain_refusal

    access = files.find_access(SystemClock(), os.environ, kubeconfig=kubeconfig or "", context=context or "")
    transport = HttpsTransport(access.endpoint, access.credentials)
    try:
        yield Client(transport, manager=manager)
    except ApiNotPermitted as error:
        raise ApiNotPermitted(explain_refusal(error, drains=drains), code=error.code, reason=error.reason) from error
    except NotConnected as error:
        raise NotConnected(f"the API server is not reached: {error}; {_CONNECT_MEND}") from error
    finally:
        transport.close()


def find_authority(kubeconfig: str | None, context: str | None) -> str:
    """The authority that has signed the API server's certificate, as PEM; "" if the kubeconfig names none."""
    from lastcall.adapters.host.clock import SystemClock
    from lastcall.adapters.kube import kubeconfig as files

    access = files.find_access(SystemClock(), os.environ, kubeconfig=kubeconfig or "", context=context or "")
    return access.endpoint.authority


def complete_node(ctx: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    """The names of the cluster's nodes for the Tab key; none if the cluster does not answer within two seconds."""

    async def list_names() -> list[str]:
        from lastcall.adapters.kube.node_pods import list_node_names

        access = open_client(ctx.params.get("kubeconfig"), ctx.params.get("context"), manager="lastcall")
        async with timeout(_COMPLETION_SECONDS), access as client:
            return await list_node_names(client)

    try:
        names = asyncio.run(list_names())
    except (LastcallError, TimeoutError, OSError):
        return []
    return [CompletionItem(name) for name in sorted(names) if name.startswith(begun)]
