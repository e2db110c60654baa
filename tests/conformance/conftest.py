"""Against whom the cases run: the lab, within the process and over HTTPS, or the cluster of a kubeconfig.

``pytest tests/conformance`` plays to the lab; ``pytest tests/conformance --api kubeconfig`` to the cluster that
KUBECONFIG names. A KUBECONFIG alone is not enough: running all tests must never touch somebody's cluster.
"""

import os
from pathlib import Path
from random import Random

import pytest
import pytest_asyncio
import yaml
from support.conformance.admission_policies import Policies
from support.conformance.api_client import Api
from support.conformance.custom_resources import definition, letters, served
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


def pytest_configure(config):
    config.addinivalue_line("markers", "source(where): the upstream file, KEP or page that says so")


def pytest_generate_tests(metafunc):
    if "target" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--api", default="lab")
        metafunc.parametrize("target", LAB if chosen == "lab" else ["kubeconfig"], scope="session")


def pytest_collection_modifyitems(config, items):
    """All cases share one server, as they would share a cluster; and each says where its rule comes from."""
    differences = yaml.safe_load((Path(__file__).parent / "differences.yaml").read_text()) or {}
    asked = config.getoption("--api", default="lab")
    for item in items:
        if item.path.parent != Path(__file__).parent:
            continue
        item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
        if not any(item.iter_markers("source")):
            raise pytest.UsageError(f"{item.nodeid} does not name its source")
        if asked == "lab" and item.originalname in differences:
            reason = differences[item.originalname]
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True, raises=AssertionError))


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


@pytest.fixture
def policies(api):
    """Admission policies of this case."""
    return Policies(api)


@pytest_asyncio.fixture(loop_scope="session")
async def widgets(api):
    """A resource of this case, and its kind."""
    plural = letters()
    made = await served(api, definition(plural, plural.title()))
    yield made, plural.title()
