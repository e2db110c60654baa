"""What the kubelet writes to the API server: its Node, its Lease, events."""
