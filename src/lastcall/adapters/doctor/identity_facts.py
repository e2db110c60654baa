"""Whether the identities that an agent on this host would use have their rights, for ``lastcall doctor``."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from lastcall.adapters.doctor.priority_facts import node_name
from lastcall.adapters.doctor.probes import await_probe
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.identity_check import NeededRight, find_problems, node_rights, own_rights
from lastcall.adapters.kube.kubeconfig import ClusterAccess, find_access
from lastcall.adapters.kube.node_access import NoIdentity, find_node_access
from lastcall.doctor.facts import UnknownFact


async def check_node_identity(kubeconfig: str, root: Path, name: str = "") -> tuple[str, ...] | UnknownFact | None:
    """Why the identity of ``find_node_access`` does not suffice for the Node ``name``; None if there is none.

    Without a name it is the one under which the kubelet here registers its Node.
    """
    name = name or await asyncio.to_thread(node_name, root)
    return await await_probe(_ask_as_node(name, kubeconfig, root))


async def check_own_identity(kubeconfig: str, root: Path, name: str = "") -> tuple[str, ...] | UnknownFact:
    """The same for the agent's own, of ``--kubeconfig``; without one, of its pod."""
    name = name or await asyncio.to_thread(node_name, root)
    access = await asyncio.to_thread(find_access, SystemClock(), os.environ, kubeconfig=kubeconfig)
    return await await_probe(_ask(access, own_rights(name), name))


async def _ask_as_node(name: str, kubeconfig: str, root: Path) -> tuple[str, ...] | None:
    try:
        access = await asyncio.to_thread(find_node_access, SystemClock(), os.environ, kubeconfig=kubeconfig, root=root)
    except NoIdentity:
        return None
    return await _ask(access, node_rights(name), name)


async def _ask(access: ClusterAccess, rights: Sequence[NeededRight], name: str) -> tuple[str, ...]:
    http = HttpsTransport(access.endpoint, access.credentials)
    try:
        return await find_problems(Client(http, manager="lastcall-doctor"), access.credentials, rights, node=name)
    finally:
        http.close()
