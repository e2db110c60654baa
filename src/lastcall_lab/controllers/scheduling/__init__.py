"""Scheduling: the nodes where a pod can run, and the best of them (pure): ``k8s.io/kubernetes/pkg/scheduler``.

There is no preemption.
"""
