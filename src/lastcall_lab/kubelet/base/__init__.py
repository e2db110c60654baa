"""What all parts of the kubelet use: settings, dependencies, one-shot events."""
