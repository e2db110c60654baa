"""The Kubernetes objects that lastcall needs in a cluster (pure)."""
