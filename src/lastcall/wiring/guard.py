"""Connects the guard to its environment: the webhook's server, the cluster, providers, signals and status pages."""

import asyncio
import contextlib
import hmac
import logging
import os
import signal
import ssl
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from random import SystemRandom
from typing import Any, Final

import msgspec

from lastcall.adapters.guard.control_addresses import ControlAddresses
from lastcall.adapters.guard.namespace_access import AddressPolicy, KubeNamespaceAccess
from lastcall.adapters.guard.pod_exec import PodExec
from lastcall.adapters.guard.provider_registry import ProviderRegistry
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig, tls
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.guard_facts import KubeGuardFacts
from lastcall.adapters.kube.guard_policies import KubeGuardPolicies
from lastcall.adapters.kube.guard_records import COMPONENT, KubeGuardActions, KubeGuardRecords
from lastcall.adapters.kube.https_transport import HttpsTransport, TransportLimits
from lastcall.adapters.kube.impersonation import ImpersonatingTransport
from lastcall.adapters.kube.informer import ObjectKey
from lastcall.adapters.kube.leader_election import LeaderElector
from lastcall.adapters.kube.node_shutdown_marks import NodeShutdownMarks
from lastcall.adapters.kube.pod_surroundings import KubePodSurroundings
from lastcall.adapters.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from lastcall.adapters.telemetry.guard_metrics import GuardMetrics
from lastcall.adapters.telemetry.status_server import TEXT, alive_answer, serve_status
from lastcall.adapters.webhook.http_exchange import WebhookReply, WebhookRequest
from lastcall.adapters.webhook.https_server import WebhookServer
from lastcall.adapters.webhook.renewal_process import renew_in_process
from lastcall.adapters.webhook.serving_certificate import ServingCertificate
from lastcall.adapters.webhook.serving_secret import ServingSecret
from lastcall.adapters.webhook.webhook_configuration import WebhookConfiguration, WebhookConfigurations
from lastcall.adapters.webhook.webhook_connection import RunningAnswer
from lastcall.aio import wait_first
from lastcall.errors import InvalidInput, LastcallError
from lastcall.guard.controller.guarded_pod_controller import GuardedPodController, GuardedPodPorts
from lastcall.guard.controller.pod_creation_service import PodCreationService
from lastcall.guard.controller.preparation_controller import PreparationController
from lastcall.guard.controller.preparation_worker import WorkerPorts
from lastcall.guard.controller.review_service import ReviewService
from lastcall.guard.controller.uninstallation import Uninstallation
from lastcall.guard.decisions.verdict import RemovalVerdict
from lastcall.model.admission import Removal, RemovalKind
from lastcall.model.eviction_request_mode import EvictionRequestMode
from lastcall.model.guard_config import DEFAULTS, GuardConfig
from lastcall.model.guard_policy import PreparationState
from lastcall.names import GUARD_UNINSTALL
from lastcall.ports.guard import NamespaceAccess
from lastcall.wiring.eviction_requests import make_eviction_loop
from lastcall.wiring.instance import instance_identity

SERVICE: Final = "lastcall-guard"
PATH: Final = "/review"
"""The path of the webhook; the secret token follows it."""
UNINSTALL_PATH: Final = "/uninstall"
"""The same of the webhook that uninstallations wait for."""
SETTLE_CONFIGURATION: Final = "lastcall-settle"
SETTLE_PATH: Final = "/settle"
"""The same of the webhook for new pods."""

_CONNECTIONS = 16
"""To the API server at a time. Each has a buffer of 256 KiB, and an answer under way that may be as large as a namespace."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class GuardSettings:
    """The command line's settings. Addresses are host and port; ``metrics`` None for no status page."""

    kubeconfig: str = ""
    """Empty: kubectl's rules apply, then the pod's own service account."""
    context: str = ""
    webhook: tuple[str, int] = ("0.0.0.0", 9443)
    metrics: tuple[str, int] | None = None
    config: GuardConfig = DEFAULTS
    names: Sequence[str] = ()
    """More names of the certificate than those of the Service."""
    allowed_networks: Sequence[IPv4Network | IPv6Network] = ()
    """Addresses that providers may connect to whatever the rules say."""
    client_ca_file: str = ""
    """The authorities (PEM) of certificates that show a client to be the API server; empty for none."""
    drain_seconds: float = 10.0
    """How long requests are answered after SIGTERM, until no API server sends any more."""
    eviction_requests: EvictionRequestMode = EvictionRequestMode.OFF
    settle_seconds: int | None = None
    """The sleep of new pods where neither namespace nor pod gives a number; None: no webhook for new pods."""
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


