"""A node says that it goes down: its pods are ended in order, inside the time there is, and then it may go."""
