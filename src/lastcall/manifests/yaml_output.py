"""Kubernetes objects as readable YAML."""

from collections.abc import Sequence
from typing import Any

import yaml


class _ManifestDumper(yaml.SafeDumper):
    """Dumps without anchors and aliases: an object that occurs twice is written twice."""

    def ignore_aliases(self, data: Any) -> bool:
        """True: every object is written in full."""
        return True


def to_yaml(objects: Sequence[Any]) -> str:
    """One document for each object, with fields in their given order."""
    return yaml.dump_all(objects, Dumper=_ManifestDumper, sort_keys=False, width=10_000, explicit_start=True)
