"""Volumes of pods: mounts, files, and calls to the storage driver."""
