"""Documents of whatever shape, and what is said about those that are refused."""

import pytest
from hypothesis import strategies as st

from lastcall.errors import InvalidInput

LIST = "shutdownGracePeriodByPodPriority"
FIELDS = [
    *("shutdownGracePeriod", "shutdownGracePeriodCriticalPods", LIST, "featureGates", "mode", "staticPodPath"),
    *("priority", "shutdownGracePeriodSeconds", "GracefulNodeShutdown", "GracefulNodeShutdownBasedOnPodPriority"),
    *("kind", "items", "metadata", "name", "namespace", "labels", "spec", "status", "containers", "initContainers"),
    *("lifecycle", "preStop", "exec", "command", "sleep", "seconds", "httpGet", "port", "nodeName", "phase"),
]
SHAPES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["30s", "1ms", "x", "Pod", "List", "v1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
    max_leaves=30,
)


def message(call, data):
    """What is said of that document in the file ``f``."""
    with pytest.raises(InvalidInput) as caught:
        call(data if isinstance(data, bytes) else data.encode(), "f")
    assert caught.value.exit_code == 2
    return str(caught.value)
