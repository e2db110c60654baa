"""The controllers of the lab's control plane: each decides as a pure function of its view; one runner executes."""
