"""An API server of Kubernetes for one machine: small, and faithful in what a node's going down touches."""

from lastcall.lab.apiserver.server import ApiServer

__all__ = ["ApiServer"]
