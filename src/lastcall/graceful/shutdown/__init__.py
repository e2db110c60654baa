"""One shutdown: its run, the end of each pod and container, the journal, and what others see of it."""
