"""A node of the lab goes down while its Services are used, on short and on kept connections."""

import pytest
from support.lab.shop import shut_down_in_use

pytestmark = pytest.mark.timeout(270)


@pytest.mark.parametrize("limit", [5, 0])
async def test_no_request_is_lost_if_sigterm_waits_for_the_services(tmp_path, limit):
    """With ``limitSeconds: 0`` no pod waits, and some are: the pods stay in their Service until they have ended."""
    load = await shut_down_in_use(tmp_path, limit)
    assert load.sent == load.answered + len(load.lost)
    assert (load.lost == []) is bool(limit), load.lost
