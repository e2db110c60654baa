"""One shutdown: its run, the termination of each pod and container, the journal, and the text of its events."""
