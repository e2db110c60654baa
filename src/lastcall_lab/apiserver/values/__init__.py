"""Plain values: requests, responses, errors, times."""
