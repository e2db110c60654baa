"""From a path and a method to what is asked for."""
