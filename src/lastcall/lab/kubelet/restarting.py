"""The end of one container of a pod that lives on."""

import logging

from lastcall.errors import LastcallError
from lastcall.graceful.termination import Window
from lastcall.lab.kubelet.means import Means
from lastcall.model.pods import Container
from lastcall.ports import LivePod

log = logging.getLogger(__name__)


async def restart(live: LivePod, name: str, grace: float, means: Means) -> None:
    """Hook, SIGTERM, SIGKILL, by the rules for a pod's end. The runtime tells when it has ended."""
    began = means.clock.boottime()
    window = Window(started=began, grace=max(means.settings.least_grace, grace), last_kill=float("inf"))
    spec = live.pod.spec
    described = next(one for one in (*spec.containers, *(spec.init_containers or ())) if one.name == name)
    if described.pre_stop:
        await means.runtime.run_hook(live, name, described.pre_stop, window.polite_until - began)
    await _stop(live.containers[name], window, described, means)


async def _stop(run: str, window: Window, described: Container, means: Means) -> None:
    term = means.clock.boottime()
    while True:
        try:
            await means.runtime.stop(run, max(0.0, window.kill_at(term) - means.clock.boottime()))
            return
        except LastcallError as error:
            log.warning("container %s cannot be ended: %s", described.name, error)
            await means.clock.sleep(means.settings.retry)
