"""The served resources: names, subresources and behaviour, built-in or from CustomResourceDefinitions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.values.api_errors import qualified_resource
from lastcall_lab.apiserver.values.request import Object


@dataclass(frozen=True, eq=False)
class ServedResource:
    """One resource in one version. ``subresources`` are names such as ``status``."""

    group: str
    version: str
    plural: str
    kind: str
    behaviour: KindBehaviour
    namespaced: bool = True
    subresources: Sequence[str] = ()
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    singular: str = ""
    stored_as: str = ""
    """The resource that stores its objects, if it is another one: ``events.events.k8s.io`` uses ``events``."""
    verbs: Sequence[str] = ()
    """Its verbs, if it does not support all."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Field names that differ in storage, and their stored names."""
    custom: bool = False
    """Whether a CustomResourceDefinition defines it."""
    lists: str = ""
    """The kind of its lists, if it is not its kind with the suffix ``List``."""
    definition: Object | None = None
    """For a custom resource: its entry in the definition's ``spec.versions``, with schema and printer columns."""

    @cached_property
    def qualified_name(self) -> str:
        """``pods`` or ``deployments.apps``."""
        return qualified_resource(self.plural, self.group)

    @cached_property
    def storage(self) -> str:
        """The resource part of its objects' keys."""
        return self.stored_as or self.qualified_name

    @property
    def internal_group(self) -> str:
        """The group in validation errors: within the server, objects of two groups can be one kind."""
        return "" if self.renamed else self.group

    @property
    def list_kind(self) -> str:
        """The kind of its lists."""
        return self.lists or f"{self.kind}List"

    @cached_property
    def api_version(self) -> str:
        """``v1`` or ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version


class ResourceScheme:
    """All resources; custom ones can be added and removed."""

    def __init__(self, resources: Sequence[ServedResource]) -> None:
        self._resources = {(one.group, one.version, one.plural): one for one in resources}
        self._index()

    def __iter__(self) -> Iterator[ServedResource]:
        return iter([*self._resources.values()])  # threads read it while definitions change

    def find(self, group: str, version: str, plural: str) -> ServedResource | None:
        """The resource with the names in a path."""
        return self._resources.get((group, version, plural))

    def stored_in(self, storage: str) -> ServedResource | None:
        """The resource with the key part ``storage``."""
        return self._storages.get(storage)

    def has_group(self, group: str) -> bool:
        """Whether any version of the group is served."""
        return group in self._groups

    def add(self, resource: ServedResource) -> None:
        """Serves the resource, replacing one of the same names."""
        self._resources[resource.group, resource.version, resource.plural] = resource
        self._index()

    def remove(self, resource: ServedResource) -> None:
        """Stops serving the resource."""
        self._resources.pop((resource.group, resource.version, resource.plural), None)
        self._index()

    def _index(self) -> None:
        """The look-ups of every request; the first version of a resource represents its storage."""
        self._groups = {one.group for one in self}
        self._storages = {one.storage: one for one in reversed([*self]) if not one.stored_as}
