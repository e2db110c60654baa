"""Plays recorded requests to an API server and holds its answers against the recorded ones.

A recording (tests/recordings) says <uid:1>, <time> and the like where an answer differs from run to run; see
``Placeholders``. A server under test is a function from request to answer, and a webhook that it can be told to call.
"""

import asyncio
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import yaml

RECORDINGS = Path(__file__).parents[2] / "recordings"
PATTERNS = {
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "microtime": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z",
    "rv": r"\d+",
    "uid": r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "gen": r"[a-z0-9]+",
    "age": r".*",
    "continue": r"[A-Za-z0-9_-]+",
    "ca": r"[A-Za-z0-9+/=\s-]+",
    "commit": r"[0-9a-f]+",
}
PLACEHOLDER = re.compile(r"<(time|microtime|rv|uid|gen|age|continue|ca|commit)(?::(\d+))?>")
REPEATED = re.compile(r"<(\d+) times (\w)>")
REFERENCE = re.compile(r"<(\w+): ([\w.\[\]]+)>")


def cases():
    """All recorded cases, as (topic, case)."""
    for path in sorted((RECORDINGS / "cases").glob("*.json")):
        for case in json.loads(path.read_text()):
            yield path.stem, case


def ordered(events):
    """The events of a watch, with the bookmarks at the end that come by the clock and not by what happens."""

    def timed(event):
        return event["type"] == "BOOKMARK" and "annotations" not in event["object"]["metadata"]

    return [e for e in events if not timed(e)] + [e for e in events if timed(e)]


@dataclass
class Placeholders:
    """Text with placeholders against text: the same number means the same value throughout one case."""

    values: dict = field(default_factory=dict)

    def difference(self, expected, found, path=""):
        """Where ``found`` is not what was recorded, in words; empty if it is."""
        if isinstance(expected, str) and isinstance(found, str):
            return "" if self._matches(expected, found) else f"{path}: {found!r} instead of {expected!r}"
        if isinstance(expected, dict) and isinstance(found, dict):
            return self._dict(expected, found, path)
        if isinstance(expected, list) and isinstance(found, list):
            if len(expected) != len(found):
                return f"{path}: {len(found)} items instead of {len(expected)}: {json.dumps(found)[:600]}"
            pairs = enumerate(zip(expected, found, strict=True))
            return next((d for i, (e, f) in pairs if (d := self.difference(e, f, f"{path}[{i}]"))), "")
        same = expected == found and isinstance(expected, bool) == isinstance(found, bool)
        return "" if same else f"{path}: {json.dumps(found)[:300]} instead of {json.dumps(expected)[:300]}"

    def _dict(self, expected, found, path):
        if "managedFields" not in expected:  # the recordings have them only where they are what is asked about
            found = {key: value for key, value in found.items() if key != "managedFields"}
        missing, more = [k for k in expected if k not in found], [k for k in found if k not in expected]
        if missing or more:
            extra = {key: found[key] for key in more}
            return f"{path}: {missing} missing, {json.dumps(extra)[:300]} too much"
        return next((d for k in expected if (d := self.difference(expected[k], found[k], f"{path}.{k}"))), "")

    def _matches(self, expected, found):
        if "<" not in expected:
            return expected == found
        pattern, names, last = "", [], 0
        for one in PLACEHOLDER.finditer(expected):
            pattern += re.escape(expected[last : one.start()])
            known = self.values.get(one[0]) if one[2] else None
            pattern += re.escape(known) if known else f"({PATTERNS[one[1]]})"
            names += [] if known else [one[0] if one[2] else ""]
            last = one.end()
        match = re.fullmatch(pattern + re.escape(expected[last:]), found, re.DOTALL)
        if match:
            self.values.update({name: value for name, value in zip(names, match.groups(), strict=True) if name})
        return bool(match)


