"""Libraries that a test needs and that may not be installed, found without an import: its costs are for the tests that use it."""

import importlib.util

import pytest


def need_library(name, reason):
    """Skips the test, or at the top of a module all of its tests, if the library is not installed."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(reason, allow_module_level=True)
