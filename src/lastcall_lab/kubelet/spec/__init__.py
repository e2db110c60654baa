"""From a pod's specification to what the runtime is asked for (pure)."""
