"""The guard: a pod is not deleted until its application has prepared."""
