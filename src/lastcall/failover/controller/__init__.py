"""The controller at work: it observes, gathers, has decided, acts, and makes sure of what cannot be undone."""
