"""One pod's life on its node: start, probes, restarts, termination, status."""
