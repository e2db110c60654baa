"""Kubernetes objects as YAML text, as people write it."""

from collections.abc import Sequence
from typing import Any

import yaml


class _ManifestDumper(yaml.SafeDumper):
    """Neither anchors nor aliases: what stands in two places is written in both."""

    def ignore_aliases(self, data: Any) -> bool:
        """All of them."""
        return True


def to_yaml(objects: Sequence[Any]) -> str:
    """A document for each object, its fields in their order."""
    return yaml.dump_all(objects, Dumper=_ManifestDumper, sort_keys=False, width=10_000, explicit_start=True)
