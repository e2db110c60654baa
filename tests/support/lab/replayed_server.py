"""The lab's API server as ``replay`` plays to it: within the process, in virtual time, without sockets."""

import json
import re
from random import Random
from urllib.parse import urlsplit

import yaml

from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.admission.webhook_client import HEADERS, WebhookReply, WebhookUnreachable
from lastcall_lab.apiserver.authentication.authenticator import ANONYMOUS
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.apiserver.values.request import Request, UserInfo

RECORDED = UserInfo("admin", ("system:masters", "system:authenticated"), "u1")
"""Who asked when the cases were recorded, if they do not say so."""


class LabApi:
    """A new, empty server."""

    ca = "Y2E="

    def __init__(self, clock, seed=1):
        self.clock = clock
        self.server = ApiServer(clock, Random(seed), authorization=AuthorizationMode.RBAC)
        self.server.webhooks.caller = self.webhook = Webhook(clock)

    def answer_reviews(self, answer):
        """What the webhook answers from now on; the reviews so far are forgotten."""
        self.webhook.answer, self.webhook.reviews = answer or {}, []

    def reviews(self):
        """What the webhook was asked."""
        return self.webhook.reviews

    def compact(self):
        """Forgets the past, as a restart after a compaction does."""
        self.server.store.compact(self.server.store.revision)

    async def pause(self, seconds):
        """Lets everything happen that is under way."""
        await self.clock.sleep(seconds)

    async def ask(self, method, target, headers, body, who):
        """Status, headers and body; the body of a watch as a stream of lines."""
        headers, user = {"user-agent": "client", **headers}, RECORDED
        if isinstance(who, dict):
            user = UserInfo(who["user"], who["groups"])
        elif who:
            headers |= {"authorization": "Bearer nobody-knows-it"} if "token" in who else {}
            user = ANONYMOUS
        response = await self.server.handle(Request.of(method, target, headers=headers, body=body, user=user))
        kind = str(response.headers.get("content-type", ""))
        if not isinstance(response.body, bytes):
            return response.status, response.headers, lines(response.body)
        return response.status, response.headers, parsed(response.body, kind)


class Webhook:
    """Every webhook at once, but for one that nobody listens for: port 1 of 127.0.0.1."""

    def __init__(self, clock):
        self.clock = clock
        self.answer, self.reviews = {}, []

    async def call(self, destination, body):
        """Answers as it was told, by default that the write is allowed."""
        parts = urlsplit(destination.url)
        if parts.netloc == "127.0.0.1:1":
            raise WebhookUnreachable("dial tcp 127.0.0.1:1: connect: connection refused")
        review = json.loads(body)
        target = f"{parts.path}?{parts.query}"
        self.reviews.append({"path": target, "headers": dict(HEADERS), "body": review})
        if "sleep" in self.answer:
            await self.clock.sleep(self.answer["sleep"])
        if "http_status" in self.answer:
            return WebhookReply(self.answer["http_status"], "application/json", self.answer["body"].encode())
        return WebhookReply(200, "application/json", json.dumps(self._said(review["request"]["uid"])).encode())

    def _said(self, uid):
        if "_raw" not in self.answer:
            response = {"uid": uid, "allowed": True, **{k: v for k, v in self.answer.items() if k != "sleep"}}
            return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        said = {name: value for name, value in self.answer.items() if name != "_raw"}
        return json.loads(re.sub(r"<uid:\d+>", uid, json.dumps(said)))


def parsed(body, kind):
    """JSON and YAML as objects, everything else as text."""
    if "json" in kind and body:
        return json.loads(body)
    return yaml.safe_load(body) if "yaml" in kind else body.decode()


async def lines(stream):
    """The events of a watch."""
    rest = b""
    async for chunk in stream:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line


def play(case):
    """Plays one case in virtual time."""
    from support.conformance.replay import Play

    async def run():
        await Play(LabApi(virtual.VirtualClock()), case).run()

    virtual.run(run())
