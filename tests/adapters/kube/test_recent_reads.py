"""What was read a moment ago, and who waits for it."""

import asyncio

from lastcall.adapters.kube.recent_reads import RecentReads
from lastcall.aio import cancel_and_wait
from lastcall.errors import Unavailable
from lastcall_lab import virtual


def test_what_is_asked_for_all_the_time_is_read_again_before_it_is_too_old():
    """So nobody waits for it; a failure is tried again, and no answer is older than asked."""

    async def main():
        clock = virtual.VirtualClock()
        reads, begun = RecentReads(clock), []

        async def load():
            begun.append(clock.boottime())
            await clock.sleep(0.1)
            if len(begun) == 2:
                raise Unavailable("away")
            return begun[-1]

        await reads.read("key", load, seconds=2)
        for _ in range(200):
            before = clock.boottime()
            found = await reads.read("key", load, seconds=2)
            assert clock.boottime() == before
            assert before - found < 2
            await clock.sleep(0.05)
        assert len(begun) == 8

    virtual.run(main())


def test_what_is_forgotten_is_read_again_though_it_was_being_renewed():
    async def main():
        clock = virtual.VirtualClock()
        reads, begun = RecentReads(clock), []

        async def load():
            begun.append(clock.boottime())
            await clock.sleep(0.1)
            return begun[-1]

        first = await reads.read("key", load, seconds=2)
        await clock.sleep(1.6)
        assert await reads.read("key", load, seconds=2) == first
        await clock.sleep(0.05)
        reads.forget("key")
        forgotten = clock.boottime()
        assert await reads.read("key", load, seconds=2) == forgotten
        assert await reads.read("key", load, seconds=2) == forgotten
        assert len(begun) == 3

    virtual.run(main())


def test_who_is_cancelled_does_not_take_the_answer_away_from_others():
    async def main():
        clock = virtual.VirtualClock()
        reads, loads = RecentReads(clock), []

        async def load():
            loads.append(1)
            await clock.sleep(1)
            return "answer"

        first = asyncio.ensure_future(reads.read("key", load, seconds=5))
        second = asyncio.ensure_future(reads.read("key", load, seconds=5))
        await clock.sleep(0.5)
        await cancel_and_wait(first)
        assert await second == "answer"
        assert loads == [1]

    virtual.run(main())


def test_an_error_that_nobody_waits_for_any_more_is_no_news():
    """The loop of these tests raises what a task ends with and nobody hears of; a real one logs a traceback."""

    async def main():
        clock = virtual.VirtualClock()
        reads = RecentReads(clock)

        async def load():
            await clock.sleep(1)
            raise Unavailable("away")

        asking = asyncio.ensure_future(reads.read("key", load, seconds=2))
        await clock.sleep(0.5)
        await cancel_and_wait(asking)
        await clock.sleep(1)
        reads.forget("key")
        await clock.sleep(1)

    virtual.run(main())
