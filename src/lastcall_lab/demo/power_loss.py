"""The demo's second act: a node with a database loses its power, and lastcall's controller fails it over."""

from collections.abc import Callable
from pathlib import Path

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.failover_cluster import COMPONENT
from lastcall.adapters.kube.resources import EVENTS, PODS, Object
from lastcall.ports.node import Clock
from lastcall.report.html_report import Chapter
from lastcall_lab.machines.power import PowerSwitch
from lastcall_lab.up.local_machines import LocalMachines
from lastcall_lab.volumes.storage import Storage
from lastcall_lab.volumes.volume_events import find_violations

SUSPECT_AFTER = "21s"
"""Seconds of silence in the demo's FencePolicy: two heartbeats are missed."""

_LOOK = 0.1


class PowerLossAct:
    """``say`` prints a line; ``volumes`` is the directory of the volumes' files."""

    def __init__(
        self,
        machines: LocalMachines,
        client: Client,
        storage: Storage,
        volumes: Path,
        clock: Clock,
        say: Callable[[str], None],
    ) -> None:
        self._machines = machines
        self._client = client
        self._storage = storage
        self._volumes = volumes
        self._clock = clock
        self._say = say
        self._told: set[str] = set()
        self._rows_told: list[tuple[float, str]] = []
        self._results: list[str] = []
        self._pulled = 0.0

    async def run(self, node: str) -> Chapter:
        """Cuts the power; returns the timeline when the node's databases run elsewhere."""
        lost = {
            pod["metadata"]["name"]: pod["metadata"]["uid"]
            for pod in await self._list_databases()
            if _node_of(pod) == node
        }
        rows = self._written_rows()
        self._pulled = self._clock.boottime()
        await self._machines.switch(node, PowerSwitch.OFF.value)
        while not all(
            _is_ready(pod) and lost.get(pod["metadata"]["name"]) != pod["metadata"]["uid"]
            for pod in await self._find_databases(lost)
        ):
            await self._show_events()
            await self._clock.sleep(_LOOK)
        await self._show_events()
        for pod in await self._list_databases():
            if pod["metadata"]["name"] in lost:
                self._show_text(f"{pod['metadata']['name']} runs on {_node_of(pod)}, with its volume")
        self._check_storage(rows)
        return Chapter(f"Failover of {node}, whose plug was pulled", self._rows_told, self._results)

    # -- what is looked at ---------------------------------------------------------------------------------------------

    async def _list_databases(self) -> list[Object]:
        return list((await self._client.list(PODS, namespace="shop", labels="app=database")).items)

    async def _find_databases(self, names: dict[str, str]) -> list[Object]:
        """The databases of these names; an empty object for each that does not exist now."""
        found = {pod["metadata"]["name"]: pod for pod in await self._list_databases()}
        missing: Object = {"metadata": {"name": "", "uid": ""}, "status": {}}
        return [found.get(name, missing) for name in names]

    def _written_rows(self) -> dict[Path, bytes]:
        """The rows that the databases have written so far, from their files."""
        return {path: path.read_bytes() for path in self._volumes.rglob("rows")}

    # -- what is said --------------------------------------------------------------------------------------------------

    async def _show_events(self) -> None:
        """Prints the controller's events as kubectl shows them."""
        events = [one for one in (await self._client.list(EVENTS)).items if one.get("reportingComponent") == COMPONENT]
        for event in sorted(events, key=lambda one: int(one["metadata"]["resourceVersion"])):
            if event["metadata"]["uid"] not in self._told:
                self._told.add(event["metadata"]["uid"])
                self._show_text(f"{event['reason']} {event['involvedObject']['name']}: {event['message']}")

    def _show_text(self, text: str) -> None:
        at = self._clock.boottime() - self._pulled
        self._rows_told.append((at, text))
        self._say(f"{at:7.2f} s  {text}")

    def _check_storage(self, before: dict[Path, bytes]) -> None:
        """Checks the result by the storage's records, not by the controller's reports."""
        kept = all(path.read_bytes().startswith(rows) for path, rows in before.items())
        count = sum(rows.count(b"\n") for rows in before.values())
        broken = find_violations(self._storage.records)
        self._results += [
            f"rows that were written before: {count}, {'none' if kept else 'SOME'} of them lost",
            f"moments at which two nodes could write one volume: {len(broken)}",
        ]
        for result in self._results:
            self._say(result)


def _node_of(pod: Object) -> str:
    return str(pod["spec"].get("nodeName", ""))


def _is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
