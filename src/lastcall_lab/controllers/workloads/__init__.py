"""Workload controllers: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, disruption budgets."""
