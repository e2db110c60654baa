"""Unmounts CSI volumes through their drivers, by the kubelet's own data on the disk."""
