"""What is decided about Evictions and EvictionRequests, by the types of Kubernetes 1.37 (pure)."""
