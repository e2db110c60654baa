"""A machine's disk as the agent uses it: ``ports.Journals`` in memory, which outlives its writers."""

from random import Random

from lastcall.ports.node import Clock, JournalFile


class SimulatedDisk:
    """``full``: it takes not one byte more. A power cut takes back what was not synced: see ``lose_power``."""

    def __init__(self, random: Random, clock: Clock) -> None:
        self._files: dict[str, _MemoryJournalFile] = {}
        self._random = random
        self._clock = clock
        self.full = False
        self.delay = 0.0
        """Seconds until what is written is safe."""
        self.checkpoint = b""
        """The file ``pods.json``, which is replaced atomically."""

    def create(self, shutdown_id: str) -> JournalFile:
        """FileExistsError if there is one of this name."""
        self.check_room()
        if shutdown_id in self._files:
            raise FileExistsError(17, "File exists", shutdown_id)
        file = self._files[shutdown_id] = _MemoryJournalFile(self)
        return file

    def latest(self) -> tuple[str, list[bytes]] | None:
        """Id and whole lines of the newest journal."""
        if not self._files:
            return None
        newest = list(self._files)[-1]
        return newest, self._files[newest].lines()

    def reopen(self, shutdown_id: str) -> JournalFile:
        """To go on with it; a torn last line is cut off."""
        file = self._files[shutdown_id]
        del file.content[file.content.rfind(b"\n") + 1 :]
        return file

    async def write_kubelet_state(self, start: float | None, end: float | None) -> None:
        """Nobody reads it here."""
        self.check_room()

    def lose_power(self) -> None:
        """Of what was not synced any number of bytes may be there, so that the last line may be torn."""
        for file in self._files.values():
            del file.content[self._random.randint(file.synced, len(file.content)) :]

    async def wait_for_write(self) -> None:
        """As long as it takes."""
        if self.delay > 0:
            await self._clock.sleep(self.delay)

    def check_room(self) -> None:
        """OSError while it is full."""
        if self.full:
            raise OSError(28, "No space left on device")


class _MemoryJournalFile:
    """``ports.JournalFile``."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self._disk = disk
        self.content = bytearray()
        self.synced = 0

    def append(self, line: bytes) -> None:
        self._disk.check_room()
        self.content += line.rstrip(b"\n") + b"\n"

    async def sync(self) -> None:
        self._disk.check_room()
        written = len(self.content)
        await self._disk.wait_for_write()
        self.synced = max(self.synced, min(written, len(self.content)))

    def lines(self) -> list[bytes]:
        return bytes(self.content).split(b"\n")[:-1]
