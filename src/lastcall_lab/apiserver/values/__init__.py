"""Values without behaviour: requests, answers, errors, times, quantities, names."""
