"""Asks the metadata service of a cloud whether this machine goes down: the requests, in their documented form."""

from collections.abc import Callable

import msgspec

from lastcall.graceful.deadlines import cloud_answers
from lastcall.graceful.deadlines.findings import SourceFinding, UnreadableAnswer
from lastcall.model.deadline_settings import AzureSettings
from lastcall.model.foreign_text import plain_text
from lastcall.ports.deadlines import MetadataAnswer, MetadataService
from lastcall.ports.node import Clock

ANSWER_SECONDS = 2.0
"""Seconds for one answer: the service is on the machine's own host."""

WAIT_SECONDS = 30
"""How long Compute Engine holds a request that waits for a change."""

TOKEN_SECONDS = 21600
"""How long a session token of EC2 lasts; the longest."""

_TOKEN = "X-aws-ec2-metadata-token"  # noqa: S105 - the name of a header


class Ec2Feed:
    """The interruption of a spot instance, by IMDSv2."""

    def __init__(self, service: MetadataService, clock: Clock) -> None:
        self._service = service
        self._clock = clock
        self._token = ""

    async def look(self) -> SourceFinding:
        """Reads the instance action, then the rebalance recommendation, which alone never hides an action."""
        action = await self._read("/latest/meta-data/spot/instance-action")
        found = cloud_answers.spot_finding(action, now=self._clock.boottime(), wall=self._clock.wall())
        if found.notice:
            return found
        advice = await self._read("/latest/meta-data/events/recommendations/rebalance")
        return SourceFinding(warning=cloud_answers.rebalance_warning(advice))

    async def _read(self, path: str) -> MetadataAnswer:
        """A GET with the session token; a new one if there is none or it is refused (401)."""
        for _ in range(2):
            token = self._token or await self._new_token()
            answer = await self._service.request("GET", path, {_TOKEN: token}, within=ANSWER_SECONDS)
            if answer.status != 401:
                return answer
            self._token = ""
        return answer

    async def _new_token(self) -> str:
        headers = {f"{_TOKEN}-ttl-seconds": str(TOKEN_SECONDS), "Content-Length": "0"}
        answer = await self._service.request("PUT", "/latest/api/token", headers, within=ANSWER_SECONDS)
        token = answer.body.decode("latin-1").strip()
        if answer.status != 200 or not token.isprintable() or not 0 < len(token) <= 512:
            raise UnreadableAnswer(f"EC2 gives no session token, but {answer.status}")
        self._token = token
        return token


class GcpFeed:
    """The preemption of a Spot VM of Compute Engine. After the first answer a request waits for a change."""

    def __init__(self, service: MetadataService, clock: Clock) -> None:
        self._service = service
        self._clock = clock
        self._etag = ""

    async def look(self) -> SourceFinding:
        """Reads whether the machine is preempted; returns within WAIT_SECONDS, and earlier at a change."""
        path, within = "/computeMetadata/v1/instance/preempted", ANSWER_SECONDS
        etag, self._etag = self._etag, ""  # after an error the value is read at once
        if etag:
            path += f"?wait_for_change=true&timeout_sec={WAIT_SECONDS}&last_etag={etag}"
            within += WAIT_SECONDS
        answer = await self._service.request("GET", path, {"Metadata-Flavor": "Google"}, within=within)
        found = cloud_answers.preemption_finding(answer, now=self._clock.boottime())
        self._etag = answer.etag if answer.etag.isalnum() else ""
        return found


class AzureFeed:
    """Azure's scheduled events. ``pods_ended`` says when an event may be started, if the settings want that."""

    def __init__(
        self, service: MetadataService, clock: Clock, settings: AzureSettings, pods_ended: Callable[[], bool]
    ) -> None:
        self._service = service
        self._clock = clock
        self._settings = settings
        self._types = [one.value for one in settings.event_types]
        self._pods_ended = pods_ended
        self._machine = settings.resource_name
        self._started: set[str] = set()

    async def look(self) -> SourceFinding:
        """Reads the events; starts those of this machine alone once its pods have ended."""
        machine = self._machine or await self._read_name()
        answer = await self._read("/metadata/scheduledevents?api-version=2020-07-01")
        events = cloud_answers.azure_events(answer)
        found = cloud_answers.azure_finding(
            events, answer, machine=machine, types=self._types, now=self._clock.boottime(), wall=self._clock.wall()
        )
        if self._settings.acknowledge and found.notice and self._pods_ended():
            own = cloud_answers.events_to_start(events, machine=machine, types=self._types)
            await self._start_events([one for one in own if one not in self._started])
        return found

    async def _read_name(self) -> str:
        answer = await self._read("/metadata/instance/compute/name?api-version=2021-02-01&format=text")
        name = plain_text(answer.body.decode("utf-8", errors="replace")).strip()
        if answer.status != 200 or not 0 < len(name) <= 255:
            raise UnreadableAnswer(f"Azure does not tell the machine's name, but answers {answer.status}")
        self._machine = name
        return name

    async def _read(self, path: str) -> MetadataAnswer:
        return await self._service.request("GET", path, {"Metadata": "true"}, within=ANSWER_SECONDS)

    async def _start_events(self, ids: list[str]) -> None:
        """Acknowledges the events: Azure need not wait for their time."""
        if not ids:
            return
        body = msgspec.json.encode({"StartRequests": [{"EventId": one} for one in ids]})
        path, headers = "/metadata/scheduledevents?api-version=2020-07-01", {"Metadata": "true"}
        answer = await self._service.request("POST", path, headers, body=body, within=ANSWER_SECONDS)
        if answer.status == 200:
            self._started.update(ids)
