"""``lastcall controller`` as a process, a fence agent in little, and the nodes of a lab that has none."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

METADATA = """<?xml version="1.0"?><resource-agent name="fence_test"><parameters>
<parameter name="plug"><content type="string"/></parameter>
<parameter name="action"><content type="string" default="off"/></parameter>
</parameters><actions><action name="on"/><action name="off"/><action name="status"/><action name="metadata"/></actions>
</resource-agent>"""
AGENT = """#!/bin/sh
while read -r line; do
  case $line in action=*) action=${line#action=};; plug=*) plug=${line#plug=};; esac
done
case $action in
  metadata) cat "$(dirname "$0")/metadata.xml";;
  off) touch "$(dirname "$0")/off-$plug";;
  status) if [ -e "$(dirname "$0")/off-$plug" ]; then echo "Status: OFF"; exit 2; fi; echo "Status: ON";;
  *) exit 1;;
esac
"""


def install_agent(directory: Path):
    """``fence_test``: it switches machines off by touching files beside itself."""
    directory.mkdir()
    (directory / "metadata.xml").write_text(METADATA)
    program = directory / "fence_test"
    program.write_text(AGENT)
    program.chmod(0o755)
    return directory


class ControllerProcess:
    """``stop`` or ``kill`` ends it."""

    def __init__(self, directory, kubeconfig, *arguments):
        self._log = directory / f"controller-{time.monotonic_ns()}.log"
        command = [
            *(sys.executable, "-m", "lastcall", "controller", f"--kubeconfig={kubeconfig}"),
            *("--metrics-bind-address=127.0.0.1:0", "--log-format=json", *arguments),
        ]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, "POD_NAME": "pod-1"}
            )

    @property
    def said(self):
        """Its log lines."""
        lines = self._log.read_text().splitlines()
        return [json.loads(line) if line.startswith("{") else {"message": line} for line in lines]

    def audit(self, verb):
        """The audit's lines."""
        found = [json.loads(one["message"]) for one in self.said if one.get("logger") == "lastcall.audit"]
        return [one for one in found if one["audit"] == verb]

    def until(self, what, seconds=90):
        """Waits until ``what()`` is true; what it says."""
        end = time.monotonic() + seconds
        while not (found := what()):
            assert self.process.poll() is None, self._log.read_text()
            assert time.monotonic() < end, self._log.read_text()
            time.sleep(0.05)
        return found

    def page(self, path):
        """Status and body of one of its pages."""
        pattern = re.compile(r"metrics at (http://\S+)/metrics")
        url = self.until(lambda: next((m[1] for one in self.said if (m := pattern.search(one["message"]))), None))
        try:
            with urllib.request.urlopen(url + path, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def stop(self):
        """SIGTERM; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def kill(self):
        """SIGKILL; nothing if it has ended."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