class GuardProgram:
    """The guard as a process (``run``), or within another one (``run_until_cancelled``)."""

    def __init__(self, settings: GuardSettings) -> None:
        self._settings = settings
        self._clock = clock = SystemClock()
        self._random = random = SystemRandom()
        me, namespace = instance_identity(settings.environ), settings.config.namespace
        self._access = kubeconfig.find_access(
            clock, settings.environ, kubeconfig=settings.kubeconfig, context=settings.context
        )
        self._http = HttpsTransport(
            self._access.endpoint, self._access.credentials, limits=TransportLimits(connections=_CONNECTIONS)
        )
        self._client = client = Client(self._http, manager=COMPONENT)
        releaser = Client(ImpersonatingTransport(self._http, settings.config.releaser), manager=COMPONENT)
        self._election = LeaderElector(
            Client(self._http.urgent, manager=COMPONENT),
            ObjectKey(namespace, COMPONENT),
            me,
            clock=clock,
            random=random,
        )
        facts, records = KubeGuardFacts(client, clock, settings.config), KubeGuardRecords(client)
        self._addresses = AddressPolicy(
            control=ControlAddresses(client, clock, hosts=[self._access.endpoint.host]).read,
            allowed=settings.allowed_networks,
        )
        self._policies = KubeGuardPolicies(client, clock, random)
        self._metrics = GuardMetrics(
            operations=[one.value for one in RemovalKind], states=[one.value for one in PreparationState]
        )
        self._reviews = ReviewService(facts, records, clock, self._observe_review, settings.config)
        actions = KubeGuardActions(client, releaser, clock, instance=me)
        self._shutdowns = NodeShutdownMarks(client, clock, random)
        providers = ProviderRegistry(self._open_access)
        guarded_pods = GuardedPodPorts(
            facts=facts,
            records=records,
            actions=actions,
            providers=providers,
            policies=self._policies,
            shutdowns=self._shutdowns,
            clock=clock,
        )
        self._guarded_pods = GuardedPodController(guarded_pods)
        ports = WorkerPorts(
            facts=facts,
            records=records,
            actions=actions,
            providers=providers,
            clock=clock,
        )
        self._preparations = PreparationController(ports, self._policies)
        self._evictions = make_eviction_loop(
            settings.eviction_requests,
            client,
            facts=facts,
            records=records,
            policies=self._policies,
            clock=clock,
            random=random,
        )
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        if settings.client_ca_file:
            tls.verify_clients(self._context, settings.client_ca_file, "--client-ca-file")
        self._server = WebhookServer(self._answer_request, self._context)
        names = [f"{SERVICE}.{namespace}.svc", f"{SERVICE}.{namespace}", *settings.names]
        secret = ServingSecret(client, namespace, names, clock=clock, random=random, renew=renew_in_process)
        holds = WebhookConfiguration(client, VALIDATING_WEBHOOKS, SERVICE, path=PATH)
        self._uninstallation = Uninstallation(holds, facts, records, clock)
        end = WebhookConfiguration(client, VALIDATING_WEBHOOKS, GUARD_UNINSTALL, path=UNINSTALL_PATH)
        others = [end]
        self._creations: PodCreationService | None = None
        if settings.settle_seconds is not None:
            surroundings = KubePodSurroundings(client, clock)
            self._creations = PodCreationService(surroundings, default=settings.settle_seconds)
            settling = WebhookConfiguration(client, MUTATING_WEBHOOKS, SETTLE_CONFIGURATION, path=SETTLE_PATH)
            others.append(settling)
        told = WebhookConfigurations(holds, others)
        self._certificate = ServingCertificate(secret, told, self._context, clock)

    async def run(self) -> None:
        """Runs until SIGTERM or SIGINT, then answers for a while so that no request is lost."""
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopped.set)
        await wait_first(self._drain_after(stopped), self.run_until_cancelled())

    async def run_until_cancelled(self) -> None:
        """Runs until cancelled, then releases the leader election lease, and closes its connections."""
        host, port = self._settings.webhook
        try:
            await self._certificate.load()
            chosen = await self._server.start(host, port)
            log.info("the webhook is at https://%s:%s%s", host, chosen, PATH)
            async with self._status_page():
                await wait_first(self._election.lead(self._lead), self._certificate.run())
        except OSError as error:
            raise LastcallError(f"--webhook-bind-address {host}:{port}: {error.strerror or error}") from error
        finally:
            self._server.close()
            self._http.close()

    async def _drain_after(self, stopped: asyncio.Event) -> None:
        await stopped.wait()
        log.info("ends: requests are answered for %g s more", self._settings.drain_seconds)
        await self._server.drain(self._settings.drain_seconds)

    # -- the leader ----------------------------------------------------------------------------------------------------

    async def _lead(self) -> None:
        evictions = [self._evictions.run()] if self._evictions else []
        await wait_first(
            self._policies.run(), self._shutdowns.run(), self._preparations.run(), self._guarded_pods.run(), *evictions
        )

    def _open_access(self, namespace: str) -> NamespaceAccess:
        execute = PodExec(self._access.endpoint, self._access.credentials).execute
        return KubeNamespaceAccess(self._client, namespace, addresses=self._addresses, execute=execute)

    # -- the webhook ---------------------------------------------------------------------------------------------------

    def _answer_request(self, request: WebhookRequest) -> WebhookReply | RunningAnswer:
        """A request that knows the token, or has a certificate, comes from the API server.

        Any other is answered, and starts nothing.
        """
        path, _, token = request.path.removeprefix("/").partition("/")
        known = self._certificate.path_token
        knows_token = bool(known) and hmac.compare_digest(token.encode(), known.encode())
        is_authenticated = bool(request.peer) or knows_token
        if f"/{path}" == SETTLE_PATH and self._creations:
            return _reply_later(self._creations.answer(request.body, is_authenticated=is_authenticated))
        if f"/{path}" == UNINSTALL_PATH:
            return _reply_later(self._uninstallation.answer(request.body, is_authenticated=is_authenticated))
        if f"/{path}" != PATH:
            return WebhookReply(404, f"there is: {PATH}\n".encode())
        try:
            answer = self._reviews.begin_answer(request.body, is_authenticated=is_authenticated)
        except InvalidInput as error:
            return _refuse_unreadable(error)
        return _reply(answer) if isinstance(answer, bytes) else _reply_later(answer)

    # -- status pages --------------------------------------------------------------------------------------------------

    def _observe_review(self, removal: Removal, verdict: RemovalVerdict, seconds: float) -> None:
        self._metrics.observe_review(
            removal.kind.value, allowed=verdict.allowed, reason=verdict.reason, seconds=seconds
        )

    def _status_page(self) -> contextlib.AbstractAsyncContextManager[None]:
        paths = {"/metrics": self._metrics_page, "/healthz": alive_answer, "/readyz": self._readiness_page}
        return serve_status(paths, self._settings.metrics)

    def _metrics_page(self) -> tuple[int, str, bytes]:
        entries = [one for policy in self._policies.by_key.values() for one in policy.status.pods]
        held = Counter(one.state.value for one in entries if one.state is not PreparationState.RELEASED)
        self._metrics.set_status(leads=self._election.leads, held=held if self._election.leads else {})
        return 200, "text/plain; version=0.0.4; charset=utf-8", self._metrics.render_text()

    def _readiness_page(self) -> tuple[int, str, bytes]:
        if self._server.is_draining:
            return 503, TEXT, b"it ends\n"
        sentence = "it leads" if self._election.leads else f"{self._election.holder or 'nobody'} leads"
        return 200, TEXT, f"{sentence}\n".encode()


def _reply(answer: bytes | dict[str, Any]) -> WebhookReply:
    return WebhookReply(200, answer if isinstance(answer, bytes) else msgspec.json.encode(answer))


async def _reply_later(answer: Coroutine[Any, Any, bytes | dict[str, Any]]) -> WebhookReply:
    try:
        return _reply(await answer)
    except InvalidInput as error:
        return _refuse_unreadable(error)


def _refuse_unreadable(error: InvalidInput) -> WebhookReply:
    return WebhookReply(400, f"{error}\n".encode())


async def run_guard(settings: GuardSettings) -> None:
    """Runs ``lastcall guard run``."""
    await GuardProgram(settings).run()
