"""Which resources there are: names, subresources and behaviour, built in or by CustomResourceDefinitions."""

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
    """The resource in which its objects lie, if not in its own: ``events.events.k8s.io`` lie in ``events``."""
    verbs: Sequence[str] = ()
    """What can be done with it, if that is not everything."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """The fields that have another name where the objects are stored, and that name."""
    custom: bool = False
    """Defined by a CustomResourceDefinition."""
    lists: str = ""
    """The kind of its lists, if that is not its own with ``List``."""
    definition: Object | None = None
    """Of a custom resource: its entry in ``spec.versions`` of the definition, with schema and printer columns."""

    @cached_property
    def qualified_name(self) -> str:
        """``pods`` or ``deployments.apps``."""
        return qualified_resource(self.plural, self.group)

    @cached_property
    def storage(self) -> str:
        """The resource part of the keys of its objects."""
        return self.stored_as or self.qualified_name

    @property
    def internal_group(self) -> str:
        """The group that errors of its rules name: objects of two groups are one kind within the server."""
        return "" if self.renamed else self.group

    @property
    def list_kind(self) -> str:
        """The kind of a list of them."""
        return self.lists or f"{self.kind}List"

    @cached_property
    def api_version(self) -> str:
        """``v1`` or ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version


class ResourceScheme:
    """All resources; later ones may come and go."""

    def __init__(self, resources: Sequence[ServedResource]) -> None:
        self._resources = {(one.group, one.version, one.plural): one for one in resources}
        self._index()

    def __iter__(self) -> Iterator[ServedResource]:
        return iter([*self._resources.values()])  # threads look while definitions come and go

    def find(self, group: str, version: str, plural: str) -> ServedResource | None:
        """By the names in a path."""
        return self._resources.get((group, version, plural))

    def stored_in(self, storage: str) -> ServedResource | None:
        """The resource whose objects have keys with ``storage``."""
        return self._storages.get(storage)

    def has_group(self, group: str) -> bool:
        """Whether any version of the group is served."""
        return group in self._groups

    def add(self, resource: ServedResource) -> None:
        """Serves it from now on, instead of one of the same names."""
        self._resources[resource.group, resource.version, resource.plural] = resource
        self._index()

    def remove(self, resource: ServedResource) -> None:
        """Serves it no more."""
        self._resources.pop((resource.group, resource.version, resource.plural), None)
        self._index()

    def _index(self) -> None:
        """What every request asks for; of the versions of a resource its first one stands for its storage."""
        self._groups = {one.group for one in self}
        self._storages = {one.storage: one for one in reversed([*self]) if not one.stored_as}
