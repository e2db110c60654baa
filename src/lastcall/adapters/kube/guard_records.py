"""The status of GuardPolicies at the API server, and what the guard does to pods.

Two versions of the guard write the same status during an upgrade. So a writer keeps what it does not know: fields of the
status, of entries, and conditions of other types.
"""

import contextlib
import hashlib
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from lastcall.adapters.kube.client import STRATEGIC, Client
from lastcall.adapters.kube.resources import EVENTS, GUARD_POLICIES, PODS, Object, WrittenObject
from lastcall.errors import Conflict, LastcallError, NotFound, RequestRefused, Unavailable
from lastcall.model.guard_policy import GuardPolicy, GuardPolicyCondition, HeldPod, PreparationState
from lastcall.model.pods import Pod, StatusCondition
from lastcall.names import GUARD_READY
from lastcall.ports.guard_cluster import EntryChange
from lastcall.ports.node import Clock

COMPONENT: Final = "lastcall-guard"

_POLICIES = GUARD_POLICIES.with_shape(GuardPolicy)
_EVENTS = EVENTS.with_shape(WrittenObject)

_MOST_CONFLICTS = 20
"""So often is a write tried: replicas and leader write the same object, each for a moment."""

StatusChange = Callable[[GuardPolicy], tuple[HeldPod, ...] | None]
"""The entries that are wanted; None to leave them as they are."""

log = logging.getLogger(__name__)


