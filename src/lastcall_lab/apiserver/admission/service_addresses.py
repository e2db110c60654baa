"""Allocates cluster IPs and node ports of Services (``pkg/registry/core/service``).

The real server allocates between admission and validation; here it is the last mutating plugin.
"""

import ipaddress
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from random import Random

from lastcall_lab.apiserver.admission.chain import AdmissionAttributes, AdmissionPlugin
from lastcall_lab.apiserver.kinds.services import (
    NO_ADDRESS,
    is_headless,
    needs_address,
    needs_health_check,
    needs_node_ports,
)
from lastcall_lab.apiserver.storage.store import (
    ChangeFeed,
    Compacted,
    StorageKey,
    Store,
    StoredChange,
    StoredChangeKind,
    StoredObject,
)
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import ApiError, Cause, invalid_error
from lastcall_lab.apiserver.values.request import Object

NETWORK = ipaddress.ip_network("10.96.0.0/16")
NODE_PORTS = range(30000, 32768)

_STATIC_ADDRESSES, _STATIC_PORTS = 256, 86
"""The first ports are reserved for explicit requests (``calculateRangeOffset``)."""

_MANY = 1000
"""Changes read at once."""

_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_ADDRESS_RULE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


class ServiceAddresses(AdmissionPlugin):
    """Reads the allocations from the Services themselves, so that none can be lost or leak."""

    def __init__(self, store: Store, random: Random) -> None:
        self._services = _ServiceIndex(store)
        self._random = random

    async def mutate(self, attributes: AdmissionAttributes) -> None:
        """Allocates what the Service lacks. ApiError if a requested value is taken."""
        if attributes.resource.storage != "services" or attributes.subresource or attributes.obj is None:
            return
        spec, old = attributes.obj["spec"], attributes.old
        had = (old or {}).get("spec")
        if spec["type"] != "ExternalName" and (had is None or had["type"] == "ExternalName"):
            if causes := [*_default_families(spec)]:
                raise invalid_error("Service", "", attributes.obj["metadata"].get("name", ""), causes)
            if needs_address(spec):
                self._assign_address(attributes.obj)
            else:
                spec["clusterIP"] = NO_ADDRESS
        if needs_health_check(spec) and not spec.get("healthCheckNodePort"):
            others = self._other_specs(attributes.obj)
            spec["healthCheckNodePort"] = self._free_port({one.get("healthCheckNodePort") for one in others})
        if needs_node_ports(spec):
            self._assign_node_ports(attributes.obj, {port.get("nodePort") for port in (had or {}).get("ports") or ()})

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """ApiError if another Service has taken a value meanwhile: others are served during webhooks and threads."""
        await self.mutate(attributes)

    def _assign_address(self, service: Object) -> None:
        spec, taken = service["spec"], self._services.addresses_of_others(service)
        address = (spec.get("clusterIPs") or [""])[0]
        if address:
            if wrong := _address_violation(address, taken):
                raise _invalid_service(service, wrong)
        else:
            address = self._free_address(taken)
        spec["clusterIP"], spec["clusterIPs"] = address, [address]

    def _free_address(self, taken: Collection[str]) -> str:
        size = NETWORK.num_addresses
        start = self._random.randrange(_STATIC_ADDRESSES, size - 1)
        after = chain(range(start, size - 1), range(_STATIC_ADDRESSES, start), range(1, _STATIC_ADDRESSES))
        return next(address for offset in after if (address := str(NETWORK[offset])) not in taken)

    def _assign_node_ports(self, service: Object, own: set[int | None]) -> None:
        taken = {port.get("nodePort") for other in self._other_specs(service) for port in other.get("ports") or ()}
        for index, port in enumerate(service["spec"].get("ports") or ()):
            number, path = port.get("nodePort"), f"spec.ports[{index}].nodePort"
            if not number:
                port["nodePort"] = self._free_port(taken | own)
            elif number not in own and number not in NODE_PORTS:
                limits = f"{NODE_PORTS[0]}-{NODE_PORTS[-1]}"
                why = f"provided port is not in the valid range. The range of valid ports is {limits}"
                raise _invalid_service(service, field_errors.invalid(path, number, why))
            elif number not in own and number in taken:
                raise _invalid_service(
                    service, field_errors.invalid(path, number, "provided port is already allocated")
                )
            taken.add(port["nodePort"])

    def _free_port(self, taken: set[int | None]) -> int:
        dynamic = NODE_PORTS[_STATIC_PORTS:]
        start: int = self._random.randrange(len(dynamic))
        after: tuple[int, ...] = (*dynamic[start:], *dynamic[:start], *NODE_PORTS[:_STATIC_PORTS])
        return next(port for port in after if port not in taken)

    def _other_specs(self, service: Object) -> Iterator[Object]:
        metadata = service["metadata"]
        for key, spec in self._services.specs().items():
            if key[1:] != (metadata.get("namespace"), metadata.get("name")):
                yield spec


