"""``lastcall drain`` in virtual time: its processes, and what they tell."""
