"""The connection to systemd that stays open: one for all uses, another one when it is lost."""

import asyncio

import pytest
from support.host.logind import eventually, private_logind  # noqa: F401  (fixtures)

from lastcall.adapters.systemd.standing_units import StandingUnits
from lastcall.adapters.systemd.units import SystemdUnits
from lastcall.errors import Unavailable

KUBELET = "kubelet.service"


@pytest.fixture
async def standing(private_logind):  # noqa: F811
    units = StandingUnits(private_logind.address)
    yield units
    await units.close()


async def connection_of(standing):
    async with standing.open() as units:
        await units.unit_states(KUBELET)
        return units._bus


async def test_all_uses_share_one_connection(standing):
    standing.start()
    first, second = await asyncio.gather(connection_of(standing), connection_of(standing))
    assert first is second
    assert await connection_of(standing) is first


async def test_a_lost_connection_is_replaced_by_the_next_use(standing, private_logind):  # noqa: F811
    first = await connection_of(standing)
    await asyncio.to_thread(private_logind.stop_bus)
    await asyncio.to_thread(private_logind.start_bus)

    async def is_back():
        try:
            async with SystemdUnits.open(private_logind.address) as units:
                return bool(await units.unit_states(KUBELET))
        except Unavailable:
            return False

    assert await eventually(is_back, True)
    assert await connection_of(standing) is not first


async def test_a_connection_on_which_a_call_fails_is_replaced(standing):
    first = await connection_of(standing)
    with pytest.raises(Unavailable):
        async with standing.open() as units:
            await units._call_manager("NoSuchMethod", "")
    assert not first.is_connected
    assert await connection_of(standing) is not first


async def test_without_a_bus_the_first_use_says_so(tmp_path):
    units = StandingUnits(f"unix:path={tmp_path}/none")
    units.start()
    with pytest.raises(Unavailable):
        await connection_of(units)
    await units.close()