class _ServiceIndex:
    """The specs and addresses of all Services; each call reads only the changes since the last one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._feed: ChangeFeed | None = None
        self._specs: dict[StorageKey, Object] = {}
        self._addresses: set[str] = set()

    def specs(self) -> Mapping[StorageKey, Object]:
        """The current specs."""
        if self._feed is None:
            self._feed = self._begin()
        try:
            while changes := self._feed.take(_MANY):
                for change in changes:
                    self._apply_change(change)
        except Compacted:
            self._feed = self._begin()
        return self._specs

    def addresses_of_others(self, service: Object) -> Collection[str]:
        """The addresses of all other Services."""
        metadata = service["metadata"]
        key = StorageKey("services", metadata.get("namespace", ""), metadata.get("name", ""))
        own = self.specs().get(key, {}).get("clusterIPs")
        return self._addresses.difference(own) if own else self._addresses

    def _begin(self) -> ChangeFeed:
        self._specs, self._addresses = {}, set()
        for stored in self._store.objects("services"):
            self._add_service(stored)
        return self._store.open_feed("services", self._store.revision)

    def _apply_change(self, change: StoredChange) -> None:
        self._addresses.difference_update(self._specs.pop(change.new.key, {}).get("clusterIPs") or ())
        if change.kind is not StoredChangeKind.DELETED:
            self._add_service(change.new)

    def _add_service(self, stored: StoredObject) -> None:
        spec = self._specs[stored.key] = stored.to_object()["spec"]
        self._addresses.update(spec.get("clusterIPs") or ())


def _default_families(spec: Object) -> Iterator[Cause]:
    """The errors of the IP families (``Allocators.initIPFamilyFields``), and the defaults of missing fields.

    The lab has IPv4 only. A headless Service without a selector gets both families, because its endpoints are unknown.
    """
    named = spec.get("ipFamilies") or []
    for index, family in enumerate(named):
        if family not in _FAMILIES:
            yield field_errors.not_supported(f"spec.ipFamilies[{index}]", family, _FAMILIES)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _FAMILY_POLICIES:
        yield field_errors.not_supported("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES)
    both = is_headless(spec) and not spec.get("selector")
    spec["ipFamilyPolicy"] = spec.get("ipFamilyPolicy") or ("RequireDualStack" if both else "SingleStack")
    if not spec.get("ipFamilies"):
        spec["ipFamilies"] = ["IPv4", "IPv6"] if both and spec["ipFamilyPolicy"] != "SingleStack" else ["IPv4"]
    if both:
        return
    if spec["ipFamilyPolicy"] == "RequireDualStack":
        why = "this cluster is not configured for dual-stack services"
        yield field_errors.invalid("spec.ipFamilyPolicy", "RequireDualStack", why)
    for index, family in enumerate(named):
        if family == "IPv6":
            yield field_errors.invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")


def _address_violation(address: str, taken: Collection[str]) -> Cause | None:
    """Why the address cannot be allocated."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return field_errors.invalid("spec.clusterIPs[0]", address, _ADDRESS_RULE)
    if parsed not in NETWORK:
        why = f"the provided IP ({address}) is not in the valid range. The range of valid IPs is {NETWORK}"
    elif address in taken:
        why = "provided IP is already allocated"
    else:
        return None
    return field_errors.invalid("spec.clusterIPs", [address], f"failed to allocate IP {address}: {why}")


def _invalid_service(service: Object, cause: Cause) -> ApiError:
    return invalid_error("Service", "", service["metadata"].get("name", ""), [cause])
