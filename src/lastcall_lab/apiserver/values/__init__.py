"""Plain values: requests, responses, errors, times, quantities, names."""
