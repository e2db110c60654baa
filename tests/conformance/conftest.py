"""Against whom the cases run: the lab, within the process and over HTTPS, or the cluster of a kubeconfig.

``pytest tests/conformance`` plays to the lab; ``pytest tests/conformance --api kubeconfig`` to the cluster that
KUBECONFIG names. A KUBECONFIG alone is not enough: running all tests must never touch somebody's cluster.
"""

from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from support.common.run_order import select_tests_of
from support.conformance.custom_resources import definition, letters, served
from support.conformance.targets import api, hooks, lab, parametrize_target, policies, transport, webhook_server

__all__ = ["api", "hooks", "lab", "policies", "transport", "webhook_server"]


def pytest_configure(config):
    config.addinivalue_line("markers", "source(where): the upstream file, KEP or page that says so")


def pytest_generate_tests(metafunc):
    parametrize_target(metafunc)


def pytest_collection_modifyitems(config, items):
    """All cases share one server, as they would share a cluster; and each says where its rule comes from."""
    differences = yaml.safe_load((Path(__file__).parent / "differences.yaml").read_text()) or {}
    asked = config.getoption("--api", default="lab")
    for item in select_tests_of(Path(__file__).parent, items):
        item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
        if not any(item.iter_markers("source")):
            raise pytest.UsageError(f"{item.nodeid} does not name its source")
        if asked == "lab" and item.originalname in differences:
            reason = differences[item.originalname]
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True, raises=AssertionError))


@pytest_asyncio.fixture(loop_scope="session")
async def widgets(api):
    """A resource of this case, and its kind."""
    plural = letters()
    made = await served(api, definition(plural, plural.title()))
    yield made, plural.title()
