"""Pods that a container runtime runs, through the Container Runtime Interface (CRI, ``runtime.v1``)."""
