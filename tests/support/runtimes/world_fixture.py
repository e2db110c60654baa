"""The fixture ``world``: a test that asks for it runs once against each pod runtime."""

import importlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.runtimes.runtime_world import World


@pytest.fixture(params=["processes", pytest.param("containerd", marks=pytest.mark.xdist_group("containerd-worlds"))])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    opened = _containerd if request.param == "containerd" else _processes
    async with opened(tmp_path) as world:
        yield world


def _processes(tmp_path):
    from support.runtimes.process_world import processes_world

    return processes_world(tmp_path)


def _containerd(tmp_path):
    try:
        module = importlib.import_module("support.runtimes.containerd_world")
    except ModuleNotFoundError as error:
        pytest.skip(f"no containerd world: {error}")
    why_not = module.why_not()
    if why_not:
        pytest.skip(why_not)
    return module.containerd_world(tmp_path)
