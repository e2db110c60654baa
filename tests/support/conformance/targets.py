"""Fixtures of suites that ask either the lab, within the process and over HTTPS, or the cluster of a kubeconfig.

``--api kubeconfig`` chooses the cluster that KUBECONFIG names. A KUBECONFIG alone is not enough: running all tests must
never touch somebody's cluster.
"""

import os
from random import Random

import pytest
import pytest_asyncio
from support.conformance.admission_policies import Policies
from support.conformance.api_client import Api
from support.conformance.webhooks import Answers, Hooks, address_towards
from support.lab import https_server

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.credentials import Credential, StaticCredentials
from lastcall.adapters.kube.https_transport import HttpsTransport, ServerEndpoint
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.apiserver.server.in_process import InProcessTransport

TOKEN = "conformance"
LAB = ("lab", "lab-https")


def parametrize_target(metafunc):
    """For a conftest's ``pytest_generate_tests``."""
    if "target" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--api", default="lab")
        metafunc.parametrize("target", LAB if chosen == "lab" else ["kubeconfig"], scope="session")


@pytest.fixture(scope="session")
def lab():
    """One lab for all cases, without controllers."""
    server = ApiServer(SystemClock(), Random(1), authorization=AuthorizationMode.RBAC)
    server.identities.add(TOKEN, "conformance", ("system:masters", "system:authenticated"))
    return server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def transport(target, request, tmp_path_factory):
    """How the server is asked."""
    if target == "kubeconfig":
        access = kubeconfig.find_access(SystemClock(), os.environ)
        http = HttpsTransport(access.endpoint, access.credentials)
        yield http
        http.close()
        return
    lab = request.getfixturevalue("lab")
    if target == "lab":
        yield InProcessTransport(lab)
        return
    async with https_server.serving(lab, tmp_path_factory.mktemp("front"), lab.streams.serve_upgrade) as (
        url,
        authority,
    ):
        http = HttpsTransport(
            ServerEndpoint.from_url(url, authority=authority), StaticCredentials(Credential(token=TOKEN))
        )
        yield http
        http.close()


@pytest_asyncio.fixture(loop_scope="session")
async def api(transport, target):
    """The API, with a namespace for this case alone."""
    api = Api(transport, target)
    await api.begin()
    yield api
    await api.end()


@pytest.fixture
def policies(api):
    """Admission policies of this case."""
    return Policies(api)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def webhook_server(target, tmp_path_factory):
    """One HTTPS server for the webhooks of all cases."""
    address = "127.0.0.1"
    if target == "kubeconfig":
        endpoint = kubeconfig.find_access(SystemClock(), os.environ).endpoint
        address = address_towards(endpoint.host, endpoint.port)
    answers = Answers()
    directory = tmp_path_factory.mktemp("webhooks")
    async with https_server.serving(answers, directory, hosts=(address,), address=address) as (url, authority):
        yield answers, url, authority


@pytest_asyncio.fixture(loop_scope="session")
async def hooks(api, webhook_server):
    """Admission webhooks of this case."""
    answers, url, authority = webhook_server
    return Hooks(api, url, authority, answers)
