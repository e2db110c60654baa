"""Evidence about a node and each of its boots: facts, what they prove, and the marks that record progress."""
