"""Machines of the lab: power switches, network and storage cables, BMCs."""
