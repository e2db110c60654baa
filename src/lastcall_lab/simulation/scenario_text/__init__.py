"""How a scenario is said: ``reading.read`` makes one of YAML, ``writing.write`` YAML of one. Pure."""
