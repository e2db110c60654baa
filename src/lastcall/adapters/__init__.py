"""Adapters: the only code that uses the bus, the network, the disk, processes or real time."""
