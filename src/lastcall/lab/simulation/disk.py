"""A machine's disk as the agent uses it: ``ports.Journals`` in memory, which outlives its writers."""

from lastcall.ports import JournalFile


class Disk:
    """``full``: it takes not one byte more. A power cut takes back what was not synced; see ``lose_power``."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self.full = False

    def create(self, shutdown_id: str) -> JournalFile:
        """FileExistsError if there is one of this name."""
        self.need_room()
        if shutdown_id in self._files:
            raise FileExistsError(17, "File exists", shutdown_id)
        file = self._files[shutdown_id] = _File(self)
        return file

    def latest(self) -> tuple[str, list[bytes]] | None:
        """Id and lines of the newest journal."""
        if not self._files:
            return None
        newest = list(self._files)[-1]
        return newest, list(self._files[newest].lines)

    def reopen(self, shutdown_id: str) -> JournalFile:
        """To go on with it."""
        return self._files[shutdown_id]

    async def write_kubelet_state(self, start: float | None, end: float | None) -> None:
        """Nobody reads it here."""
        self.need_room()

    def lose_power(self) -> None:
        """What was not synced is gone."""
        for file in self._files.values():
            del file.lines[file.synced :]

    def need_room(self) -> None:
        """OSError while it is full."""
        if self.full:
            raise OSError(28, "No space left on device")


class _File:
    """``ports.JournalFile``."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.lines: list[bytes] = []
        self.synced = 0

    def append(self, line: bytes) -> None:
        self._disk.need_room()
        self.lines.append(line)

    async def sync(self) -> None:
        self._disk.need_room()
        self.synced = len(self.lines)
