"""A user's own cluster as the one that is simulated: from what ``kubectl get -o yaml`` gives."""
