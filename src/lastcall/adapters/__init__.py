"""The only code that touches the bus, the network, the disk, processes or real time."""
