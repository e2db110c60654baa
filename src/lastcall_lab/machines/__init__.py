"""Machines of the lab: power switches, cables, BMCs, and the pods that run on them."""
