"""What is asked for below an object: binding, eviction, scale, log, exec, reviews."""
