"""Stops one container of a pod that keeps running."""

import logging

from lastcall.errors import LastcallError
from lastcall.graceful.planning.time_windows import TerminationWindow
from lastcall.model.pods import Container
from lastcall.ports.node import RunningPod
from lastcall_lab.kubelet.pod.dependencies import KubeletDeps

log = logging.getLogger(__name__)


async def end_container(live: RunningPod, name: str, grace: float, means: KubeletDeps) -> None:
    """Runs the preStop hook, then SIGTERM, then SIGKILL, like pod termination. The runtime reports the end."""
    began = means.clock.boottime()
    window = TerminationWindow(started=began, grace=max(means.settings.least_grace, grace), last_kill=float("inf"))
    spec = live.pod.spec
    described = next(one for one in (*spec.containers, *(spec.init_containers or ())) if one.name == name)
    if described.pre_stop:
        await means.runtime.run_hook(live, name, described.pre_stop, window.sigterm_deadline - began)
    await _stop_container(live.containers[name], window, described, means)


async def _stop_container(run: str, window: TerminationWindow, described: Container, means: KubeletDeps) -> None:
    term = means.clock.boottime()
    while True:
        try:
            await means.runtime.stop_container(run, max(0.0, window.kill_time(term) - means.clock.boottime()))
            return
        except LastcallError as error:
            log.warning("container %s cannot be ended: %s", described.name, error)
            await means.clock.sleep(means.settings.retry)
