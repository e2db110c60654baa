"""Access to the pods of a container runtime through the Container Runtime Interface (CRI, ``runtime.v1``)."""
