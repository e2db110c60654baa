"""What Kubernetes' types say about the fields of a kind, and the check of bodies against it."""

from lastcall.lab.apiserver.schema.schemas import Schemas
from lastcall.lab.apiserver.schema.types import Node

__all__ = ["Node", "Schemas"]
