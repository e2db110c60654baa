"""The contract that holds modules with the mark "(pure)"."""

import importlib.util
from pathlib import Path

import pytest
from grimp import ImportGraph

ROOT = Path(__file__).parents[2]

SPEC = importlib.util.spec_from_file_location("pure_contract", ROOT / "tools/pure_contract.py")
pure_contract = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(pure_contract)


@pytest.fixture
def graph(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src/shop").mkdir(parents=True)
    (tmp_path / "src/shop/__init__.py").write_text('"""A shop."""\n')
    (tmp_path / "src/shop/prices.py").write_text('"""Prices (pure)."""\n')
    (tmp_path / "src/shop/till.py").write_text('"""The till."""\n')
    graph = ImportGraph()
    for module in ("shop", "shop.prices", "shop.till", "asyncio", "math"):
        graph.add_module(module, is_squashed=not module.startswith("shop"))
    graph.add_import(importer="shop.till", imported="asyncio")
    graph.add_import(importer="shop.prices", imported="math")
    return graph


def check(graph):
    contract = pure_contract.PureModulesContract(
        name="pure", session_options={}, contract_options={"forbidden_modules": ["asyncio", "os"]}
    )
    return contract.check(graph, verbose=False)


def test_what_is_marked_and_does_no_io_is_kept(graph):
    assert check(graph).kept


def test_what_is_marked_and_imports_asyncio_breaks_it(graph):
    graph.add_import(importer="shop.prices", imported="asyncio")
    found = check(graph)
    assert (found.kept, found.metadata["faults"]) == (False, ["shop.prices -> asyncio"])


def test_no_marked_module_at_all_breaks_it(graph, tmp_path):
    (tmp_path / "src/shop/prices.py").write_text('"""Prices."""\n')
    assert not check(graph).kept


def test_the_mark_of_this_project_is_found():
    assert pure_contract.is_marked("lastcall.failover.limits.storms", ROOT / "src")
    assert not pure_contract.is_marked("lastcall.graceful.agent", ROOT / "src")
