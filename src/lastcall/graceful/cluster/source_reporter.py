"""Keeps the Node up to date about the sources of deadlines, beside everything else: nothing waits for it."""

import logging

from lastcall.errors import LastcallError
from lastcall.graceful.cluster.source_changes import SourceStanding, standing_patch, warning_cordon_patch
from lastcall.ports.cluster import NodeObjects
from lastcall.ports.node import Clock

LOOK_SECONDS = 5.0
"""Seconds between two comparisons with what was written, and between two attempts to write."""

FAILING_SECONDS = 60.0
"""A source counts as unreachable when it has not answered for so long."""

log = logging.getLogger(__name__)


class SourceReporter:
    """The sources' standing on the Node. ``cordons`` are the sources whose warnings cordon it."""

    def __init__(self, objects: NodeObjects, clock: Clock, *, cordons: frozenset[str] = frozenset()) -> None:
        self._objects = objects
        self._clock = clock
        self._cordons = cordons
        self._failing: dict[str, tuple[float, str]] = {}
        self._warnings: dict[str, str] = {}
        self._written: SourceStanding | None = None
        self._trouble = ""

    def record_look(self, source: str, warning: str, failure: str) -> None:
        """Records one look at a source; ``failure`` is empty if it has answered."""
        if failure:
            since = self._failing.get(source, (self._clock.boottime(), ""))[0]
            self._failing[source] = since, failure
        else:
            self._failing.pop(source, None)
        if warning:
            self._warnings[source] = warning
        else:
            self._warnings.pop(source, None)

    async def run(self) -> None:
        """Writes changes until it is cancelled. Logs a failure once, and tries again."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            standing = self._current_standing()
            if standing == self._written or not self._objects.is_connected():
                continue
            try:
                await self._write(standing)
            except LastcallError as error:
                if str(error) != self._trouble:
                    log.warning("the Node does not show the state of the deadlines' sources: %s", error)
                self._trouble = str(error)
            else:
                self._written, self._trouble = standing, ""

    def _current_standing(self) -> SourceStanding:
        late = self._clock.boottime() - FAILING_SECONDS
        return SourceStanding(
            failures=tuple(sorted((name, why) for name, (since, why) in self._failing.items() if since <= late)),
            warnings=tuple(sorted(self._warnings.items())),
            cordon=bool(self._cordons & self._warnings.keys()),
        )

    async def _write(self, standing: SourceStanding) -> None:
        await self._objects.patch_node_status(standing_patch(standing, self._clock.wall()))
        if patch := warning_cordon_patch(await self._objects.get_node(), wanted=standing.cordon):
            await self._objects.patch_node(patch)
            log.warning("the Node is %s", "cordoned: a source warns" if standing.cordon else "no longer cordoned by us")
