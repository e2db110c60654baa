"""A node and its surroundings on one machine, for trying, testing and rehearsing; never for production."""
