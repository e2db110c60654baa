"""The trace of a run in virtual time."""

import asyncio

import pytest

from lastcall_lab import virtual
from lastcall_lab.virtual import VirtualProcess


def traced(*, steps=False, late=0.0, name="b"):
    """The trace of a small run, and its lines."""
    lines = []

    async def main():
        loop = virtual.running_loop()
        process = VirtualProcess("p")
        process.call(loop.mark_trace, "begins")
        process.start(asyncio.sleep(1), "a")
        asyncio.create_task(asyncio.sleep(2 + late), name=name)  # noqa: RUF006  (the loop ends it)
        asyncio.create_task(asyncio.sleep(1))
        await asyncio.sleep(3)
        loop.mark_trace("ends")
        return loop.trace_digest()

    return virtual.run(main(), steps=steps, listen=lines.append), lines


def test_a_trace_is_what_was_marked():
    trace, lines = traced()
    assert lines == ["0.0 p begins\n", "3.0 - ends\n"]
    assert (trace, lines) == traced(late=0.5)


def test_a_trace_of_steps_has_times_processes_and_names():
    trace, lines = traced(steps=True)
    assert (trace, lines) == traced(steps=True)
    assert trace not in {traced(steps=True, late=0.5)[0], traced(steps=True, name="c")[0], traced()[0]}
    assert {"0.0 p a\n", "1.0 p a\n", "2.0 - b\n", "1.0 - sleep\n"} <= {*lines}


def test_marks_and_processes_are_for_virtual_time_only():
    async def main():
        virtual.running_loop()

    with pytest.raises(RuntimeError, match="virtual time only"):
        asyncio.run(main())
