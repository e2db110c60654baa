"""Against whom the cases run: the lab, within the process and over HTTPS, or the cluster of a kubeconfig.

``pytest tests/conformance`` plays to the lab; ``pytest tests/conformance --api kubeconfig`` to the cluster that
KUBECONFIG names. A KUBECONFIG alone is not enough: running all tests must never touch somebody's cluster.
"""

import os
from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from support.conformance.custom_resources import definition, letters, served
from support.conformance.targets import api, lab, parametrize_target, policies, transport
from support.conformance.webhooks import Answers, Hooks, address_towards
from support.lab import https_server

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig

__all__ = ["api", "lab", "policies", "transport"]


def pytest_configure(config):
    config.addinivalue_line("markers", "source(where): the upstream file, KEP or page that says so")


def pytest_generate_tests(metafunc):
    parametrize_target(metafunc)


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


@pytest_asyncio.fixture(loop_scope="session")
async def widgets(api):
    """A resource of this case, and its kind."""
    plural = letters()
    made = await served(api, definition(plural, plural.title()))
    yield made, plural.title()
