"""A small kubelet: runs the pods bound to one node and reports their status and the node's to the API server."""
