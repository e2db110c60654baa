"""``python bench/kubelet_unit.py STATE``: the private logind's recorder of systemd, whose kubelet.service is a real program.

``KUBELET_COMMAND`` is its command line as JSON, ``KUBELET_LOG`` the file of its output. It ends with the recorder.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from dbus_fast import Message

from lastcall_lab.private_logind import recorder as base
from lastcall_lab.private_logind.units import unit_path

UNIT = "kubelet.service"
_LOOK = 0.002


class KubeletRecorder(base.SystemdRecorder):
    """As systemd: a stop sends SIGTERM, and the unit is inactive when the process has ended."""

    process = None
    stopping = None

    def launch(self):
        if self.process is None or self.process.poll() is not None:
            with Path(os.environ["KUBELET_LOG"]).open("ab") as log:
                command = json.loads(os.environ["KUBELET_COMMAND"])
                self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._units.start(UNIT)

    def _start_unit(self, message):
        if message.body[0] == UNIT:
            self.launch()
        return super()._start_unit(message)

    def _answer_control(self, message):
        if message.member == "Run" and message.body[0] == UNIT:
            self.launch()
        return super()._answer_control(message)

    def _stop_unit(self, message):
        if message.body[0] != UNIT or self.process is None:
            return super()._stop_unit(message)
        self._units._states[unit_path(UNIT)] = "deactivating"
        self._jobs.append(UNIT)
        self.process.terminate()
        self.stopping = asyncio.get_running_loop().create_task(self._finish(self.process, len(self._jobs)))
        return Message.new_method_return(message, "o", [base._job_path(len(self._jobs))])

    async def _finish(self, process, number):
        while process.poll() is None:
            await asyncio.sleep(_LOOK)
        if process is self.process:
            self._units.finish_stop(UNIT)
        self._end_job(number, "done")


async def main(state):
    recorder = KubeletRecorder(state, polkit=False)

    def abandoned():
        if not os.read(0, 1):
            if recorder.process and recorder.process.poll() is None:
                recorder.process.terminate()
                recorder.process.wait(30)
            base.kill_program(state, base.LOGIND_PID, "systemd-logind", signal.SIGKILL)
            base.kill_program(state, base.BUS_PID, "dbus-daemon", signal.SIGKILL)
            os._exit(0)

    asyncio.get_running_loop().add_reader(0, abandoned)
    await recorder.serve()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
