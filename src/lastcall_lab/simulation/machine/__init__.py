"""A machine in virtual time: ``host.SimulatedHost`` is one, and the other modules are its parts."""
