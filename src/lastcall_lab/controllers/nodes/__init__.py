"""Controllers of nodes and of the pods on lost ones: node lifecycle, taint eviction, Pod GC."""
