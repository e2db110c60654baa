"""Power switches and cables of the lab's machines."""

import asyncio

import pytest
from support.lab_machine import machine

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import NAMESPACES
from lastcall.errors import InvalidInput, Unavailable
from lastcall.lab import virtual
from lastcall.lab.power import Switch


@pytest.mark.parametrize(
    ("turns", "done", "cut"),
    [
        ("on", ["boot"], False),
        ("on off", ["boot", "die"], True),
        ("on off on", ["boot", "die", "boot"], False),
        ("on partition", ["boot"], True),
        ("on partition on", ["boot"], False),
        ("on partition off", ["boot", "die"], True),
        ("on hang", ["boot", "stop kubelet"], False),
        ("on hang on", ["boot", "stop kubelet", "start kubelet"], False),
        ("on hang partition", ["boot", "stop kubelet", "start kubelet"], True),
        ("on hang off", ["boot", "stop kubelet", "die"], True),
        ("on button", ["boot", "press", "die"], True),
        ("on on", ["boot"], False),
        ("on storage on", ["boot", "cut storage", "mend storage"], False),
        ("on storage off", ["boot", "cut storage", "die", "mend storage"], True),
    ],
)
def test_from_position_to_position(turns, done, cut):
    async def run():
        one, _ = machine()
        for turn in turns.split():
            await one.turn(Switch(turn))
        assert one.host.done == done
        assert one.cable.cut is cut
        return one

    one = virtual.run(run())
    assert one.powered is (turns.split()[-1] not in ("off", "button"))


def test_what_is_off_can_only_be_switched_on():
    async def run():
        one, _ = machine()
        with pytest.raises(InvalidInput, match="lab-1 is off: hang makes no sense"):
            await one.turn(Switch.HUNG)

    virtual.run(run())


def test_the_plug_is_pulled_while_it_goes_down():
    async def run():
        one, clock = machine()
        await one.turn(Switch.ON)
        group = asyncio.create_task(one.turn(Switch.BUTTON))
        await clock.sleep(5)
        await one.turn(Switch.OFF)
        await group
        assert one.host.done == ["boot", "press", "die"]

    virtual.run(run())


def test_a_cut_cable_answers_nobody_and_ends_streams():
    async def run():
        one, clock = machine()
        client = Client(one.cable)
        await one.turn(Switch.ON)
        watch = await client.watch(NAMESPACES, "0")
        await anext(watch)
        await one.turn(Switch.PARTITIONED)
        with pytest.raises(Unavailable, match="cut off"):
            await client.get(NAMESPACES, "default")
        with pytest.raises(Unavailable, match="cut off"):
            await anext(watch)
        await watch.aclose()
        await one.turn(Switch.ON)
        assert (await client.get(NAMESPACES, "default"))["metadata"]["name"] == "default"

    virtual.run(run())
