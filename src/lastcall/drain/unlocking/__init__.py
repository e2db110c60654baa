"""Room for a pod that its budget never lets go: one more pod of its workload for a time (pure)."""