class Play:
    """One case against one server: ``server.ask(request) -> (status, headers, body or stream of lines)``."""

    def __init__(self, server, case):
        self.server, self.case = server, case
        self.placeholders = Placeholders()
        self.answers = {}

    async def run(self):
        """AssertionError tells the first difference."""
        for step in self.case.get("setup", ()):
            status, _, body = await self._ask(step)
            assert 200 <= status < 300, f"setup {step['method']} {step['path']}: {status} {json.dumps(body)[:600]}"
            self.answers[step.get("id")] = body
        for number, step in enumerate(self.case.get("steps") or [self.case], 1):
            await self._step(step, f"step {number} ({step['request']['method']})")

    async def _step(self, step, where):
        self.server.answer_reviews(step.get("webhook_answer"))
        if step.get("note", "").startswith("storage compacted"):
            self.server.compact()
        expected = step["response"]
        if "events" in expected or "while_open" in step:
            await self._watch(step, where)
        else:
            answer = await self._ask(step["request"])
            self._compare(expected, answer, where)
            self.answers[step.get("id")] = answer[2]
        if "webhook_calls" in step:
            difference = self.placeholders.difference(
                distinct(step["webhook_calls"]), distinct(self.server.reviews()), "webhook calls"
            )
            assert not difference, f"{where}: {difference}"

    def _compare(self, expected, answer, where):
        status, headers, body = answer
        said = json.dumps(body)[:700] if isinstance(body, dict) else str(body)[:700]
        assert status == expected["status"], f"{where}: HTTP {status} instead of {expected['status']}: {said}"
        for name, value in expected.get("headers", {}).items():
            difference = self.placeholders.difference(value, headers.get(name), name)
            assert not difference, f"{where}: header {difference}"
        assert "retry-after" in expected.get("headers", {}) or "retry-after" not in headers, f"{where}: retry-after"
        assert "warning" in expected.get("headers", {}) or "warning" not in headers, (
            f"{where}: {headers.get('warning')}"
        )
        if expected.get("body") not in ("<left out>", "<binary>", None):
            wanted = expected["body"]
            if "yaml" in str(headers.get("content-type")) and isinstance(wanted, str):
                wanted = yaml.safe_load(wanted)
            difference = self.placeholders.difference(wanted, body, "body")
            assert not difference, f"{where}: {difference}"

    async def _watch(self, step, where):
        status, headers, stream = await self._ask(step["request"])
        if isinstance(stream, dict | str):
            self._compare(step["response"], (status, headers, stream), where)
            return
        events = []

        async def read():
            async for line in stream:
                events.append(json.loads(line))  # noqa: PERF401  (what has come is seen meanwhile)

        reading = asyncio.create_task(read())
        await self.server.pause(0.05)
        for number, inner in enumerate(step.get("while_open", ()), 1):
            await self._step(inner, f"{where}, while open {number}")
            await self.server.pause(0.05)
        await asyncio.wait_for(reading, 60)
        self._compare({**step["response"], "body": None}, (status, headers, None), where)
        difference = self.placeholders.difference(ordered(step["response"]["events"]), ordered(events), "events")
        assert not difference, f"{where}: {difference}"

    async def _ask(self, step):
        target = self._resolved(step["path"])
        if step.get("query"):
            target += "?" + self._resolved(step["query"], quoted=True)
        body = step.get("body")
        if body is not None:
            text = body if isinstance(body, str) else json.dumps(body)
            body = self._resolved(text).encode()
        return await self.server.ask(step["method"], target, step.get("headers", {}), body or b"", step.get("as"))

    def _resolved(self, text, *, quoted=False):
        """With the values from earlier answers, and the webhook's certificate authority, in their places."""
        text = text.replace("<ca>", self.server.ca)
        text = REPEATED.sub(lambda match: int(match[1]) * match[2], text)

        def value(match):
            found = self.answers[match[1]]
            for part in match[2].split("."):
                found = found[part]
            return quote(str(found)) if quoted else str(found)

        return REFERENCE.sub(value, text)


def distinct(calls):
    """Without repeats: how often a webhook is asked the same about one removal varies between runs of a real server."""
    found = {}
    for call in calls:
        request = {key: value for key, value in call["body"]["request"].items() if key != "uid"}
        found.setdefault(json.dumps([call.get("path"), request], sort_keys=True), call)
    return list(found.values())
