"""The established TCP connections to the pods of this node, from the kernel's tables."""

import contextlib
from collections import Counter
from pathlib import Path

from lastcall.model.connection_tables import count_local, count_tracked
from lastcall.model.node_traffic import PodConnections

_PROC = Path("/proc/net")


class ConnectionTable:
    """Reads the tables below ``directory``. The agent's are the host's: it runs in the host's network namespace."""

    def __init__(self, directory: Path = _PROC) -> None:
        self._directory = directory

    def count_connections(self) -> PodConnections:
        """What the tables say. Blocks: a table may have 100,000 lines.

        Without nf_conntrack only the addresses of the host are known. That file needs root, and a kernel with
        CONFIG_NF_CONNTRACK_PROCFS, as Debian's and Ubuntu's have.
        """
        counts: Counter[str] = Counter()
        for name in ("tcp", "tcp6"):
            with contextlib.suppress(OSError), (self._directory / name).open() as lines:
                counts.update(count_local(lines))
        try:
            with (self._directory / "nf_conntrack").open() as lines:
                tracked = dict(count_tracked(lines))
        except OSError:
            return PodConnections(counts, complete=False)
        return PodConnections(
            tracked | {key: count for key, count in counts.items() if key not in tracked}, complete=True
        )
