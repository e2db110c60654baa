"""An API server of Kubernetes for one machine: small, and faithful in what a node's going down touches."""

from lastcall_lab.apiserver.server.api_server import ApiServer

__all__ = ["ApiServer"]
