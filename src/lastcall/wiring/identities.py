"""Watches the agent's two identities for the API server: a lost one is logged and shown as a metric, before it is needed.

Most of what they are for happens at a shutdown only, when it is too late to mend them.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from typing import NamedTuple

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.credentials import CredentialSource
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.identity_check import NeededRight, find_problems, node_rights, own_rights
from lastcall.adapters.kube.kubeconfig import find_access
from lastcall.aio import cancel_and_wait
from lastcall.errors import LastcallError
from lastcall.ports.node import Clock
from lastcall.wiring.own_pods import OwnPodSources

CHECK_SECONDS = 600.0
"""Seconds between two checks: three requests or fewer for each identity."""

AGAIN_SECONDS = 30.0
"""Seconds before the next check while something is wrong, or the API server does not answer."""

FIRST_SECONDS = 1.0
"""Seconds before the first check: the node's identity is looked for when the agent starts."""

log = logging.getLogger(__name__)


class Identity(NamedTuple):
    """An identity with the rights that are needed of it."""

    client: Client
    credentials: CredentialSource
    rights: tuple[NeededRight, ...]


class IdentityWatch:
    """Checks identities by their names. ``find`` returns None as long as there is none.

    ``report`` is called with the name and whether the identity suffices, after each check that got an answer.
    """

    def __init__(
        self,
        find: Mapping[str, Callable[[], Identity | None]],
        report: Callable[[str, bool], None],
        *,
        node: str,
        clock: Clock,
    ) -> None:
        self._find = find
        self._report = report
        self._node = node
        self._clock = clock
        self._problems: dict[str, tuple[str, ...]] = {}

    async def run(self) -> None:
        """Checks all without end; cancel it to stop."""
        await self._clock.sleep(FIRST_SECONDS)
        while True:
            good = [await self._check(name) for name in self._find]
            await self._clock.sleep(CHECK_SECONDS if all(good) else AGAIN_SECONDS)

    async def _check(self, name: str) -> bool:
        found = self._find[name]()
        try:
            problems = await self._find_problems(found) if found else ("there is none",)
        except LastcallError as error:
            log.debug("the %s identity was not checked: %s", name, error)
            return False
        self._note(name, problems)
        return not problems

    async def _find_problems(self, found: Identity) -> tuple[str, ...]:
        return await find_problems(found.client, found.credentials, found.rights, node=self._node)

    def _note(self, name: str, problems: tuple[str, ...]) -> None:
        self._report(name, not problems)
        before = self._problems.get(name, ())
        if problems and problems != before:
            log.warning("the %s identity for the API server does not suffice: %s", name, "; ".join(problems))
        elif before and not problems:
            log.info("the %s identity for the API server suffices again", name)
        self._problems[name] = problems


@contextlib.asynccontextmanager
async def agent_identities(
    own_pods: OwnPodSources,
    report: Callable[[str, bool], None],
    node: str,
    *,
    kubeconfig: str,
    in_cluster: bool,
) -> AsyncIterator[None]:
    """Checks an agent's identities while the context lasts: the node's, and its own if one is configured."""
    clock = SystemClock()
    async with contextlib.AsyncExitStack() as opened:
        find: dict[str, Callable[[], Identity | None]] = {"node": lambda: _node_identity(own_pods, node)}
        if kubeconfig or in_cluster:
            own = _open_own(opened, clock, kubeconfig, node)
            find["own"] = lambda: own
        watch = IdentityWatch(find, report, node=node, clock=clock)
        running = asyncio.create_task(watch.run(), name="identities")
        opened.push_async_callback(cancel_and_wait, running)
        yield


def _node_identity(own_pods: OwnPodSources, node: str) -> Identity | None:
    if own_pods.client is None or own_pods.access is None:
        return None
    return Identity(own_pods.client, own_pods.access.credentials, node_rights(node))


def _open_own(opened: contextlib.AsyncExitStack, clock: Clock, kubeconfig: str, node: str) -> Identity | None:
    """None if its configuration cannot be read."""
    try:
        access = find_access(clock, os.environ, kubeconfig=kubeconfig)
    except LastcallError as error:
        log.warning("the own identity for the API server cannot be read: %s", error)
        return None
    http = HttpsTransport(access.endpoint, access.credentials)
    opened.callback(http.close)
    return Identity(Client(http, manager="lastcall-agent"), access.credentials, own_rights(node))
