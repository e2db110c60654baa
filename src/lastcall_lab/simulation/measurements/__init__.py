"""The parts of an outcome, each from what is true of a rehearsal; ``measure.outcome`` puts them together. Pure."""
