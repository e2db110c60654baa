import pytest
from support.kube.api_servers import TARGETS, kube_cluster
from support.runtimes.world_fixture import world

__all__ = ["cluster", "world"]


def pytest_generate_tests(metafunc):
    """A KUBECONFIG alone is not enough: running all tests must never touch somebody's cluster."""
    if "api_target" in metafunc.fixturenames:
        if metafunc.config.getoption("--api") == "kubeconfig":
            metafunc.parametrize("api_target", ["kubeconfig"])
            return
        skipped = pytest.mark.skip(reason="only --api kubeconfig asks the cluster that KUBECONFIG names")
        metafunc.parametrize("api_target", [*TARGETS[:2], pytest.param(TARGETS[2], marks=skipped)])


@pytest.fixture
async def cluster(api_target, tmp_path):
    async with kube_cluster(api_target, tmp_path) as cluster:
        yield cluster
