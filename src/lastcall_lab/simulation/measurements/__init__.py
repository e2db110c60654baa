"""The parts of an outcome, each measured from the truth of a rehearsal; ``outcome_builder`` combines them. Pure."""
