"""What a kubelet's worker waits for."""

import asyncio

from lastcall_lab import virtual
from lastcall_lab.kubelet.base.cheap_event import CheapEvent


def run(main):
    return virtual.run(main())


def test_all_who_wait_go_on_in_the_order_in_which_they_came():
    async def main():
        flag, went = CheapEvent(), []

        async def wait(name):
            await flag.wait()
            went.append(name)

        tasks = [asyncio.create_task(wait(name)) for name in "abc"]
        await asyncio.sleep(1)
        tasks[1].cancel()
        await asyncio.sleep(1)
        assert (went, flag.is_set()) == ([], False)
        flag.set()
        await asyncio.sleep(1)
        return went, flag.is_set(), tasks[1].cancelled()

    assert run(main) == (["a", "c"], True, True)


def test_what_is_set_is_not_waited_for_until_it_is_cleared():
    async def main():
        flag = CheapEvent()
        flag.set()
        flag.set()
        before = flag.wait().done()
        flag.clear()
        after = flag.wait()
        waits = not after.done()
        flag.set()
        return before, waits, after.done()

    assert run(main) == (True, True, True)


def test_who_gives_up_again_and_again_leaves_nothing_behind():
    async def main():
        flag = CheapEvent()
        for _ in range(100):
            flag.wait().cancel()
        return len(flag._waiting)

    assert run(main) == 1
