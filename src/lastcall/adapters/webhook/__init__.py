"""The guard's side of the API server's webhook calls: HTTPS and its certificate."""
