"""What the report of a shutdown says in sentences, and waits whose errors become one of them."""

import asyncio

from lastcall.aio import cancel_and_wait, wait_any
from lastcall.graceful.shutdown.container_termination import Tell
from lastcall.model.shutdown import NoteWritten
from lastcall.ports.node import Clock, NodeFace


class ShutdownNotes:
    """The notes of one shutdown; ``tell`` records them."""

    def __init__(self, node: NodeFace, *, clock: Clock, tell: Tell) -> None:
        self._node = node
        self._clock = clock
        self._tell = tell

    def record(self, text: str) -> None:
        """Records a sentence."""
        self._tell(NoteWritten(at=self._clock.boottime(), text=text))

    def record_of_node(self) -> None:
        """Records what the node has to say."""
        for text in self._node.take_notes():
            self.record(text)

    async def wait_at_most(self, seconds: float, task: "asyncio.Future[None]") -> bool:
        """Waits for a task and leaves it running after the time limit; notes its error. Returns whether it is done."""
        alarm = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await wait_any(task, alarm)
        finally:
            await cancel_and_wait(alarm)
        if task.done() and not task.cancelled() and (error := task.exception()):
            self.record(f"{type(error).__name__}: {error}")
        return task.done()
