"""The node's face where another kubelet writes the status: what is ours is said in the log."""

import logging

from lastcall.ports import LivePod

log = logging.getLogger(__name__)


class BareNode:
    """``ports.NodeFace`` of an agent that stands beside a kubelet and has no line to the API server.

    The kubelet writes Ready and the pods' status and would overwrite ours within ten seconds.
    """

    def refuse_pods(self) -> None:
        """The kubelet admits pods, not we."""

    async def going_down(self) -> None:
        """Nobody to tell."""

    async def pod_ended(self, live: LivePod, exit_codes: dict[str, int | None]) -> None:
        """Says so in the log."""
        codes = ", ".join(f"{name} {code}" for name, code in exit_codes.items())
        log.info("%s has ended (exit codes: %s)", live.pod.key, codes)

    async def back(self) -> None:
        """Nobody to tell."""
