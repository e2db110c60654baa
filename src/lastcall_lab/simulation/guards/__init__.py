"""lastcall's guard in virtual time, and the applications that it asks."""
