"""The Container Storage Interface and the kubelet's plugin registration, generated; see README.md."""
