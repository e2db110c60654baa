"""Watches by kubectl that a workload never has fewer healthy pods than its budget demands. It shares no code with lastcall."""

import asyncio
import json
import subprocess


class BudgetWatcher:
    """The pods with the label ``app=NAME``; ``at_least`` of them have to be Ready and not in deletion at every instant."""

    def __init__(self, kubectl, environment, name, at_least, *, namespace="default"):
        self._command = [kubectl, "-n", namespace, "get", "pods", "-l", f"app={name}", "--watch", "-o", "json"]
        self._environment = environment
        self._at_least = at_least
        self.least = None
        """The smallest number of healthy pods since there were enough for the first time."""
        self.changes = 0

    async def run(self):
        process = await asyncio.create_subprocess_exec(
            *self._command, "--output-watch-events", stdout=subprocess.PIPE, env=self._environment
        )
        try:
            await self._read(process.stdout)
        finally:
            process.kill()
            await process.wait()

    async def _read(self, stream):
        text, pods, decoder = "", {}, json.JSONDecoder()
        while data := await stream.read(65536):
            text += data.decode()
            while text := text.lstrip():
                try:
                    event, end = decoder.raw_decode(text)
                except ValueError:
                    break
                text = text[end:]
                self._note(event, pods)

    def _note(self, event, pods):
        self.changes += 1
        pod = event["object"]
        if event["type"] == "DELETED":
            pods.pop(pod["metadata"]["uid"], None)
        else:
            pods[pod["metadata"]["uid"]] = "deletionTimestamp" not in pod["metadata"] and any(
                one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", [])
            )
        healthy = sum(pods.values())
        if self.least is not None or healthy >= self._at_least:
            self.least = healthy if self.least is None else min(self.least, healthy)
