"""What the agent asks of the kubelet when the node goes down (``ports.NodeFace``): status, refusals, last words."""

from lastcall import names
from lastcall.lab.apiserver.meta import timestamp
from lastcall.lab.kubelet.ending import Order
from lastcall.lab.kubelet.kubelet import Kubelet
from lastcall.ports import Clock, LivePod


class KubeletFace:
    """The node's pods are the agent's from ``going_down`` on, until ``back``."""

    def __init__(self, kubelet: Kubelet, clock: Clock) -> None:
        self._kubelet = kubelet
        self._clock = clock

    def refuse_pods(self) -> None:
        """From this moment new pods are refused."""
        self._kubelet.going_down = True
        self._kubelet.node.look()

    async def going_down(self, deadline: float) -> None:
        """Ready=False with the kubelet's reason and message; pods that run are the agent's to end."""
        self._kubelet.going_down = True
        for worker in self._kubelet.pods.workers.values():
            worker.hand_over()
        await self._kubelet.node.write_status()

    async def pod_ended(self, live: LivePod, exit_codes: dict[str, int | None]) -> None:
        """Failed/Terminated with DisruptionTarget (pkg/kubelet/nodeshutdown), whatever its exit codes."""
        worker = self._kubelet.pods.workers.get(live.pod.metadata.uid)
        if worker is None:
            return
        target = {
            "type": names.DISRUPTION_TARGET,
            "status": "True",
            "reason": names.TERMINATION_BY_KUBELET,
            "message": names.TERMINATED_MESSAGE,
            "lastTransitionTime": timestamp(self._clock.wall()),
        }
        order = Order(0.0, names.TERMINATED_REASON, names.TERMINATED_MESSAGE, (target,))
        worker.ended_by(order, dict(exit_codes))

    async def back(self) -> None:
        """Ready again; pods that the agent has not ended are the kubelet's again."""
        self._kubelet.going_down = False
        await self._kubelet.pods.take_back()
        await self._kubelet.node.write_status()
