"""By chance: partitions, outages, lines and messages that break in every way, kills, nodes that come and go, controllers
that begin anew or hear late. Whoever is taken for dead has been reset (``support.watchdog.peer_nodes`` judges all the time).
"""

import asyncio
from random import Random

import pytest
from support.watchdog.peer_nodes import together

pytestmark = pytest.mark.timeout(120)

GOING_DOWN = "the node goes down"
SEEDS = 8
LONG = 900


class Chance:
    """One seed's deeds. ``cluster`` is left in peace long enough, often enough, that something can be proved."""

    def __init__(self, cluster, seed):
        self.cluster, self.random = cluster, Random(f"deeds {seed}")
        self.added = 0
        self.deeds = [
            *(self.split, self.split, self.cut_off, self.cut_off, self.outage, self.heal, self.heal, self.heal),
            *(self.make_deaf, self.hang, self.delay_a_write, self.kill, self.go_down, self.stay_up),
            *(self.be_late, self.disturb, self.hear_late, self.begin_anew, self.add, self.forget),
        ]
        for machine in cluster.machines.values():
            machine.comes_back = True

    async def run(self):
        while self.cluster.now < LONG:
            await asyncio.sleep(self.random.choice([0.01, 0.5, 3, 10, 25, 60, 120]) * (0.5 + self.random.random()))
            await self.random.choice(self.deeds)()

    @property
    def machine(self):
        return self.random.choice(list(self.cluster.machines.values()))

    async def split(self):
        names = list(self.cluster.machines)
        self.random.shuffle(names)
        at = self.random.randrange(1, len(names))
        self.cluster.split(names[:at], names[at:])

    async def cut_off(self):
        self.machine.cut_off(peers=self.random.random() < 0.5)

    async def outage(self):
        self.cluster.outage()

    async def heal(self):
        self.cluster.heal()
        self.cluster.lags, self.cluster.watch_lag = (lambda: 0.001), 0.0
        for machine in self.cluster.machines.values():
            machine.line.late.clear()
            machine.dog.late = 0.0

    async def make_deaf(self):
        self.machine.line.deaf = True

    async def hang(self):
        self.machine.line.hangs = True

    async def delay_a_write(self):
        self.machine.line.late["PATCH"] = self.random.uniform(0.5, 60)

    async def kill(self):
        self.machine.process.kill()

    async def go_down(self):
        self.machine.hold(GOING_DOWN)

    async def stay_up(self):
        for machine in self.cluster.machines.values():
            machine.hold("")

    async def be_late(self):
        self.machine.dog.late = self.random.choice([0.0, 3.0, 10.5])

    async def disturb(self):
        """Messages are lost, and late by up to a minute."""
        chance = Random(self.random.random())
        self.cluster.lags = lambda: chance.choice([None, 0.001, 1.0, chance.uniform(0, 60)])

    async def hear_late(self):
        self.cluster.watch_lag = self.random.choice([1.0, 7.0, 30.0])

    async def begin_anew(self):
        self.cluster.controller()

    async def add(self):
        self.added += 1
        await self.cluster.add_node(f"new{self.added}", "")

    async def forget(self):
        """A Node or a Lease is deleted; the machine goes on."""
        await self.cluster.forget(self.machine.name, node=self.random.random() < 0.3)


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("size", [3, 4])
def test_nobody_who_lives_is_taken_for_dead(seed, size):
    played(seed, size)


def played(seed, size):
    """How many machines were reset, and how many boots were taken for dead."""

    async def scene(cluster):
        await Chance(cluster, seed).run()
        return sum(len(one.resets) for one in cluster.machines.values()), len(cluster.proofs)

    return together(scene, size=size, seed=seed)


def test_something_happens_in_these():
    resets, proofs = (sum(one) for one in zip(*(played(seed, 3) for seed in (1, 5)), strict=True))
    assert resets >= 2
    assert proofs >= 1
