"""Controllers of everything else: garbage collection, namespaces, budgets, endpoints, service accounts."""
