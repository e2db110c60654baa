"""What our manifests do in an API server: in the lab, or in any cluster with ``--api kubeconfig``."""

from pathlib import Path

import pytest
from support.common.run_order import select_tests_of
from support.conformance.targets import api, hooks, lab, parametrize_target, policies, transport, webhook_server

__all__ = ["api", "hooks", "lab", "policies", "transport", "webhook_server"]


def pytest_generate_tests(metafunc):
    parametrize_target(metafunc)


def pytest_collection_modifyitems(config, items):
    """All cases share one server, as they would share a cluster."""
    for item in select_tests_of(Path(__file__).parent, items):
        item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
