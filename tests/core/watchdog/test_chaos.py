"""By chance: lines that break in every way, kills, shutdowns, stops, pets that are late. No promise is ever broken.

``support.watchdog.watchdog_node`` judges all the time: the Lease says ``armed`` only while the device runs, and what the controller
takes for dead has been reset. In the end, when all is well again, the node is armed.
"""

import asyncio
from random import Random

import pytest
from support.watchdog.watchdog_node import SETTINGS, lives

GOING_DOWN = "the node goes down"
SEEDS = 48
LONG = 240


class Chance:
    """One seed's deeds."""

    def __init__(self, world, seed):
        self.world, self.random = world, Random(seed)
        self.deeds = [
            self.cut,
            self.hang,
            self.make_deaf,
            self.slow_down,
            self.delay_a_write,
            self.mend,
            self.mend,
            self.kill,
            self.go_down,
            self.stay_up,
            self.restart,
            self.be_late,
        ]

    async def run(self):
        while self.world.now < LONG:
            await asyncio.sleep(self.random.choice([0.001, 0.01, 0.5, 3, 7, 15]) * (0.5 + self.random.random()))
            self.random.choice(self.deeds)()
        self.mend()
        self.world.dog.late = 0.0
        self.stay_up()
        await asyncio.sleep(90)

    def cut(self):
        self.world.line.cut = True

    def hang(self):
        self.world.line.hangs = True

    def make_deaf(self):
        self.world.line.deaf = True

    def slow_down(self):
        self.world.line.slow = self.random.choice([0.1, 1.0, 1.9, 2.5])

    def delay_a_write(self):
        self.world.line.late["PATCH"] = self.random.uniform(0.5, 40)

    def mend(self):
        line = self.world.line
        line.cut = line.hangs = line.deaf = False
        line.slow = 0.002
        line.late.clear()

    def kill(self):
        self.world.process.kill()

    def go_down(self):
        self.world.hold(GOING_DOWN)

    def stay_up(self):
        self.world.hold("")

    def restart(self):
        """A stop by the service manager, which kills after a while and begins the next life."""
        self.world.leave()
        process = self.world.process
        asyncio.get_running_loop().call_later(self.random.choice([1, 15]), process.kill)

    def be_late(self):
        self.world.dog.late = self.random.choice([0.0, 0.0, 2.0, SETTINGS.timeout_seconds - 0.5])


@pytest.mark.parametrize("seeds", [range(begin, SEEDS, 8) for begin in range(8)], ids=str)
@pytest.mark.parametrize("device", [{}, {"nowayout": True}], ids=["usual", "nowayout"])
def test_no_promise_is_broken(seeds, device):
    resets = proofs = 0
    for seed in seeds:

        async def scene(world, seed=seed):
            world.agent()
            await Chance(world, seed).run()
            promise = await world.promise()
            assert promise.armed, seed
            assert promise.boot_id == world.boot_id, seed
            assert world.dog.running
            return len(world.resets), len(world.proofs)

        some, proved = lives(scene, **device)
        resets, proofs = resets + some, proofs + proved
    assert resets >= 3, "nothing happens in these"
    assert proofs >= 1
