"""The Common Expression Language as Kubernetes uses it: types, functions, cost limits."""