class KubeGuardRecords:
    """``ports.guard_cluster.GuardRecords``. Needs get on guardpolicies, and patch on their status."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def change_entry(self, policy: GuardPolicy, uid: str, change: EntryChange) -> HeldPod | None:
        """``GuardRecords.change_entry``. Conflict if others write all the time."""

        def change_all(current: GuardPolicy) -> tuple[HeldPod, ...] | None:
            entry = change(current, current.find_pod(uid))
            return None if entry is None else current.put_entry(entry)

        stored = await self._change_status(policy, change_all)
        return stored.find_pod(uid) if stored else None

    async def remove_entry(self, policy: GuardPolicy, uid: str) -> None:
        """``GuardRecords.remove_entry``."""

        def change_all(current: GuardPolicy) -> tuple[HeldPod, ...] | None:
            kept = tuple(one for one in current.status.pods if one.uid != uid)
            return kept if len(kept) < len(current.status.pods) else None

        await self._change_status(policy, change_all)

    async def write_policy_condition(self, policy: GuardPolicy, condition: GuardPolicyCondition) -> None:
        """``GuardRecords.write_policy_condition``."""
        others = [one for one in policy.status.conditions if one.type != condition.type]
        patch = {
            "metadata": {"resourceVersion": policy.metadata.resource_version},
            "status": {"conditions": msgspec.to_builtins([*others, condition])},
        }
        with contextlib.suppress(Conflict, NotFound):  # the next look sees it as it is then
            await self._client.patch(
                _POLICIES, policy.name, patch, namespace=policy.metadata.namespace, subresource="status"
            )

    async def _change_status(self, policy: GuardPolicy, change: StatusChange) -> GuardPolicy | None:
        """The policy as it is stored afterwards; None if it is gone, or another one has its name."""
        name, namespace = policy.name, policy.metadata.namespace
        for _ in range(_MOST_CONFLICTS):
            try:
                stored = await self._client.get(GUARD_POLICIES, name, namespace=namespace)
                current = _read_policy(stored)
                if current.metadata.uid != policy.metadata.uid:
                    return None
                pods = change(current)
                if pods is None:
                    return current
                revision = {"resourceVersion": current.metadata.resource_version}
                patch = {"metadata": revision, "status": _changed_status(current, pods, stored.get("status") or {})}
                return await self._client.patch(_POLICIES, name, patch, namespace=namespace, subresource="status")
            except Conflict:
                continue
            except NotFound:
                return None
        raise Conflict(f"the status of GuardPolicy {namespace}/{name} was changed by others {_MOST_CONFLICTS} times")


class KubeGuardActions:
    """``ports.guard_cluster.GuardActions``. ``releaser`` has the right to delete pods, ``client`` that to write Events."""

    def __init__(self, client: Client, releaser: Client, clock: Clock, *, instance: str) -> None:
        self._client = client
        self._releaser = releaser
        self._clock = clock
        self._instance = instance

    async def delete_pod(self, pod: Pod, grace: int | None) -> None:
        """``GuardActions.delete_pod``."""
        metadata = pod.metadata
        try:
            await self._releaser.delete(
                PODS, metadata.name, namespace=metadata.namespace, uid=metadata.uid, grace=grace
            )
        except (NotFound, Conflict):
            return  # it is gone, and another pod may have its name

    async def write_condition(self, pod: Pod, condition: StatusCondition | None) -> None:
        """``GuardActions.write_condition``. Needs patch on pods/status."""
        before = next((one for one in pod.status.conditions or () if one.type == GUARD_READY), None)
        written: Object = {"type": GUARD_READY, "$patch": "delete"}
        if condition:
            is_same = before is not None and before.status == condition.status
            since = (before.last_transition_time if before and is_same else None) or self._now_text()
            written = {
                "type": condition.type,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
                "lastTransitionTime": since,
                "lastProbeTime": condition.last_probe_time,
            }
        metadata = pod.metadata
        patch = {"metadata": {"uid": metadata.uid}, "status": {"conditions": [written]}}
        try:
            await self._client.patch(
                PODS, metadata.name, patch, namespace=metadata.namespace, subresource="status", kind=STRATEGIC
            )
        except (NotFound, Conflict):
            return  # it is gone
        except RequestRefused as error:
            if "metadata.uid" not in str(error):
                raise
            return  # another pod has its name

    async def write_event(self, pod: Pod, reason: str, message: str, *, is_warning: bool) -> None:
        """``GuardActions.write_event``."""
        owner = next((one for one in pod.metadata.owner_references or () if one.controller), None)
        about = [_reference("v1", "Pod", pod.metadata.name, pod.metadata.uid, pod)]
        if owner:
            about.append(_reference(owner.api_version, owner.kind, owner.name, owner.uid, pod))
        for reference in about:
            event = self._event(reference, reason, f"pod {pod.metadata.name}: {message}", is_warning=is_warning)
            try:
                await self._client.create(_EVENTS, event, namespace=pod.metadata.namespace)
            except LastcallError as error:
                log.info("the event %s of %s %s is lost: %s", reason, reference["kind"], reference["name"], error)

    def _now_text(self) -> str:
        moment = datetime.fromtimestamp(self._clock.wall(), UTC)
        return moment.isoformat(timespec="seconds").replace("+00:00", "Z")

    def _event(self, about: Object, reason: str, message: str, *, is_warning: bool) -> Object:
        moment = datetime.fromtimestamp(self._clock.wall(), UTC)
        seconds = self._now_text()
        unique = hashlib.sha256(f"{about['uid']} {reason} {message} {moment.isoformat()}".encode()).hexdigest()[:16]
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{about['name']}.{unique}", "namespace": about["namespace"]},
            "involvedObject": about,
            "reason": reason,
            "message": message[:1024],
            "type": "Warning" if is_warning else "Normal",
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._instance,
            "firstTimestamp": seconds,
            "lastTimestamp": seconds,
            "count": 1,
        }


def _reference(api_version: str, kind: str, name: str, uid: str, pod: Pod) -> Object:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "namespace": pod.metadata.namespace,
        "uid": uid,
    }


def _read_policy(stored: Object) -> GuardPolicy:
    try:
        return msgspec.convert(stored, GuardPolicy)
    except msgspec.ValidationError as error:
        raise Unavailable(f"what the server sent cannot be read: {error}") from error


def _changed_status(current: GuardPolicy, pods: tuple[HeldPod, ...], stored: Object) -> Object:
    """The fields of the status that change. ``stored`` is the status that ``current`` was read from."""
    held = [one for one in pods if one.state is not PreparationState.RELEASED]
    before: Mapping[str, Object] = {one["uid"]: one for one in stored.get("pods") or ()}
    return {
        "pods": [_entry_object(one, current.find_pod(one.uid), before.get(one.uid, {})) for one in pods],
        "heldPods": len(held),
        "readyPods": sum(one.state is PreparationState.READY for one in held),
    }


def _entry_object(entry: HeldPod, before: HeldPod | None, stored: Object) -> Object:
    """The entry as JSON. What this version does not know of a preparation stays as long as that goes on."""
    now = _known_fields(entry)
    if before is None or (before.state is PreparationState.RELEASED and entry.state is not PreparationState.RELEASED):
        return now
    then = _known_fields(before)
    changed = {name for name in {*then, *now} if then.get(name) != now.get(name)}
    return {name: value for name, value in stored.items() if name not in changed} | {
        name: value for name, value in now.items() if name in changed
    }


def _known_fields(entry: HeldPod) -> Object:
    """Without those that say nothing."""
    found: Object = msgspec.to_builtins(entry)
    return {name: value for name, value in found.items() if value is not None and value != ""}
