"""Cluster-wide controllers: garbage collection, namespaces, endpoints, role aggregation, service accounts."""
