"""The verbs that the lab adds to the command line: `lab`, `simulate` and `demo`."""
