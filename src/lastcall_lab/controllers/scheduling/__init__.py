"""Where a pod can run, and where it runs best (pure): ``k8s.io/kubernetes/pkg/scheduler``, without preemption."""
