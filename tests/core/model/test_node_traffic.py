"""The page of a node's traffic: what an agent writes, a reader reads, on its own clock."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from lastcall.model.node_traffic import NodeTraffic, PodConnections, read_traffic, render_traffic
from lastcall.model.proxy_sync import ProxySync

moments = st.floats(1.7e9, 1.8e9)
readings = st.builds(
    NodeTraffic,
    st.none() | st.builds(ProxySync, moments, moments, st.floats(0, 10), st.integers(0, 9)),
    st.none() | st.floats(0, 60),
    st.none()
    | st.builds(
        PodConnections,
        st.dictionaries(st.ip_addresses().map(str).filter(lambda one: "%" not in one), st.integers(0, 10**6)),
        st.booleans(),
    ),
    st.none() | st.dictionaries(st.ip_addresses(v=4).map(str), st.booleans(), min_size=1),
)


def parse(page):
    families = text_string_to_metric_families(page.decode())
    return [(one.name, one.labels, one.value) for family in families for one in family.samples]


@given(readings, moments)
def test_what_is_written_is_read(found, at):
    assert read_traffic(parse(render_traffic(found, at)), at=at) == found


def test_times_are_the_readers():
    """The reader was started 100 seconds ago when the node's clock said 1,700,000,000."""
    page = render_traffic(NodeTraffic(ProxySync(1.7e9 - 3, 1.7e9 - 2, 0.5)), 1.7e9)
    assert read_traffic(parse(page), at=100.0).sync == ProxySync(97, 98, 0.5)


def test_a_page_without_its_time_is_none():
    page = render_traffic(NodeTraffic(), 1.7e9).replace(b"read_timestamp", b"other")
    with pytest.raises(ValueError, match="lastcall_traffic_read_timestamp_seconds"):
        read_traffic(parse(page), at=1)


@pytest.mark.parametrize(("complete", "missing"), [(True, 0), (False, None)])
def test_an_address_without_a_count(complete, missing):
    connections = PodConnections({"10.0.0.1": 2, "10.0.0.2": 0}, complete)
    assert [connections.count_of(f"10.0.0.{last}") for last in (1, 2, 3)] == [2, 0, missing]
