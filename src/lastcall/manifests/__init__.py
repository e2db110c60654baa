"""What lastcall needs in a cluster, as Kubernetes objects (pure)."""
