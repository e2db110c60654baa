"""Volumes of pods: mounts, files, and the driver's calls."""
